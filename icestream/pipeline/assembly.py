"""Converted keys, values and headers of a chunk, put together as groups of alike records. Called by
`record_path`."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa

from icestream.kafka.chunk import Chunk
from icestream.records.column import Column
from icestream.records.records import Converted, Header, Records
from icestream.records.rows import Indexes
from icestream.records.values import Value

_Codes = np.ndarray[tuple[int], np.dtype[np.int64]]
_Headers = tuple[tuple[str, bytes | None], ...]
_NOWHERE = -1
"""The code of a row that did not convert."""
_NO_TIMESTAMP = -1
"""How Kafka writes that a record has none."""


def assembled(
    chunk: Chunk, keys: Converted, values: Converted, without: Collection[int], *, with_headers: bool
) -> list[Records]:
    """The rows that converted; rows part ways where their keys, values or header names are not alike."""
    headers: Sequence[_Headers] = chunk.headers() if with_headers else ()
    signatures, header_codes = _signatures(headers) if headers else ([()], np.zeros(len(chunk), np.int64))
    key_codes, value_codes = _codes(keys, len(chunk)), _codes(values, len(chunk))
    mixed = (key_codes * len(values.groups) + value_codes) * len(signatures) + header_codes
    mixed[np.fromiter(without, np.int64, len(without))] = _NOWHERE
    moments, partitions, offsets = chunk.timestamps(), chunk.partitions(), chunk.offsets()
    groups = []
    for code in np.unique(mixed).tolist():
        if code == _NOWHERE:
            continue
        rows = np.flatnonzero(mixed == code)
        rest, signature = divmod(code, len(signatures))
        key, value = divmod(rest, len(values.groups))
        groups.append(
            Records(
                rows=rows,
                topic=chunk.topic,
                timestamps=pa.array(moments[rows], mask=moments[rows] == _NO_TIMESTAMP),
                key=_cut(keys.groups[key], rows),
                value=_cut(values.groups[value], rows),
                headers=_headers(headers, signatures[signature], rows),
                partitions=partitions[rows],
                offsets=offsets[rows],
            )
        )
    return groups


def _codes(converted: Converted, length: int) -> _Codes:
    """For each row the number of its group."""
    codes = np.full(length, _NOWHERE, np.int64)
    for code, (rows, _) in enumerate(converted.groups):
        codes[slice(None) if rows is None else rows] = code
    return codes


def _cut(group: tuple[Indexes | None, Value], rows: Indexes) -> Value:
    """The values of these rows of the chunk, which are all in the group."""
    held, value = group
    if value is None or np.array_equal(rows, np.arange(len(value)) if held is None else held):
        return value
    if held is None:
        return value.take(rows)
    # A converter may have gathered the rows of a group in any order.
    order = np.argsort(held)
    return value.take(order[np.searchsorted(held, rows, sorter=order)])


def _signatures(rows: Sequence[_Headers]) -> tuple[list[tuple[str, ...]], _Codes]:
    """The distinct lists of header names, and which of them each row has."""
    found: dict[tuple[str, ...], int] = {}
    names = (tuple(name for name, _ in headers) for headers in rows)
    codes = np.fromiter((found.setdefault(one, len(found)) for one in names), np.int64, len(rows))
    return list(found), codes


def _headers(headers: Sequence[_Headers], names: Sequence[str], rows: Indexes) -> tuple[Header, ...]:
    if not names:
        return ()
    mine = [headers[row] for row in rows.tolist()]
    return tuple(
        Header(name, Column(pa.array([one[at][1] for one in mine], pa.binary())), raw=True)
        for at, name in enumerate(names)
    )
