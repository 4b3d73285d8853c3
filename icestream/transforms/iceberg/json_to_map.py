"""`JsonToMapTransform`: strings that are JSON objects become structs whose nested objects are maps of texts.

Each record's schema comes from its own fields, so records are read one by one and gathered by their shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa

from icestream.records.column import Column, struct_column
from icestream.records.records import Applied, Failure, Records
from icestream.records.schema import ConnectSchema, struct
from icestream.transforms.iceberg import json_shapes
from icestream.transforms.iceberg.jackson import NoJson, encodable, read
from icestream.transforms.iceberg.settings import JSON_ROOT
from icestream.transforms.refusals import SCHEMA_BUILDER_EXCEPTION
from icestream.transforms.requirements import is_null
from icestream.transforms.side import Side, all_failed

_EXCEPTION: Final = "org.apache.iceberg.connect.transforms.JsonToMapException"
_NO_STRING: Final = Failure("record value is not a string, use StringConverter", _EXCEPTION)
_NO_NAME: Final = Failure("fieldName cannot be null.", SCHEMA_BUILDER_EXCEPTION)
_TOO_LARGE: Final = Failure("A number has more than 76 digits, which is the most that a decimal can have")
_LARGEST: Final = 10**76
_PAYLOAD: Final = "payload"
_ROOT: Final = struct((_PAYLOAD, json_shapes.MAP_OF_TEXTS))

Shape = tuple[tuple[str, str], ...]
"""Names and codes of the fields."""


@dataclass(frozen=True)
class JsonToMapTransform:
    from_root: bool

    @classmethod
    def configured(cls, settings: Mapping[str, Any], side: Side) -> Self:
        return cls(settings[JSON_ROOT])

    def apply(self, records: Records) -> Applied:
        value = records.value
        if is_null(value):
            return Applied([records])
        if not isinstance(value, Column) or not pa.types.is_string(value.values.type):
            return all_failed(records, _NO_STRING)
        found = _Objects(records)
        for position, text in enumerate(value.values.to_pylist()):
            found.read(position, text)
        return Applied(list(self._groups(found)), found.failed)

    def _groups(self, found: _Objects) -> Iterator[Records]:
        if self.from_root:
            if found.objects:
                yield found.group(
                    found.objects, _ROOT, [[json_shapes.texts(one) for one in found.objects.values()]]
                )
            return
        shapes: dict[Shape, dict[int, Any]] = {}
        for position, value in found.objects.items():
            shape = found.shape(position, value)
            if shape is not None:
                shapes.setdefault(shape, {})[position] = value
        for shape, objects in shapes.items():
            columns = [
                [json_shapes.fitted(one[name], code) for one in objects.values()] for name, code in shape
            ]
            schema = struct(*((encodable(name), json_shapes.schema(code)) for name, code in shape))
            yield found.group(objects, schema, columns)


class _Objects:
    """The records that are JSON objects, by position, and why the others failed."""

    def __init__(self, records: Records) -> None:
        self.records = records
        self.objects: dict[int, Any] = {}
        self.failed: dict[int, Failure] = {}

    def read(self, position: int, text: str) -> None:
        try:
            value = read(text)
        except NoJson:
            self._fail(position, "record.value is not valid json for record.value")
            return
        if isinstance(value, dict):
            self.objects[position] = value
        else:
            self._fail(position, "Expected json object for record.value after parsing")

    def shape(self, position: int, value: Mapping[str, Any]) -> Shape | None:
        coded = ((name, json_shapes.code(one)) for name, one in value.items())
        shape = tuple((name, code) for name, code in coded if code is not None)
        bad = _NO_NAME if any(not name for name, _ in shape) else None
        if bad is None and any(_too_large(value[name]) for name, code in shape if code.endswith("n")):
            bad = _TOO_LARGE
        if bad is None:
            return shape
        self.failed[int(self.records.rows[position])] = bad
        return None

    def group(
        self, objects: Mapping[int, Any], schema: ConnectSchema, columns: Sequence[list[Any]]
    ) -> Records:
        mine = self.records.take(np.fromiter(objects, np.int64, len(objects)))
        arrays = [
            pa.array(values, one.schema.arrow_type)
            for one, values in zip(schema.fields, columns, strict=True)
        ]
        return replace(mine, value=struct_column(schema, arrays, np.zeros(len(mine), np.bool_)))

    def _fail(self, position: int, reason: str) -> None:
        records = self.records
        if records.offsets is None:
            partition = "NULL" if records.partition is None else records.partition
            where = f"topic {records.topic} partition {partition}"
        else:
            where = f"topic {records.topic} partition {records.partition} offset {records.offsets[position]}"
        self.failed[int(records.rows[position])] = Failure(f"{reason}: {where}", _EXCEPTION)


def _too_large(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_too_large, value))
    return not -_LARGEST < value < _LARGEST
