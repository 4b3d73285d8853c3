"""How many workers and executors: limits hold, nothing flaps, an idle cluster shrinks once."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import scaling as simulation
from icestream.operator.scaling import (
    ScaleState,
    ScaleTarget,
    ScalingSpec,
    executors_wanted,
    scaled_object,
    workers_wanted,
    worst_lags,
)

SPEC = ScalingSpec(min_workers=2, max_workers=10, connectors_per_worker=10, cool_down_seconds=300, step=3)


def numbers(connectors: list[int | None], spec: ScalingSpec = SPEC, start: int = 2) -> list[int]:
    """Of workers, decided on every minute."""
    number, state, seen = start, ScaleState(), []
    for minute, count in enumerate(connectors):
        decided = workers_wanted(spec, number, count, state, minute * 60.0)
        number, state = decided.number, decided.state
        seen.append(number)
    return seen


def test_a_burst_grows_in_bounded_steps_up_to_the_limit() -> None:
    assert numbers([1000] * 5) == [5, 8, 10, 10, 10]


def test_an_idle_cluster_shrinks_once_after_the_cool_down() -> None:
    assert numbers([0] * 20, start=10) == [10] * 5 + [2] * 15


def test_what_comes_in_waves_is_not_followed_down() -> None:
    assert numbers([30, 60] * 30, start=6) == [6] * 60


def test_it_shrinks_to_what_was_needed_during_the_cool_down() -> None:
    assert numbers([20, 40] * 10, start=8)[-1] == 4


def test_workers_that_cannot_be_asked_change_nothing() -> None:
    assert numbers([None] * 20, start=7) == [7] * 20
    assert numbers([0, 0, 0, 0, None, 0, 0, 0, 0], start=7) == [7] * 9


def test_new_limits_hold_at_once() -> None:
    assert numbers([500], ScalingSpec(max_workers=3), start=9) == [3]
    assert numbers([None], ScalingSpec(min_workers=4), start=1) == [4]


@given(
    counts=st.lists(st.none() | st.integers(0, 2000), max_size=200),
    start=st.integers(0, 50),
    lowest=st.integers(1, 10),
    more=st.integers(0, 30),
)
def test_limits_and_steps_hold_whatever_comes(
    counts: list[int | None], start: int, lowest: int, more: int
) -> None:
    spec = ScalingSpec(min_workers=lowest, max_workers=lowest + more, step=3)
    before = start
    for minute, number in enumerate(numbers(counts, spec, start)):
        assert lowest <= number <= lowest + more
        is_start = not lowest <= before <= lowest + more
        assert is_start or number - before <= 3
        assert is_start or number >= before or minute >= 5
        before = number


def lagging(lags: list[float | None], tasks_max: int = 8, spec: ScalingSpec | None = None) -> list[int]:
    """Executors, decided on every minute."""
    number, state, seen = 1, ScaleState(), []
    for minute, lag in enumerate(lags):
        decided = executors_wanted(spec or ScalingSpec(), number, lag, tasks_max, state, minute * 60.0)
        number, state = decided.number, decided.state
        seen.append(number)
    return seen


def test_executors_double_while_a_connector_is_behind_and_never_beyond_its_tasks() -> None:
    assert lagging([600.0] * 20)[::5] == [2, 4, 8, 8]
    assert max(lagging([600.0] * 60, tasks_max=3)) == 3
    assert max(lagging([math.inf] * 60)) == 8


def test_executors_are_given_back_slowly_and_only_well_below_the_lag() -> None:
    grown = [600.0] * 20
    assert lagging([*grown, *[40.0] * 60])[-1] == 8
    assert lagging([*grown, *[0.0] * 60])[-1] == 0
    assert lagging([*grown, *[0.0] * 60], spec=ScalingSpec(min_executors=1))[-1] == 1


def test_the_fewer_executors_that_were_too_few_are_tried_less_and_less_often() -> None:
    """Four are too few, eight are enough: without memory, that would be a change every five minutes."""
    number, state, tried = 8, ScaleState(), []
    for minute in range(24 * 60):
        lag = 0.0 if number == 8 else 600.0
        decided = executors_wanted(ScalingSpec(), number, lag, 8, state, minute * 60.0)
        tried += [minute] if decided.number < number else []
        number, state = decided.number, decided.state
    assert [later - sooner for sooner, later in itertools.pairwise(tried)][:4] == [16, 26, 46, 86]
    assert len(tried) < 24


@pytest.mark.parametrize("unknown", [None, math.nan])
def test_an_unknown_lag_changes_nothing(unknown: float | None) -> None:
    assert lagging([unknown] * 30) == [1] * 30


def test_lags_are_read_from_metrics_of_all_workers() -> None:
    one = (
        '# TYPE icestream_lag_seconds gauge\nicestream_lag_seconds{connector="a"} 3\nother{connector="a"} 9\n'
    )
    two = 'icestream_lag_seconds{connector="a"} 5.5\nicestream_lag_seconds{connector="b \\"q\\""} NaN\n'
    assert worst_lags([one, two, ""]) == {"a": 5.5}


def test_the_object_for_keda_has_the_limits_and_asks_for_lag() -> None:
    target = ScaleTarget("my-connect", "ns", "Deployment", "apps/v1", "http://prometheus:9090", {"app": "x"})
    made = scaled_object(SPEC, target)
    spec = made["spec"]
    assert spec["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "my-connect"}
    assert (spec["minReplicaCount"], spec["maxReplicaCount"], spec["cooldownPeriod"]) == (2, 10, 300)
    queries = [one["metadata"]["query"] for one in spec["triggers"]]
    assert all('icestream_lag_seconds{namespace="ns",pod=~"my-connect-.*"}' in query for query in queries)
    assert all(isinstance(one["metadata"]["threshold"], str) for one in spec["triggers"])


def test_the_simulation_of_a_thousand_connectors_is_as_published() -> None:
    assert json.loads(simulation.RESULTS.read_text()) == simulation.results(), "run: make bench-scaling"
    page = (Path(simulation.__file__).parents[1] / "docs" / "decisions" / "048-scaling.md").read_text()
    for day in map(simulation.workers_of_a_day, simulation.CONNECTORS):
        row = f"| {day.name} | {day.most_workers} | {day.last_workers} | {day.changes} | {day.turnarounds} |"
        assert f"{row} {day.minutes_short:g} |" in page
    for load in map(simulation.executors_of_a_day, simulation.LOADS):
        row = f"| {load.name} | {load.most_executors} | {load.changes} | {load.turnarounds} |"
        assert f"{row} {load.worst_lag_seconds:,g} | {load.executor_hours:g} |" in page


def test_a_thousand_connectors_do_not_make_workers_flap() -> None:
    by_name = {day.name: day for day in map(simulation.workers_of_a_day, simulation.CONNECTORS)}
    assert by_name["waves"].turnarounds == by_name["edge"].turnarounds == by_name["ramp"].turnarounds == 0
    assert by_name["burst"].turnarounds == 1
    assert all(day.most_workers <= simulation.SPEC.max_workers for day in by_name.values())
    assert by_name["emptied"].last_workers == simulation.SPEC.min_workers
