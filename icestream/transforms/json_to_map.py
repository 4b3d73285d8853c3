"""`JsonToMapTransform`: strings that are JSON objects become structs whose nested objects are maps of texts.

Each record's schema comes from its own fields, so records are read one by one and gathered by their shape.
The kind of a value is a short code, so that alike objects are found by comparing strings: i, l and n for
integers of 32 bits, of 64 and larger, d double, b boolean, s string, m object, `[` and a code array.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa

from icestream.jsontext.encode import jackson_string, object_text
from icestream.jsontext.one_value import encodable, first_value
from icestream.records.column import Column, struct_column
from icestream.records.records import Applied, Failure, Records
from icestream.records.schema import (
    OPTIONAL_STRING,
    STRING,
    ConnectSchema,
    Kind,
    array,
    decimal,
    map_of,
    struct,
)
from icestream.transforms.failures import SCHEMA_BUILDER_EXCEPTION, GroupFailed, is_null
from icestream.transforms.groups import Side, all_failed

_EXCEPTION: Final = "org.apache.iceberg.connect.transforms.JsonToMapException"
_NO_STRING: Final = Failure("record value is not a string, use StringConverter", _EXCEPTION)
_ROOT: Final = (("payload", "m"),)

Shape = tuple[tuple[str, str], ...]
"""Names and codes of the fields."""
Row = list[Any]
"""The values of the fields."""
_MAP_OF_TEXTS: Final = map_of(STRING, STRING, optional=True)
_LARGEST: Final = 10**76
_DEEPEST: Final = 100
_NULL, _OBJECT, _ARRAY = "null", "o", "["
_SCHEMAS: Final[Mapping[str, ConnectSchema]] = {
    "i": ConnectSchema(Kind.INT32, optional=True),
    "l": ConnectSchema(Kind.INT64, optional=True),
    "n": decimal(0, optional=True),
    "d": ConnectSchema(Kind.FLOAT64, optional=True),
    "b": ConnectSchema(Kind.BOOLEAN, optional=True),
    "s": OPTIONAL_STRING,
    "m": _MAP_OF_TEXTS,
    _OBJECT: map_of(OPTIONAL_STRING, OPTIONAL_STRING, optional=True),
}
"""`o` is an object within an array."""
_NODES: Final[Mapping[type, str]] = {
    str: "s",
    bool: "b",
    float: "d",
    type(None): _NULL,
    dict: _OBJECT,
    list: _ARRAY,
}


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
        return Applied([_group(records, shape, rows) for shape, rows in shapes.items()], failed)

    def _shaped(self, value: Mapping[str, Any]) -> tuple[Shape, Row]:
        if self.from_root:
            return _ROOT, [_texts(value)]
        coded = ((name, _code(one)) for name, one in value.items())
        shape = tuple((name, code) for name, code in coded if code is not None)
        if any(not name for name, _ in shape):
            raise GroupFailed("fieldName cannot be null.", SCHEMA_BUILDER_EXCEPTION)
        return shape, [_held(value[name], code) for name, code in shape]


def _object(text: str, records: Records, position: int) -> Mapping[str, Any]:
    try:
        value = first_value(text)
    except ValueError:
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
    schema = struct(*((encodable(name), _schema(code)) for name, code in shape))
    columns = zip(*rows.values(), strict=True)
    arrays = [
        pa.array(values, one.schema.arrow_type) for one, values in zip(schema.fields, columns, strict=False)
    ]
    return replace(mine, value=struct_column(schema, arrays, np.zeros(len(mine), np.bool_)))


def _code(value: Any) -> str | None:
    """The kind of a value; None if its field is left out: nulls, and what is empty."""
    node = _node(value)
    if node == _ARRAY:
        return _array_code(value)
    if node == _OBJECT:
        return "m" if value else None
    return None if node == _NULL else node


def _node(value: Any) -> str:
    if type(value) is int:
        return "i" if -(2**31) <= value < 2**31 else "l" if -(2**63) <= value < 2**63 else "n"
    return _NODES[type(value)]


def _array_code(values: list[Any]) -> str | None:
    if not values:
        return None
    nodes = set(map(_node, values))
    if len(nodes) > 1 or _NULL in nodes:
        return "[s"
    if _ARRAY not in nodes:
        return _ARRAY + nodes.pop()
    inner = set(map(_array_code, values))
    if len(inner) > 1:
        return "[[s"
    only = inner.pop()
    return None if only is None else _ARRAY + only


@functools.cache
def _schema(code: str) -> ConnectSchema:
    return array(_schema(code[1:]), optional=True) if code.startswith(_ARRAY) else _SCHEMAS[code]


def _held(value: Any, code: str) -> Any:
    """A value as a column of its kind takes it. Raises GroupFailed."""
    if code.startswith(_ARRAY):
        if code.count(_ARRAY) > _DEEPEST:
            raise GroupFailed(f"Arrays are nested in more than {_DEEPEST} levels")
        return [_held(item, code[1:]) for item in value]
    return _HELD[code](value) if code in _HELD else value


def _texts(value: Mapping[str, Any]) -> list[tuple[str, str]]:
    """An object as a map of texts."""
    return [(encodable(name), _text(item)) for name, item in value.items()]


def _text(value: Any) -> str:
    """A string as it is, any other value as JSON."""
    return encodable(value if isinstance(value, str) else object_text(value, _written_string, int))


def _written_string(text: str) -> str:
    return jackson_string(text, in_bytes=False)


def _decimal(value: int) -> Decimal:
    if not -_LARGEST < value < _LARGEST:
        raise GroupFailed("A number has more than 76 digits, which is the most that a decimal can have")
    return Decimal(value)


_HELD: Final[Mapping[str, Callable[[Any], Any]]] = {"s": _text, "m": _texts, _OBJECT: _texts, "n": _decimal}
