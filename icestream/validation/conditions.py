"""Rules at the root of a schema that combine others (`if`, `anyOf`, …), apart from the rest: they look at few
fields, so that only those need to be decoded for them; called by `fast`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from icestream.validation.compile import objects_in, refers_within, self_contained
from icestream.validation.schema import Document

_ALL: Final = ("allOf", "anyOf", "oneOf")
_ONE: Final = ("not", "if", "then", "else")
_WHEN_PRESENT: Final = ("dependentRequired", "dependentSchemas", "dependencies")
_COMBINING: Final = frozenset((*_ALL, *_ONE, *_WHEN_PRESENT))
_SHARED: Final = frozenset(("$schema", "$defs", "definitions"))
_LOOKS_AT_ALL: Final = frozenset(
    ("additionalProperties", "patternProperties", "propertyNames", "minProperties", "maxProperties")
) | frozenset(("enum", "const"))
_DEFINED: Final = ("#/$defs/", "#/definitions/")


@dataclass(frozen=True)
class Parted:
    """Two documents that together say what one said."""

    rest: Document
    conditions: Document
    names: tuple[str, ...]
    """Of the fields that the conditions look at."""


def parted(document: Document) -> Parted | None:
    """None if there are no such rules, or if they look at more than some fields."""
    schema = document.schema
    if not document.compiles or not isinstance(schema, dict) or not schema.keys() & _COMBINING:
        return None
    conditions = {key: rule for key, rule in schema.items() if key in _COMBINING | _SHARED}
    rest = {key: rule for key, rule in schema.items() if key not in _COMBINING}
    try:
        if "$ref" in schema or not self_contained(schema) or not all(map(_stays, objects_in(schema))):
            return None
        names = dict.fromkeys(_Reader(schema).names(conditions))
    except (_LooksAtAll, RecursionError):
        return None
    return Parted(replace(document, schema=rest), replace(document, schema=conditions), tuple(names))


def _stays(schema: Mapping[str, Any]) -> bool:
    """Whether it means the same in both documents."""
    target = str(schema.get("$ref", _DEFINED[0]))
    return target.startswith(_DEFINED) and not {"unevaluatedProperties", "unevaluatedItems"} & schema.keys()


class _LooksAtAll(Exception):
    pass


@dataclass(frozen=True)
class _Reader:
    root: Mapping[str, Any]
    followed: set[str] = field(default_factory=set)

    def names(self, schema: Any) -> Iterator[str]:
        """The fields of an object that a schema looks at."""
        if not isinstance(schema, dict):
            return
        if _LOOKS_AT_ALL & schema.keys():
            raise _LooksAtAll
        yield from schema.get("properties", ())
        yield from schema.get("required", ())
        for key in _WHEN_PRESENT:
            for name, needed in schema.get(key, {}).items():
                yield name
                yield from needed if isinstance(needed, list) else self.names(needed)
        for inner in self._combined(schema):
            yield from self.names(inner)
        if "$ref" in schema:
            yield from self._referred(schema["$ref"])

    def _combined(self, schema: Mapping[str, Any]) -> Iterator[Any]:
        for key in _ALL:
            yield from schema.get(key, ())
        for key in _ONE:
            yield schema.get(key)

    def _referred(self, target: str) -> Iterator[str]:
        if target not in self.followed:
            self.followed.add(target)
            yield from self.names(refers_within(self.root, target))
