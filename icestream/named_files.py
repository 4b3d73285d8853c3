"""Reads small files that a config names: whoever sends it must not have the worker read a device or a pipe.

Used for the values of config providers, key stores and certificates.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final

MOST_BYTES: Final = 4 * 2**20
"""More than a key store with all authorities of a JVM has."""


def content(file: Path, most: int = MOST_BYTES) -> bytes:
    """All of a regular file; OSError if it is none, cannot be read, or has more bytes than that."""
    try:
        # Without waiting for somebody to write into a pipe.
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except ValueError:
        raise OSError(errno.EINVAL, "no path has a NUL character") from None
    with open(descriptor, "rb") as opened:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        found = opened.read(most + 1) or b""
    if len(found) > most:
        raise OSError(errno.EFBIG, f"it has more than {most:,} bytes")
    return found
