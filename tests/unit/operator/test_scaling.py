"""How many workers: limits hold, nothing flaps, an idle cluster shrinks once."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench import scaling as simulation
from icestream.operator.scaling import (
    ScaleState,
    ScaleTarget,
    ScalingSpec,
    scaled_object,
    workers_wanted,
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


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
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


def test_a_thousand_connectors_do_not_make_workers_flap() -> None:
    by_name = {day.name: day for day in map(simulation.workers_of_a_day, simulation.CONNECTORS)}
    assert by_name["waves"].turnarounds == by_name["edge"].turnarounds == by_name["ramp"].turnarounds == 0
    assert by_name["burst"].turnarounds == 1
    assert all(day.most_workers <= simulation.SPEC.max_workers for day in by_name.values())
    assert by_name["emptied"].last_workers == simulation.SPEC.min_workers
