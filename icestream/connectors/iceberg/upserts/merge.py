"""One MERGE INTO of Spark from staged changes: its statement, and how its tasks read the changes.

Called by `commit`. Spark has no type for some of Iceberg's: a UUID is text to it, fixed bytes are bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from pyiceberg import types as it
from pyiceberg.schema import Schema

from icestream.connectors.iceberg.catalogs.guarded_catalogs import refuse_foreign_code
from icestream.connectors.iceberg.catalogs.opening import sink_errors
from icestream.connectors.iceberg.catalogs.remote_signing import file_io
from icestream.connectors.iceberg.upserts.branch_publish import spark_name
from icestream.records.column import is_uuid
from icestream.tables.upserts.changes import (
    DELETE,
    KIND,
    OFFSET,
    PUT,
    RANK,
    SOURCE,
    StagedChanges,
    after_truncates,
    last_truncates,
)

VIEW: Final = "icestream_changes"
_OWN: Final = f"{spark_name(KIND)} TINYINT, {spark_name(SOURCE)} BIGINT, {spark_name(OFFSET)} BIGINT"
_PRIMITIVES: Final[Mapping[type[it.IcebergType], str]] = {
    it.BooleanType: "BOOLEAN",
    it.IntegerType: "INT",
    it.LongType: "BIGINT",
    it.FloatType: "FLOAT",
    it.DoubleType: "DOUBLE",
    it.DateType: "DATE",
    it.TimestampType: "TIMESTAMP_NTZ",
    it.TimestamptzType: "TIMESTAMP",
    it.StringType: "STRING",
    it.UUIDType: "STRING",
    it.BinaryType: "BINARY",
    it.FixedType: "BINARY",
}
NOT_IN_SPARK: Final = (pa.time64("us"),)
"""Types of new columns that Spark cannot merge: a table that has one gets no upserts any more."""


def merge_statement(
    target: str, schema: Schema, ids: Sequence[str], *, several: bool, truncates: bool
) -> str:
    """`several` files of changes may have the same key; after a truncate, rows without a change are gone."""
    names = [spark_name(field.name) for field in schema.fields]
    matches = " AND ".join(f"t.{path} = s.{path}" for path in map(_path, ids))
    changed = ", ".join(f"t.{name} = s.{name}" for name in names)
    return "\n".join(
        (
            f"MERGE INTO {target} t",
            f"USING {_newest(ids) if several else VIEW} s",
            f"ON {matches}",
            f"WHEN MATCHED AND s.{spark_name(KIND)} = {DELETE} THEN DELETE",
            f"WHEN MATCHED THEN UPDATE SET {changed}",
            f"WHEN NOT MATCHED AND s.{spark_name(KIND)} = {PUT} THEN",
            f"INSERT ({', '.join(names)}) VALUES ({', '.join(f's.{name}' for name in names)})",
            *(("WHEN NOT MATCHED BY SOURCE THEN DELETE",) if truncates else ()),
        )
    )


def _newest(ids: Sequence[str]) -> str:
    """Each file has the newest change of its keys; of these, the newest. As `changes.newest`."""
    keys = ", ".join(map(_path, ids))
    order = f"{spark_name(OFFSET)} DESC, {spark_name(SOURCE)} DESC"
    return (
        f"(SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY {keys} ORDER BY {order}) AS "
        f"{spark_name(RANK)} FROM {VIEW}) WHERE {spark_name(RANK)} = 1)"
    )


def _path(name: str) -> str:
    return spark_name(*name.split("."))


def view_columns(schema: Schema) -> str:
    """The columns of staged changes, in the words of Spark SQL; ValueError names a type that it lacks."""
    return ", ".join(
        [f"{spark_name(field.name)} {_spark_type(field.field_type)}" for field in schema.fields] + [_OWN]
    )


def _spark_type(kind: it.IcebergType) -> str:
    if isinstance(kind, it.StructType):
        fields = (f"{spark_name(field.name)}: {_spark_type(field.field_type)}" for field in kind.fields)
        return f"STRUCT<{', '.join(fields)}>"
    if isinstance(kind, it.ListType):
        return f"ARRAY<{_spark_type(kind.element_type)}>"
    if isinstance(kind, it.MapType):
        return f"MAP<{_spark_type(kind.key_type)}, {_spark_type(kind.value_type)}>"
    if isinstance(kind, it.DecimalType):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if type(kind) not in _PRIMITIVES:
        raise ValueError(str(kind))
    return _PRIMITIVES[type(kind)]


@dataclass(frozen=True)
class ReadChanges:
    """Reads one file of changes in a Spark task. Plain data: it crosses process boundaries."""

    files: Sequence[StagedChanges]
    location: str
    io_properties: Mapping[str, str] = field(repr=False)
    table: str

    def __call__(self, part: int) -> Iterator[pa.RecordBatch]:
        if part >= len(self.paths):
            return  # there is nothing but a truncate
        refuse_foreign_code()
        truncates = last_truncates(file.truncates for file in self.files)
        io = file_io(self.io_properties, self.location)
        path = self.paths[part]
        with (
            sink_errors(f"reading changes of {self.table}"),
            io.new_input(path).open() as stream,
            pa.ipc.open_stream(stream) as reader,
        ):
            for batch in reader:
                yield _for_spark(after_truncates(batch, truncates))

    @property
    def paths(self) -> list[str]:
        return [file.path for file in self.files if file.path]

    @property
    def truncates(self) -> bool:
        return any(file.truncates for file in self.files)


def _for_spark(changes: pa.RecordBatch) -> pa.RecordBatch:
    columns = [_readable(column) for column in changes.columns]
    return pa.RecordBatch.from_arrays(columns, names=changes.schema.names)


def _readable(values: pa.Array) -> pa.Array:
    """Values in types that Spark takes from Arrow."""
    kind = values.type
    if is_uuid(kind):
        return _uuid_texts(values)
    if pt.is_fixed_size_binary(kind):
        return values.cast(pa.binary())
    if pt.is_struct(kind) and kind.num_fields:
        children = [_readable(child) for child in values.flatten()]
        names = [kind.field(at).name for at in range(kind.num_fields)]
        return pa.StructArray.from_arrays(children, names=names, mask=_mask(values))
    if pt.is_list(kind):
        items = _readable(values.flatten())
        return pa.ListArray.from_arrays(_offsets(values), items, mask=_mask(values))
    if pt.is_map(kind):
        if values.offset or values.null_count:
            values = pa.array(values.to_pylist(), kind)
        return pa.MapArray.from_arrays(
            values.offsets, _readable(values.keys), _readable(values.items), mask=_mask(values)
        )
    return values


def _offsets(values: pa.ListArray) -> pa.Array:
    """Where each list begins in the items that `flatten` gives, which are those of no null."""
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())


def _mask(values: pa.Array) -> pa.Array | None:
    return values.is_null() if values.null_count else None


def _uuid_texts(values: Any) -> pa.Array:
    storage = values.storage if isinstance(values, pa.ExtensionArray) else values
    digits = pa.array([None if one is None else one.hex() for one in storage.to_pylist()], pa.string())
    cuts = [
        pc.utf8_slice_codeunits(digits, start, end)
        for start, end in ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))
    ]
    return pc.binary_join_element_wise(*cuts, "-")
