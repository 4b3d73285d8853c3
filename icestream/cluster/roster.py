"""The connectors that the store knows, and the jobs of those that are this worker's. Used by the service.

It listens to the store and to the group, and leaves wishes with the worker; it never waits.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from icestream.api.errors import ConfigError, FatalError, IcestreamError, NotFoundError
from icestream.api.status import JobStatus
from icestream.cluster.connector_config import Validation
from icestream.cluster.job_slot import Wish
from icestream.cluster.restarts import NEVER, Policy
from icestream.cluster.stores import ConnectorStore, StoredConnector, TargetState
from icestream.cluster.task_limit import MOST_TASKS
from icestream.cluster.worker import Worker
from icestream.logs import for_connector
from icestream.plugins import Connector, find_connector

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class KnownConnector:
    """A connector of the store, checked; `refused` says why its config cannot run at all."""

    stored: StoredConnector
    plugin: Connector | None
    warnings: tuple[str, ...]
    refused: IcestreamError | None
    run: int
    restarts: Policy = NEVER

    @property
    def config(self) -> Mapping[str, str]:
        return self.stored.config

    @property
    def target(self) -> TargetState:
        return self.stored.target

    @property
    def type(self) -> str:
        return self.plugin.kind if self.plugin else "unknown"

    @property
    def task_ids(self) -> tuple[int, ...]:
        return task_ids(self.stored)


def task_ids(connector: StoredConnector) -> tuple[int, ...]:
    """A stopped connector has no tasks."""
    if connector.target is TargetState.STOPPED:
        return ()
    text = connector.config.get("tasks.max", "1").strip()
    # However much an older worker has stored: each task is a record and a line of every answer.
    wanted = min(int(text), MOST_TASKS) if text.isdecimal() and len(text) <= 10 else 1
    try:
        most = find_connector(connector.config.get("connector.class", "")).java.most_tasks
    except NotFoundError:
        most = wanted
    return tuple(range(min(wanted, most)))


def task_configs(name: str, connector: StoredConnector) -> list[dict[str, str]]:
    """What `/connectors/{name}/tasks` shows, and the config topic keeps."""
    try:
        java = find_connector(connector.config.get("connector.class", "")).java
    except NotFoundError:
        return [{**connector.config, "task.class": ""} for _ in task_ids(connector)]
    return [
        {
            **connector.config,
            "task.class": java.task_class,
            **({"task.id": str(task)} if java.numbers_tasks else {}),
        }
        for task in task_ids(connector)
    ]


class Roster:
    def __init__(
        self,
        store: ConnectorStore,
        worker: Worker,
        check: Callable[[Mapping[str, str]], Validation],
        effective: Callable[[Mapping[str, str]], Mapping[str, str]],
        owns: Callable[[str], bool],
    ) -> None:
        self._store = store
        self._worker = worker
        self._check = check
        self._effective = effective
        self._owns = owns
        self._lock = threading.RLock()
        self._known: Mapping[str, KnownConnector] = {}
        self._waits: dict[str, Callable[[], bool]] = {}
        self._notes: dict[str, str] = {}

    def connectors(self) -> Mapping[str, KnownConnector]:
        return self._known

    def connector_changed(self, name: str) -> None:
        """The store has a connector anew, or no more."""
        with self._lock:
            stored = self._store.load().get(name)
            if stored is None:
                self._known = {key: value for key, value in self._known.items() if key != name}
                self._notes.pop(name, None)
            else:
                self._known = {**self._known, name: self._judged(name, stored)}
            self._ask(name)

    def ownership_changed(self) -> None:
        """The group gave this worker other connectors than before."""
        with self._lock:
            for name in self._known:
                self._ask(name)

    def run_again(self, name: str) -> None:
        """Start the job of a connector anew, on this worker only."""
        with self._lock:
            if name in self._known:
                again = replace(self._known[name], run=self._worker.new_run())
                self._known = {**self._known, name: again}
                self._ask(name)

    def settle(self, name: str) -> None:
        """Wait, for as long as is decent, until the last change of a connector has its effect here."""
        if wait := self._waits.pop(name, None):
            wait()

    def note(self, name: str, note: str) -> None:
        """Something about a job that it does not know itself, for its status; empty takes it back."""
        self._notes[name] = note

    def job_status(self, name: str) -> JobStatus:
        status = self._worker.status(name)
        note = self._notes.get(name)
        if not note:
            return status
        progress = replace(status.progress, warnings=(note, *status.progress.warnings))
        trace = f"{note}\n{status.trace}" if status.trace else None
        return replace(status, trace=trace, progress=progress)

    def running(self) -> frozenset[str]:
        """Connectors whose jobs have not ended."""
        return self._worker.running()

    def _judged(self, name: str, stored: StoredConnector) -> KnownConnector:
        old = self._known.get(name)
        is_same = old is not None and (old.config, old.stored.restarts) == (stored.config, stored.restarts)
        if old is not None and is_same and old.refused is None:
            return replace(old, stored=stored)
        # Judged anew at every restart, too: what the config points to may be there by now.
        plugin: Connector | None = None
        restarts = NEVER
        warnings: tuple[str, ...] = ()
        refused: IcestreamError | None = None
        try:
            validation = self._check(stored.config)
            plugin, warnings, restarts = validation.connector, validation.warnings, validation.restarts
            validation.raise_if_invalid()
        except ConfigError as error:
            # A config of an older version stays visible, as a failed connector that says why.
            refused = error
        except Exception as error:  # a connector that is stored must not end every worker that starts
            for_connector(_LOG, name).error("the config cannot be judged", exc_info=error)
            refused = FatalError(
                f"the config cannot be judged ({type(error).__name__}); delete or correct it"
            )
        for warning in warnings:
            for_connector(_LOG, name).warning("%s", warning)
        return KnownConnector(stored, plugin, warnings, refused, self._worker.new_run(), restarts)

    def _ask(self, name: str) -> None:
        known = self._known.get(name)
        is_ours = known is not None and self._owns(name)
        if known is None or not is_ours:
            if self._worker.has(name):
                self._waits[name] = self._worker.ask(name, None)
            return
        wish = Wish(
            known.run,
            self._effective(known.config),
            known.target,
            is_restart=self._worker.has(name),
            refused=known.refused,
        )
        self._waits[name] = self._worker.ask(name, wish)
