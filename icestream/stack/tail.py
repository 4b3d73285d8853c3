"""The lines of several log files, and those that come later. Used by `icestream stack logs`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

_POLL_S: Final = 0.3


def tail(
    files: Mapping[str, Path], follow: bool, write: Callable[[str], None], sleep: Callable[[float], None]
) -> None:
    """Each line after the name of its part, unless there is one part only."""
    seen = dict.fromkeys(files, 0)
    while True:
        for name, file in files.items():
            prefix = f"{name} | " if len(files) > 1 else ""
            lines, seen[name] = _lines(file, seen[name])
            for line in lines:
                write(f"{prefix}{line}")
        if not follow:
            return
        sleep(_POLL_S)


def _lines(file: Path, start: int) -> tuple[list[str], int]:
    """The complete lines from a position on, and where they end. A file that shrank was begun anew."""
    try:
        size = file.stat().st_size
        with file.open("rb") as content:
            content.seek(start if start <= size else 0)
            read = content.read()
            end = content.tell()
    except FileNotFoundError:
        return [], 0
    complete, newline, _ = read.rpartition(b"\n")
    rest = len(read) - len(complete) - len(newline)
    return complete.decode(errors="replace").splitlines() if newline else [], end - rest
