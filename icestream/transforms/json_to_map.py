"""`JsonToMapTransform`: strings that are JSON objects become structs whose nested objects are maps of texts.

Each record's schema comes from its own fields, so records are read one by one and gathered by their shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa

from icestream.records.column import Column, struct_column
from icestream.records.records import Applied, Failure, Records
from icestream.records.schema import struct
from icestream.transforms import json_shapes
from icestream.transforms.failures import SCHEMA_BUILDER_EXCEPTION, GroupFailed, is_null
from icestream.transforms.groups import Side, all_failed
from icestream.transforms.jackson import NoJson, encodable, read

_EXCEPTION: Final = "org.apache.iceberg.connect.transforms.JsonToMapException"
_NO_STRING: Final = Failure("record value is not a string, use StringConverter", _EXCEPTION)
_TOO_DEEP: Final = Failure("The value is nested too deeply")
_ROOT: Final = (("payload", "m"),)

Shape = tuple[tuple[str, str], ...]
"""Names and codes of the fields."""
Row = list[Any]
"""The values of the fields."""


@dataclass(frozen=True)
class JsonToMapTransform:
    from_root: bool

    @classmethod
    def configured(cls, settings: Mapping[str, Any], side: Side) -> Self:
        return cls(settings["json.root"])

    def apply(self, records: Records) -> Applied:
        value = records.value
        if is_null(value):
            return Applied([records])
        if not isinstance(value, Column) or not pa.types.is_string(value.values.type):
            return all_failed(records, _NO_STRING)
        failed: dict[int, Failure] = {}
        shapes: dict[Shape, dict[int, Row]] = {}
        for position, text in enumerate(value.values.to_pylist()):
            try:
                shape, row = self._shaped(_object(text, records, position))
                shapes.setdefault(shape, {})[position] = row
            except GroupFailed as refused:
                failed[int(records.rows[position])] = refused.failure
            except RecursionError:
                failed[int(records.rows[position])] = _TOO_DEEP
        return Applied([_group(records, shape, rows) for shape, rows in shapes.items()], failed)

    def _shaped(self, value: Mapping[str, Any]) -> tuple[Shape, Row]:
        if self.from_root:
            return _ROOT, [json_shapes.texts(value)]
        coded = ((name, json_shapes.code(one)) for name, one in value.items())
        shape = tuple((name, code) for name, code in coded if code is not None)
        if any(not name for name, _ in shape):
            raise GroupFailed("fieldName cannot be null.", SCHEMA_BUILDER_EXCEPTION)
        return shape, [json_shapes.fitted(value[name], code) for name, code in shape]


def _object(text: str, records: Records, position: int) -> Mapping[str, Any]:
    try:
        value = read(text)
    except NoJson:
        reason = "record.value is not valid json for record.value"
    else:
        if isinstance(value, dict):
            return value
        reason = "Expected json object for record.value after parsing"
    raise GroupFailed(f"{reason}: {_place(records, position)}", _EXCEPTION)


def _place(records: Records, position: int) -> str:
    partition = "NULL" if records.partitions is None else records.partitions[position]
    if records.offsets is None:
        return f"topic {records.topic} partition {partition}"
    return f"topic {records.topic} partition {partition} offset {records.offsets[position]}"


def _group(records: Records, shape: Shape, rows: Mapping[int, Row]) -> Records:
    mine = records.take(np.fromiter(rows, np.int64, len(rows)))
    schema = struct(*((encodable(name), json_shapes.schema(code)) for name, code in shape))
    columns = zip(*rows.values(), strict=True)
    arrays = [
        pa.array(values, one.schema.arrow_type) for one, values in zip(schema.fields, columns, strict=False)
    ]
    return replace(mine, value=struct_column(schema, arrays, np.zeros(len(mine), np.bool_)))
