"""What msgspec itself can check of strings, numbers and choices; called by `compile`.

Each function gives a type and the rules that it covers; a rule that is not covered is left to jsonschema-rs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, Final, Literal

import msgspec

Rules = Mapping[str, Any]
Covered = Collection[str]

_LOWER: Final = ("minimum", "exclusiveMinimum")
_UPPER: Final = ("maximum", "exclusiveMaximum")
_LIMITS: Final = (*_LOWER, *_UPPER)
_LONG: Final = 2**63 - 1
"""msgspec keeps limits as 64 bits."""
_EXACT: Final = 2**53
"""Whole numbers up to here are floats without a loss."""


def _null(rules: Rules) -> tuple[Any, Covered]:
    return None, ()


def _boolean(rules: Rules) -> tuple[Any, Covered]:
    return bool, ()


def _string(rules: Rules) -> tuple[Any, Covered]:
    limits = lengths(rules, "minLength", "maxLength")
    return limited(str, limits), ("minLength", "maxLength") if limits else ()


def limited(kind: Any, limits: Mapping[str, Any]) -> Any:
    return Annotated[kind, msgspec.Meta(**limits)] if limits else kind


def lengths(rules: Rules, least: str, most: str) -> dict[str, int]:
    """Limits as msgspec names them; none unless all that are given are whole numbers of a sensible size."""
    given = {"min_length": rules.get(least), "max_length": rules.get(most)}
    found = {name: limit for name, limit in given.items() if limit is not None}
    return found if all(type(limit) is int and limit < _LONG for limit in found.values()) else {}


def _integer(rules: Rules) -> tuple[Any, Covered]:
    given = {name: rules[name] for name in _LIMITS if name in rules}
    if not given:
        return int, ()
    lows = [_first_above(limit, name) for name, limit in given.items() if name in _LOWER]
    highs = [-_first_above(-limit, name) for name, limit in given.items() if name in _UPPER]
    if any(abs(limit) > _LONG for limit in (*lows, *highs)):
        return int, ()
    bounds = ({"ge": max(lows)} if lows else {}) | ({"le": min(highs)} if highs else {})
    return limited(int, bounds), given.keys()


def _first_above(limit: float, name: str) -> int:
    """The first whole number that is allowed."""
    return math.floor(limit) + 1 if name.startswith("exclusive") else math.ceil(limit)


def _number(rules: Rules) -> tuple[Any, Covered]:
    whole, covered = _integer(rules)
    exact = all(type(rules[name]) is float or abs(rules[name]) <= _EXACT for name in covered)
    once = not set(_LOWER) <= set(covered) and not set(_UPPER) <= set(covered)
    if not covered or not exact or not once:
        return int | float, ()
    names = {"minimum": "ge", "exclusiveMinimum": "gt", "maximum": "le", "exclusiveMaximum": "lt"}
    bounds = {names[name]: float(rules[name]) for name in covered}
    return whole | limited(float, bounds), covered


SCALARS: Final[Mapping[str, Callable[[Rules], tuple[Any, Covered]]]] = {
    "null": _null,
    "boolean": _boolean,
    "string": _string,
    "integer": _integer,
    "number": _number,
}


def choice(rules: Rules) -> Any | None:
    """A type for `enum` or `const`, if msgspec has one for these values and nothing else is asked."""
    if len(rules.keys() & {"enum", "const"}) != 1 or rules.keys() - {"enum", "const", "type"}:
        return None
    values = rules["enum"] if "enum" in rules else [rules["const"]]
    kinds = {_LITERALS.get(type(value)) for value in values}
    named = rules.get("type", list(kinds))
    allowed = {named} if isinstance(named, str) else set(named)
    if not values or None in kinds or not kinds <= allowed | ({"integer"} if "number" in allowed else set()):
        return None
    if any(type(value) is int and abs(value) > _LONG for value in values):
        return None
    return Literal[tuple(values)]


_LITERALS: Final[Mapping[type, str]] = {str: "string", int: "integer", type(None): "null"}
