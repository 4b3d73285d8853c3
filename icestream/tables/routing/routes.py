"""How the records of a job find their tables, as a plan that crosses process boundaries; `router` follows it.

Names of tables may come from records, which anybody may send: what they may be made of is a list.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_PLACEHOLDER: Final = re.compile(r"\$\{(topic(?:\.[1-9][0-9]?)?|value\.[^{}$]+)\}")
_PART: Final = re.compile(r"\w[\w-]*")
_LONGEST_NAME: Final = 255
_DEEPEST: Final = 10
_SHOWN: Final = 60


@dataclass(frozen=True)
class RoutePlan:
    """How the records of a job find their tables. Plain data: it crosses process boundaries."""

    field: tuple[str, ...] = ()
    """The path of the route field; empty with a template."""
    patterns: Mapping[str, str] | None = None
    """By table, the pattern that the field must match as a whole; None: the field holds the table's name."""
    template: Sequence[tuple[str, str]] = ()
    """Parts of a name: ("text", …), ("topic", number of a part, or nothing), ("value", path)."""
    rejects_unmatched: bool = False
    has_keys: bool = False
    """Whether rows have keys: then a record without a value deletes one."""
    bare_names: bool = False
    """Whether a table may have no namespace."""
    reserved: frozenset[str] = frozenset()
    """Names that the sink needs beside its tables: no part of a table's name is one of them."""

    @property
    def is_by_topic(self) -> bool:
        return bool(self.template) and all(kind != "value" for kind, _ in self.template)


def parsed_template(text: str, *, bare_names: bool = False) -> list[tuple[str, str]]:
    """ValueError, if the template cannot name a table."""
    parts: list[tuple[str, str]] = []
    at = 0
    for match in _PLACEHOLDER.finditer(text):
        parts.append(("text", text[at : match.start()]))
        kind, _, rest = match.group(1).partition(".")
        parts.append((kind, rest))
        at = match.end()
    parts.append(("text", text[at:]))
    literal = "".join(said for kind, said in parts if kind == "text")
    if "$" in literal or "{" in literal or "}" in literal:
        raise ValueError(
            "it has a placeholder that there is not: use ${topic}, ${topic.1} for its first part, or "
            "${value.field.path}"
        )
    sample = "".join(said if kind == "text" else "x" for kind, said in parts)
    if (why := name_problem(sample.lower(), bare_names=bare_names)) is not None:
        raise ValueError(f"no table can be named like that: {why}")
    return [part for part in parts if part != ("text", "")]


def name_problem(
    name: str, *, bare_names: bool = False, reserved: Collection[str] = frozenset()
) -> str | None:
    """Why this cannot be the name of a table; None if it can."""
    shown = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}…"
    if len(name) > _LONGEST_NAME:
        return f"'{shown}' has {len(name)} characters, and {_LONGEST_NAME} are possible"
    if len(name.encode()) > _LONGEST_NAME:
        # Names become those of folders and objects, which are counted in bytes.
        return f"'{shown}' has {len(name.encode())} bytes, and {_LONGEST_NAME} are possible"
    parts = name.split(".")
    if len(parts) < 2 and not bare_names:
        return f"'{shown}' has no namespace"
    if len(parts) > _DEEPEST:
        return f"'{shown}' has {len(parts)} parts, and {_DEEPEST} are possible"
    if not all(_PART.fullmatch(part) for part in parts):
        return f"'{shown}' has a part that is not made of letters, digits, '_' and '-'"
    if taken := [part for part in parts if part in reserved]:
        return f"'{shown}' has the part '{taken[0]}', which is none for tables"
    return None
