"""`python -m bench.counted FILE …`: the icestream command with its SQL statements counted in a file.

The only questions that a SQLite catalog gets are its statements; nobody but the process itself sees them.
"""

from __future__ import annotations

import mmap
import struct
import sys
import threading
from pathlib import Path
from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import Engine


def make(file: Path) -> None:
    file.write_bytes(bytes(8))


def read(file: Path) -> int:
    return int(struct.unpack("=q", file.read_bytes())[0])


def _count_into(file: Path) -> None:
    lock, count = threading.Lock(), 0
    with file.open("r+b") as opened:
        shared = mmap.mmap(opened.fileno(), 8)

    def counted(*_: Any) -> None:
        nonlocal count
        with lock:
            count += 1
            shared[:] = struct.pack("=q", count)

    event.listen(Engine, "before_cursor_execute", counted)


if __name__ == "__main__":
    from icestream.cli.main import main

    _count_into(Path(sys.argv[1]))
    sys.argv = ["icestream", *sys.argv[2:]]
    main()
