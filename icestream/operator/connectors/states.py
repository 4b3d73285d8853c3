"""From the state that a worker tells to the one that a resource wants. Pure; used by the reconciliation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from icestream.api.errors import IcestreamError

Verb = Literal["pause", "resume", "stop"]

_STEPS: Final[Mapping[tuple[str, str], Verb]] = {
    ("RUNNING", "paused"): "pause",
    ("RUNNING", "stopped"): "stop",
    ("PAUSED", "running"): "resume",
    ("PAUSED", "stopped"): "stop",
    ("STOPPED", "running"): "resume",
    ("STOPPED", "paused"): "pause",
    ("FAILED", "stopped"): "stop",
}
"""States in between (UNASSIGNED, RESTARTING) are left alone: they pass, and then this is asked again."""


def step(state: str, wanted: str) -> Verb | None:
    """Raises what the status tells if the state cannot be had."""
    if (state, wanted) == ("FAILED", "paused"):
        raise IcestreamError("the connector has failed and cannot be paused; restart or stop it")
    return _STEPS.get((state, wanted))


def connector_state(status: Mapping[str, Any]) -> str:
    """Of a worker's answer; raises if that has none."""
    connector = status.get("connector")
    state = connector.get("state") if isinstance(connector, Mapping) else None
    if not isinstance(state, str):
        raise IcestreamError("the worker's status of the connector has no state; look at the worker's log")
    return state


def tasks_of(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    tasks = status.get("tasks")
    return [task for task in tasks if isinstance(task, Mapping)] if isinstance(tasks, list) else []


def failed_tasks(status: Mapping[str, Any]) -> list[str]:
    return [str(task.get("id")) for task in tasks_of(status) if task.get("state") == "FAILED"]


def has_failed(status: Mapping[str, Any]) -> bool:
    return connector_state(status) == "FAILED" or bool(failed_tasks(status))
