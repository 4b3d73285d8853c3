"""Transforms one after the other, each with its predicate; called by the pipeline's worker and the file
jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from icestream.records.column import Column
from icestream.records.records import Applied, Failure, Predicate, Records, Transform
from icestream.records.rows import Flags
from icestream.transforms.side import Side


@dataclass(frozen=True)
class Step:
    alias: str
    class_name: str
    transform: Transform
    predicate: Predicate | None = None
    negate: bool = False


@dataclass(frozen=True)
class Failed:
    """A row that a transform could not take."""

    class_name: str
    failure: Failure


@dataclass
class Outcome:
    """Every row of the chunk is in one of the three."""

    records: list[Records] = field(default_factory=list)
    failed: dict[int, Failed] = field(default_factory=dict)
    dropped: dict[int, str] = field(default_factory=dict)
    """Row → alias of the transform that dropped it."""


@dataclass(frozen=True)
class Chain:
    steps: Sequence[Step] = ()
    needs_keys: bool = False
    needs_headers: bool = False

    def run(self, groups: Sequence[Records]) -> Outcome:
        outcome = Outcome(list(groups))
        for step in self.steps:
            after: list[Records] = []
            for group in outcome.records:
                chosen, rest = _chosen(step, group)
                after.extend(rest)
                for alike in chosen:
                    _note(step, step.transform.apply(alike), after, outcome)
            outcome.records = after
        return outcome


def _note(step: Step, applied: Applied, after: list[Records], outcome: Outcome) -> None:
    after.extend(records for records in applied.records if len(records))
    outcome.failed.update({row: Failed(step.class_name, why) for row, why in applied.failed.items()})
    outcome.dropped.update(dict.fromkeys(applied.dropped, step.alias))


def _chosen(step: Step, group: Records) -> tuple[list[Records], list[Records]]:
    """The records that the step is for, nulls apart, and those that it passes over."""
    if step.predicate is None:
        return _nulls_apart(group), []
    flags = step.predicate.test(group) != step.negate
    if flags.all():
        return _nulls_apart(group), []
    if not flags.any():
        return [], [group]
    return _nulls_apart(group.take(np.flatnonzero(flags))), [group.take(np.flatnonzero(~flags))]


def _nulls_apart(group: Records) -> list[Records]:
    groups = [group]
    for side in Side:
        groups = [part for one in groups for part in _split(one, _some_null(side, one))]
    return groups


def _some_null(side: Side, group: Records) -> Flags | None:
    value = side.get(group)
    if not isinstance(value, Column) or value.values.null_count in (0, len(group)):
        return None
    return value.nulls


def _split(group: Records, flags: Flags | None) -> list[Records]:
    if flags is None:
        return [group]
    return [group.take(np.flatnonzero(flags)), group.take(np.flatnonzero(~flags))]
