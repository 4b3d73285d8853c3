"""What the log says of a data file's columns, by which readers skip files: taken from the Parquet footer.

A wrong bound hides rows, so what is not certain is left out: bounds of floats with NaN among them, of bytes,
of what is inside of lists and maps. docs/decisions/032-delta.md tells what each rule is for.
"""

from __future__ import annotations

import datetime as dt
import decimal
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from icestream.rows.new_columns import Path, fields_of

_LONGEST_TEXT: Final = 64
_INDEXED_COLUMNS: Final = 32
_LAST: Final = chr(0x10FFFF)


@dataclass
class FloatFacts:
    """What the float columns of a file hold. Parquet's own bounds leave NaN out, and readers to whom it is
    the greatest number skip by them what they look for: so files have none of floats (`bounded_columns`)."""

    columns: frozenset[Path]
    with_nan: set[Path] = field(default_factory=set)
    found: dict[Path, _Column] = field(default_factory=dict)

    def add(self, rows: pa.Table) -> None:
        for path in self.columns:
            column = rows.column(path[0])
            if len(path) > 1:
                column = pc.struct_field(column, list(path[1:]))
            so_far = self.found.setdefault(path, _Column(column.type))
            so_far.nulls = (so_far.nulls or 0) + column.null_count
            if path in self.with_nan:
                continue
            if pc.any(pc.is_nan(column)).as_py():
                self.with_nan.add(path)
                continue
            both = pc.min_max(column).as_py()
            if both["min"] is not None:
                so_far.low = both["min"] if so_far.low is None else min(so_far.low, both["min"])
                so_far.high = both["max"] if so_far.high is None else max(so_far.high, both["max"])


def bounded_columns(schema: pa.Schema) -> list[str]:
    """Those that have bounds in the footers of files: no floats, and nothing inside of lists and maps."""
    return [
        ".".join(path) for path, kind in leaves(schema) if not pt.is_floating(kind) and not pt.is_nested(kind)
    ]


def float_columns(schema: pa.Schema) -> frozenset[Path]:
    return frozenset(path for path, kind in leaves(schema) if pt.is_floating(kind))


def leaves(schema: pa.Schema) -> Iterator[tuple[Path, pa.DataType]]:
    """All columns and fields of structs, in order; a list or a map is one."""

    def inside(path: Path, kind: pa.DataType) -> Iterator[tuple[Path, pa.DataType]]:
        if not pt.is_struct(kind):
            yield path, kind
            return
        for one in fields_of(kind):
            yield from inside((*path, one.name), one.type)

    for column in schema:
        yield from inside((column.name,), column.type)


def indexed_columns(schema: pa.Schema, properties: Mapping[str, str]) -> frozenset[Path]:
    """Those that get statistics, as the table's properties say."""
    every = [path for path, _ in leaves(schema)]
    named = properties.get("delta.dataSkippingStatsColumns")
    if named is not None:
        wanted = [tuple(one.strip().strip("`").split(".")) for one in named.split(",") if one.strip()]
        return frozenset(path for path in every if any(path[: len(one)] == one for one in wanted))
    try:
        most = int(properties.get("delta.dataSkippingNumIndexedCols", _INDEXED_COLUMNS))
    except ValueError:
        most = _INDEXED_COLUMNS
    return frozenset(every if most < 0 else every[:most])


@dataclass
class _Column:
    kind: pa.DataType
    nulls: int | None = 0
    low: Any = None
    high: Any = None
    is_bounded: bool = True

    def add(self, statistics: pq.Statistics | None, rows: int) -> None:
        if statistics is None:
            self.nulls, self.is_bounded = None, False
            return
        if not statistics.has_null_count:
            self.nulls = None
        elif self.nulls is not None:
            self.nulls += statistics.null_count
        if not statistics.has_min_max:
            # All values are null, or the bounds are too long to be in the footer.
            self.is_bounded = self.is_bounded and statistics.null_count == rows
            return
        try:
            low, high = statistics.min, statistics.max
        except (OverflowError, ValueError):
            # A date that Arrow has and Python has not, such as one of the year 10000.
            self.is_bounded = False
            return
        self.low = low if self.low is None else min(self.low, low)
        self.high = high if self.high is None else max(self.high, high)


def statistics_json(
    metadata: pq.FileMetaData, schema: pa.Schema, indexed: frozenset[Path], facts: FloatFacts
) -> str:
    """The statistics of an add action. Exact digits of decimals are in it, so it is no mere `json.dumps`."""
    kinds = {".".join(path): (path, kind) for path, kind in leaves(schema) if path in indexed}
    columns: dict[Path, _Column] = {}
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for at in range(metadata.num_columns):
            chunk = row_group.column(at)
            if chunk.path_in_schema not in kinds:
                continue
            path, kind = kinds[chunk.path_in_schema]
            if not pt.is_floating(kind):
                columns.setdefault(path, _Column(kind)).add(chunk.statistics, row_group.num_rows)
    columns |= facts.found
    lows: dict[str, Any] = {}
    highs: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    for path, column in columns.items():
        if column.nulls is not None:
            _put(nulls, path, str(column.nulls))
        if not column.is_bounded or column.low is None or path in facts.with_nan:
            continue
        low, high = _low(column.low, column.kind), _high(column.high, column.kind)
        if low is not None and high is not None:
            _put(lows, path, low)
            _put(highs, path, high)
    parts = (
        f'"numRecords":{metadata.num_rows}',
        f'"minValues":{_text(lows)}',
        f'"maxValues":{_text(highs)}',
        f'"nullCount":{_text(nulls)}',
    )
    return f"{{{','.join(parts)}}}"


def _put(tree: dict[str, Any], path: Path, text: str) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = text


def _text(tree: Mapping[str, Any]) -> str:
    return (
        "{"
        + ",".join(
            f"{json.dumps(name)}:{_text(value) if isinstance(value, Mapping) else value}"
            for name, value in tree.items()
        )
        + "}"
    )


def _low(value: Any, kind: pa.DataType) -> str | None:
    if isinstance(value, str):
        return json.dumps(value[:_LONGEST_TEXT])
    return _bound(value, kind)


def _high(value: Any, kind: pa.DataType) -> str | None:
    if isinstance(value, str):
        cut = _raised(value)
        return None if cut is None else json.dumps(cut)
    return _bound(value, kind)


def _raised(text: str) -> str | None:
    """A short text that is not before the given one; None if there is none."""
    if len(text) <= _LONGEST_TEXT:
        return text
    cut = text[:_LONGEST_TEXT].rstrip(_LAST)
    if not cut:
        return None
    code = ord(cut[-1]) + 1
    return cut[:-1] + chr(0xE000 if 0xD800 <= code <= 0xDFFF else code)


def _bound(value: Any, kind: pa.DataType) -> str | None:
    """As a JSON literal; None: columns of this type have no bounds."""
    if isinstance(value, bool) or pt.is_binary(kind) or pt.is_nested(kind):
        return None
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, float):
        return json.dumps(value) if math.isfinite(value) else None
    if isinstance(value, int):
        return str(value)
    if isinstance(value, dt.datetime):
        # Cut to milliseconds, which readers know and allow for.
        shown = f"{value.year:04}-{value:%m-%dT%H:%M:%S}.{value.microsecond // 1000:03}"
        return json.dumps(f"{shown}Z" if pt.is_timestamp(kind) and kind.tz else shown)
    if isinstance(value, dt.date):
        return json.dumps(value.isoformat())
    return None
