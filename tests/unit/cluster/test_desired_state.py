"""What follows from the desired and the actual state of a connector."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from icestream.cluster.desired_state import ActualState, DesiredState, Step, is_settled, next_step
from icestream.cluster.restarts import Recovery
from icestream.cluster.stores.connector_store import TargetState

STARTED = DesiredState(1, {}, TargetState.STARTED)
PAUSED = replace(STARTED, target=TargetState.PAUSED)
STOPPED = replace(STARTED, target=TargetState.STOPPED)
AGAIN = replace(STARTED, run=2)
NOTHING = ActualState()
RUNNING = ActualState(STARTED, has_manager=True)
FAILED = ActualState(STARTED, trace="boom")


@pytest.mark.parametrize(
    ("desired", "actual", "expected"),
    [
        (None, NOTHING, Step.END),
        (STOPPED, NOTHING, Step.END),
        (STARTED, NOTHING, Step.BEGIN),
        (PAUSED, NOTHING, Step.BEGIN),
        (STARTED, ActualState(STARTED), Step.MAKE),
        (STARTED, RUNNING, Step.TICK),
        (PAUSED, ActualState(PAUSED), Step.WAIT),
        (PAUSED, RUNNING, Step.WAIT),
        (None, RUNNING, Step.CLOSE),
        (STOPPED, RUNNING, Step.CLOSE),
        (AGAIN, RUNNING, Step.CLOSE),
        (AGAIN, FAILED, Step.CLOSE),
        (STARTED, replace(FAILED, has_manager=True), Step.CLOSE),
        (STARTED, FAILED, Step.END),
        (PAUSED, FAILED, Step.END),
        (STARTED, replace(FAILED, recovery=Recovery(1, 3, due=9.0)), Step.MAKE),
        (STARTED, replace(FAILED, recovery=Recovery(1, 3, due=11.0)), Step.WAIT),
    ],
)
def test_the_next_step(desired: DesiredState | None, actual: ActualState, expected: Step) -> None:
    assert next_step(desired, actual, 10.0, -math.inf)[0] is expected


def test_a_wait_ends_with_the_next_turn_or_the_restart() -> None:
    assert next_step(STARTED, RUNNING, 10.0, 12.5) == (Step.WAIT, 2.5)
    failed = replace(FAILED, recovery=Recovery(1, 3, due=11.0))
    assert next_step(STARTED, failed, 10.0, -math.inf) == (Step.WAIT, 1.0)
    assert next_step(PAUSED, RUNNING, 10.0, 12.5) == (Step.WAIT, None)


@pytest.mark.parametrize(
    ("desired", "actual", "expected"),
    [
        (None, NOTHING, True),
        (None, RUNNING, False),
        (STOPPED, RUNNING, False),
        (STOPPED, NOTHING, True),
        (STARTED, NOTHING, False),
        (STARTED, ActualState(STARTED), False),
        (STARTED, RUNNING, True),
        (STARTED, FAILED, True),
        (AGAIN, RUNNING, False),
        (PAUSED, ActualState(PAUSED), True),
    ],
)
def test_when_a_request_has_its_effect(
    desired: DesiredState | None, actual: ActualState, expected: bool
) -> None:
    assert is_settled(desired, actual) is expected
