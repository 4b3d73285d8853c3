"""Which files this process has open, for tests of what is closed."""

from __future__ import annotations

import os
from pathlib import Path


def times_open(path: Path) -> int:
    """How often this process has the file open."""
    wanted, found = path.stat(), 0
    for number in os.listdir("/dev/fd"):
        try:
            found += os.path.samestat(os.fstat(int(number)), wanted)
        except OSError:
            continue  # by it the folder was listed
    return found
