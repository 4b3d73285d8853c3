"""JSON Schemas as Kafka Connect's schemas, as Confluent's converter has them, and the way back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final
from urllib.parse import unquote

from icestream.api.nesting import NestedTooDeeply, has_more_levels, read_json
from icestream.converters.registry.avro_from_connect import json_default
from icestream.converters.registry.client import Reference, UnusableSchema
from icestream.jsontext.connect_values import connect_value
from icestream.records.schema import DECIMAL, ConnectSchema, Field, Kind

_NAMESPACE: Final = "io.confluent.connect.json"
ONE_OF: Final = f"{_NAMESPACE}.OneOf"
ENUM: Final = f"{_NAMESPACE}.Enum"
NULL_MARKER: Final = "<NULL>"
_CONNECT_TYPES: Final[Mapping[str, Kind]] = {
    "int8": Kind.INT8,
    "int16": Kind.INT16,
    "int32": Kind.INT32,
    "int64": Kind.INT64,
    "float32": Kind.FLOAT32,
    "float64": Kind.FLOAT64,
    "bytes": Kind.BYTES,
}
_OBJECT_WORDS: Final = ("properties", "required", "additionalProperties", "patternProperties")
_ARRAY_WORDS: Final = ("items", "minItems", "maxItems", "uniqueItems")
_NUMBER_WORDS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_STRING_WORDS: Final = ("minLength", "maxLength", "pattern", "format")
_DEEPEST: Final = 100
_MOST_JSON_LEVELS: Final = 4 * _DEEPEST
_MOST_STEPS: Final = 3 * _DEEPEST
"""To one level of a schema lead its property, a reference and one of several alternatives."""
_COMBINED: Final = ("oneOf", "anyOf", "allOf")
_WORDS: Final = (
    ("object", _OBJECT_WORDS),
    ("array", _ARRAY_WORDS),
    ("number", _NUMBER_WORDS),
    ("string", _STRING_WORDS),
)
_NUMBERS: Final[Mapping[Kind, tuple[str, str]]] = {
    Kind.INT8: ("integer", "int8"),
    Kind.INT16: ("integer", "int16"),
    Kind.INT32: ("integer", "int32"),
    Kind.INT64: ("integer", "int64"),
    Kind.FLOAT32: ("number", "float32"),
    Kind.FLOAT64: ("number", "float64"),
}


@dataclass(frozen=True)
class JsonSchemaOptions:
    """Settings of the converter that change schemas."""

    optional_if_not_required: bool = False
    """`use.optional.for.nonrequired`."""
    flatten_singletons: bool = True
    """`flatten.singleton.unions`."""


def connect_schema(text: str, references: Sequence[Reference], options: JsonSchemaOptions) -> ConnectSchema:
    """Raises UnusableSchema."""
    try:
        root = read_json(text, _MOST_JSON_LEVELS)
        others = {one.name: read_json(one.text, _MOST_JSON_LEVELS) for one in references}
    except NestedTooDeeply:
        raise _too_deep() from None
    except ValueError as error:
        raise UnusableSchema(f"the JSON Schema is no JSON: {error}") from None
    try:
        made = _Translation(options, others).schema(_Place(root, root))
    except (TypeError, ValueError, AttributeError) as error:
        raise UnusableSchema(f"the JSON Schema is not valid: {error!r}") from None
    if has_more_levels(made, _DEEPEST, _inside):
        raise _too_deep()
    return made


def _inside(schema: ConnectSchema) -> list[ConnectSchema]:
    return [one.schema for one in schema.fields] + ([] if schema.value is None else [schema.value])


def _too_deep() -> UnusableSchema:
    return UnusableSchema("the JSON Schema is nested too deeply")


@dataclass(frozen=True)
class _Place:
    """A schema within a document."""

    node: Any
    root: Any
    above: tuple[str, ...] = ()
    """References that led here."""
    steps: int = 0
    """From the root, through schemas and references."""

    def __post_init__(self) -> None:
        if self.steps > _MOST_STEPS:
            raise _too_deep()

    def inner(self, node: Any) -> _Place:
        return replace(self, node=node, steps=self.steps + 1)

    def get(self, word: str) -> Any:
        return self.node.get(word) if isinstance(self.node, dict) else None

    def types(self) -> list[str]:
        """What `type` says or, without one, the words that only one type has."""
        named = self.get("type")
        if named is not None:
            return [named] if isinstance(named, str) else list(named)
        for kind, words in _WORDS:
            if any(self.get(word) is not None for word in words):
                return [kind]
        return []


@dataclass(frozen=True)
class _Translation:
    options: JsonSchemaOptions
    others: Mapping[str, Any]

    def schema(self, place: _Place, optional: bool = False) -> ConnectSchema:
        if isinstance(place.get("$ref"), str):
            return self.schema(self._referred(place), optional)
        for word in _COMBINED:
            if isinstance(place.get(word), list):
                return self._combined(place, word, optional)
        types = place.types()
        if len(types) > 1:
            parts = [place.inner({**place.node, "type": kind}) for kind in types]
            return self._one_of(place, parts, optional)
        made = self._annotated(place, self._bare(place, types[0] if types else ""))
        return replace(made, optional=optional or made.optional)

    def _referred(self, place: _Place) -> _Place:
        reference = place.node["$ref"]
        document, _, pointer = reference.partition("#")
        root = place.root if not document else self._document(document)
        key = f"{id(root)}#{pointer}"
        if key in place.above:
            raise UnusableSchema(f"the JSON Schema {reference} contains itself, which no column can hold")
        node = root
        for step in unquote(pointer).split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            try:
                node = node[int(name)] if isinstance(node, list) else node[name]
            except (KeyError, IndexError, ValueError, TypeError):
                raise UnusableSchema(f"the JSON Schema refers to {reference}, which is not there") from None
        return _Place(node, root, (*place.above, key), place.steps + 1)

    def _document(self, name: str) -> Any:
        if name in self.others:
            return self.others[name]
        for known, document in self.others.items():
            if (isinstance(document, dict) and document.get("$id") == name) or known.endswith(f"/{name}"):
                return document
        raise UnusableSchema(f"the JSON Schema refers to {name}; register it as a reference")

    def _combined(self, place: _Place, word: str, optional: bool) -> ConnectSchema:
        parts = [place.inner(node) for node in place.node[word]]
        if len(parts) == 1 and self.options.flatten_singletons:
            return self.schema(parts[0], optional)
        if word == "allOf":
            return self._all_of(place, parts, optional)
        return self._one_of(place, parts, optional)

    def _one_of(self, place: _Place, parts: Sequence[_Place], optional: bool) -> ConnectSchema:
        valued = [part for part in parts if part.types() != ["null"]]
        has_null = len(valued) < len(parts)
        if len(parts) == 2 and has_null and len(valued) == 1:
            return self.schema(valued[0], optional=True)
        fields = tuple(
            Field(f"{ONE_OF}.field.{index}", self.schema(part, optional=True))
            for index, part in enumerate(valued)
        )
        made = ConnectSchema(Kind.STRUCT, name=ONE_OF, fields=fields, optional=optional or has_null)
        return self._annotated(place, made)

    def _all_of(self, place: _Place, parts: Sequence[_Place], optional: bool) -> ConnectSchema:
        properties: dict[str, _Place] = {}
        required: dict[str, bool] = {}
        for part in parts:
            self._collect(part, properties, required)
        if properties:
            return self._struct(properties, required, optional)
        nested = [part for part in parts if any(part.get(word) for word in _COMBINED)]
        typed = [part for part in parts if part.types() not in ([], ["string"]) or part.get("$ref")]
        enums = [part for part in parts if part.get("enum") is not None]
        for candidates in (nested, typed, enums, list(parts)):
            if candidates:
                return self.schema(candidates[0], optional)
        raise UnusableSchema("Unsupported criterion allOf")

    def _collect(self, part: _Place, into: dict[str, _Place], required: dict[str, bool]) -> None:
        if isinstance(part.get("$ref"), str):
            part = self._referred(part)
        for node in part.get("allOf") or ():
            self._collect(part.inner(node), into, required)
        for name, node in (part.get("properties") or {}).items():
            into[name] = part.inner(node)
            required[name] = name in (part.get("required") or ())

    def _struct(
        self, properties: Mapping[str, _Place], required: Mapping[str, bool], optional: bool
    ) -> ConnectSchema:
        fields = tuple(
            Field(name, self.schema(place, self.options.optional_if_not_required and not required[name]))
            for name, place in properties.items()
        )
        return ConnectSchema(Kind.STRUCT, optional=optional, fields=fields)

    def _bare(self, place: _Place, kind: str) -> ConnectSchema:
        if place.get("enum") is not None and kind in ("", "string"):
            return _enum(place.get("enum"))
        if isinstance(place.node, dict) and "const" in place.node and not kind:
            return _enum([place.get("const")])
        match kind:
            case "object":
                return self._object(place)
            case "array":
                return self._array(place)
            case "boolean":
                return ConnectSchema(Kind.BOOLEAN)
            case "integer" | "number":
                return _number(place, kind)
            case "string":
                is_bytes = place.get("connect.type") == "bytes"
                return ConnectSchema(Kind.BYTES if is_bytes else Kind.STRING)
        raise UnusableSchema(f"Unsupported schema type {kind or 'any'}; give every field a type")

    def _object(self, place: _Place) -> ConnectSchema:
        if place.get("connect.type") == "map":
            return ConnectSchema(
                Kind.MAP,
                key=ConnectSchema(Kind.STRING),
                value=self.schema(place.inner(place.get("additionalProperties"))),
            )
        given = {name: place.inner(node) for name, node in (place.get("properties") or {}).items()}
        ordered = sorted(enumerate(given.items()), key=lambda one: _index(one[1][1], one[0]))
        required = place.get("required") or ()
        return self._struct(
            {name: inner for _, (name, inner) in ordered}, {name: name in required for name in given}, False
        )

    def _array(self, place: _Place) -> ConnectSchema:
        items = place.get("items")
        if not isinstance(items, dict):
            raise UnusableSchema("Array schema did not specify the items type")
        if place.get("connect.type") == "map":
            sides = items.get("properties") or {}
            key, value = (self.schema(place.inner(sides.get(side))) for side in ("key", "value"))
            return ConnectSchema(Kind.MAP, key=key, value=value)
        return ConnectSchema(Kind.ARRAY, value=self.schema(place.inner(items)))

    def _annotated(self, place: _Place, schema: ConnectSchema) -> ConnectSchema:
        given = place.get("connect.parameters") or {}
        parameters = dict(schema.parameters) | {name: str(value) for name, value in given.items()}
        made = replace(
            schema,
            name=schema.name or place.get("title"),
            version=place.get("connect.version"),
            doc=place.get("description"),
            parameters=tuple(parameters.items()),
        )
        return replace(made, default=_default(made, place.get("default")))


def _index(place: _Place, position: int) -> int:
    index = place.get("connect.index")
    return index if isinstance(index, int) else position


def _enum(symbols: Sequence[Any]) -> ConnectSchema:
    names = [NULL_MARKER if symbol is None else str(symbol) for symbol in symbols]
    return ConnectSchema(Kind.STRING, parameters=((ENUM, ""), *((f"{ENUM}.{name}", name) for name in names)))


def _number(place: _Place, kind: str) -> ConnectSchema:
    named = place.get("connect.type")
    if named is None:
        return ConnectSchema(Kind.INT64 if kind == "integer" else Kind.FLOAT64)
    if named not in _CONNECT_TYPES:
        raise UnusableSchema(f"Unsupported type {named}")
    return ConnectSchema(_CONNECT_TYPES[named])


def _default(schema: ConnectSchema, value: Any) -> Any:
    if value is None or schema.name == ONE_OF:
        return None
    try:
        exact = json.loads(json.dumps(value), parse_float=Decimal)
        return connect_value(schema, exact, True)
    except ValueError:
        return None


def json_schema(schema: ConnectSchema, numeric: bool, open_objects: bool) -> dict[str, Any]:
    """`numeric`: decimals are numbers, else base64."""
    if schema.optional:
        inner = json_schema(replace(schema, optional=False), numeric, open_objects)
        return {"oneOf": [{"type": "null"}, inner]}
    made = _bare(schema, numeric, open_objects)
    parameters = {name: value for name, value in schema.parameters if not name.startswith(_NAMESPACE)}
    notes = {
        "title": schema.name,
        "description": schema.doc,
        "connect.version": schema.version,
        "connect.parameters": parameters or None,
        "default": None if schema.default is None else json_default(schema, schema.default),
    }
    return made | {name: value for name, value in notes.items() if value is not None}


def _bare(schema: ConnectSchema, numeric: bool, open_objects: bool) -> dict[str, Any]:
    def inner(one: ConnectSchema | None) -> dict[str, Any]:
        assert one is not None
        return json_schema(one, numeric, open_objects)

    if schema.kind in _NUMBERS:
        kind, hint = _NUMBERS[schema.kind]
        return {"type": kind, "connect.type": hint}
    match schema.kind:
        case Kind.STRUCT:
            properties = {
                one.name: inner(one.schema) | {"connect.index": index}
                for index, one in enumerate(schema.fields)
            }
            closed = {} if open_objects else {"additionalProperties": False}
            return {"type": "object", "properties": properties, **closed}
        case Kind.ARRAY:
            return {"type": "array", "items": inner(schema.value)}
        case Kind.MAP if (
            schema.key is not None and schema.key.kind is Kind.STRING and not schema.key.optional
        ):
            return {"type": "object", "connect.type": "map", "additionalProperties": inner(schema.value)}
        case Kind.MAP:
            sides = {"key": inner(schema.key), "value": inner(schema.value)}
            return {
                "type": "array",
                "connect.type": "map",
                "items": {"type": "object", "properties": sides},
            }
        case Kind.BYTES:
            is_number = numeric and schema.name == DECIMAL
            return {"type": "number" if is_number else "string", "connect.type": "bytes"}
        case Kind.BOOLEAN:
            return {"type": "boolean"}
    symbols = [value for name, value in schema.parameters if name.startswith(f"{ENUM}.")]
    if symbols:
        return {"enum": [None if symbol == NULL_MARKER else symbol for symbol in symbols]}
    return {"type": "string"}
