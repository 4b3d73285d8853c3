"""Two managers of one job that routes, over fakes that fence and compare as the real ones do.

As `test_interleavings`, but each table gets only the records that are for it, and a table that gets none is
not committed. Meanwhile somebody rolls tables back, and Kafka forgets the group. Each seed is another run.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from icestream.api.batch import Batch, BatchResult, Counts, Rejected, Staged, add_counts
from icestream.api.checkpoint import Checkpoint, FoundCheckpoint, from_json, to_json
from icestream.api.errors import (
    CommitConflict,
    CommitUnknown,
    ConfigError,
    Problem,
    SourceRecreated,
)
from icestream.api.offsets import Offsets, Partition
from icestream.api.sink import Commit, Message, Receipt, Routing, Sink, SinkPlan, Target
from tests.unit.jobs.managed_sink import FakeRunner
from tests.unit.jobs.two_managers import PARTITIONS, TwoManagers, is_bad


def tables_of(partition: int, offset: int) -> Sequence[str]:
    """Some for two tables, some for none; one table gets records rarely, one does not exist."""
    if offset % 11 == 7:
        return ("rare",)
    return (("a",), ("b",), ("a", "b"), (), ("b",), ("a",), ("absent",))[(offset * 3 + partition) % 7]


class Table(Target):
    """Compares and sets; remembers its last checkpoint, also when somebody rolls it back."""

    def __init__(self, world: World, name: str) -> None:
        self._world, self.name = world, name
        self.states: list[tuple[str | None, Counter[tuple[int, int]]]] = [(None, Counter())]
        self._remembered: str | None = None
        self.commits = 0

    @property
    def _checkpoint(self) -> Checkpoint | None:
        return _parsed(self.states[-1][0])

    @property
    def rows(self) -> Counter[tuple[int, int]]:
        return self.states[-1][1]

    def roll_back(self, by: int) -> None:
        self.states = self.states[: max(1, len(self.states) - by)]

    def found(self) -> FoundCheckpoint:
        if self.name == "absent":
            raise ConfigError([Problem("", "it is not there")])
        checkpoint, remembered = self._checkpoint, _parsed(self._remembered)
        found = FoundCheckpoint(checkpoint, target=self.name, target_id=self.name)
        if remembered is None or (checkpoint and checkpoint.commit == remembered.commit):
            return found
        return replace(found, lost=remembered) if checkpoint else replace(found, rolled_back_from=remembered)

    def plan(self, new_fields: Mapping[tuple[str, ...], Any]) -> None:
        return None

    def commit(self, commit: Commit) -> Receipt:
        before = self._checkpoint
        if (before and before.offsets) != (commit.expect and commit.expect.offsets):
            raise CommitConflict("it is elsewhere")
        if (before.commit if before else None) != commit.checkpoint.previous:
            raise CommitConflict("it has another commit")
        if self.found().lost_commit != commit.expect_lost:
            raise CommitConflict("it was rolled back")
        luck = self._world.chance.random()
        if luck < 0.03:
            raise CommitUnknown("it did not land")
        self._remembered = json.dumps(to_json(commit.checkpoint))
        self.states.append((self._remembered, self.rows + Counter(commit.staged.payload)))
        self.commits += 1
        if luck < 0.06:
            raise CommitUnknown("it landed")
        return Receipt(commit.checkpoint, 1)

    def discard(self, staged: Staged) -> None: ...


def _parsed(text: str | None) -> Checkpoint | None:
    return from_json(json.loads(text)) if text else None


class RoutingSink(Sink):
    writer: Any = None

    def __init__(self, world: World, *, grows: bool) -> None:
        self._world = world
        self.routing = Routing(None, grows) if world.routes else None

    def targets(self) -> Sequence[Target]:
        return (
            []
            if self.routing and self.routing.grows
            else [self._world.tables[name] for name in ("a", "b", "rare")]
        )

    def target(self, name: str) -> Target:
        return self._world.tables[name]

    def known_targets(self) -> Sequence[Target]:
        return [
            table
            for table in self._world.tables.values()
            if table.name != "absent" and (table.found().checkpoint or table.found().rolled_back_from)
        ]

    def events(self, commit: str, receipts: Any, valid_through: Any) -> Sequence[Message]:
        return []


class Runner(FakeRunner):
    def __init__(self, world: World) -> None:
        self._world = world

    def run(self, batch: Batch, sink: SinkPlan, *, stages: bool = True) -> BatchResult:
        read = [(s.partition, at) for s in batch.slices() for at in range(s.start, s.until)]
        known = {target.name: target for target in sink.targets}
        rejected, counts, unknown = [], Counter[tuple[Partition, str]](), set()
        staged: dict[str, list[tuple[Partition, int]]] = {name: [] for name in known}
        for p, at in read:
            names = self._world.names(p.number, at)
            if is_bad(at) or any(sink.absent.get(name) for name in names):
                rejected.append(Rejected(p, at, "TASK_PUT", "bad"))
                counts[p, "rejected"] += 1
            elif not names or any(name in sink.absent for name in names):
                counts[p, "filtered"] += 1
            else:
                counts[p, "written"] += 1
                unknown |= {name for name in names if name not in known}
                for name in names:
                    if name in known and at >= (known[name].start.get(p) or 0):
                        staged[name].append((p, at))
        every = add_counts({p: Counts(n, **{what: n})} for (p, what), n in counts.items())
        parts = {
            name: Staged(
                [(p.number, at) for p, at in rows],
                len(rows),
                {p: Counts(n, n) for p, n in Counter(p for p, _ in rows).items()},
            )
            for name, rows in staged.items()
            if rows
        }
        too_large = batch.span > 1 and self._world.chance.random() < 0.03
        return BatchResult(parts, rejected, 100, {}, None or {}, too_large, 10, every, frozenset(unknown))


class World(TwoManagers):
    def __init__(
        self,
        seed: int,
        *,
        grows: bool,
        rolls_back: bool = False,
        forgets: bool = False,
        leaders: bool = False,
    ) -> None:
        self.tables = {name: Table(self, name) for name in ("a", "b", "rare", "absent")}
        self._grows, self._rolls_back, self._forgets, self._leaders = grows, rolls_back, forgets, leaders
        self.routes = True
        super().__init__(seed)

    def names(self, partition: int, offset: int) -> Sequence[str]:
        names = tables_of(partition, offset)
        return names if self._grows else [name for name in names if name != "absent"]

    def sink(self) -> Sink:
        return RoutingSink(self, grows=self._grows)

    def runner(self) -> FakeRunner:
        return Runner(self)

    def run(self, turns: int) -> None:
        chance = self.chance
        for _ in range(turns):
            self._now += chance.choice([0.1, 0.5, 1.5, 40])
            if chance.random() < 0.5:
                self.kafka.end[chance.randrange(PARTITIONS)] += chance.randint(1, 15)
            if self._rolls_back and chance.random() < 0.05:
                self.tables[chance.choice(["a", "b", "rare"])].roll_back(chance.randint(1, 3))
            if self._forgets and chance.random() < 0.05:
                self.kafka.group.clear()
            if self._leaders and chance.random() < 0.1:
                gone = (number for number in range(PARTITIONS) if chance.random() < 0.25)
                self.kafka.leaderless = frozenset(gone)
            self._turn(chance.choice("AB"))
        self._is_calm, self.kafka.leaderless = True, frozenset()
        for _ in range(3):
            # A table that only records name is asked again when one names it.
            for number in range(PARTITIONS):
                self.kafka.end[number] += 22
            for _ in range(30):
                self._now += 20
                self._turn("A")
            self._managers["A"].close()
            self._managers["A"] = self._started("A")

    def check(self) -> None:
        there = [(number, at) for number, end in self.kafka.end.items() for at in range(end)]
        good = [place for place in there if not is_bad(place[1])]
        for name in ("a", "b", "rare"):
            wanted = Counter(place for place in good if name in self.names(*place))
            assert self.tables[name].rows == wanted, (name, wanted - self.tables[name].rows)
        bad = Counter(place for place in there if is_bad(place[1]) or "absent" in self.names(*place))
        # A group that is lost together with the last transaction does not tell what is published.
        assert self._forgets or self.kafka.letters == bad
        assert set(self.kafka.letters) <= set(bad)
        assert all(self.kafka.group[Partition("t", n)].next == end for n, end in self.kafka.end.items())


@pytest.mark.parametrize("grows", [False, True], ids=["by-pattern", "by-name"])
@pytest.mark.parametrize(
    "trouble",
    [
        *({}, {"leaders": True}, {"rolls_back": True}, {"forgets": True}),
        *({"rolls_back": True, "forgets": True}, {"leaders": True, "forgets": True}),
    ],
    ids=lambda trouble: "+".join(trouble) or "kills",
)
def test_nothing_is_lost_or_repeated(trouble: Mapping[str, bool], grows: bool) -> None:
    for seed in range(8):
        world = World(seed, grows=grows, **trouble)
        try:
            world.run(60)
            world.check()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


def test_a_table_without_rows_is_not_committed() -> None:
    world = World(1, grows=False)
    world._is_calm = True
    world.kafka.end = {0: 0}
    for _ in range(40):
        world._now += 2
        world.kafka.end[0] += 1
        world._turn("A")
    world._now += 2
    world._turn("A")
    world._turn("A")
    assert 0 < world.tables["rare"].commits < world.tables["a"].commits < 20
    world.check()


def calm_world(*, grows: bool) -> World:
    """Both tables have rows, and the group is at the end."""
    world = World(1, grows=grows)
    world._is_calm = True
    world.chance = Steady(1)
    world.kafka.end = {0: 0}
    for _ in range(10):
        world._now += 2
        world.kafka.end[0] += 5
        world._turn("A")
    return world


class Steady(random.Random):
    def random(self) -> float:
        return 0.99


def test_a_table_that_records_name_and_that_needs_what_retention_has_removed_stops_the_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = calm_world(grows=True)
    world.tables["a"].roll_back(3)
    at = world.kafka.end[0]
    monkeypatch.setattr(world.kafka, "beginnings", lambda partitions: Offsets(dict.fromkeys(partitions, at)))
    manager = world._started("A")
    world.kafka.end[0] += 10
    with pytest.raises(SourceRecreated, match="retention removed"):
        for _ in range(10):
            world._now += 2
            manager.tick()


def test_tables_that_take_long_to_be_asked_are_absent_until_the_batch_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = calm_world(grows=True)
    found = Table.found

    def slow(table: Table) -> FoundCheckpoint:
        world._now += 20
        return found(table)

    monkeypatch.setattr(Table, "found", slow)
    world._managers["A"] = world._started("A")
    world.kafka.end[0] += 30
    for _ in range(5):
        world._now += 2
        world._managers["A"].tick()
    monkeypatch.undo()
    world.check()


def test_a_job_that_routes_no_more_goes_on_with_a_table_that_was_rolled_back() -> None:
    world = calm_world(grows=False)
    world.tables["a"].roll_back(2)
    world.routes = False
    manager = world._started("A")
    for _ in range(5):
        world._now += 2
        manager.tick()
    wanted = Counter((0, at) for at in range(50) if "a" in tables_of(0, at) and not is_bad(at))
    assert world.tables["a"].rows == wanted


def test_a_table_that_records_only_delete_from_does_not_hold_up_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = calm_world(grows=True)
    missing = Table(world, "new")
    world.tables["new"] = missing
    monkeypatch.setattr(missing, "found", lambda: FoundCheckpoint(None, target="new", is_missing=True))
    names = world.names
    deletes = world.kafka.end[0] + 2
    monkeypatch.setattr(world, "names", lambda p, at: ("new",) if at == deletes else names(p, at))
    world.kafka.end[0] += 10
    for _ in range(6):
        world._now += 2
        world._managers["A"].tick()
    assert world.kafka.group[Partition("t", 0)].next == world.kafka.end[0]
    world.check()


def test_nothing_is_lost_or_repeated_where_the_config_routes_no_more_and_then_again() -> None:
    """Whatever a manager of the other config has left half done."""
    for seed in (*range(6), 8, 109):
        world = World(seed, grows=False)
        for phase in range(5):
            world.routes = phase % 2 == 0
            world._managers = {who: world._started(who) for who in "AB"}
            for _ in range(25):
                world._now += world.chance.choice([0.1, 0.5, 1.5, 40])
                if world.chance.random() < 0.5:
                    world.kafka.end[world.chance.randrange(PARTITIONS)] += world.chance.randint(1, 15)
                world._turn(world.chance.choice("AB"))
        world.run(1)
        try:
            world.check()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
