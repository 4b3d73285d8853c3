"""When targets are maintained: after commits, one at a time, and whatever happens the job goes on."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from icestream.api.maintenance import (
    HistoryEntry,
    Maintainer,
    MaintenanceRhythm,
    MaintenanceRun,
    MaintenanceStep,
)
from icestream.jobs.sinks.maintenance import MaintenanceSchedule

AT = dt.datetime(2026, 11, 16, tzinfo=dt.UTC)


@dataclass
class FakeMaintainer(Maintainer):
    name: str
    runs: list[tuple[str, bool]]
    fails: bool = False

    def run(self, now: dt.datetime, *, thorough: bool, turn: object) -> MaintenanceRun:
        self.runs.append((self.name, thorough))
        if self.fails:
            raise RuntimeError("the catalog is away")
        return MaintenanceRun(
            self.name, now, [MaintenanceStep("compaction", "data files", 10, 1, seconds=0.5)]
        )

    def compact(self, options: Mapping[str, int], *, dry_run: bool) -> Sequence[MaintenanceStep]:
        return ()

    expire = orphans = compact

    def history(self) -> Sequence[HistoryEntry]:
        return ()


@dataclass
class Scene:
    rhythm: MaintenanceRhythm | None = field(default_factory=lambda: MaintenanceRhythm(60.0, 5))
    now: float = 1000.0
    runs: list[tuple[str, bool]] = field(default_factory=list)
    waiting: list[Callable[[], None]] = field(default_factory=list)
    woken: int = 0
    fails: bool = False

    def __post_init__(self) -> None:
        self.schedule = MaintenanceSchedule(
            self.rhythm,
            lambda name: FakeMaintainer(name, self.runs, self.fails),
            lambda: self.now,
            lambda: AT,
            self.waiting.append,
            self.wake,
        )

    def wake(self) -> None:
        self.woken += 1

    def turn(self, *committed: str, after: float = 0.0) -> None:
        self.now += after
        self.schedule.committed(committed)
        self.schedule.go_on()
        while self.waiting:
            self.waiting.pop()()


def test_a_target_is_looked_at_after_its_first_commit_and_then_by_time_or_commits() -> None:
    scene = Scene()
    scene.turn()
    assert scene.runs == []
    scene.turn("a")
    assert scene.runs == [("a", True)], "the first is thorough"
    scene.turn("a", after=1)
    assert len(scene.runs) == 1
    assert scene.schedule.pause() == 59.0
    scene.turn(after=59)
    assert scene.runs[1:] == [("a", False)]
    for _ in range(4):
        scene.turn("a")
    assert len(scene.runs) == 2
    scene.turn("a")
    assert len(scene.runs) == 3, "five commits"
    assert scene.schedule.pause() == 24 * 3600
    scene.turn(after=24 * 3600)
    assert scene.runs[3:] == [("a", True)], "once a day, also where nothing comes"


def test_one_at_a_time_and_who_has_waited_longest_first() -> None:
    scene = Scene()
    scene.schedule.committed(["a", "b"])
    scene.schedule.go_on()
    scene.schedule.go_on()
    assert len(scene.waiting) == 1
    assert scene.schedule.pause() == float("inf"), "who is at work wakes the job"
    scene.waiting.pop()()
    assert scene.woken == 1
    assert scene.schedule.pause() == 0.0
    scene.turn()
    assert [name for name, _ in scene.runs] == ["a", "b"]
    assert [run["target"] for run in scene.schedule.shown] == ["a", "b"]


def test_the_status_tells_what_it_cost() -> None:
    scene = Scene()
    scene.turn("a")
    (shown,) = scene.schedule.shown
    assert (shown["target"], shown["seconds"], shown["error"]) == ("a", 0.5, None)
    steps = shown["steps"]
    assert isinstance(steps, list)
    assert (steps[0]["before"], steps[0]["after"]) == (10, 1)


def test_a_failure_is_told_and_tried_again() -> None:
    scene = Scene(fails=True)
    scene.turn("a")
    (shown,) = scene.schedule.shown
    assert shown["error"] == "start: the catalog is away"
    scene.fails = False
    scene.turn("a", after=60)
    (shown,) = scene.schedule.shown
    assert shown["error"] is None


def test_a_sink_that_wants_it_is_maintained_between_batches() -> None:
    scene = Scene(MaintenanceRhythm(60.0, 5, aside=False))
    scene.schedule.committed(["a"])
    scene.schedule.go_on()
    assert scene.runs
    assert not scene.waiting


def test_without_a_rhythm_nothing_happens() -> None:
    scene = Scene(None)
    scene.turn("a", after=1e6)
    assert scene.runs == []
    assert scene.schedule.pause() == float("inf")
