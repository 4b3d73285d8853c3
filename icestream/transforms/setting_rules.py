"""What Kafka Connect's own transforms ask of their settings beyond the type, in Java's words.

Used by `settings`. A rule gets the key and the parsed value, which is None if there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from icestream.api.java_regex import pattern_problem

Names = Sequence[str] | None
Rule = Callable[[str, Names], str | None]

_CASTS: Final = ("INT8", "INT16", "INT32", "INT64", "FLOAT32", "FLOAT64", "BOOLEAN", "STRING")
_NOT_CAST_TO: Final = ("ARRAY", "MAP", "STRUCT", "BYTES")


def names(*, may_be_empty: bool) -> Rule:
    """A list whose items are not empty and differ."""

    def judge(key: str, items: Names) -> str | None:
        if items is None:
            return f"Configuration '{key}' values must not be null."
        if not items and not may_be_empty:
            return f"Configuration '{key}' must not be empty. Valid values include: any non-empty value"
        if len(set(items)) < len(items):
            return f"Configuration '{key}' values must not be duplicated."
        return f"Configuration '{key}' values must not be empty." if "" in items else None

    return judge


def some(key: str, items: Names) -> str | None:
    """A list with any items."""
    if items:
        return None
    return _invalid(key, "null" if items is None else "[]", "Empty list")


def not_null(key: str, value: str | None) -> str | None:
    return _invalid(key, "null", "entry must be non null") if value is None else None


def not_empty(value: str) -> str | None:
    return None if value else "String must be non-empty"


def regex(key: str, value: str | None) -> str | None:
    """Java's kind of pattern."""
    if value is None:
        return _invalid(key, "null", "Invalid regex: there is none")
    reason = pattern_problem(value)
    return _invalid(key, value, f"Invalid regex: {reason}") if reason else None


def filled_regex(key: str, value: str | None) -> str | None:
    return regex(key, value) if value != "" else _invalid(key, "", "String must be non-empty")


def renames(key: str, items: Names) -> str | None:
    """Pairs such as `old:new`."""
    wrong = next((item for item in items or () if len(at_colons(item)) != 2), None)
    return None if wrong is None else _wrong_pair(items, wrong)


def casts(key: str, items: Names) -> str | None:
    """Pairs such as `field:type`, or one type alone."""
    if not items:
        return "Must specify at least one field to cast."
    for item in items:
        parts = at_colons(item)
        if not 1 <= len(parts) <= 2:
            return _wrong_pair(items, item)
        if problem := _cast_type(parts[-1].strip()):
            return problem
    if len(items) > 1 and any(len(at_colons(item)) == 1 for item in items):
        return (
            "Cast transformations that specify a type to cast the entire value to may only specify a single "
            "cast in their spec"
        )
    return None


def _cast_type(name: str) -> str | None:
    kind = name.upper()
    if kind in _CASTS:
        return None
    if kind in _NOT_CAST_TO:
        return (
            f"Cast transformation does not support casting to {kind}; "
            f"supported types are [{', '.join(_CASTS)}]"
        )
    return _invalid(
        f"Invalid type found in casting spec: {name}",
        "java.lang.IllegalArgumentException: No enum constant "
        f"org.apache.kafka.connect.data.Schema.Type.{kind}",
    )


def at_colons(pair: str) -> list[str]:
    """Cut as Java cuts: empty parts at the end do not count."""
    parts = pair.split(":")
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts


def _wrong_pair(items: Names, wrong: str) -> str:
    return _invalid("renames", f"[{', '.join(items or ())}]", f"Invalid rename mapping: {wrong}")


def _invalid(key: str, value: str, reason: str = "") -> str:
    return f"Invalid value {value} for configuration {key}" + (f": {reason}" if reason else "")
