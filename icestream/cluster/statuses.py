"""The status of a connector as Kafka Connect shows it: of a job that runs here, or as the worker that runs it
told it last. Pure; called by `service`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from icestream.api.status import JobStatus, Progress, State
from icestream.cluster.connector_registry import KnownConnector
from icestream.cluster.stores.internal_records import PublishedStatus
from icestream.cluster.views import ConnectorStatus, TaskStatus


def live_status(worker: str, name: str, connector: KnownConnector, job: JobStatus) -> ConnectorStatus:
    version = _version_of(connector)
    tasks = tuple(TaskStatus(task, job.state, worker, version, job.trace) for task in connector.task_ids)
    return ConnectorStatus(name, job.state, worker, version, tasks, connector.type, job.trace)


def published_status(
    name: str, connector: KnownConnector, statuses: Sequence[PublishedStatus]
) -> ConnectorStatus:
    version = _version_of(connector)
    nothing = PublishedStatus(name, None, State.UNASSIGNED, "", 0, version)
    published = {status.task: status for status in statuses}
    own = published.get(None, nothing)
    tasks = tuple(
        TaskStatus(task, said.state, said.worker_id, said.version or version, said.trace)
        for task in connector.task_ids
        for said in [published.get(task, nothing)]
    )
    return ConnectorStatus(
        name, own.state, own.worker_id, own.version or version, tasks, connector.type, own.trace
    )


def published_progress(statuses: Sequence[PublishedStatus]) -> Progress:
    published = (statuses[0].progress or {}) if statuses else {}
    # A worker of another version may tell more.
    said: dict[str, Any] = {
        one.name: published[one.name] for one in fields(Progress) if one.name in published
    }
    for key in ("warnings", "topics", "maintenance"):
        said[key] = tuple(said.get(key, ()))
    return Progress(**said)


def _version_of(connector: KnownConnector) -> str:
    return connector.plugin.version if connector.plugin else "unknown"
