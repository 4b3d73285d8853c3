"""The status of a KafkaConnector, made from what a turn has found. Pure; used by the reconciliation."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from icestream.operator.conditions import PAUSED, Condition, merged, not_ready, ready
from icestream.operator.connectors import auto_restart, states
from icestream.operator.connectors.facts import (
    PAUSE_RECONCILIATION,
    AutoRestart,
    ConnectorOutcome,
    ConnectorSpec,
)

_LARGEST: Final = 128 * 1024
_LONGEST_TRACE: Final = 1_000
_PASSING: Final = ("UNASSIGNED", "RESTARTING")


def uid_of(resource: Mapping[str, Any]) -> str:
    return str((resource.get("metadata") or {}).get("uid") or "")


def annotations_of(resource: Mapping[str, Any]) -> Mapping[str, str]:
    return (resource.get("metadata") or {}).get("annotations") or {}


def previous_status(resource: Mapping[str, Any]) -> Mapping[str, Any]:
    status = resource.get("status")
    return status if isinstance(status, Mapping) else {}


def is_reconciliation_paused(resource: Mapping[str, Any]) -> bool:
    return str(annotations_of(resource).get(PAUSE_RECONCILIATION, "")).lower() == "true"


def paused_outcome(resource: Mapping[str, Any], now: datetime) -> ConnectorOutcome:
    """What is known of the connector stays, as of when it was looked at last."""
    kept = {
        key: value
        for key, value in previous_status(resource).items()
        if key not in ("conditions", "observedGeneration")
    }
    return ConnectorOutcome({**_head(resource, [Condition(PAUSED)], now), **kept}, None, is_ready=False)


def unready_outcome(
    resource: Mapping[str, Any], reason: str, message: str, now: datetime, requeue_after: float | None = None
) -> ConnectorOutcome:
    """Of a connector that no worker was asked about. How often it was restarted is remembered."""
    last = auto_restart.from_status(previous_status(resource))
    status = _head(resource, [not_ready(reason, message)], now)
    if last is not None:
        status["autoRestart"] = auto_restart.in_status(last)
    return ConnectorOutcome(status, requeue_after, is_ready=False)


def connector_conditions(
    failure: Condition | None, status: Mapping[str, Any] | None, warnings: Sequence[Condition]
) -> list[Condition]:
    """Ready or NotReady first."""
    return [failure or _failure_told(status) or ready(), *warnings]


def _failure_told(status: Mapping[str, Any] | None) -> Condition | None:
    if status is None:
        return None
    failed = states.failed_tasks(status)
    if states.connector_state(status) == "FAILED":
        return not_ready("Throwable", "The connector has failed, see connectorStatus for more details.")
    if failed:
        tasks = ", ".join(failed)
        return not_ready(
            "Throwable", f"The following tasks have failed: {tasks}, see connectorStatus for more details."
        )
    return None


def is_in_between(status: Mapping[str, Any], wanted: str) -> bool:
    """Whether the worker is still about to do what was asked: worth another look soon."""
    state = states.connector_state(status)
    tasks = states.tasks_of(status)
    if state in _PASSING or any(task.get("state") in _PASSING for task in tasks):
        return True
    return state != "FAILED" and (state != wanted.upper() or (state == "RUNNING" and not tasks))


def status_of(
    resource: Mapping[str, Any],
    spec: ConnectorSpec,
    conditions: Sequence[Condition],
    answer: Mapping[str, Any] | None,
    topics: Sequence[str] | None,
    restarted: AutoRestart | None,
    now: datetime,
) -> dict[str, Any]:
    status = _head(resource, conditions, now)
    tasks_max = spec.tasks_max
    if answer is not None:
        status["connectorStatus"] = _bounded(answer)
        tasks_max = len(states.tasks_of(answer)) if tasks_max is None else tasks_max
    if tasks_max is not None:
        status["tasksMax"] = tasks_max
    if topics is not None:
        status["topics"] = list(topics)
    if restarted is not None and spec.auto_restart is not None:
        status["autoRestart"] = auto_restart.in_status(restarted)
    return status


def _head(resource: Mapping[str, Any], conditions: Sequence[Condition], now: datetime) -> dict[str, Any]:
    previous = previous_status(resource).get("conditions")
    known = [one for one in previous if isinstance(one, Mapping)] if isinstance(previous, list) else []
    head: dict[str, Any] = {"conditions": merged(known, conditions, now)}
    generation = (resource.get("metadata") or {}).get("generation")
    if isinstance(generation, int):
        head["observedGeneration"] = generation
    return head


def _bounded(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """The answer as it is, unless traces of many tasks make it more than an API server should keep."""
    if len(json.dumps(answer)) <= _LARGEST:
        return answer
    short = {**answer, "tasks": [_short(task) for task in states.tasks_of(answer)]}
    if isinstance(answer.get("connector"), Mapping):
        short["connector"] = _short(answer["connector"])
    return short


def _short(part: Mapping[str, Any]) -> Mapping[str, Any]:
    trace = part.get("trace")
    return {**part, "trace": trace[:_LONGEST_TRACE]} if isinstance(trace, str) else part
