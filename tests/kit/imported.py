"""Imports what jobs import while they run; the server of `forked` imports this module."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Final

import icestream

_UNUSED: Final = ("icestream.operator", "icestream.stack", "icestream.rest", "icestream.image_archives")
_LATE: Final = (
    "pyiceberg.catalog.sql",
    "pyiceberg.io.pyarrow",
    "pyspark.sql",
    "tests.crashes.manager_process",
)


def _import_all() -> None:
    for module in pkgutil.walk_packages(icestream.__path__, "icestream."):
        if not module.name.startswith(_UNUSED) and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for name in _LATE:
        importlib.import_module(name)


_import_all()
