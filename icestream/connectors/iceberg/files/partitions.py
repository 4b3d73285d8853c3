"""Rows by partition: which rows of a table go to which value of its partition spec."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.partitioning import PartitionSpec, partition_record_value
from pyiceberg.schema import Schema
from pyiceberg.transforms import VoidTransform
from pyiceberg.typedef import Record
from pyiceberg.types import StructType

from icestream.tables.data_files import Group, value_codes

_LONGEST_PART: Final = 200
_LONGEST_FOLDER: Final = 500


@dataclass(frozen=True)
class PartitionValue:
    """One value of a partition spec, in Iceberg's internal form, and the folder that it has in paths."""

    values: tuple[Any, ...]
    path: str = field(compare=False)

    def to_path(self) -> str:
        return self.path


class Partitioner:
    def __init__(self, schema: Schema, spec: PartitionSpec) -> None:
        self._schema = schema
        self._spec = spec
        self._paths = [
            _path(schema.as_struct(), partition_field.source_id) for partition_field in spec.fields
        ]

    def split(self, rows: pa.Table) -> Iterator[Group[PartitionValue | None]]:
        """The rows of each partition value, in their order. One sort for all, not one scan per value."""
        if self._spec.is_unpartitioned():
            yield Group(None, rows, None)
            return
        columns = [self._values(rows, position) for position in range(len(self._paths))]
        codes, distinct = value_codes(columns)
        if len(distinct) == 1:
            yield Group(self._value(columns, 0), rows, None)
            return
        order = np.argsort(codes, kind="stable")
        ends = np.cumsum(np.bincount(codes, minlength=len(distinct)))
        clustered = rows.take(pa.array(order))
        for low, high in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
            members = order[low:high]
            yield Group(self._value(columns, int(members[0])), clustered.slice(low, high - low), members)

    def _values(self, rows: pa.Table, position: int) -> pa.Array:
        partition_field = self._spec.fields[position]
        path = self._paths[position]
        column = rows.column(path[0])
        source = pc.struct_field(column, list(path[1:])) if len(path) > 1 else column
        if isinstance(source, pa.ChunkedArray):
            source = source.combine_chunks()
        if isinstance(partition_field.transform, VoidTransform):
            return pa.nulls(len(source))
        if isinstance(source, pa.ExtensionArray):
            source = source.storage
        source_type = self._schema.find_type(partition_field.source_id)
        return partition_field.transform.pyarrow_transform(source_type)(source)

    def _value(self, columns: list[pa.Array], row: int) -> PartitionValue:
        values = tuple(
            partition_record_value(partition_field, column[row].as_py(), self._schema)
            for partition_field, column in zip(self._spec.fields, columns, strict=True)
        )
        return PartitionValue(values, _fitting(self._spec.partition_to_path(Record(*values), self._schema)))


def _fitting(folder: str) -> str:
    """A folder that every store can have: names of files have 255 bytes at most, keys of S3 1,024. The values
    of a record may be longer, and nobody reads them from the path."""
    parts = folder.split("/")
    if len(folder) <= _LONGEST_FOLDER and all(len(part) <= _LONGEST_PART for part in parts):
        return folder
    return f"long-{hashlib.sha256(folder.encode()).hexdigest()[:32]}"


def _path(struct: StructType, field_id: int) -> tuple[str, ...]:
    """Names from the top-level column down to a field. Names may hold dots: a dotted name will not do."""
    for child in struct.fields:
        if child.field_id == field_id:
            return (child.name,)
        if isinstance(child.field_type, StructType) and (below := _path(child.field_type, field_id)):
            return (child.name, *below)
    return ()
