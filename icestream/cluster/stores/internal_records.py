"""Keys and values of the records in Kafka Connect's internal topics, so that a cluster can change hands.

The config topic has connectors, their tasks, target states, restart requests and logger levels; the status
topic has the states of connectors and tasks, and the topics that connectors use. Used by the stores on Kafka.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from icestream.api.status import State
from icestream.cluster.stores.connector_store import TargetState

_CONNECTOR: Final = "connector-"
_TASK: Final = "task-"
_COMMIT: Final = "commit-"
_TARGET: Final = "target-state-"
_RESTART: Final = "restart-connector-"
_LOGGER: Final = "logger-cluster-"
_STATUS_CONNECTOR: Final = "status-connector-"
_STATUS_TASK: Final = "status-task-"
_STATUS_TOPIC: Final = "status-topic-"
_OF_CONNECTOR: Final = ":connector-"

Record = tuple[bytes, bytes | None]
"""A key and a value; no value is a tombstone."""


# What the records of the config topic say


@dataclass(frozen=True)
class ConnectorConfigured:
    name: str
    config: Mapping[str, str] | None
    """None: deleted."""


@dataclass(frozen=True)
class TargetSet:
    name: str
    target: TargetState | None


@dataclass(frozen=True)
class RestartAsked:
    name: str


@dataclass(frozen=True)
class LoggerSet:
    namespace: str
    level: str


ConfigEvent = ConnectorConfigured | TargetSet | RestartAsked | LoggerSet


def connector_records(
    name: str, config: Mapping[str, str], tasks: Sequence[Mapping[str, str]]
) -> list[Record]:
    """A connector with the configs of its tasks; the last record makes the tasks valid."""
    return [
        _record(f"{_CONNECTOR}{name}", {"properties": dict(config)}),
        *task_records(name, tasks),
    ]


def task_records(name: str, tasks: Sequence[Mapping[str, str]]) -> list[Record]:
    numbered = [
        _record(f"{_TASK}{name}-{number}", {"properties": dict(task)}) for number, task in enumerate(tasks)
    ]
    return [*numbered, _record(f"{_COMMIT}{name}", {"tasks": len(tasks)})]


def target_record(name: str, target: TargetState) -> Record:
    # Workers before Kafka 3.5 know no STOPPED: for them it is PAUSED.
    plain = TargetState.PAUSED if target is TargetState.STOPPED else target
    return _record(f"{_TARGET}{name}", {"state": plain, "state.v2": target})


def removal_records(name: str) -> list[Record]:
    return [(f"{_CONNECTOR}{name}".encode(), None), (f"{_TARGET}{name}".encode(), None)]


def restart_record(name: str, *, include_tasks: bool, only_failed: bool) -> Record:
    return _record(f"{_RESTART}{name}", {"include-tasks": include_tasks, "only-failed": only_failed})


def logger_record(namespace: str, level: str) -> Record:
    return _record(f"{_LOGGER}{namespace}", {"level": level})


def config_event(key: bytes, value: bytes | None) -> ConfigEvent | None:
    """What a record of the config topic says to us; None for what we do not need, such as session keys."""
    text = key.decode()
    body: Any = json.loads(value) if value is not None else None
    if text.startswith(_CONNECTOR):
        return ConnectorConfigured(text.removeprefix(_CONNECTOR), None if body is None else _config(body))
    if text.startswith(_TARGET):
        state = body and (body.get("state.v2") or body["state"])
        return TargetSet(text.removeprefix(_TARGET), TargetState(state) if state else None)
    if text.startswith(_RESTART) and body is not None:
        return RestartAsked(text.removeprefix(_RESTART))
    if text.startswith(_LOGGER) and body is not None:
        return LoggerSet(text.removeprefix(_LOGGER), body["level"])
    return None


def _config(body: Any) -> dict[str, str]:
    """Texts only, whoever wrote it; Kafka Connect also keeps nulls, which mean that a key is not set."""
    return {
        str(key): value if isinstance(value, str) else json.dumps(value)
        for key, value in body["properties"].items()
        if value is not None
    }


# What the records of the status topic say


@dataclass(frozen=True)
class PublishedStatus:
    """A connector (task is None) or one of its tasks, as its worker published it."""

    name: str
    task: int | None
    state: State
    worker_id: str
    generation: int
    version: str | None = None
    trace: str | None = None
    progress: Mapping[str, Any] | None = None
    """Our own addition; workers of Kafka Connect leave it aside."""


@dataclass(frozen=True)
class StatusGone:
    name: str
    task: int | None


@dataclass(frozen=True)
class TopicUse:
    """A connector that read from or wrote to a topic; not active: somebody reset it."""

    name: str
    topic: str
    is_active: bool


StatusEvent = PublishedStatus | StatusGone | TopicUse


def status_record(status: PublishedStatus) -> Record:
    body: dict[str, Any] = {
        "state": status.state,
        "trace": status.trace,
        "worker_id": status.worker_id,
        "generation": status.generation,
        "version": status.version,
    }
    if status.progress is not None:
        body["progress"] = dict(status.progress)
    return _record(_status_key(status.name, status.task), body)


def no_status_record(name: str, task: int | None) -> Record:
    return _status_key(name, task).encode(), None


def topic_record(name: str, topic: str, task: int, at_ms: int) -> Record:
    use = {"name": topic, "connector": name, "task": task, "discoverTimestamp": at_ms}
    return _record(f"{_STATUS_TOPIC}{topic}{_OF_CONNECTOR}{name}", {"topic": use})


def no_topic_record(name: str, topic: str) -> Record:
    return f"{_STATUS_TOPIC}{topic}{_OF_CONNECTOR}{name}".encode(), None


def status_event(key: bytes, value: bytes | None) -> StatusEvent | None:
    text = key.decode()
    if text.startswith(_STATUS_TOPIC):
        topic, _, name = text.removeprefix(_STATUS_TOPIC).partition(_OF_CONNECTOR)
        return TopicUse(name, topic, value is not None)
    if text.startswith(_STATUS_CONNECTOR):
        return _status(text.removeprefix(_STATUS_CONNECTOR), None, value)
    if text.startswith(_STATUS_TASK):
        name, _, number = text.removeprefix(_STATUS_TASK).rpartition("-")
        return _status(name, int(number), value)
    return None


def _status(name: str, task: int | None, value: bytes | None) -> PublishedStatus | StatusGone:
    if value is None:
        return StatusGone(name, task)
    body: Any = json.loads(value)
    return PublishedStatus(
        name,
        task,
        State(body["state"]),
        body["worker_id"],
        body["generation"],
        body.get("version"),
        body.get("trace"),
        body.get("progress"),
    )


def _status_key(name: str, task: int | None) -> str:
    return f"{_STATUS_CONNECTOR}{name}" if task is None else f"{_STATUS_TASK}{name}-{task}"


def _record(key: str, body: Mapping[str, Any]) -> Record:
    # Traces name files, and those may have bytes that are no text.
    return key.encode(), json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode(errors="replace")
