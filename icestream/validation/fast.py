"""Finds the records of a chunk that a schema may refuse, decoding only what it is about; used by `rules`.

Whoever is not found is valid; whoever is found may be, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import compress
from operator import attrgetter
from typing import Any, Final, TypedDict

import msgspec
import numpy as np

from icestream.validation.compile import Open, compiled
from icestream.validation.conditions import parted
from icestream.validation.schema import Document

Decode = Callable[[bytes], Any]

_BLOCK: Final = 1_000
"""Records whose objects fit into a processor's cache: a quarter faster than a chunk at once."""


@dataclass(frozen=True)
class _Check:
    """One column that the type leaves open."""

    open: Open
    column_is_valid: Callable[[list[Any]], bool]
    is_valid: Callable[[Any], bool]

    def suspects(self, objects: list[Any]) -> list[int]:
        positions, column = _column(objects, self.open)
        if self.column_is_valid(column):
            return []
        return [at for at, one in zip(positions, column, strict=True) if not self.is_valid(one)]


@dataclass(frozen=True)
class _Pass:
    """One decoding of the records."""

    decode: Decode
    checks: Sequence[_Check]

    def suspects(self, values: Sequence[bytes]) -> list[int]:
        objects, refused = _decoded(values, self.decode)
        found = [check.suspects(objects) for check in self.checks]
        if not refused and not any(found):
            return []
        suspicious = np.zeros(len(values), np.bool_)
        suspicious[refused] = True
        decoded = np.flatnonzero(~suspicious)
        for positions in found:
            suspicious[decoded[positions]] = True
        return np.flatnonzero(suspicious).tolist()


@dataclass(frozen=True)
class FastCheck:
    passes: Sequence[_Pass]

    @classmethod
    def of(cls, document: Document) -> FastCheck:
        apart = parted(document)
        if apart is None:
            return cls([_pass(document)])
        return cls([_pass(apart.rest), _pass_over_fields(apart.conditions, apart.names)])

    def suspects(self, values: Sequence[bytes]) -> list[int]:
        """Positions of those that must be looked at."""
        found: set[int] = set()
        for low in range(0, len(values), _BLOCK):
            block = values[low : low + _BLOCK]
            for one in self.passes:
                found.update(low + at for at in one.suspects(block))
        return sorted(found)


def _pass(document: Document) -> _Pass:
    found = compiled(document)
    return _Pass(msgspec.json.Decoder(found.type).decode, [_check(document, one) for one in found.open])


def _pass_over_fields(document: Document, names: Sequence[str]) -> _Pass:
    """For a document that looks at nothing but these fields of an object."""
    kind = TypedDict("Some", dict.fromkeys(names, Any), total=False)  # type: ignore[misc]
    return _Pass(msgspec.json.Decoder(kind).decode, [_check(document, Open(""))])


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


def _column(objects: list[Any], where: Open) -> tuple[Sequence[int], list[Any]]:
    """What is at a place, of those who have it, with their positions."""
    positions: Sequence[int] = range(len(objects))
    for step in where.path:
        if not step.certain:
            fit = [type(one) is step.owner for one in objects]
            positions, objects = list(compress(positions, fit)), list(compress(objects, fit))
        objects = list(map(attrgetter(step.slot), objects))
    if where.optional:
        there = [one is not msgspec.UNSET for one in objects]
        return list(compress(positions, there)), list(compress(objects, there))
    return positions, objects
