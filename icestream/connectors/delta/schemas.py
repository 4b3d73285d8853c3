"""Schemas of Delta tables, which are JSON, as Arrow schemas and back. Without delta-rs: tasks read them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pt

from icestream.rows.new_columns import LIST_ELEMENT, MAP_VALUE, Path, fields_of

_PRIMITIVES: Final[Mapping[str, pa.DataType]] = {
    "string": pa.string(),
    "long": pa.int64(),
    "integer": pa.int32(),
    "short": pa.int16(),
    "byte": pa.int8(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_NAMES: Final = {kind: name for name, kind in _PRIMITIVES.items()}

DeltaType = str | dict[str, Any]


class UnfitType(ValueError):
    """A column of a type that this version does not write."""


def arrow_schema(schema_json: str) -> pa.Schema:
    """The Arrow schema of a table's rows."""
    return pa.schema([_arrow_field(one) for one in json.loads(schema_json)["fields"]])


def _arrow_field(field: Mapping[str, Any]) -> pa.Field:
    try:
        return pa.field(field["name"], arrow_type(field["type"]), field["nullable"])
    except UnfitType as error:
        raise UnfitType(f"column '{field['name']}' is of type {error}") from None


def arrow_type(kind: DeltaType) -> pa.DataType:
    if isinstance(kind, str):
        if kind.startswith("decimal("):
            precision, scale = kind.removeprefix("decimal(").removesuffix(")").split(",")
            return pa.decimal128(int(precision), int(scale))
        if kind not in _PRIMITIVES:
            raise UnfitType(kind)
        return _PRIMITIVES[kind]
    if kind["type"] == "struct":
        return pa.struct([_arrow_field(one) for one in kind["fields"]])
    if kind["type"] == "array":
        return pa.list_(pa.field("element", arrow_type(kind["elementType"]), kind["containsNull"]))
    if kind["type"] == "map":
        return pa.map_(
            pa.field("key", arrow_type(kind["keyType"]), False),
            pa.field("value", arrow_type(kind["valueType"]), kind["valueContainsNull"]),
        )
    raise UnfitType(str(kind["type"]))


def delta_type(kind: pa.DataType) -> DeltaType:
    """The type of a new column. Inside of it all is optional: of a struct that is null, readers take the
    values of required fields for missing."""
    if pt.is_struct(kind):
        return {"type": "struct", "fields": [_delta_field(one.name, one.type) for one in fields_of(kind)]}
    if pt.is_list(kind):
        return {"type": "array", "elementType": delta_type(kind.value_type), "containsNull": True}
    if pt.is_map(kind):
        return {
            "type": "map",
            "keyType": delta_type(kind.key_type),
            "valueType": delta_type(kind.item_type),
            "valueContainsNull": True,
        }
    if pt.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pt.is_fixed_size_binary(kind):
        return "binary"
    if pt.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    return _NAMES.get(kind, "string")


def _delta_field(name: str, kind: pa.DataType, *, nullable: bool = True) -> dict[str, Any]:
    return {"name": name, "type": delta_type(kind), "nullable": nullable, "metadata": {}}


def new_schema(record: pa.StructType, required: Iterable[str] = ()) -> str:
    """The schema of a new table: columns are required where the record's schema says so, or `required`."""
    always = frozenset(required)
    fields = [
        _delta_field(one.name, one.type, nullable=one.nullable and one.name not in always)
        for one in fields_of(record)
    ]
    return json.dumps({"type": "struct", "fields": fields})


def grown(schema_json: str, new_fields: Mapping[Path, pa.DataType]) -> str:
    """A schema with fields added at the end of where they belong; those that are there already stay. Columns
    that need not be required any more are not."""
    schema = json.loads(schema_json)
    for path, kind in sorted(new_fields.items(), key=lambda item: (len(item[0]), item[0])):
        if pt.is_null(kind):
            _relax(schema, path[:-1])
        else:
            _add(schema, path, kind)
    return json.dumps(schema)


def _relax(schema: dict[str, Any], path: Path) -> None:
    for one in schema["fields"]:
        if len(path) == 1 and one["name"] == path[0]:
            one["nullable"] = True


def _add(struct: dict[str, Any], path: Path, kind: pa.DataType) -> None:
    name, *rest = path
    found = next((one for one in struct["fields"] if one["name"] == name), None)
    if found is None:
        if not rest:
            struct["fields"].append(_delta_field(name, kind))
        return
    if rest:
        inner, left = _inside(found["type"], rest)
        if inner is not None:
            _add(inner, tuple(left), kind)


def _inside(kind: DeltaType, path: list[str]) -> tuple[dict[str, Any] | None, list[str]]:
    """The struct that a path leads to, through lists and maps."""
    while isinstance(kind, dict) and path:
        if kind["type"] == "struct":
            return kind, path
        step = {"array": (LIST_ELEMENT, "elementType"), "map": (MAP_VALUE, "valueType")}[kind["type"]]
        if path[0] != step[0]:
            return None, path
        kind, path = kind[step[1]], path[1:]
    return None, path


def same(one: str, other: str) -> bool:
    return bool(json.loads(one) == json.loads(other))


def changed_columns(before: str, after: str) -> list[dict[str, Any]]:
    """The columns that are new or have new fields inside, whole."""
    known = {one["name"]: one for one in json.loads(before)["fields"]}
    return [
        one
        for one in json.loads(after)["fields"]
        if one["name"] not in known or known[one["name"]]["type"] != one["type"]
    ]


def relaxed_columns(before: str, after: str) -> list[str]:
    """The columns that are no longer required."""
    required = {one["name"] for one in json.loads(before)["fields"] if not one["nullable"]}
    return [one["name"] for one in json.loads(after)["fields"] if one["nullable"] and one["name"] in required]
