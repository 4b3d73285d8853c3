"""Asks a worker for the facts of the table: which connectors it runs, what their configs name. Called by
`collecting.py` at each scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from icestream.api.history import PartitionLag
from icestream.api.status import JobStatus, State
from icestream.cluster.configs.validation import with_worker_defaults
from icestream.cluster.connector_registry import KnownConnector, task_configs
from icestream.cluster.service import LocalJob
from icestream.converters.catalog import SIMPLE_HEADERS
from icestream.metrics.dialects.facts import ConnectorFacts, RebalanceFacts, UsedClass, WorkerFacts
from icestream.plugins import all_plugins

_UNKNOWN: Final = "unknown"
_ROLES: Final = ("key", "value", "header")


class FactsOfWorker:
    """Reads of a config only what names classes, or says what becomes of errors: nothing of it is secret."""

    def __init__(
        self,
        jobs: Callable[[], Sequence[LocalJob]],
        worker_config: Mapping[str, str],
        identity: WorkerFacts,
        group: Callable[[], RebalanceFacts | None] = lambda: None,
    ) -> None:
        self._jobs = jobs
        self._config = worker_config
        self._identity = identity
        self._group = group
        self._described: dict[str, tuple[KnownConnector, ConnectorFacts]] = {}
        """What a config says is looked at once."""

    def worker(self) -> WorkerFacts:
        return replace(self._identity, group=self._group())

    def connectors(self) -> list[ConnectorFacts]:
        jobs = self._jobs()
        described = {job.name: self._described_once(job.name, job.connector) for job in jobs}
        self._described = described
        return [
            replace(described[job.name][1], state=job.status.state, lags=_lags(job.status)) for job in jobs
        ]

    def _described_once(self, name: str, known: KnownConnector) -> tuple[KnownConnector, ConnectorFacts]:
        before = self._described.get(name)
        if before is not None and before[0] is known:
            return before
        return known, self._described_anew(name, known)

    def _described_anew(self, name: str, known: KnownConnector) -> ConnectorFacts:
        config = with_worker_defaults(known.config, self._config)
        versions = {plugin.class_name: plugin.version for plugin in all_plugins()}

        def used(class_name: str) -> UsedClass:
            return UsedClass(class_name, versions.get(class_name, _UNKNOWN))

        tasks = task_configs(name, known.stored)
        version = known.plugin.version if known.plugin else _UNKNOWN
        own = known.plugin.class_name if known.plugin else config.get("connector.class", "") or _UNKNOWN
        return ConnectorFacts(
            name,
            known.type,
            UsedClass(own, version),
            UsedClass(next((task["task.class"] for task in tasks), "") or _UNKNOWN, version),
            State.UNASSIGNED,
            len(tasks),
            converters={role: used(_converter(config, role)) for role in _ROLES},
            transforms=dict(_aliases(config, "transforms", used)),
            predicates=dict(_aliases(config, "predicates", used)),
            tolerates_all=config.get("errors.tolerance", "").strip().lower() == "all",
            logs_errors=config.get("errors.log.enable", "").strip().lower() == "true",
            is_exactly_once_source=self._config.get("exactly.once.source.support") == "enabled",
        )


def _converter(config: Mapping[str, str], role: str) -> str:
    default = SIMPLE_HEADERS if role == "header" else _UNKNOWN
    return config.get(f"{role}.converter", "").strip() or default


def _aliases(
    config: Mapping[str, str], what: str, used: Callable[[str], UsedClass]
) -> Iterator[tuple[str, UsedClass]]:
    for alias in dict.fromkeys(one.strip() for one in config.get(what, "").split(",")):
        if alias:
            yield alias, used(config.get(f"{what}.{alias}.type", "").strip() or _UNKNOWN)


def _lags(status: JobStatus) -> tuple[PartitionLag, ...]:
    """None of a job that had nothing left when it ended: records may have come since, and nobody looks."""
    has_ended = status.state is not State.RUNNING
    return () if has_ended and status.progress.lag == 0 else status.progress.partitions
