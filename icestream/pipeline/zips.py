"""Keeps Spark's zips off the path of Python workers. Called by the daemon, and by a worker without ours.

Spark puts `pyspark.zip`, py4j's and the jar of its core on the path, and at every task calls
`importlib.invalidate_caches`, which reads the directory of each of them again: most of the time of a small
task.
docs/decisions/015-one-record.md has the figures.
"""

from __future__ import annotations

import re
import sys
import zipfile
from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import Path

_NEEDED = ("pyspark", "py4j")
_VERSION = "pyspark/version.py"
_CORE = re.compile(r"/spark-core_[^/]*\.jar$")
"""A jar is a zip. Some builds of Spark have PySpark in it; that of the pip package has thousands of classes,
and nothing of Python."""


def forget_zips() -> None:
    """Import Spark's packages from the installed ones, if these are the very same version."""
    zips = [path for path in sys.path if path.endswith(".zip") or _CORE.search(path)]
    others = [path for path in sys.path if path not in zips]
    if not zips or not _is_installed(zips, others):
        return
    sys.path[:] = others
    # A package that was imported from a zip has an entry of its own, for a path within the zip.
    for path in [path for path in sys.path_importer_cache if _is_within(path, zips)]:
        del sys.path_importer_cache[path]


def _is_installed(zips: Sequence[str], others: Sequence[str]) -> bool:
    found = {name: PathFinder.find_spec(name, others) for name in _NEEDED}
    if any(spec is None or spec.origin is None for spec in found.values()):
        return False
    spark = found["pyspark"]
    assert spark is not None and spark.origin is not None
    installed = Path(spark.origin).with_name("version.py")
    return installed.is_file() and all(
        version == installed.read_bytes() for version in map(_version_in, zips) if version is not None
    )


def _version_in(path: str) -> bytes | None:
    """What a zip says of Spark's version; None if it holds no pyspark."""
    try:
        with zipfile.ZipFile(path) as content:
            return content.read(_VERSION) if _VERSION in content.namelist() else None
    except (OSError, zipfile.BadZipFile):
        return None


def _is_within(path: str, zips: Sequence[str]) -> bool:
    return any(path == one or path.startswith(f"{one}/") for one in zips)
