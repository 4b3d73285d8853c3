"""Annotations that ask for something once, and the steps from state to state."""

from __future__ import annotations

import pytest

from icestream.api.errors import IcestreamError
from icestream.operator.connectors.requests import (
    InvalidRequest,
    Restart,
    offsets_verb_from,
    restart_from,
    task_from,
)
from icestream.operator.connectors.states import step


@pytest.mark.parametrize(
    ("value", "restart"),
    [
        ("true", Restart()),
        ("includeTasks", Restart(include_tasks=True)),
        ("onlyFailed", Restart(only_failed=True)),
        ("includeTasks,onlyFailed", Restart(True, True)),
        ("onlyFailed, includeTasks", Restart(True, True)),
        ("false", None),
    ],
)
def test_a_restart_has_arguments(value: str, restart: Restart | None) -> None:
    assert restart_from(value) == restart


@pytest.mark.parametrize(
    "value", ["", "yes", "true,onlyFailed", "includeTasks,includeTasks", "True", ",", "x" * 999]
)
def test_other_arguments_of_a_restart_are_refused(value: str) -> None:
    with pytest.raises(InvalidRequest, match="Invalid annotation format") as caught:
        restart_from(value)
    assert len(str(caught.value)) < 250


def test_a_task_is_a_number() -> None:
    assert task_from("12") == 12
    for value in ("", "-1", "x", "1/../../x", "²", "9" * 30):
        with pytest.raises(InvalidRequest):
            task_from(value)


def test_offsets_have_three_verbs() -> None:
    assert [offsets_verb_from(verb) for verb in ("list", "alter", "reset")] == ["list", "alter", "reset"]
    with pytest.raises(InvalidRequest, match="list, alter, reset"):
        offsets_verb_from("delete")


@pytest.mark.parametrize(
    ("state", "wanted", "verb"),
    [
        ("RUNNING", "running", None),
        ("RUNNING", "paused", "pause"),
        ("RUNNING", "stopped", "stop"),
        ("PAUSED", "running", "resume"),
        ("PAUSED", "paused", None),
        ("PAUSED", "stopped", "stop"),
        ("STOPPED", "running", "resume"),
        ("STOPPED", "paused", "pause"),
        ("STOPPED", "stopped", None),
        ("FAILED", "running", None),
        ("FAILED", "stopped", "stop"),
        ("UNASSIGNED", "paused", None),
        ("RESTARTING", "stopped", None),
    ],
)
def test_each_state_has_its_step(state: str, wanted: str, verb: str | None) -> None:
    assert step(state, wanted) == verb


def test_a_failed_connector_cannot_be_paused() -> None:
    with pytest.raises(IcestreamError, match="cannot be paused"):
        step("FAILED", "paused")
