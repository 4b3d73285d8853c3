"""The row groups of files that a compaction writes. Used by the compactions of the sinks of tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa

_BYTES: Final = 64 * 1024 * 1024
"""Of rows in memory. So much is held, and what one table has of it more."""


def row_groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Tables that follow each other, joined up to the size of a row group."""
    held: list[pa.Table] = []
    size = 0
    for table in tables:
        if held and size + table.nbytes > _BYTES:
            yield pa.concat_tables(held)
            held, size = [], 0
        held.append(table)
        size += table.nbytes
    if held:
        yield pa.concat_tables(held)
