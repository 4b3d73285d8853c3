"""The rows of one statement, as they arrive. Opened by `table_reader` for each page of a window."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from icestream.connectors.jdbc.source.sessions import SessionStream

_MOST_BYTES: Final = 64 * 1024 * 1024
"""Of rows that are held at a time."""


class Page:
    """The rows of one statement that have arrived and were not taken yet."""

    def __init__(self, stream: SessionStream, most: int | None) -> None:
        self._stream = stream
        self._most = most
        self._held: list[pa.RecordBatch] = []
        self._seen = 0
        self.is_ended = False

    @property
    def has_rows(self) -> bool:
        return bool(self._held)

    @property
    def is_full(self) -> bool:
        """Whether there may be more rows behind its own."""
        return self._most is not None and self._seen >= self._most

    def fill(self, limit: int, *, any_size: bool = False) -> tuple[int, bool]:
        """How many rows there are to take, at most `limit`, and whether another one is known after them."""
        while not self.is_ended and self._count <= limit:
            if not any_size and self._count and sum(one.nbytes for one in self._held) > _MOST_BYTES:
                break
            self._more()
        count = min(limit, self._count)
        if count == self._count and not self.is_ended:
            # Whether the next row is of the same timestamp has to be known.
            count -= 1 if count > 1 else 0
            if count == self._count:
                self._more()
        return count, self._count > count

    def rows(self, count: int) -> pa.RecordBatch:
        found, left = [], count
        for batch in self._held:
            if left <= 0:
                break
            found.append(batch.slice(0, left))
            left -= found[-1].num_rows
        return found[0] if len(found) == 1 else pa.concat_batches(found)

    def drop(self, count: int) -> None:
        while count:
            first = self._held.pop(0)
            if first.num_rows > count:
                self._held.insert(0, first.slice(count))
                return
            count -= first.num_rows

    def close(self) -> None:
        self._stream.close()

    @property
    def _count(self) -> int:
        return sum(batch.num_rows for batch in self._held)

    def _more(self) -> None:
        batch = self._stream.read()
        if batch is None:
            self.is_ended = True
            return
        if self._most is not None and self._seen + batch.num_rows > self._most:
            batch = batch.slice(0, self._most - self._seen)
            self._stream.close()
            self.is_ended = True
        if batch.num_rows:
            self._seen += batch.num_rows
            self._held.append(batch)
