"""Unix sockets between Spark and its Python workers, in a folder that only its owner enters. Used by
`session.py`.

Over TCP a small task waits 40 ms for its input, as if an acknowledgement were delayed.
docs/decisions/015-one-record.md has the figures.
"""

from __future__ import annotations

import atexit
import functools
import shutil
import socket
import tempfile
from collections.abc import Mapping
from typing import Final

_ENABLED: Final = "spark.python.unix.domain.socket.enabled"
_FOLDER: Final = "spark.python.unix.domain.socket.dir"
_LONGEST_FOLDER: Final = 60
"""The path of a socket has about 100 characters, of which Spark's names take 42."""


def socket_settings(given: Mapping[str, str]) -> dict[str, str]:
    """For Spark on this machine; empty where somebody has chosen, or where it cannot be done."""
    if _ENABLED in given or _FOLDER in given or not hasattr(socket, "AF_UNIX"):
        return {}
    folder = _own_folder()
    return {_ENABLED: "true", _FOLDER: folder} if len(folder) <= _LONGEST_FOLDER else {}


@functools.cache
def _own_folder() -> str:
    """Of this process, for its life. These sockets ask for no password: whoever reaches them runs code."""
    folder = tempfile.mkdtemp(prefix="icestream-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
