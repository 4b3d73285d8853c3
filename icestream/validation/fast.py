"""Finds the records of a chunk that a schema may refuse, decoding only what it is about; used by `rules`.

Whoever is not found is valid; whoever is found may be, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np

from icestream.records.rows import Indexes
from icestream.validation.compile import Open, compiled
from icestream.validation.schema import Document

Decode = Callable[[bytes], Any]


@dataclass(frozen=True)
class _Check:
    """One column that the type leaves open."""

    open: Open
    column_is_valid: Callable[[list[Any]], bool]
    is_valid: Callable[[Any], bool]

    def suspects(self, objects: list[Any]) -> list[int]:
        if self.column_is_valid(_column(objects, self.open)):
            return []
        return [
            at for at, one in enumerate(objects) if not all(map(self.is_valid, _column([one], self.open)))
        ]


@dataclass(frozen=True)
class FastCheck:
    decode: Decode
    checks: Sequence[_Check]

    @classmethod
    def of(cls, document: Document) -> FastCheck:
        found = compiled(document)
        return cls(msgspec.json.Decoder(found.type).decode, [_check(document, one) for one in found.open])

    def suspects(self, values: Sequence[bytes]) -> Indexes:
        """Positions of those that must be looked at."""
        objects, refused = _decoded(values, self.decode)
        suspicious = np.zeros(len(values), np.bool_)
        suspicious[refused] = True
        positions = np.flatnonzero(~suspicious)
        for check in self.checks:
            suspicious[positions[check.suspects(objects)]] = True
        return np.flatnonzero(suspicious)


def _check(document: Document, where: Open) -> _Check:
    if not where.pointer:
        is_valid = document.judge.is_valid
        return _Check(where, lambda column: all(map(is_valid, column)), is_valid)
    column_is_valid = document.judge_of_columns(where.pointer).is_valid
    return _Check(where, column_is_valid, document.judge_of(where.pointer).is_valid)


def _decoded(values: Sequence[bytes], decode: Decode) -> tuple[list[Any], list[int]]:
    """What decodes, and the positions of what does not."""
    objects: list[Any] = []
    refused: list[int] = []
    coming = map(decode, values)
    while True:
        try:
            objects.extend(coming)
            return objects, refused
        except (ValueError, RecursionError):  # msgspec's errors are ValueErrors
            refused.append(len(objects) + len(refused))


def _column(objects: list[Any], where: Open) -> list[Any]:
    """What is at a place, of those who have it."""
    for step in where.path:
        if not step.certain:
            objects = [one for one in objects if type(one) is step.owner]
        objects = list(map(attrgetter(step.slot), objects))
    return [one for one in objects if one is not msgspec.UNSET] if where.optional else objects
