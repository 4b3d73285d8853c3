"""A JSON Schema as a msgspec type, which decodes and judges at once, and the columns that the type leaves
open; called by `fast`.

The type may refuse what the schema allows (1.0 is an integer), never the other way around. What it cannot
say (patterns, formats, combinations) is left to jsonschema-rs, column by column.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import count
from operator import or_
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from icestream.validation.scalars import SCALARS, Covered, Rules, choice, lengths, limited
from icestream.validation.schema import Document


@dataclass(frozen=True)
class Step:
    """From an object of a compiled type to one of its fields."""

    owner: type
    slot: str
    certain: bool = True
    """False: what comes here need not be an object of that type."""


@dataclass(frozen=True)
class Open:
    """Values that the type alone does not judge: the way to them, and the pointer of their schema."""

    pointer: str
    path: tuple[Step, ...] = ()
    optional: bool = False

    def below(self, step: Step, required: bool) -> Open:
        if not self.path:
            return replace(self, path=(step,), optional=not required)
        first = self.path[0]
        return replace(self, path=(step, replace(first, certain=first.certain and required), *self.path[1:]))

    def among_others(self) -> Open:
        """The same, where the object may as well be something else."""
        if not self.path:
            return self
        return replace(self, path=(replace(self.path[0], certain=False), *self.path[1:]))


@dataclass(frozen=True)
class Compiled:
    type: Any
    open: tuple[Open, ...] = ()


_ANYTHING: Final = Compiled(msgspec.Raw)
"""Skipped, not decoded."""
_SAYS_NOTHING: Final = frozenset(("$schema", "$id", "$comment", "$defs", "definitions")) | frozenset(
    ("title", "description", "default", "examples", "readOnly", "writeOnly", "deprecated")
)
_REBASING: Final = frozenset(
    ("$id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef", "$vocabulary")
)
_OBJECT_RULES: Final = frozenset(("properties", "required", "additionalProperties"))
_MOST_PARTS: Final = 5_000
"""References may unfold to any size."""


def compiled(document: Document) -> Compiled:
    try:
        if document.compiles and self_contained(document.schema):
            return _Compiler(document).part(document.schema, "")
    except (_TooLarge, RecursionError):
        pass
    return _left_open("")


class _TooLarge(Exception):
    pass


def _left_open(pointer: str) -> Compiled:
    return Compiled(Any, (Open(pointer),))


def self_contained(schema: Any) -> bool:
    """Whether a part means the same wherever it is read. Keys are judged by name alone: what only looks
    like another base is not compiled, which costs nothing but time."""
    if not isinstance(schema, dict):
        return True
    inner = {key: value for key, value in schema.items() if key != "$id"}
    return not any(_REBASING & one.keys() or _refers_outside(one) for one in objects_in(inner))


def _refers_outside(schema: Mapping[str, Any]) -> bool:
    return not str(schema.get("$ref", "#")).startswith("#")


def objects_in(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, dict):
        yield value
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from objects_in(inner)


@dataclass(frozen=True)
class _Compiler:
    document: Document
    followed: tuple[str, ...] = ()
    """References that led here: one that comes again is recursive."""
    parts: Iterator[int] = field(default_factory=count)

    def part(self, schema: Any, pointer: str) -> Compiled:
        if next(self.parts) > _MOST_PARTS:
            raise _TooLarge
        if not isinstance(schema, dict):
            return _ANYTHING if schema is True else _left_open(pointer)
        if "$ref" in schema:
            return self._referred(schema, pointer)
        rules = {name: rule for name, rule in schema.items() if name not in _SAYS_NOTHING}
        if not rules:
            return _ANYTHING
        if "enum" in rules or "const" in rules:
            kind = choice(rules)
            return _left_open(pointer) if kind is None else Compiled(kind)
        names = rules.pop("type", "object" if rules.keys() & _OBJECT_RULES else None)
        if names is None:
            return _left_open(pointer)
        return self._typed([names] if isinstance(names, str) else names, rules, pointer)

    def _referred(self, schema: Mapping[str, Any], pointer: str) -> Compiled:
        target = schema["$ref"]
        alone = self.document.is_draft_7 or schema.keys() <= _SAYS_NOTHING | {"$ref"}
        if not alone or target in self.followed or not target.startswith("#/") or "%" in target:
            return _left_open(pointer)
        found = refers_within(self.document.schema, target)
        return replace(self, followed=(*self.followed, target)).part(found, target[1:])

    def _typed(self, names: Sequence[str], rules: Rules, pointer: str) -> Compiled:
        """Each rule is about one type of values, so the types are compiled one by one."""
        if "object" in names:
            objects = self._object(rules, pointer)
            if objects is None or len(names) == 1:
                return objects or _left_open(pointer)
            others = self._typed([name for name in names if name != "object"], {}, pointer)
            return Compiled(objects.type | others.type, tuple(one.among_others() for one in objects.open))
        kinds: dict[str, Any] = {}
        covered: set[str] = set()
        for name in [name for name in names if name != "integer" or "number" not in names]:
            kinds[name], mine = self._array(rules, pointer) if name == "array" else SCALARS[name](rules)
            covered.update(mine)
        left = () if rules.keys() <= covered else (Open(pointer),)
        if left and "array" in kinds:
            kinds["array"] = list[Any]
        return Compiled(reduce(or_, kinds.values()), left)

    def _array(self, rules: Rules, pointer: str) -> tuple[Any, Covered]:
        items = rules.get("items", True)
        limits = lengths(rules, "minItems", "maxItems")
        covered = {"minItems", "maxItems"} if limits else set()
        found = _left_open("") if "prefixItems" in rules else self.part(items, f"{pointer}/items")
        kind = list[Any] if found.open else list[found.type]  # type: ignore[name-defined]
        if not found.open:
            covered.add("items")
        return limited(kind, limits), covered

    def _object(self, rules: Rules, pointer: str) -> Compiled | None:
        """A struct of the fields that the schema says something of; None if it says more than that."""
        properties = rules.get("properties", {})
        others = rules.get("additionalProperties", True)
        required = rules.get("required", [])
        if rules.keys() - _OBJECT_RULES or not all(map(_speakable, (*properties, *required))):
            return None
        if not isinstance(others, bool):
            return None if properties or required else self._map(others, pointer)
        if not others and not properties.keys() >= set(required):
            return None  # no object can be valid
        parts = {
            name: self.part(schema, f"{pointer}/properties/{_escaped(name)}")
            for name, schema in properties.items()
        }
        parts |= {name: _ANYTHING for name in required if name not in parts}
        if others:
            parts = {name: part for name, part in parts.items() if part is not _ANYTHING or name in required}
        return _struct(parts, set(required), closed=not others)

    def _map(self, values: Any, pointer: str) -> Compiled | None:
        found = self.part(values, f"{pointer}/additionalProperties")
        return None if found.open else Compiled(dict[str, found.type])  # type: ignore[name-defined]


def _struct(parts: Mapping[str, Compiled], required: set[str], *, closed: bool) -> Compiled:
    slots = {name: f"f{position}" for position, name in enumerate(parts)}
    kind = msgspec.defstruct(
        "Checked",
        [
            (slots[name], part.type)
            if name in required
            else (slots[name], part.type | msgspec.UnsetType, msgspec.UNSET)
            for name, part in parts.items()
        ],
        rename={slot: name for name, slot in slots.items()},
        forbid_unknown_fields=closed,
        kw_only=True,
        gc=False,
    )
    left = [
        one.below(Step(kind, slots[name]), name in required)
        for name, part in parts.items()
        for one in part.open
    ]
    return Compiled(kind, tuple(left))


def _speakable(name: str) -> bool:
    """Whether msgspec takes it as the name of a field."""
    return not any(char in '"\\' or char < " " for char in name)


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def refers_within(schema: Any, reference: str) -> Any:
    """What a reference such as `#/$defs/x` means."""
    for name in reference.split("/")[1:]:
        key = unquote(name).replace("~1", "/").replace("~0", "~")
        schema = schema[int(key)] if isinstance(schema, list) else schema[key]
    return schema
