"""Schemas as Java's JsonConverter writes them beside a payload, read into facts and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from icestream.api.nesting import has_more_levels
from icestream.jsontext.connect_values import check_nulls, connect_value
from icestream.jsontext.one_value import MISSING, SCHEMA_BUILDER_EXCEPTION, NotConvertible
from icestream.records.schema import DECIMAL, SCALE, ConnectSchema, Field, Kind

_KINDS: Final[Mapping[str, Kind]] = {
    "boolean": Kind.BOOLEAN,
    "int8": Kind.INT8,
    "int16": Kind.INT16,
    "int32": Kind.INT32,
    "int64": Kind.INT64,
    "float": Kind.FLOAT32,
    "double": Kind.FLOAT64,
    "bytes": Kind.BYTES,
    "string": Kind.STRING,
    "array": Kind.ARRAY,
    "map": Kind.MAP,
    "struct": Kind.STRUCT,
}
_NAMES: Final[Mapping[Kind, str]] = {kind: name for name, kind in _KINDS.items()}
_MOST_LEVELS: Final = 100
"""What is read by a schema is read by calls as deep as it."""
_LARGEST_SCALE: Final = 76
"""Of the widest decimals that Arrow has."""


def schema_from(node: Any, fills: bool = True) -> ConnectSchema | None:
    """The schema that a decoded node stands for; None for null. Raises NotConvertible with Java's words."""
    if has_more_levels(node, _MOST_LEVELS, _inner_nodes):
        raise NotConvertible(f"The schema has more than {_MOST_LEVELS} levels; nest it less deeply")
    return _schema(node, fills)


def _inner_nodes(node: Any) -> list[Any]:
    match node:
        case {"type": "array", "items": items}:
            return [items]
        case {"type": "map"}:
            return [node[side] for side in ("keys", "values") if side in node]
        case {"type": "struct", "fields": list(fields)}:
            return fields
    return []


def _schema(node: Any, fills: bool) -> ConnectSchema | None:
    if node is None:
        return None
    name = node.get("type") if isinstance(node, dict) else None
    if not isinstance(name, str):
        raise NotConvertible("Schema must contain 'type' field")
    if name not in _KINDS:
        raise NotConvertible(f"Unknown schema type: {name}")
    return _with_default(_with_facts(_shape(_KINDS[name], node, fills), node), node, fills)


def _shape(kind: Kind, node: Mapping[str, Any], fills: bool) -> ConnectSchema:
    if kind is Kind.ARRAY:
        if node.get("items") is None:
            raise NotConvertible("Array schema did not specify the element type")
        return ConnectSchema(kind, value=_schema(node["items"], fills))
    if kind is Kind.MAP:
        for part, spoken in (("keys", "key"), ("values", "value")):
            if part not in node:
                raise NotConvertible(f"Map schema did not specify the {spoken} type")
        return ConnectSchema(
            kind,
            key=_not_null(node, "keys", "keySchema", fills),
            value=_not_null(node, "values", "valueSchema", fills),
        )
    if kind is Kind.STRUCT:
        return ConnectSchema(kind, fields=_fields(node, fills))
    return ConnectSchema(kind)


def _not_null(node: Mapping[str, Any], part: str, spoken: str, fills: bool) -> ConnectSchema:
    schema = _schema(node[part], fills)
    if schema is None:
        raise NotConvertible(f"{spoken} cannot be null.", SCHEMA_BUILDER_EXCEPTION)
    return schema


def _fields(node: Mapping[str, Any], fills: bool) -> tuple[Field, ...]:
    nodes = node.get("fields")
    if not isinstance(nodes, list):
        raise NotConvertible('Struct schema\'s "fields" argument is not an array.')
    fields: dict[str, Field] = {}
    for one in nodes:
        name = one.get("field") if isinstance(one, dict) else None
        if not isinstance(name, str):
            raise NotConvertible("Struct schema's field name not specified properly")
        schema = _schema(one, fills)
        assert schema is not None
        if not name:
            raise NotConvertible("fieldName cannot be null.", SCHEMA_BUILDER_EXCEPTION)
        if name in fields:
            raise NotConvertible(
                f"Cannot create field because of field name duplication {name}", SCHEMA_BUILDER_EXCEPTION
            )
        fields[name] = Field(name, schema)
    return tuple(fields.values())


def _with_facts(schema: ConnectSchema, node: Mapping[str, Any]) -> ConnectSchema:
    parameters = node.get("parameters")
    if not isinstance(parameters, dict):
        parameters = {}
    elif not all(isinstance(value, str) for value in parameters.values()):
        raise NotConvertible("Schema parameters must have string values.")
    if node.get("name") == DECIMAL:
        _refuse_scale(parameters.get(SCALE))
    return replace(
        schema,
        optional=node.get("optional") is True,
        name=_of(node.get("name"), str),
        version=_of(node.get("version"), int),
        doc=_of(node.get("doc"), str),
        parameters=tuple(parameters.items()),
    )


def _refuse_scale(given: str | None) -> None:
    """Without a scale, each value that needs one is refused later."""
    digits = (given or "0").removeprefix("-")
    if not (digits.isdecimal() and len(digits) <= 4 and int(digits) <= _LARGEST_SCALE):
        raise NotConvertible(
            f"Invalid scale parameter found in Decimal schema: it is no number from -{_LARGEST_SCALE} to "
            f"{_LARGEST_SCALE}"
        )


def _of(value: Any, kind: type) -> Any:
    return value if isinstance(value, kind) and not isinstance(value, bool) else None


def _with_default(schema: ConnectSchema, node: Mapping[str, Any], fills: bool) -> ConnectSchema:
    if node.get("default", MISSING) is MISSING:
        return schema
    value = connect_value(schema, node["default"], fills)
    try:
        check_nulls(schema, value, "value")
    except NotConvertible:
        raise NotConvertible("Invalid default value", SCHEMA_BUILDER_EXCEPTION) from None
    return replace(schema, default=value)


def schema_node(schema: ConnectSchema, default: Callable[[ConnectSchema], Any]) -> dict[str, Any]:
    """The node that Java writes for a schema, in its order; `default` says how the default is written."""
    node: dict[str, Any] = {"type": _NAMES[schema.kind]}
    if schema.kind is Kind.STRUCT:
        node["fields"] = [
            {**schema_node(field.schema, default), "field": field.name} for field in schema.fields
        ]
    elif schema.value is not None:
        if schema.key is not None:
            node["keys"] = schema_node(schema.key, default)
        node["items" if schema.key is None else "values"] = schema_node(schema.value, default)
    node["optional"] = schema.optional
    facts = {"name": schema.name, "version": schema.version, "doc": schema.doc}
    node |= {key: fact for key, fact in facts.items() if fact is not None}
    if schema.parameters:
        node["parameters"] = dict(schema.parameters)
    if schema.default is not None:
        node["default"] = default(schema)
    return node
