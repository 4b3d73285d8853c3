"""Everything a user can do to a worker. REST and the command line only translate to and from these calls.

Changes are made under one short lock (memory and the store only); jobs start and stop outside of it, in their
own threads. Reads take no lock: they look at a snapshot that changes replace whole.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from icestream import __version__
from icestream.api.config import Config
from icestream.api.errors import AlreadyExistsError, ConfigError, IcestreamError, NotFoundError, Problem
from icestream.api.status import JobStatus, Progress, State
from icestream.cluster.connector_config import DeepCheck, Validation, validate_connector, with_worker_defaults
from icestream.cluster.job_slot import Wish
from icestream.cluster.properties import ConnectorFile
from icestream.cluster.reports import definition_of, report_from
from icestream.cluster.stores import ConnectorStore, StoredConnector, TargetState
from icestream.cluster.views import (
    CheckedSetting,
    ConfigReport,
    ConnectorInfo,
    ConnectorStatus,
    Health,
    ServerInfo,
    TaskConfig,
    TaskStatus,
)
from icestream.cluster.worker import Worker, wish_for
from icestream.logs import for_connector, masked
from icestream.plugins import CONNECTORS, Plugin

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Connector:
    config: Mapping[str, str]
    target: TargetState
    warnings: tuple[str, ...]
    plugin: Plugin | None
    wish: Wish

    @property
    def type(self) -> str:
        return self.plugin.type if self.plugin else "unknown"

    @property
    def task_ids(self) -> tuple[int, ...]:
        if self.target is TargetState.STOPPED:
            return ()
        text = self.config.get("tasks.max", "1").strip()
        return tuple(range(int(text) if text.isdecimal() else 1))


class ConnectorService:
    def __init__(
        self,
        store: ConnectorStore,
        worker: Worker,
        worker_config: Config,
        deep_check: DeepCheck | None = None,
        cluster_id: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._store = store
        self._worker = worker
        self._worker_config = worker_config
        self._deep_check = deep_check
        self._cluster_id = cluster_id
        self._lock = threading.Lock()
        self._connectors: Mapping[str, _Connector] = {}
        self._is_ready = False

    # The worker's life

    def restore(self, files: Sequence[ConnectorFile] = ()) -> None:
        """Take up the connectors of the store and of the files; where they differ, the file wins."""
        found = self._store.load()
        for file in files:
            known = found.get(file.name)
            target = known.target if known else target_from(file.initial_state)
            if known is None or dict(known.config) != file.config:
                self._validated_file(file)
                found[file.name] = StoredConnector(file.config, target)
                self._store.put(file.name, found[file.name])
        for name, stored in found.items():
            self._restore_one(name, stored)

    def ready(self) -> None:
        self._is_ready = True

    def close(self) -> None:
        """Stop all jobs; connectors and their target states stay in the store."""
        self._worker.close()
        self._store.close()

    def health(self) -> Health:
        if not self._is_ready:
            return Health("starting", "Worker is still starting up.")
        return Health("healthy", "Worker has completed startup and is ready to handle requests.")

    def server(self) -> ServerInfo:
        return ServerInfo(__version__, "unknown", self._cluster_id())

    # Reading

    def names(self) -> list[str]:
        return list(self._connectors)

    def info(self, name: str) -> ConnectorInfo:
        connector = self._find(name, "Connector {} not found")
        return ConnectorInfo(name, connector.config, connector.task_ids, connector.type)

    def config(self, name: str) -> Mapping[str, str]:
        return self.info(name).config

    def status(self, name: str) -> ConnectorStatus:
        connector = self._find(name, "No status found for connector {}")
        return self._status(name, connector, self._worker.status(name))

    def progress(self, name: str) -> Progress:
        """How far the job is, with the warnings about its config."""
        connector = self._find(name, "No status found for connector {}")
        progress = self._worker.status(name).progress
        return replace(progress, warnings=(*connector.warnings, *progress.warnings))

    def tasks(self, name: str) -> list[TaskConfig]:
        connector = self._find(name, "Connector {} not found")
        task_class = connector.plugin.task_class if connector.plugin else ""
        return [
            TaskConfig(name, task, {**connector.config, "task.class": task_class, "task.id": str(task)})
            for task in connector.task_ids
        ]

    def task_status(self, name: str, task: int) -> TaskStatus:
        connector = self._connectors.get(name)
        if connector is None or task not in connector.task_ids:
            raise NotFoundError(f"No status found for task {name}-{task}")
        return self.status(name).tasks[task]

    def plugins(self) -> Sequence[Plugin]:
        return CONNECTORS

    def plugin_config(self, name: str) -> tuple[CheckedSetting, ...]:
        return definition_of(name)

    def validate(self, config: Mapping[str, str | None]) -> ConfigReport:
        return report_from(self._check(config, deep=True))

    # Changing

    def create(
        self, name: str, config: Mapping[str, str | None], target: TargetState = TargetState.STARTED
    ) -> ConnectorInfo:
        validation = self._validated(config, deep=True)
        with self._lock:
            if name in self._connectors:
                raise AlreadyExistsError(f"Connector {name} already exists")
            wait = self._put(name, validation, target, is_restart=False)
            info = self.info(name)
        wait()
        return info

    def put_config(self, name: str, config: Mapping[str, str | None]) -> tuple[ConnectorInfo, bool]:
        """Create or reconfigure; the second value says whether it was created."""
        validation = self._validated(config, deep=True)
        with self._lock:
            old = self._connectors.get(name)
            target = old.target if old else TargetState.STARTED
            wait = self._put(name, validation, target, is_restart=old is not None)
            info = self.info(name)
        wait()
        return info, old is None

    def patch_config(self, name: str, patch: Mapping[str, str | None]) -> ConnectorInfo:
        """Change some keys; null removes one."""
        merged = {**self._find(name, "Connector {} not found").config, **patch}
        return self.put_config(name, {key: value for key, value in merged.items() if value is not None})[0]

    def delete(self, name: str) -> None:
        with self._lock:
            self._find(name, "Connector {} not found")
            self._store.remove(name)
            self._connectors = {key: value for key, value in self._connectors.items() if key != name}
            wait = self._worker.ask(name, None)
        wait()
        self._log(name).info("deleted")

    def pause(self, name: str) -> None:
        self._retarget(name, TargetState.PAUSED)

    def resume(self, name: str) -> None:
        self._retarget(name, TargetState.STARTED)

    def stop(self, name: str) -> None:
        self._retarget(name, TargetState.STOPPED)

    def restart(
        self, name: str, *, include_tasks: bool = False, only_failed: bool = False
    ) -> ConnectorStatus:
        """Start the job anew (connector and tasks are one); the answer is the plan, as in Kafka Connect."""
        is_simple = not include_tasks and not only_failed
        self._find(name, "Connector {} not found" if is_simple else "Unknown connector: {}")
        before = self.status(name)
        if only_failed and before.state is not State.FAILED:
            return before
        self._new_run(name)
        tasks = (
            tuple(replace(task, state=State.RESTARTING) for task in before.tasks)
            if include_tasks
            else before.tasks
        )
        return replace(before, state=State.RESTARTING, tasks=tasks)

    def restart_task(self, name: str, task: int) -> None:
        connector = self._find(name, "Connector {} not found")
        if task not in connector.task_ids:
            raise NotFoundError(f"Task {name}-{task} not found")
        self._new_run(name)

    # How

    def _find(self, name: str, message: str) -> _Connector:
        connector = self._connectors.get(name)
        if connector is None:
            raise NotFoundError(message.format(name))
        return connector

    def _status(self, name: str, connector: _Connector, job: JobStatus) -> ConnectorStatus:
        version = connector.plugin.version if connector.plugin else "unknown"
        tasks = tuple(
            TaskStatus(task, job.state, self._worker.id, version, job.trace) for task in connector.task_ids
        )
        return ConnectorStatus(name, job.state, self._worker.id, version, tasks, connector.type, job.trace)

    def _check(self, config: Mapping[str, str | None], *, deep: bool) -> Validation:
        return validate_connector(config, self._worker_config, self._deep_check if deep else None)

    def _validated(self, config: Mapping[str, str | None], *, deep: bool) -> Validation:
        validation = self._check(config, deep=deep)
        validation.raise_if_invalid()
        return validation

    def _validated_file(self, file: ConnectorFile) -> None:
        try:
            self._validated(file.config, deep=False)
        except ConfigError as error:
            named = [
                Problem(problem.key, f"connector '{file.name}': {problem}") for problem in error.problems
            ]
            raise ConfigError(named) from None

    def _put(
        self, name: str, validation: Validation, target: TargetState, *, is_restart: bool
    ) -> Callable[[], bool]:
        effective = with_worker_defaults(validation.config, self._worker_config)
        wish = wish_for(self._worker, effective, target, is_restart=is_restart)
        for warning in validation.warnings:
            self._log(name).warning("%s", warning)
        self._log(name).info("config %s", masked(validation.config))
        self._store.put(name, StoredConnector(validation.config, target))
        return self._set(
            name, _Connector(validation.config, target, validation.warnings, validation.plugin, wish)
        )

    def _set(self, name: str, connector: _Connector) -> Callable[[], bool]:
        self._connectors = {**self._connectors, name: connector}
        return self._worker.ask(name, connector.wish)

    def _retarget(self, name: str, target: TargetState) -> None:
        with self._lock:
            old = self._find(name, "Unknown connector {}")
            self._store.put(name, StoredConnector(old.config, target))
            wait = self._set(name, replace(old, target=target, wish=replace(old.wish, target=target)))
        wait()

    def _new_run(self, name: str) -> None:
        with self._lock:
            old = self._find(name, "Connector {} not found")
            wish = replace(old.wish, run=self._worker.new_run(), is_restart=True)
            wait = self._set(name, replace(old, wish=wish))
        wait()

    def _restore_one(self, name: str, stored: StoredConnector) -> None:
        warnings: tuple[str, ...] = ()
        plugin: Plugin | None = None
        refused: IcestreamError | None = None
        try:
            validation = self._check(stored.config, deep=False)
            warnings, plugin = validation.warnings, validation.plugin
            validation.raise_if_invalid()
        except ConfigError as error:
            # A config of an older version stays visible, as a failed connector that says why.
            refused = error
        for warning in warnings:
            self._log(name).warning("%s", warning)
        effective = with_worker_defaults(stored.config, self._worker_config)
        wish = wish_for(self._worker, effective, stored.target, refused=refused)
        with self._lock:
            self._set(name, _Connector(stored.config, stored.target, warnings, plugin, wish))

    def _log(self, name: str) -> logging.LoggerAdapter[logging.Logger]:
        return for_connector(_LOG, name)


def target_from(initial_state: str | None) -> TargetState:
    """The target of `initial_state` in a request to create a connector: RUNNING, PAUSED or STOPPED."""
    named = (initial_state or "RUNNING").upper()
    if named == "RUNNING":
        return TargetState.STARTED
    if named in (TargetState.PAUSED, TargetState.STOPPED):
        return TargetState(named)
    raise ValueError(f"initial_state '{initial_state}' is not RUNNING, PAUSED or STOPPED")
