"""Which fields of an object a JSON Schema is about: `validator` decodes those and skips the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final, TypeAlias, TypedDict
from urllib.parse import unquote

from icestream.validation.schema import DRAFT_7, DRAFT_2020, Document

UsedFields: TypeAlias = "Mapping[str, UsedFields | None]"
"""Fields by name, with the fields that are used inside of them; None: all of them."""

_OF_SEVERAL: Final = ("allOf", "anyOf", "oneOf")
_OF_ONE: Final = ("not", "if", "then", "else")
_WHEN_PRESENT: Final = ("dependentRequired", "dependentSchemas", "dependencies")
_ABOUT_ALL_FIELDS: Final = frozenset(
    ("additionalProperties", "patternProperties", "propertyNames", "minProperties", "maxProperties")
) | frozenset(("unevaluatedProperties", "unevaluatedItems", "enum", "const"))
_REBASING: Final = frozenset(
    ("$id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef", "$vocabulary")
)
_MOST_FIELDS: Final = 5_000
"""References may unfold to any size."""
_MOST_LEVELS: Final = 50
"""And to any depth, of which msgspec compiles so much."""


def used_fields(document: Document) -> UsedFields | None:
    """None: all of them, or the schema is of a kind that this module does not know."""
    try:
        if document.draft not in (DRAFT_7, DRAFT_2020) or not _refers_to_itself(document.schema):
            return None
        return _used(document.schema, [document.schema], count(), _MOST_LEVELS)
    except _TooMany:
        return None


def type_with(used: UsedFields | None) -> Any:
    """What msgspec decodes of any JSON value if only these fields of objects are wanted."""
    if not used:
        return Any
    some = TypedDict("Some", {name: type_with(inner) for name, inner in used.items()}, total=False)  # type: ignore[misc]
    return some | list[Any] | str | float | int | bool | None


class _TooMany(Exception):
    pass


class _AllFields(Exception):
    pass


def _refers_to_itself(schema: Any) -> bool:
    """Whether each reference is a path within the document. Keys are told by name alone: a field that is
    called $id costs time, nothing else."""
    inner = (
        {key: rule for key, rule in schema.items() if key != "$id"} if isinstance(schema, dict) else schema
    )
    return not any(
        _REBASING & one.keys() or str(one.get("$ref", "#")).partition("/")[0] != "#"
        for one in _objects_in(inner)
    )


def _objects_in(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, dict):
        yield value
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _objects_in(inner)


def _used(root: Any, schemas: Sequence[Any], fields: Iterator[int], levels: int) -> UsedFields | None:
    """What some schemas of the same value use together."""
    found: dict[str, list[Any]] = {}
    reader = _Reader(root)
    try:
        for schema in schemas:
            for name, inner in reader.fields(schema):
                found.setdefault(name, []).append(inner)
    except _AllFields:
        return None
    if next(fields) > _MOST_FIELDS or not levels:
        raise _TooMany
    return {name: _used(root, inner, fields, levels - 1) for name, inner in found.items()}


@dataclass(frozen=True)
class _Reader:
    root: Any
    followed: set[str] = field(default_factory=set)

    def fields(self, schema: Any) -> Iterator[tuple[str, Any]]:
        """Each field of a value that a schema is about, with the schema for it."""
        if not isinstance(schema, dict):
            return
        if _ABOUT_ALL_FIELDS & schema.keys():
            raise _AllFields
        yield from schema.get("properties", {}).items()
        yield from ((name, True) for name in schema.get("required", ()))
        for key in _WHEN_PRESENT:
            yield from self._dependent(schema.get(key, {}))
        for inner in (
            *(one for key in _OF_SEVERAL for one in schema.get(key, ())),
            *map(schema.get, _OF_ONE),
        ):
            yield from self.fields(inner)
        target = schema.get("$ref")
        if target is not None and target not in self.followed:
            self.followed.add(target)
            yield from self.fields(_at(self.root, target))

    def _dependent(self, rules: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        for name, needed in rules.items():
            yield name, True
            if isinstance(needed, list):
                yield from ((other, True) for other in needed)
            else:
                yield from self.fields(needed)


def _at(schema: Any, reference: str) -> Any:
    """What a reference such as `#/$defs/x` means."""
    for name in reference.split("/")[1:]:
        key = unquote(name).replace("~1", "/").replace("~0", "~")
        schema = schema[int(key)] if isinstance(schema, list) else schema[key]
    return schema
