"""Which fields of an object a schema looks at: the others need not be decoded for it.

Used by `conditions` and `rules`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final, TypeAlias

from icestream.validation.compile import objects_in, refers_within, self_contained
from icestream.validation.schema import Document

Looks: TypeAlias = "Mapping[str, Looks | None]"
"""Fields by name with what is looked at in them; None: everything."""

ALL: Final = ("allOf", "anyOf", "oneOf")
ONE: Final = ("not", "if", "then", "else")
WHEN_PRESENT: Final = ("dependentRequired", "dependentSchemas", "dependencies")
_AT_ALL_FIELDS: Final = frozenset(
    ("additionalProperties", "patternProperties", "propertyNames", "minProperties", "maxProperties")
) | frozenset(("unevaluatedProperties", "unevaluatedItems", "enum", "const"))
_DEFINED: Final = ("#/$defs/", "#/definitions/")
_MOST_FIELDS: Final = 5_000
"""References may unfold to any size."""


def looks(document: Document) -> Looks | None:
    """None: at everything, or nobody can tell."""
    try:
        if not document.compiles or not refers_to_definitions(document.schema):
            return None
        return _looks(document.schema, [document.schema], count())
    except (_TooMany, RecursionError):
        return None


class _TooMany(Exception):
    pass


class _AtAll(Exception):
    pass


def refers_to_definitions(schema: Any) -> bool:
    """Whether its references mean the same in every document with the same definitions."""
    return self_contained(schema) and all(
        str(one.get("$ref", _DEFINED[0])).startswith(_DEFINED) for one in objects_in(schema)
    )


def _looks(root: Any, schemas: Sequence[Any], fields: Iterator[int]) -> Looks | None:
    """What some schemas of the same value look at together."""
    found: dict[str, list[Any]] = {}
    reader = _Reader(root)
    try:
        for schema in schemas:
            for name, inner in reader.fields(schema):
                found.setdefault(name, []).append(inner)
    except _AtAll:
        return None
    if next(fields) > _MOST_FIELDS:
        raise _TooMany
    return {name: _looks(root, inner, fields) for name, inner in found.items()}


@dataclass(frozen=True)
class _Reader:
    root: Any
    followed: set[str] = field(default_factory=set)

    def fields(self, schema: Any) -> Iterator[tuple[str, Any]]:
        """Each field of a value that a schema looks at, with the schema for it."""
        if not isinstance(schema, dict):
            return
        if _AT_ALL_FIELDS & schema.keys():
            raise _AtAll
        yield from schema.get("properties", {}).items()
        yield from ((name, True) for name in schema.get("required", ()))
        for key in WHEN_PRESENT:
            yield from self._dependent(schema.get(key, {}))
        for inner in (*(one for key in ALL for one in schema.get(key, ())), *map(schema.get, ONE)):
            yield from self.fields(inner)
        target = schema.get("$ref")
        if target is not None and target not in self.followed:
            self.followed.add(target)
            yield from self.fields(refers_within(self.root, target))

    def _dependent(self, rules: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        for name, needed in rules.items():
            yield name, True
            if isinstance(needed, list):
                yield from ((other, True) for other in needed)
            else:
                yield from self.fields(needed)
