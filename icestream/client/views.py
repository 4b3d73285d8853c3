"""A connector's status as commands show it, from the shape that Kafka Connect gives it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from icestream.api.errors import IcestreamError
from icestream.api.status import Progress


@dataclass(frozen=True)
class TaskView:
    id: int
    state: str
    worker_id: str
    trace: str | None


@dataclass(frozen=True)
class ConnectorView:
    """A connector's status; the progress is None when the worker is not ours."""

    name: str
    state: str
    worker_id: str
    trace: str | None
    tasks: tuple[TaskView, ...]
    progress: Progress | None = None
    type: str = ""


def view_of(status: Mapping[str, Any]) -> ConnectorView:
    """A status in Kafka Connect's shape, with or without `progress`."""
    try:
        return _view_of(status)
    except (KeyError, TypeError, AttributeError):
        raise IcestreamError(
            "a status is not as Kafka Connect's are; set --url to a worker's REST address"
        ) from None


def _view_of(status: Mapping[str, Any]) -> ConnectorView:
    connector = status["connector"]
    tasks = tuple(
        TaskView(task["id"], task["state"], task.get("worker_id", ""), task.get("trace"))
        for task in status["tasks"]
    )
    progress = status.get("progress")
    return ConnectorView(
        status["name"],
        connector["state"],
        connector.get("worker_id", ""),
        connector.get("trace"),
        tasks,
        _progress(progress) if progress is not None else None,
        status.get("type", ""),
    )


def _progress(shape: Mapping[str, Any]) -> Progress:
    known = {key: value for key, value in shape.items() if key in Progress.__dataclass_fields__}
    for name in ("warnings", "topics", "maintenance"):
        known[name] = tuple(shape.get(name, ()))
    return Progress(**known)
