"""Rules at the root of a schema that combine others (`if`, `anyOf`, …), apart from the rest: they look at few
fields, so that only those need to be decoded for them; called by `fast`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from icestream.validation.looks import ALL, ONE, WHEN_PRESENT, looks, refers_to_definitions
from icestream.validation.schema import Document

_COMBINING: Final = frozenset((*ALL, *ONE, *WHEN_PRESENT))
_SHARED: Final = frozenset(("$schema", "$defs", "definitions"))


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
    if not isinstance(schema, dict) or not schema.keys() & _COMBINING:
        return None
    conditions = replace(
        document, schema={key: rule for key, rule in schema.items() if key in _COMBINING | _SHARED}
    )
    rest = replace(document, schema={key: rule for key, rule in schema.items() if key not in _COMBINING})
    names = looks(conditions)
    if names is None or "unevaluatedProperties" in rest.schema or not refers_to_definitions(rest.schema):
        return None
    return Parted(rest, conditions, tuple(names))
