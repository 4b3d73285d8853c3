"""Avro schemas parsed into a tree with every name resolved; the Avro converter reads and writes by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from icestream.api.nesting import NestedTooDeeply, has_more_levels, read_json

PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_RESERVED: Final = frozenset(
    ("type", "name", "namespace", "fields", "items", "values", "symbols", "size", "aliases", "doc", "default")
)

_DEEPEST: Final = 100
_JSON_LEVELS: Final = 4
"""Of one level of a schema at most: a record, the list of its fields, a field, the union in it."""
_TOO_DEEP: Final = "the Avro schema is nested too deeply"


class BadSchema(ValueError):
    """A schema that cannot be used; says why."""


class _Absent:
    def __repr__(self) -> str:
        return "NO_DEFAULT"


NO_DEFAULT: Final = _Absent()


@dataclass(frozen=True)
class AvroField:
    name: str
    type: AvroType
    doc: str | None = None
    default: Any = field(default=NO_DEFAULT, hash=False)
    """As in the JSON of the schema."""
    properties: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class AvroType:
    kind: str
    """The name of a primitive, or record, enum, fixed, array, map, union."""
    name: str = ""
    """The full name of a named type."""
    fields: tuple[AvroField, ...] = ()
    item: AvroType | None = None
    """Of an array's items or a map's values."""
    branches: tuple[AvroType, ...] = ()
    symbols: tuple[str, ...] = ()
    size: int = 0
    doc: str | None = None
    default: str | None = None
    """Of an enum."""
    properties: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """All that Avro itself does not know, logical types among them."""

    @property
    def short_name(self) -> str:
        return self.name.rpartition(".")[2]

    @property
    def logical(self) -> str | None:
        found = self.properties.get("logicalType")
        return found.lower() if isinstance(found, str) else None


def parse(text: str, references: Sequence[str] = ()) -> AvroType:
    """The type that a schema's text describes; `references` are the texts of schemas that it names, those
    that others need first. Raises BadSchema."""
    names: dict[str, AvroType | None] = {}
    try:
        for reference in references:
            _Parser(names).type(_loaded(reference), "")
        made = _Parser(names).type(_loaded(text), "")
    except (KeyError, TypeError, AttributeError) as error:
        raise BadSchema(f"the Avro schema is not valid: {error!r}") from None
    if has_more_levels(made, _DEEPEST, _inside):
        raise BadSchema(_TOO_DEEP)
    return made


def _inside(kind: AvroType) -> tuple[AvroType, ...]:
    return (*(one.type for one in kind.fields), *kind.branches, *((kind.item,) if kind.item else ()))


def _loaded(text: str) -> Any:
    try:
        return read_json(text, _DEEPEST * _JSON_LEVELS)
    except NestedTooDeeply:
        raise BadSchema(_TOO_DEEP) from None
    except ValueError as error:
        if text.strip() in PRIMITIVES:
            return text.strip()
        raise BadSchema(f"the Avro schema is no JSON: {error}") from None


@dataclass(frozen=True)
class _Parser:
    names: dict[str, AvroType | None]
    """None: the type is being parsed, so whoever names it is inside of it."""

    def type(self, node: Any, namespace: str) -> AvroType:
        if isinstance(node, str):
            return AvroType(node) if node in PRIMITIVES else self._named(node, namespace)
        if isinstance(node, list):
            return AvroType("union", branches=tuple(self.type(branch, namespace) for branch in node))
        kind = node["type"]
        if not isinstance(kind, str):
            return self.type(kind, namespace)
        properties = {key: value for key, value in node.items() if key not in _RESERVED}
        if kind in PRIMITIVES:
            return AvroType(kind, properties=properties, doc=node.get("doc"))
        if kind == "array":
            return AvroType(kind, item=self.type(node["items"], namespace), properties=properties)
        if kind == "map":
            return AvroType(kind, item=self.type(node["values"], namespace), properties=properties)
        if kind in ("record", "error", "enum", "fixed"):
            return self._definition(node, namespace, properties)
        return self._named(kind, namespace)

    def _named(self, name: str, namespace: str) -> AvroType:
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        for candidate in (full, name):
            if candidate in self.names:
                found = self.names[candidate]
                if found is None:
                    raise BadSchema(f"the Avro type {candidate} contains itself, which no column can hold")
                return found
        raise BadSchema(f"the Avro schema names an unknown type: {full}")

    def _definition(self, node: Mapping[str, Any], namespace: str, properties: Mapping[str, Any]) -> AvroType:
        name = node["name"]
        if "." not in name:
            space = node.get("namespace", namespace)
            name = f"{space}.{name}" if space else name
        inner = name.rpartition(".")[0]
        self.names[name] = None
        fields = tuple(self._field(one, inner) for one in node.get("fields", ()))
        if len({one.name for one in fields}) < len(fields):
            raise BadSchema(f"the Avro record {name} has two fields of one name")
        made = AvroType(
            "record" if node["type"] == "error" else node["type"],
            name,
            fields=fields,
            symbols=_symbols(node) if node["type"] == "enum" else (),
            size=_size(node) if node["type"] == "fixed" else 0,
            doc=node.get("doc"),
            default=node.get("default"),
            properties=properties,
        )
        self.names[name] = made
        return made

    def _field(self, node: Mapping[str, Any], namespace: str) -> AvroField:
        return AvroField(
            node["name"],
            self.type(node["type"], namespace),
            node.get("doc"),
            node.get("default", NO_DEFAULT),
            {key: value for key, value in node.items() if key not in (*_RESERVED, "order")},
        )


def _symbols(node: Mapping[str, Any]) -> tuple[str, ...]:
    symbols = tuple(node["symbols"])
    if not symbols or not all(isinstance(symbol, str) for symbol in symbols):
        raise BadSchema(f"the Avro enum {node['name']} has no symbols, or such as are no texts")
    return symbols


def _size(node: Mapping[str, Any]) -> int:
    size = node["size"]
    if not isinstance(size, int) or not 0 <= size < 2**31:
        raise BadSchema(f"the size of the Avro type {node['name']} must be a number from 0 to 2147483647")
    return size
