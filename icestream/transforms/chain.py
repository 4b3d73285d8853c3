"""Transforms one after the other, each with its predicate: made from a connector's config, run over groups of
records. Called by the jobs that carry records, and to validate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from icestream.api.config import Config
from icestream.api.errors import ConfigError, Problem
from icestream.records.column import Column
from icestream.records.records import Applied, Failure, Predicate, Records, Transform
from icestream.records.rows import Flags
from icestream.transforms.catalog import Found, PredicatePlugin
from icestream.transforms.declared import (
    NEGATE,
    PREDICATE,
    Declared,
    declared_predicates,
    declared_transforms,
)
from icestream.transforms.groups import Side

TRANSFORMATION: Final = "TRANSFORMATION"
"""The stage of failures, by Kafka Connect's name."""


@dataclass(frozen=True)
class Step:
    alias: str
    class_name: str
    transform: Transform
    predicate: Predicate | None = None
    negate: bool = False


@dataclass
class Outcome:
    """Every row of the chunk is in one of the three."""

    records: list[Records] = field(default_factory=list)
    failed: dict[int, Failure] = field(default_factory=dict)
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
    for row, why in applied.failed.items():
        outcome.failed[row] = replace(why, stage=TRANSFORMATION, class_name=step.class_name)
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


def chain_from(config: Config) -> Chain:
    """Raises ConfigError with the keys of the config and Java's words."""
    transforms = declared_transforms(config)
    predicates = {one.alias: one for one in declared_predicates(config)}
    made = {alias: _predicate(one, config) for alias, one in predicates.items()}
    return Chain(
        [_step(one, config, made) for one in transforms],
        needs_keys=any(_needs_keys(one) for one in transforms),
        needs_headers=any(_reads_headers(one) for one in (*transforms, *predicates.values())),
    )


def _predicate(one: Declared, config: Config) -> Predicate:
    settings = one.parse(config)
    assert isinstance(one.found, PredicatePlugin)
    with _whole_keys(one.prefix):
        return one.found.make(settings)


def _step(one: Declared, config: Config, predicates: Mapping[str, Predicate]) -> Step:
    settings = one.parse(config)
    assert isinstance(one.found, Found)
    alias, negate = settings.pop(PREDICATE), settings.pop(NEGATE)
    if alias is not None and alias not in predicates:
        key = one.prefix + PREDICATE
        raise ConfigError(
            [Problem(key, f"'{key}={alias}' names no predicate; add {alias} to 'predicates', or remove it")]
        )
    with _whole_keys(one.prefix):
        transform = one.found.plugin.make(settings, one.found.side)
    predicate = None if alias is None else predicates[alias]
    return Step(one.alias, one.found.class_name, transform, predicate, negate)


@contextmanager
def _whole_keys(prefix: str) -> Iterator[None]:
    """What a class says of its own settings, said of the keys that they have in the config."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError([Problem(prefix + one.key, one.message) for one in error.problems]) from None


def _needs_keys(one: Declared) -> bool:
    found = one.found
    return isinstance(found, Found) and (found.plugin.reads_key or found.side is Side.KEY)


def _reads_headers(one: Declared) -> bool:
    plugin = one.found.plugin if isinstance(one.found, Found) else one.found
    return plugin is not None and plugin.reads_headers
