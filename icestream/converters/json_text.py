"""JSON payloads as text: what can be told of them without decoding, at memory speed.

Counting quotation marks tells two things. A payload with an odd number of them would swallow the next one
when payloads are decoded as one text. And a text that has more of them than its decoded rows account for
holds keys that were not decoded: inferring every record to find new fields would cost more than decoding it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

_QUOTE = ord('"')


@dataclass(frozen=True)
class Payloads:
    """Byte strings, back to back in one buffer."""

    text: bytes
    offsets: np.ndarray[tuple[int], np.dtype[np.int64]]
    """Where each begins, and where the last one ends."""

    @classmethod
    def of(cls, values: Sequence[bytes]) -> Payloads:
        offsets = np.zeros(len(values) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, values), np.int64, len(values)), out=offsets[1:])
        return cls(b"".join(values), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[bytes]:
        bounds = self.offsets.tolist()
        return (self.text[low:high] for low, high in zip(bounds, bounds[1:], strict=False))

    def __getitem__(self, part: slice) -> Payloads:
        low, high, _ = part.indices(len(self))
        bounds = self.offsets[low : high + 1]
        return Payloads(self.text[bounds[0] : bounds[-1]], bounds - bounds[0])

    def take(self, index: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Payloads:
        starts, ends = self.offsets[index].tolist(), self.offsets[index + 1].tolist()
        return Payloads.of([self.text[low:high] for low, high in zip(starts, ends, strict=True)])


def not_one_value(payloads: Payloads) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which payloads must not be decoded together with others: they may end inside a string or hold no value."""
    if not len(payloads):
        return np.zeros(0, np.bool_)
    text = np.frombuffer(payloads.text, np.uint8)
    starts, ends = payloads.offsets[:-1], payloads.offsets[1:]
    if (starts == ends).any():
        return _one_by_one(payloads)
    objects = (text[starts] == ord("{")) & (text[ends - 1] == ord("}"))
    quotes = np.add.reduceat(text == _QUOTE, starts, dtype=np.uint8)
    # Odd counts are exact unless a quotation mark is escaped, and then each such payload is looked at again.
    suspicious = ~objects | (quotes % 2 == 1)
    if b"\\" in payloads.text:
        escaped = np.logical_or.reduceat(text == ord("\\"), starts)
        odd = [_has_open_string(payload) for payload in payloads.take(np.flatnonzero(escaped))]
        suspicious[escaped] = ~objects[escaped] | np.array(odd, np.bool_)
    return np.asarray(suspicious, np.bool_)


def _one_by_one(payloads: Payloads) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.array(
        [not (p.startswith(b"{") and p.endswith(b"}")) or _has_open_string(p) for p in payloads], np.bool_
    )


def _has_open_string(payload: bytes) -> bool:
    # A backslash escapes what follows it, so pairs of them are taken out first, from the left.
    unpaired = payload.replace(b"\\\\", b"")
    return (unpaired.count(b'"') - unpaired.count(b'\\"')) % 2 == 1


def keys_agree(payloads: Payloads, rows: pa.Table) -> bool:
    """Whether the decoded rows account for every key of the text. True is certain; False means look closer."""
    text = payloads.text
    if b"\\" in text:
        text = text.replace(b"\\\\", b"")
    quotes = text.count(b'"') - text.count(b'\\"')
    # A key without a value makes no column, as in Kafka Connect. The mark before the colon ends a key: inside
    # a
    # string it would be escaped.
    nulls = sum(text.count(mark) - text.count(b"\\" + mark) for mark in (b'":null', b'": null'))
    return quotes - 2 * nulls == 2 * _marks(rows)


def _marks(rows: pa.Table) -> int:
    """Pairs of quotation marks that the text of these rows must have: one per key, one per string."""
    return sum(_pairs_in_column(chunk) for column in rows.itercolumns() for chunk in column.chunks)


def _pairs_in_column(column: pa.Array) -> int:
    return _valid(column) + _pairs_in(column)


def _valid(values: pa.Array) -> int:
    return int(len(values) - values.null_count)


def _pairs_in(values: pa.Array) -> int:
    kind = values.type
    if pt.is_string(kind):
        return _valid(values)
    if pt.is_struct(kind):
        return sum(_pairs_in_column(values.field(child)) for child in range(kind.num_fields))
    if pt.is_map(kind):
        low, high = values.offsets[0].as_py(), values.offsets[-1].as_py()
        items = values.items.slice(low, high - low)
        return _pairs_in_column(items)
    if pt.is_list(kind):
        return _pairs_in(values.flatten())
    return 0
