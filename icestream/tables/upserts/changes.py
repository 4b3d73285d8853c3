"""Changes of rows inside a task: which record puts a row, which deletes one; the newest change of each key.

Used by `writer` for tables that get upserts, and by the files of changes that sinks of tables stage.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestream.api.batch import Failure
from icestream.api.offsets import Partition
from icestream.api.sink import TASK_PUT
from icestream.records.column import Column, is_uuid
from icestream.records.origins import RowOrigins
from icestream.records.schema import Kind
from icestream.records.values import Value
from icestream.rows.cast import cast_column
from icestream.rows.to_rows import RowConverter, Rows

KIND: Final = "__icestream_kind"
SOURCE: Final = "__icestream_source"
OFFSET: Final = "__icestream_offset"
RANK: Final = "__icestream_rank"
OWN_COLUMNS: Final = frozenset({KIND, SOURCE, OFFSET, RANK})
"""What stands beside the columns of a table while its changes are merged: it can have none of that name."""
DELETE, PUT, TRUNCATE, UNKNOWN = 0, 1, 2, -1
_KINDS: Final[Mapping[str, int]] = {
    # Of Debezium, of DebeziumTransform and of Amazon's DMS; whole words begin with the same letters.
    **dict.fromkeys("ICRU", PUT),
    "D": DELETE,
    "T": TRUNCATE,
    # As in the Java sink: a record that does not say puts its row.
    "": PUT,
}
Kinds = np.ndarray[tuple[int], np.dtype[np.int8]]


@dataclass(frozen=True)
class UpsertPlan:
    """How the records of a table become changes. Plain data: it crosses process boundaries."""

    ids: tuple[str, ...]
    """The columns that identify a row; a dot leads into a struct."""
    cdc_field: str | None = None
    """The field that tells the kind of change; None: all records put rows."""


@dataclass(frozen=True)
class StagedChanges:
    """A file of changes, the newest of each key; or only the knowledge that there was a truncate."""

    path: str
    rows: int
    """How many changes it stands for, those among them that newer ones replaced."""
    size: int = 0
    truncates: Mapping[int, int] = field(default_factory=dict)
    """By source partition (`source_code`): everything before this offset is gone."""


def source_code(partition: Partition) -> int:
    """A number for a partition, the same in all tasks of all batches."""
    digest = hashlib.sha256(f"{partition.topic}\0{partition.number}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


# -- what a record does --


class ChangeKinds:
    """Tells the kind of change of each record, by the field that has it."""

    def __init__(self, cdc_field: str | None) -> None:
        self._path = cdc_field.split(".") if cdc_field else []
        self._converter = RowConverter(pa.schema([_nested(self._path)])) if self._path else None

    def of(self, value: Value, length: int) -> tuple[Kinds, Sequence[str | None]]:
        """For each record its kind, and the text that it was told by."""
        if self._converter is None:
            return np.full(length, PUT, np.int8), ()
        found = self._converter.to_rows(value, length)
        texts = column_at(found.rows, self._path)
        letters = pc.utf8_upper(
            pc.utf8_slice_codeunits(pc.utf8_trim_whitespace(pc.fill_null(texts, "")), 0, 1)
        )
        distinct = pc.dictionary_encode(letters)
        codes = np.array([_KINDS.get(one, UNKNOWN) for one in distinct.dictionary.to_pylist()], np.int8)
        # A record without an answer is one that makes no row either.
        kinds = np.full(length, PUT, np.int8)
        kinds[found.index] = codes[distinct.indices.to_numpy(zero_copy_only=False)]
        told: list[str | None] = [None] * length
        if (kinds == UNKNOWN).any():
            for at, text in zip(found.index.tolist(), texts.to_pylist(), strict=True):
                told[at] = text
        return kinds, told


def with_kinds(rows: pa.Table, kinds: Kinds) -> pa.Table:
    return rows.append_column(pa.field(KIND, pa.int8()), pa.array(kinds))


class KeyRows:
    """Makes rows with nothing but the id columns from the keys of records without a value."""

    def __init__(self, schema: pa.Schema, ids: Sequence[str]) -> None:
        self._schema = schema
        self._ids = [one.split(".") for one in ids]
        names = dict.fromkeys(path[0] for path in self._ids)
        self._key_schema = optional(pa.schema([schema.field(name) for name in names]))
        self._converter = RowConverter(self._key_schema)

    def of(self, key: Value, length: int) -> Rows:
        """Rows of the whole schema, null but for the id columns."""
        found = self._of_key(key, length)
        held = dict(zip(self._key_schema.names, found.rows.itercolumns(), strict=True))
        columns = [held.get(one.name, pa.nulls(len(found.index), one.type)) for one in self._schema]
        return Rows(pa.table(columns, schema=optional(self._schema)), found.index, found.failed)

    def _of_key(self, key: Value, length: int) -> Rows:
        if key is None:
            return self._without_key("it has no key", length)
        if not isinstance(key, Column) or (key.schema is not None and key.schema.kind is Kind.STRUCT):
            return self._converter.to_rows(key, length)
        if len(self._ids) != 1 or len(self._ids[0]) != 1:
            return self._without_key("the key is a single value", length)
        # A key without fields is the id, if there is only one.
        only = self._key_schema.field(0)
        wrong: Mapping[int, str] = {}
        values = pa.nulls(length, only.type)
        if not pa.types.is_null(key.values.type):
            values, wrong = cast_column(key.values, only.type, only.name)
        keep = np.ones(length, np.bool_)
        keep[np.fromiter(wrong, np.int64, len(wrong))] = False
        rows = pa.table([values.filter(pa.array(keep))], schema=self._key_schema)
        failed = {at: Failure(why, stage=TASK_PUT) for at, why in wrong.items()}
        return Rows(rows, np.flatnonzero(keep), failed)

    def _without_key(self, why: str, length: int) -> Rows:
        failed = dict.fromkeys(range(length), Failure(why, stage=TASK_PUT))
        return Rows(self._key_schema.empty_table(), np.empty(0, np.int64), failed)


def null_ids(rows: pa.Table, ids: Sequence[str]) -> dict[int, str]:
    """Row → the id column that it has no value in."""
    found: dict[int, str] = {}
    for name in ids:
        column = column_at(rows, name.split("."))
        if column.null_count:
            for row in np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False)).tolist():
                found.setdefault(row, name)
    return found


def column_at(rows: pa.Table, path: Sequence[str]) -> pa.Array:
    """A column, or a field of the structs in it."""
    column: Any = rows.column(path[0]).combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    for name in path[1:]:
        column = pc.struct_field(column, name)
    return column


def optional(schema: pa.Schema) -> pa.Schema:
    """The columns of a table, none of them required: a deletion may have nothing but its key."""
    return pa.schema([one.with_nullable(True) for one in schema])


def _nested(path: Sequence[str]) -> pa.Field:
    kind: pa.DataType = pa.string()
    for name in reversed(path[1:]):
        kind = pa.struct([pa.field(name, kind)])
    return pa.field(path[0], kind)


# -- what is staged --


def newest(changes: pa.Table, ids: Sequence[str]) -> pa.Table:
    """The last change of each key. A key is in one partition, where offsets tell; if it is in several, the
    answer is at least always the same."""
    offsets = changes.column(OFFSET).to_numpy()
    order = np.lexsort((changes.column(SOURCE).to_numpy(), offsets))
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    keys = [_groupable(column_at(changes, name.split("."))) for name in ids]
    named = [f"k{at}" for at in range(len(keys))]
    groups = pa.table([*keys, pa.array(ranks)], names=[*named, "rank"]).group_by(named, use_threads=False)
    last = np.sort(groups.aggregate([("rank", "max")]).column("rank_max").to_numpy())
    return changes if len(last) == len(order) else changes.take(pa.array(order[last]))


def _groupable(column: pa.Array) -> pa.Array:
    return column.storage if is_uuid(column.type) else column


class ChangeBuffer:
    """Changes that wait to be staged: the newest of each key, and how far a truncate has undone others."""

    def __init__(self, schema: pa.Schema, ids: Sequence[str]) -> None:
        self._schema = staged_schema(schema)
        self._ids = ids
        self._pieces: list[pa.Table] = []
        self._codes: dict[Partition, int] = {}
        self.count = 0
        """How many changes there are, those among them that newer ones replace."""
        self.bytes = 0
        self.truncates: dict[int, int] = {}
        """By source partition (`source_code`): everything before this offset is gone."""

    def add(self, rows: pa.Table, origins: RowOrigins) -> None:
        """Rows of the table's columns, last the kind of each change; and where each is from."""
        if not rows.num_rows:
            return
        kinds = rows.column(KIND).to_numpy()
        codes = np.array([self._code(partition) for partition in origins.partitions], np.int64)
        sources = codes[origins.codes]
        self.count += rows.num_rows
        gone = kinds == TRUNCATE
        if gone.any():
            for source, offset in zip(sources[gone].tolist(), origins.offsets[gone].tolist(), strict=True):
                self.truncates[source] = max(offset, self.truncates.get(source, -1))
        columns = [*rows.itercolumns(), pa.array(sources), pa.array(origins.offsets)]
        changes = pa.table(columns, schema=self._schema)
        if gone.any():
            changes = changes.filter(pa.array(~gone))
        self._pieces.append(changes)
        self.bytes += changes.nbytes

    def _code(self, partition: Partition) -> int:
        if partition not in self._codes:
            self._codes[partition] = source_code(partition)
        return self._codes[partition]

    def newest(self) -> pa.Table:
        """The last change of each key so far."""
        changes = pa.concat_tables(self._pieces) if self._pieces else self._schema.empty_table()
        return newest(changes, self._ids) if changes.num_rows else changes

    def clear(self) -> None:
        self._pieces.clear()
        self.truncates.clear()
        self.count = self.bytes = 0


def after_truncates(changes: pa.RecordBatch, truncates: Mapping[int, int]) -> pa.RecordBatch:
    """The changes without those that a truncate of their partition has undone."""
    if not truncates:
        return changes
    sources = changes.column(SOURCE).to_numpy()
    offsets = changes.column(OFFSET).to_numpy()
    keep = np.ones(len(sources), np.bool_)
    for source, until in truncates.items():
        keep &= (sources != source) | (offsets > until)
    return changes.filter(pa.array(keep))


def last_truncates(files: Iterable[Mapping[int, int]]) -> dict[int, int]:
    """Of all files of a batch: a truncate may have been read by another task than what was before it."""
    found: dict[int, int] = {}
    for truncates in files:
        for source, offset in truncates.items():
            found[source] = max(offset, found.get(source, -1))
    return found


def staged_schema(schema: pa.Schema) -> pa.Schema:
    """The columns of the table, and what is told of each change."""
    own = [pa.field(KIND, pa.int8()), pa.field(SOURCE, pa.int64()), pa.field(OFFSET, pa.int64())]
    return pa.schema([*optional(schema), *own])
