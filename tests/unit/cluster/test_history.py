"""The rings of a worker: bounds, gaps, fairness, changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from icestream.api.history import BatchRecord, Event, Outcome
from icestream.cluster.history.history import History
from icestream.cluster.history.series import SERIES
from tests.unit.jobs.toy_job import FULL

_NOW = 1_794_737_640_000
"""A whole number of fine points."""


class Clock:
    def __init__(self) -> None:
        self.ms = _NOW

    def __call__(self) -> int:
        return self.ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


def ended(number: int, *, read: int = 10, rejected: int = 0, seconds: float = 1.0) -> BatchRecord:
    counts = {"VALUE_CONVERTER": rejected} if rejected else {}
    return BatchRecord(
        f"b{number}",
        _NOW,
        Outcome.COMMITTED,
        seconds,
        read=read,
        written=read - rejected,
        rejected=counts,
        lag_after=0,
    )


def test_a_batch_is_under_way_until_it_has_ended(clock: Clock) -> None:
    history = History(clock)
    history.batch("a", BatchRecord("b1", _NOW, Outcome.UNDER_WAY, planned=10))
    found = history.batches("a")
    assert (found.under_way and found.under_way.id, found.over, found.since_ms) == ("b1", (), _NOW)
    history.batch("a", ended(1))
    found = history.batches("a")
    assert (found.under_way, [one.id for one in found.over]) == (None, ["b1"])


def test_what_became_of_a_batch_may_be_found_out_later(clock: Clock) -> None:
    history = History(clock)
    history.batch("a", BatchRecord("b1", _NOW, Outcome.UNKNOWN))
    history.batch("a", ended(1))
    assert [one.outcome for one in history.batches("a").over] == [Outcome.COMMITTED]


def test_points_are_rates_and_highest_values_and_gaps_stay_gaps(clock: Clock) -> None:
    history = History(clock)
    history.sample("a", 100, 1.5, 1_000)
    history.batch("a", ended(1, read=60, rejected=20, seconds=1.0))
    history.batch("a", ended(2, read=40, seconds=3.0))
    clock.ms += 5_000
    history.sample("a", 7, 0.5, 1_050)
    clock.ms += 25_000
    history.sample("a", 3, None, 1_250)
    view = history.series("a", 60)
    assert view is not None
    assert (view.step_ms, view.start_ms, view.since_ms) == (10_000, _NOW - 20_000, _NOW)
    assert tuple(view.values) == SERIES
    assert view.values["lag"] == [None, None, 100, None, None, 3]
    assert view.values["in"] == [None, None, 5, None, None, 20]
    assert view.values["out"] == [None, None, 10, None, None, 0]
    assert view.values["rejected"] == [None, None, 2, None, None, 0]
    assert view.values["freshness"] == [None, None, 1.5, None, None, None]
    assert view.values["batch_seconds"] == [None, None, 2, None, None, None]


def test_an_hour_is_in_fine_points_and_a_day_in_coarse_ones(clock: Clock) -> None:
    history = History(clock)
    for _ in range(25 * 360):
        history.sample("a", 5, 0.0, 0)
        clock.ms += 10_000
    hour, day = history.series("a", 3_600), history.series("a", 86_400)
    assert hour is not None
    assert day is not None
    assert (len(hour.values["lag"]), hour.step_ms) == (360, 10_000)
    assert (len(day.values["lag"]), day.step_ms) == (288, 300_000)
    assert all(value == 5 for value in hour.values["lag"][:-1])
    assert all(value == 5 for value in day.values["lag"][:-1])
    assert history.series("nobody", 60) is None


def test_a_clock_that_goes_back_loses_nothing_and_invents_nothing(clock: Clock) -> None:
    history = History(clock)
    history.sample("a", 1, None, 0)
    clock.ms -= 3_600_000
    history.sample("a", 9, None, 0)
    clock.ms += 3_600_000
    view = history.series("a", 30)
    assert view is not None
    assert view.values["lag"] == [None, None, 9]


def test_ends_that_shrink_are_no_records_that_came_in(clock: Clock) -> None:
    history = History(clock)
    history.sample("a", 0, None, 1_000)
    clock.ms += 10_000
    history.sample("a", 0, None, 10)
    clock.ms += 10_000
    history.sample("a", 0, None, 40)
    view = history.series("a", 30)
    assert view is not None
    assert view.values["in"] == [None, None, 3]


def test_the_ring_is_bounded_and_nobody_pushes_others_out(clock: Clock) -> None:
    history = History(clock, most_records=1_000)
    history.event("quiet", Event(_NOW, "state", "RUNNING"))
    history.batch("quiet", ended(0))
    for number in range(5_000):
        history.batch("busy", ended(number))
    for number in range(400):
        history.batch("newer", ended(number))
    sizes = {name: len(history.batches(name).over) for name in ("quiet", "busy", "newer")}
    assert sizes["quiet"] == 1
    assert len(history.events("quiet")) == 1
    assert sizes["newer"] >= 333
    assert sum(sizes.values()) + 1 <= 1_000
    assert history.batches("busy").over[-1].id == "b4999"


def test_a_busy_connector_keeps_its_few_events(clock: Clock) -> None:
    history = History(clock, most_records=100)
    history.event("a", Event(_NOW, "config", "changed"))
    for number in range(500):
        history.batch("a", ended(number))
    assert [event.kind for event in history.events("a")] == ["config"]


def test_many_connectors_have_their_least_share(clock: Clock) -> None:
    history = History(clock, most_records=320)
    for number in range(50):
        for name in range(40):
            history.batch(f"c{name}", ended(number))
    sizes = [len(history.batches(f"c{name}").over) for name in range(40)]
    assert sum(sizes) <= 320 + 64
    assert min(sizes) >= 1


def test_changes_since_a_version_and_what_is_gone(clock: Clock) -> None:
    history = History(clock)
    history.batch("a", ended(1))
    before = history.version
    history.event("b", Event(_NOW, "state", "RUNNING"))
    history.forget("a")
    history.forget("never")
    changes = history.changed_since(before)
    assert (changes.names, changes.gone, changes.is_complete) == ({"b"}, {"a"}, True)
    assert changes.version == history.version > before
    assert history.batches("a").since_ms is None
    history.batch("a", ended(2))
    assert history.changed_since(before).gone == frozenset()
    assert [one.id for one in history.batches("a", after=changes.version).over] == ["b2"]


def test_a_version_of_another_life_asks_for_everything_anew(clock: Clock) -> None:
    assert not History(clock).changed_since(7).is_complete


def test_too_many_that_went_cannot_be_told_one_by_one(clock: Clock) -> None:
    history = History(clock)
    for number in range(1_001):
        history.touched(f"c{number}")
        history.forget(f"c{number}")
    assert not history.changed_since(0).is_complete


def test_a_subscriber_is_woken_once_until_it_looks(clock: Clock) -> None:
    history = History(clock)
    woken: list[str] = []
    subscription = history.subscribe(lambda: woken.append("look"))
    history.batch("a", ended(1))
    history.batch("b", ended(1))
    assert woken == ["look"]
    assert subscription.changes().names == {"a", "b"}
    assert subscription.changes().names == frozenset()
    history.batch("b", ended(2))
    assert (len(woken), subscription.changes().names) == (2, {"b"})
    subscription.close()
    history.batch("b", ended(3))
    assert len(woken) == 2


def test_a_subscriber_that_raises_is_left(clock: Clock) -> None:
    history = History(clock)

    def closed() -> None:
        raise RuntimeError("Event loop is closed")

    history.subscribe(closed)
    history.touched("a")
    history.touched("a")
    assert history.version == 2


def test_the_last_minutes_tell_of_rejects_and_growth(clock: Clock) -> None:
    history = History(clock)
    assert history.recent("a").since_ms is None
    for lag in (10, 20, 30):
        history.sample("a", lag, None, lag * 10)
        clock.ms += 10_000
    history.batch("a", ended(1, rejected=2))
    found = history.recent("a")
    assert [lag for _, lag in found.lags] == [10, 20, 30]
    assert found.rejected_ms == clock.ms
    assert history.rates("a") == pytest.approx((10.0, 0.0))
    assert history.rates("nobody") is None


def test_nobody_is_woken_for_jobs_that_are_as_they_were(clock: Clock) -> None:
    history = History(clock)
    for _ in range(3):
        history.sample("idle", 0, 0.0, 100)
        clock.ms += 10_000
    before = history.version
    for _ in range(5):
        history.sample("idle", 0, 0.0, 100)
        clock.ms += 10_000
    assert history.version == before
    history.sample("idle", 0, 0.0, 600)
    clock.ms += 10_000
    history.sample("idle", 0, 0.0, 600)
    assert history.version > before
    # The rate of the last minute goes back to nothing: that is news, too.
    versions = set()
    for _ in range(12):
        clock.ms += 10_000
        history.sample("idle", 0, 0.0, 600)
        versions.add(history.version)
    assert history.rates("idle") == (0.0, 0.0)
    assert 2 <= len(versions) <= 9


def test_a_record_is_the_same_after_it_was_packed(clock: Clock) -> None:
    history = History(clock)
    record = replace(FULL, id="b7")
    history.batch("a", record)
    assert history.batches("a").over == (record,)


def test_the_last_few_batches_are_looked_at_alone(clock: Clock) -> None:
    history = History(clock)
    for number in range(10):
        history.batch("a", ended(number))
    assert [one.id for one in history.batches("a", most=2).over] == ["b8", "b9"]
    assert history.batches("a", most=0).over == ()
    assert len(history.batches("a").over) == 10
