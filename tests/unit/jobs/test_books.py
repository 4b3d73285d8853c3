"""What was counted of a job's batches is what Kafka had, whatever became of their commits and however often
nobody knew: each record counts once."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable

import pytest

from icestream.api.errors import (
    Cancelled,
    CommitConflict,
    CommitUnknown,
    RetriableError,
    RowsRefused,
    SinkUnavailable,
)
from icestream.api.sink import Commit, Receipt
from icestream.jobs.sinks.job import DeadLetterSettings
from icestream.metrics.counters import Counters
from tests.unit.jobs.managed_sink import FakeTable, World

_AFTER_LANDING = (CommitUnknown, SinkUnavailable, Cancelled, CommitConflict)


def unreliable(table: FakeTable, chance: random.Random) -> None:
    """Some commits raise, and some of these have landed."""
    real: Callable[[Commit], Receipt] = table.commit

    def commit(commit: Commit) -> Receipt:
        drawn = chance.random()
        if drawn < 0.2:
            raise chance.choice([*_AFTER_LANDING, RowsRefused])("before")
        receipt = real(commit)
        if drawn < 0.35:
            raise chance.choice(_AFTER_LANDING)("after")
        return receipt

    table.commit = commit  # type: ignore[method-assign]


def reliable(world: World) -> None:
    for table in world.tables:
        del table.__dict__["commit"]


@pytest.mark.parametrize("tables", [1, 2])
@pytest.mark.parametrize("seed", range(25))
def test_each_record_counts_once(seed: int, tables: int) -> None:
    chance = random.Random(seed)
    world = World({0: 7, 1: 3}, tolerates_all=True, dead_letters=DeadLetterSettings("dlq", 1, True))
    world.tables += [FakeTable(f"ns.t{number}") for number in range(1, tables)]
    world.manager = world.new_manager()
    world.runner.bad = {(chance.randrange(2), chance.randrange(60)) for _ in range(5)}
    for table in world.tables:
        unreliable(table, chance)
    for _ in range(40):
        for partition in (0, 1):
            world.kafka.end[partition] += chance.randrange(5)
        world.kafka.silences = int(chance.random() < 0.15)
        _turn(world, chance.choice([0.25, 5.0, 40.0]))
    reliable(world)
    for _ in range(6):
        _turn(world, 40.0)
    counters = Counters()
    for record in world.told.batches:
        counters.batch("c", record)
        counts = counters.snapshot()["c"]
        assert counts.read == counts.written + counts.rejected.total() + counts.filtered.total()
    bad = sum(offset < world.kafka.end[partition] for partition, offset in world.runner.bad)
    assert (counts.read, counts.rejected.total()) == (sum(world.kafka.end.values()), bad)
    assert counts.letters == sum(len(rejected) for _, rejected, _, _ in world.kafka.published) == bad
    assert counts.under_way == {}


def _turn(world: World, seconds: float) -> None:
    with contextlib.suppress(RetriableError, Cancelled):
        world.tick(seconds)
