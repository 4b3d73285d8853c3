"""The job manager of Java workers by its public names. Made by the plugin for `icestream job-manager`."""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Callable

from icestream.api.errors import Cancelled
from icestream.api.history import Observer
from icestream.api.status import Progress
from icestream.connectors.iceberg.catalogs.sharing import SharedCatalog
from icestream.connectors.iceberg.coordinator.coordinator import Coordinator, Pace
from icestream.connectors.iceberg.coordinator.job_config import IcebergJobConfig
from icestream.connectors.iceberg.coordinator.kafka_control import (
    ControlSettings,
    KafkaControlTopic,
    SourceGroup,
    keep_group_alive,
)
from icestream.connectors.iceberg.coordinator.rounds import JobCommitState, SourceState
from icestream.connectors.iceberg.coordinator.table_commits import JavaJob, TableCommits
from icestream.kafka.clients import client_settings
from icestream.kafka.topics import Topics

__all__ = ["IcebergJobConfig", "IcebergJobManager", "JobCommitState"]

_ALIVE_SECONDS = 3600.0


class IcebergJobManager:
    """A `Manager` (`api/manager.py`): `tick` is one turn, `progress` is shown by /metrics, `cancel` ends the
    turn after the commit under way."""

    def __init__(
        self,
        config: IcebergJobConfig,
        wake: Callable[[], None] = lambda: None,
        reached: Callable[[str], None] = lambda point: None,
        observer: Observer | None = None,
    ) -> None:
        self._config = config
        self._admin = client_settings(config.kafka, "admin")
        self._topics = Topics(self._admin)
        self._source = SourceGroup(self._admin, config.source_group_id or config.group_id, self._topics)
        self._alive_at: float | None = None
        self._cancelled = threading.Event()
        job = java_job(config)
        control = ControlSettings(
            config.control_topic,
            config.group_id,
            reads=client_settings(config.kafka, "consumer"),
            writes=client_settings(config.kafka, "producer"),
            transactional_id=config.transactional_id if config.transactions else None,
            timeout_ms=int(config.transaction_timeout * 1000),
        )
        self._opened: KafkaControlTopic | None = None
        self._shared = SharedCatalog(config.catalog_config)

        def open_control() -> KafkaControlTopic:
            self._opened = KafkaControlTopic(control, self._topics)
            return self._opened

        def control_ends() -> dict[int, int]:
            return dict(self._opened.ends()) if self._opened else {}

        self._coordinator = Coordinator(
            job,
            Pace(config.commit_interval, config.commit_timeout),
            open_control,
            self._source_state,
            TableCommits(self._shared.catalog, job, config.commit_threads, control_ends),
            time.monotonic,
            lambda: dt.datetime.now(dt.UTC),
            reached,
            observer,
            config.job_id,
        )

    @property
    def progress(self) -> Progress:
        return self._coordinator.progress

    def tick(self) -> float:
        if self._cancelled.is_set():
            raise Cancelled("the job manager was told to stop")
        self._keep_alive()
        return self._coordinator.tick()

    def cancel(self) -> None:
        self._cancelled.set()

    def allow(self) -> None:
        self._cancelled.clear()

    def close(self) -> None:
        try:
            self._coordinator.close()
        finally:
            self._shared.close()

    def _source_state(self) -> SourceState:
        return self._source.state()

    def _keep_alive(self) -> None:
        """With a group of the workers' own, the other one only keeps Java's coordinator from starting."""
        config = self._config
        if config.source_group_id in ("", config.group_id):
            return
        now = time.monotonic()
        if self._alive_at is None or now - self._alive_at > _ALIVE_SECONDS:
            keep_group_alive(self._admin, config.group_id, config.control_topic)
            self._alive_at = now


def java_job(config: IcebergJobConfig) -> JavaJob:
    """The job as tables know it. Java calls the task that coordinates `<connector>-<number>`; the first task
    is the one that it would choose."""
    group = config.source_group_id or config.group_id
    named = dict(one.split("=", 1) for one in config.commit_branches if "=" in one)
    default = next((one for one in config.commit_branches if "=" not in one), "main")
    return JavaJob(
        config.control_topic, config.group_id, f"{group.removeprefix('connect-')}-0", default, named
    )
