"""The connector registry of a worker: what the store knows, and a reconciler for each connector that is here.

It listens to the store and to the group, and tells the reconcilers what is desired; it never waits for a job.
Used by the service.
"""

from __future__ import annotations

import functools
import itertools
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from icestream.api.config import Config
from icestream.api.errors import ConfigError, FatalError, IcestreamError, NotFoundError
from icestream.api.history import Event, NobodyLooks, Observer
from icestream.api.manager import MakeManager
from icestream.api.status import JobStatus, State
from icestream.cluster.configs.limits import MOST_TASKS
from icestream.cluster.configs.validation import Validation
from icestream.cluster.desired_state import DesiredState
from icestream.cluster.group.membership import Membership
from icestream.cluster.reconciler import Reconciler
from icestream.cluster.restarts import AFTER_A_FENCE, NEVER, Policy
from icestream.cluster.settings.retry_settings import RetrySettings, retry_settings
from icestream.cluster.stores.connector_store import ConnectorStore, StoredConnector, TargetState
from icestream.logs import for_connector
from icestream.plugins import Connector, find_connector
from icestream.resilience.breaker import Circuits

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Patience:
    """How long a request waits for its effect, in seconds; the effect comes later if this is not enough."""

    start: float = 0.9
    stop: float = 5.0


@dataclass(frozen=True)
class KnownConnector:
    """A connector of the store, validated; `refused` says why its config cannot run at all."""

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

    @functools.cached_property
    def task_ids(self) -> tuple[int, ...]:
        return tuple(range(len(task_configs("", self.stored))))


def task_configs(name: str, connector: StoredConnector) -> list[dict[str, str]]:
    """What `/connectors/{name}/tasks` shows, and the config topic keeps. A stopped connector has no tasks."""
    if connector.target is TargetState.STOPPED:
        return []
    config = connector.config
    text = config.get("tasks.max", "1").strip()
    # However much an older worker has stored: each task is a record and a line of every answer.
    most = min(int(text), MOST_TASKS) if text.isdecimal() and len(text) <= 10 else 1
    try:
        found = find_connector(config.get("connector.class", ""))
    except NotFoundError:
        return [{**config, "task.class": ""} for _ in range(most)]
    try:
        tasks = found.plugin.tasks(config, most)[:most]
    except Exception:  # code of another package; its job fails for the same reason, and says so
        tasks = [config]
    return [{**task, "task.class": found.java.task_class} for task in tasks]


