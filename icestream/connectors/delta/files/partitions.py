"""Rows by partition: which rows of a table go to which values of its partition columns, and these as text.

A value that does not parse makes a table that nobody can open again, so only what is known to parse is
written: `text_problem` is asked in the task for every row, and by the manager before the commit.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from icestream.tables.data_files import Group, value_codes

_NULL_FOLDER: Final = "__HIVE_DEFAULT_PARTITION__"
_LONGEST_PART: Final = 200
_LONGEST_FOLDER: Final = 500
_INTEGERS: Final[Mapping[pa.DataType, int]] = {
    pa.int8(): 8,
    pa.int16(): 16,
    pa.int32(): 32,
    pa.int64(): 64,
}
_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]*")
_DATE: Final = re.compile(r"(?!0000)\d{4}-\d\d-\d\d")
_TIMESTAMP: Final = re.compile(r"(?!0000)\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}")
_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?")

PartitionValue = tuple[tuple[str, str | None], ...]
"""Columns with their values as the log has them."""


def can_partition(kind: pa.DataType) -> bool:
    """Whether a column of this type may divide a table here. Floats may not: NaN is no value of a folder."""
    return (
        pt.is_string(kind)
        or kind in _INTEGERS
        or pt.is_boolean(kind)
        or pt.is_date32(kind)
        or pt.is_timestamp(kind)
        or pt.is_decimal(kind)
    )


def texts(column: pa.Array) -> pa.Array:
    """Values as text in the form that every reader of Delta tables parses. The empty string is null there."""
    kind = column.type
    if pt.is_string(kind):
        return pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)
    if pt.is_timestamp(kind):
        return pc.strftime(column.cast(pa.timestamp("us")), "%Y-%m-%d %H:%M:%S")
    if pt.is_decimal(kind):
        encoded = column.dictionary_encode()
        shown = [format(one, "f") for one in encoded.dictionary.to_pylist()]
        return pa.array(shown, pa.string()).take(encoded.indices)
    return column.cast(pa.string())


def text_problem(text: str | None, kind: pa.DataType) -> str | None:
    """Why a text is no value of a partition column of this type; None if it is one."""
    if text is None:
        return None
    if pt.is_string(kind):
        return None if text else "it is empty"
    if kind in _INTEGERS:
        bits = _INTEGERS[kind] - 1
        is_one = _INTEGER.fullmatch(text) is not None and -(2**bits) <= int(text) < 2**bits
        return None if is_one else f"it is no whole number of {bits + 1} bits"
    if pt.is_boolean(kind):
        return None if text in ("true", "false") else "it is neither true nor false"
    pattern = _DATE if pt.is_date32(kind) else _TIMESTAMP if pt.is_timestamp(kind) else _NUMBER
    if pattern is _NUMBER and not pt.is_decimal(kind):
        return f"{kind} divides no table"
    return None if pattern.fullmatch(text) else "it is outside of what readers of partitions parse"


@dataclass(frozen=True)
class Partitioner:
    schema: pa.Schema
    """Of the rows."""
    columns: Sequence[str]

    def file_schema(self) -> pa.Schema:
        """Files have no partition columns: the log has their values."""
        return pa.schema([one for one in self.schema if one.name not in self.columns])

    def unfit_rows(self, rows: pa.Table) -> dict[int, str]:
        """Rows whose values cannot be written as text, with the reason. Almost always none."""
        found: dict[int, str] = {}
        for name in self.columns:
            kind = self.schema.field(name).type
            values = _texts_of(rows, name)
            if values.null_count and not self.schema.field(name).nullable:
                empty = f"partition column '{name}' is required and empty, which readers take for null"
                found |= dict.fromkeys(np.flatnonzero(values.is_null()).tolist(), empty)
            distinct = values.dictionary_encode()
            wrong = {
                code: why
                for code, text in enumerate(distinct.dictionary.to_pylist())
                if (why := text_problem(text, kind)) is not None
            }
            if wrong:
                codes = pc.fill_null(distinct.indices, -1).to_numpy(zero_copy_only=False)
                for row in np.flatnonzero(np.isin(codes, list(wrong))).tolist():
                    found.setdefault(
                        row, f"the value of partition column '{name}' cannot be one: {wrong[int(codes[row])]}"
                    )
        return found

    def split(self, rows: pa.Table) -> Iterator[Group[PartitionValue]]:
        """The rows of each partition value, in their order. One sort for all, not one scan per value."""
        kept = rows.select([one.name for one in self.file_schema()])
        if not self.columns:
            yield Group((), kept, None)
            return
        columns = [_texts_of(rows, name) for name in self.columns]
        codes, distinct = value_codes(columns)
        if len(distinct) == 1:
            yield Group(self._value(columns, 0), kept, None)
            return
        order = np.argsort(codes, kind="stable")
        ends = np.cumsum(np.bincount(codes, minlength=len(distinct)))
        clustered = kept.take(pa.array(order))
        for low, high in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
            members = order[low:high]
            yield Group(self._value(columns, int(members[0])), clustered.slice(low, high - low), members)

    def _value(self, columns: Sequence[pa.Array], row: int) -> PartitionValue:
        return tuple((name, column[row].as_py()) for name, column in zip(self.columns, columns, strict=True))


def _texts_of(rows: pa.Table, name: str) -> pa.Array:
    column = rows.column(name).combine_chunks()
    return texts(pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column)


def folder(value: PartitionValue) -> str:
    """Where files of a value are. Nobody reads values from it, so one that is too long is a digest."""
    parts = [
        f"{quote(name, safe='')}={_NULL_FOLDER if text is None else quote(text, safe='')}"
        for name, text in value
    ]
    whole = "/".join(parts)
    if len(whole) <= _LONGEST_FOLDER and all(len(part) <= _LONGEST_PART for part in parts):
        return whole
    return f"long-{hashlib.sha256(whole.encode()).hexdigest()[:32]}"
