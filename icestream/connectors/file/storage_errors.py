"""What the file system says no to, as a sink that is away for now. Used by `sink.py` and `journal.py`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from icestream.api.errors import SinkUnavailable


@contextmanager
def told(doing: str, path: str | Path) -> Iterator[None]:
    """Tell of an OSError what could not be done; `doing` completes "cannot …"."""
    try:
        yield
    except OSError as error:
        raise SinkUnavailable(f"cannot {doing} '{path}': {error.strerror}; free space or allow it") from error