class ConnectorRegistry:
    """Connectors wait, UNASSIGNED, until `use` brings what makes their managers."""

    def __init__(
        self,
        store: ConnectorStore,
        membership: Membership,
        validate: Callable[[Mapping[str, str]], Validation],
        effective: Callable[[Config], Config],
        resolve: Callable[[Config], dict[str, str]] = dict,
        patience: Patience | None = None,
        retries: Callable[[Config], RetrySettings] = lambda config: retry_settings(config, {}),
        observer: Observer | None = None,
    ) -> None:
        """`effective` adds the worker's defaults to a config, `resolve` replaces its placeholders."""
        self._store = store
        self._membership = membership
        self._validate = validate
        self._effective = effective
        self._resolve = resolve
        self._patience = patience or Patience()
        self._retries = retries
        self._observer = observer or NobodyLooks()
        self._circuits = Circuits()
        self._lock = threading.RLock()
        self._known: Mapping[str, KnownConnector] = {}
        self._reconcilers: dict[str, Reconciler] = {}
        self._leaving: set[str] = set()
        """Names whose reconcilers are forgotten once their jobs have ended."""
        self._runs = itertools.count(1)
        self._make: MakeManager | None = None
        self._is_closed = False

    def use(self, make: MakeManager) -> None:
        """From here on, connectors start."""
        with self._lock:
            self._make = make
            for reconciler in self._reconcilers.values():
                reconciler.wake()

    def close(self) -> None:
        """Stop all connectors, at the same time, and wait for them as long as a stop may take."""
        with self._lock:
            self._is_closed = True
            reconcilers = list(self._reconcilers.values())
            for reconciler in reconcilers:
                reconciler.set_desired(None)
        deadline = time.monotonic() + self._patience.stop
        for reconciler in reconcilers:
            reconciler.wait(max(0.0, deadline - time.monotonic()))

    # What changes

    def connector_changed(self, name: str) -> None:
        """The store has a connector anew, or no more."""
        with self._lock:
            stored = self._store.load().get(name)
            if stored is None:
                self._known = {key: value for key, value in self._known.items() if key != name}
            else:
                self._known = {**self._known, name: self._validated(name, stored)}
            self._set_desired(name)

    def ownership_changed(self) -> None:
        """The group gave this worker other connectors than before."""
        with self._lock:
            came = [one for one in self._known if self._membership.owns(one) and one not in self._reconcilers]
            for name in self._known:
                self._set_desired(name)
        at_ms = time.time_ns() // 1_000_000
        for name in came:
            self._observer.event(name, Event(at_ms, "rebalance", "the group gave it to this worker"))

    # What there is

    @property
    def known(self) -> Mapping[str, KnownConnector]:
        """Every connector of the store, whoever runs it; replaced as a whole."""
        return self._known

    def settle(self, name: str) -> None:
        """Wait, for as long as is decent, until the last change of a connector has its effect here."""
        reconciler = self._reconcilers.get(name)
        if reconciler is None:
            return
        desired = reconciler.desired
        is_ending = desired is None or desired.target is TargetState.STOPPED
        reconciler.wait(self._patience.stop if is_ending else self._patience.start)
        with self._lock:
            self._forget_ended()

    def job_status(self, name: str) -> JobStatus:
        reconciler = self._reconcilers.get(name)
        return reconciler.status() if reconciler else JobStatus(State.UNASSIGNED)

    def lost(self, seconds: float) -> list[str]:
        """Connectors whose threads have shown no sign of life for longer."""
        return [name for name, one in list(self._reconcilers.items()) if one.lost_for() > seconds]

    @property
    def can_start(self) -> bool:
        """Whether there is what makes managers."""
        return self._make is not None

    def running(self) -> frozenset[str]:
        """Connectors that this worker has not let go of: their jobs have not ended."""
        with self._lock:
            self._forget_ended()
            return frozenset(self._reconcilers)

    # How

    def _validated(self, name: str, stored: StoredConnector) -> KnownConnector:
        old = self._known.get(name)
        is_same = old is not None and (old.config, old.stored.restarts) == (stored.config, stored.restarts)
        if old is not None and is_same and old.refused is None:
            return replace(old, stored=stored)
        # Validated anew at every restart, too: what the config points to may be there by now.
        plugin: Connector | None = None
        restarts = NEVER
        warnings: tuple[str, ...] = ()
        refused: IcestreamError | None = None
        try:
            validation = self._validate(stored.config)
            plugin, warnings, restarts = validation.connector, validation.warnings, validation.restarts
            validation.raise_if_invalid()
        except ConfigError as error:
            # A config of an older version stays visible, as a failed connector that says why.
            refused = error
        except Exception as error:  # a connector that is stored must not end every worker that starts
            for_connector(_LOG, name).error("the config cannot be validated", exc_info=error)
            refused = FatalError(
                f"the config cannot be validated ({type(error).__name__}); delete or correct it"
            )
        for warning in warnings:
            for_connector(_LOG, name).warning("%s", warning)
        return KnownConnector(stored, plugin, warnings, refused, next(self._runs), restarts)

    def _set_desired(self, name: str) -> None:
        desired = self._desired(name)
        self._forget_ended()
        if name not in self._reconcilers:
            if desired is None:
                return
            self._reconcilers[name] = self._reconciler(name)
        if desired is None:
            self._leaving.add(name)
        else:
            self._leaving.discard(name)
        self._reconcilers[name].set_desired(desired)

    def _reconciler(self, name: str) -> Reconciler:
        return Reconciler(
            name,
            lambda: self._make,
            self._resolve,
            circuits=self._circuits,
            retries=self._retries,
            observer=self._observer,
        )

    def _desired(self, name: str) -> DesiredState | None:
        known = self._known.get(name)
        # What the store or the group says after `close` must not start a job that nobody would stop.
        if known is None or self._is_closed or not self._membership.owns(name):
            return None
        return DesiredState(
            known.run,
            self._effective(known.config),
            known.target,
            restarts=known.restarts,
            restarts_when_fenced=AFTER_A_FENCE if self._membership.is_shared else NEVER,
            refused=known.refused,
        )

    def _forget_ended(self) -> None:
        for name in [name for name in self._leaving if self._reconcilers[name].is_gone]:
            self._leaving.discard(name)
            del self._reconcilers[name]
            self._observer.forget(name)
