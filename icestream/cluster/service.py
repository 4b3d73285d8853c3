"""Everything a user can do to a worker. REST and the command line only translate to and from these calls.

Changes go to the store, one at a time, on the worker that leads the group. The store tells every worker what
changed, and each brings its own jobs there, in their own threads. Reads take no lock.
"""

from __future__ import annotations

import datetime as dt
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from icestream import __version__
from icestream.api.config import Config
from icestream.api.errors import (
    AlreadyExistsError,
    BadOffsets,
    ConfigChanged,
    NotFoundError,
    UnknownConnectorClass,
)
from icestream.api.history import Event, Observer, TableCommit
from icestream.api.offset_admin import OffsetAdmin, OffsetEntry
from icestream.api.status import JobStatus, Outage, Progress, State
from icestream.cluster.configs.edits import (
    Changes,
    HiddenReport,
    edited,
    hidden_report,
    report_of_unknown_class,
)
from icestream.cluster.configs.masking import Masks, masked_config, masks_of
from icestream.cluster.configs.properties import ConnectorFile
from icestream.cluster.configs.reports import definition_of, report_from, settings_of
from icestream.cluster.configs.validation import Probing, Validation, Validator
from icestream.cluster.connector_registry import ConnectorRegistry, KnownConnector, Patience, task_configs
from icestream.cluster.group.membership import Alone, GroupView, Membership
from icestream.cluster.history.change_events import ACTING_USER, changes
from icestream.cluster.history.health import ConnectorHealth, HealthFacts, health_of, window_seconds
from icestream.cluster.history.history import History
from icestream.cluster.history.recent_answers import RecentAnswers
from icestream.cluster.inspection import Audit, Inspection, TargetCommits
from icestream.cluster.liveness import Checked, LifeLimits, LiveFacts, ReadyFacts, live, ready
from icestream.cluster.logger_levels import LoggerLevels
from icestream.cluster.settings.retry_settings import retry_settings
from icestream.cluster.statuses import live_status, published_progress, published_status
from icestream.cluster.stores.connector_store import ConnectorStore, StoredConnector, TargetState, target_from
from icestream.cluster.stores.status_store import MemoryStatusStore, StatusStore
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
from icestream.logs import LoggerLevel, for_connector

if TYPE_CHECKING:
    from icestream.jobs.letters.desk import LetterDesk, ReplayProgress

_LOG = logging.getLogger(__name__)
_COMMITS_SECONDS = 10.0
_MOST_COMMITS = 50
_READY = "Worker has completed startup and is ready to handle requests."
_KAFKA_VERSION = "4.3.1"
"""The Kafka Connect whose API this is: clients look at it to know what they may ask for."""


@dataclass(frozen=True)
class Extras:
    """What a service can do without; a worker has them, tests take what they need."""

    deep_check: Probing | None = None
    cluster_id: Callable[[], str | None] = lambda: None
    offsets: OffsetAdmin | None = None
    dead_letters: LetterDesk | None = None
    target_commits: TargetCommits | None = None
    """Reads the last commits of a connector's targets."""
    audit: Audit | None = None
    resolve: Callable[[Config], dict[str, str]] = dict
    """Replaces the placeholders of config providers, as late as possible."""
    outage: Callable[[], Outage | None] = lambda: None
    """What all jobs here need and is away."""
    patience: Patience | None = None
    """How long requests wait for their effect."""
    life: LifeLimits = field(default_factory=LifeLimits)
    """After how much silence the process is no use any more."""
    notice: str = ""
    """What whoever looks at the health of this worker should know, though it works."""
    history: History = field(default_factory=History)
    """What happened to the connectors of this worker."""
    observer: Observer | None = None
    """Who is told what happens to connectors, the history among them; None: only the history."""


@dataclass(frozen=True)
class LocalJob:
    """A connector that is this worker's, and how its job is."""

    name: str
    connector: KnownConnector
    status: JobStatus


class ConnectorService:
    def __init__(
        self,
        worker_id: str,
        store: ConnectorStore,
        worker_config: Config,
        membership: Membership | None = None,
        status_store: StatusStore | None = None,
        extras: Extras | None = None,
    ) -> None:
        self.worker_id = worker_id
        self._store = store
        self.membership = self._membership = membership or Alone()
        self._status_store = status_store or MemoryStatusStore()
        self._extras = extras or Extras()
        self._validator = Validator(worker_config, self._extras.deep_check, self._extras.resolve)
        self._loggers = LoggerLevels()
        self.inspection = Inspection(
            self._job_config,
            self._extras.offsets,
            self._extras.dead_letters,
            self._extras.audit,
            self._extras.target_commits,
            self.tell,
        )
        self._commits = RecentAnswers(_COMMITS_SECONDS)
        if self._extras.dead_letters is not None:
            self._extras.dead_letters.when_over = self._replay_ended
        self._masks: dict[str, tuple[Config, Masks]] = {}
        self._changing = threading.Lock()
        self._has_configs = self._is_ready = False
        self._told_lost: list[str] = []
        self.history = self._extras.history
        self.observer: Observer = self._extras.observer or self.history
        self._asked: dict[str, str] = {}
        """Connectors that this worker changes just now, with the user who asked for it."""
        self.connectors = ConnectorRegistry(
            store,
            self._membership,
            validate=lambda config: self._validator.validated(config, deep=False),
            effective=self._validator.effective,
            resolve=self._extras.resolve,
            patience=self._extras.patience,
            retries=lambda config: retry_settings(config, worker_config),
            observer=self.observer,
        )
        store.listen(self)

    # The worker's life

    def restore(self, files: Sequence[ConnectorFile] = ()) -> None:
        """Take up the connectors of the store and of the files; where they differ, the file wins."""
        found = self._store.load()
        for name in found:
            self.connectors.connector_changed(name)
        for file in files:
            self.take_up(file)
        self._has_configs = True

    def take_up(self, file: ConnectorFile) -> str:
        """Create or reconfigure a connector of a file: created, updated or unchanged. Opens nothing: what it
        points at may come later than the worker."""
        self._membership.require_leader()
        known = self._store.load().get(file.name)
        if known is not None and dict(known.config) == file.config:
            return "unchanged"
        self._validator.refuse_invalid(file)
        with self._changing:
            known = self._store.load().get(file.name)
            target = known.target if known else target_from(file.initial_state)
            self._store.put(file.name, StoredConnector(file.config, target))
        return "updated" if known else "created"

    def ready(self) -> None:
        self._is_ready = True

    def close(self) -> None:
        """Stop all jobs; connectors and their target states stay in the store."""
        self.connectors.close()
        self._store.close()
        self._status_store.close()

    def health(self) -> Health:
        if not self._is_ready:
            return Health("starting", "Worker is still starting up.")
        if (outage := self._extras.outage()) is not None:
            return Health("unhealthy", f"{outage}. Connectors that need it wait for it.")
        if not self._membership.is_well:
            return Health("unhealthy", "Worker has lost touch with Kafka and stopped its connectors.")
        said = [_READY, self._extras.notice, *self._held_up()]
        return Health("healthy", " ".join(part for part in said if part))

    def outage(self) -> Outage | None:
        """What all jobs here need and is away."""
        return self._extras.outage()

    def live(self, loop_age: float | None = None) -> Checked:
        """Whether this process can still do its work; `loop_age`: since when REST's event loop is silent."""
        extras = self._extras
        lost = self.connectors.lost(extras.life.job)
        if lost != self._told_lost:
            for name in lost:
                self._log(name).error("its thread has shown no sign of life for %.0f s", extras.life.job)
            self._told_lost = lost
        facts = LiveFacts(
            loop_age,
            self._membership.silent_for,
            sum(map(self._membership.owns, self.connectors.known)),
            len(lost),
            extras.outage(),
            dt.datetime.now(dt.UTC),
        )
        return live(facts, extras.life)

    def readiness(self) -> Checked:
        """Whether this worker is at work: it has joined the others and has its share."""
        member, known = self._membership, self.connectors.known
        facts = ReadyFacts(
            has_configs=self._has_configs,
            has_engine=self.connectors.can_start,
            has_share=self._is_ready and member.has_joined,
            is_in_touch=member.is_well,
            connectors=sum(map(member.owns, known)),
        )
        return ready(facts)

    def _held_up(self) -> list[str]:
        """Jobs that wait for others: no fault of this worker, but somebody should know."""
        names = [name for name in self.connectors.known if self._membership.owns(name)]
        waits = [(name, self.connectors.job_status(name).waiting) for name in names]
        return [f"Connector '{name}' is {waiting}." for name, waiting in waits if waiting is not None]

    def server(self) -> ServerInfo:
        return ServerInfo(f"{_KAFKA_VERSION}-icestream", __version__, self._extras.cluster_id())

    # What the store tells

    def connector_changed(self, name: str) -> None:
        before = self.connectors.known.get(name)
        self.connectors.connector_changed(name)
        self._tell_changes(name, before)

    def logger_changed(self, namespace: str, level: str) -> None:
        self._loggers.set_level(namespace, level)

    # Reading

    def names(self) -> list[str]:
        return list(self.connectors.known)

    def info(self, name: str) -> ConnectorInfo:
        connector = self._find(name, "Connector {} not found")
        return ConnectorInfo(name, connector.config, connector.task_ids, connector.type)

    def config(self, name: str) -> Mapping[str, str]:
        return self.info(name).config

    def masks(self, name: str) -> Masks:
        """What of a connector's config nobody may see, as far as its class and its keys tell."""
        connector = self._find(name, "Connector {} not found")
        kept = self._masks.get(name)
        if kept is None or kept[0] is not connector.config:
            if len(self._masks) > 2 * len(self.connectors.known) + 100:
                self._masks = {}
            kept = (connector.config, masks_of(connector.config, settings_of(connector.config)))
            self._masks[name] = kept
        return kept[1]

    def config_version(self, name: str) -> str:
        """Changes with the config, and says nothing of it: `patch_config` takes it."""
        return self._find(name, "Connector {} not found").stored.version

    def status(self, name: str) -> ConnectorStatus:
        connector = self._find(name, "No status found for connector {}")
        if self._membership.owns(name):
            return live_status(self.worker_id, name, connector, self.connectors.job_status(name))
        return published_status(name, connector, self._status_store.statuses(name))

    def local_jobs(self) -> list[LocalJob]:
        """The connectors of this worker; one that is about to move is nobody's."""
        known = self.connectors.known
        return [
            LocalJob(name, connector, self.connectors.job_status(name))
            for name, connector in known.items()
            if self._membership.owns(name)
        ]

    def group(self) -> GroupView:
        return self._membership.view()

    def progress(self, name: str) -> Progress:
        """How far the job is, with the warnings about its config."""
        connector = self._find(name, "No status found for connector {}")
        if self._membership.owns(name):
            progress = self.connectors.job_status(name).progress
        else:
            progress = published_progress(self._status_store.statuses(name))
        return replace(progress, warnings=(*connector.warnings, *progress.warnings))

    def connector_health(self, name: str, now_ms: int) -> ConnectorHealth:
        """In one word; of a connector of another worker by what that one has published."""
        status, progress = self.status(name), self.progress(name)
        recent = self.history.recent(name, window_seconds(progress))
        waiting = self.connectors.job_status(name).waiting if self._membership.owns(name) else None
        return health_of(
            HealthFacts(
                now_ms,
                status.state,
                progress,
                status.trace,
                waiting,
                recent.rejected_ms,
                recent.lags,
                recent.since_ms,
            )
        )

    def commits(self, name: str) -> list[TableCommit]:
        """The last commits of its targets, as these remember them; asked at most every ten seconds."""
        return self._commits.of(name, lambda: self.inspection.commits(name, _MOST_COMMITS))

    def tasks(self, name: str) -> list[TaskConfig]:
        connector = self._find(name, "Connector {} not found")
        configs = task_configs(name, connector.stored)
        return [TaskConfig(name, number, config) for number, config in enumerate(configs)]

    def task_status(self, name: str, task: int) -> TaskStatus:
        connector = self.connectors.known.get(name)
        if connector is None or task not in connector.task_ids:
            raise NotFoundError(f"No status found for task {name}-{task}")
        return self.status(name).tasks[task]

    def plugin_config(self, name: str) -> tuple[CheckedSetting, ...]:
        return definition_of(name)

    def validate(self, config: Mapping[str, str | None], *, deep: bool = True) -> ConfigReport:
        """What is wrong with a config; `deep` opens what it points at, if nothing else is."""
        return report_from(self._validator.validated(config, deep=deep))

    def validate_edited(self, changes: Changes, name: str | None = None, *, deep: bool) -> HiddenReport:
        """What is wrong with a config that somebody edits: changes to that of the named connector, or a new
        one. Tells no secret."""
        stored = {} if name is None else self.config(name)
        config = edited(stored, changes)
        try:
            report = self.validate(config, deep=deep)
        except UnknownConnectorClass as refused:
            report = report_of_unknown_class(config, refused)
        return hidden_report(report, config)

    # Changing

    def create(
        self, name: str, config: Mapping[str, str | None], target: TargetState = TargetState.STARTED
    ) -> ConnectorInfo:
        self._membership.require_leader()
        validation = self._validator.valid(config, deep=True)
        with self._changing:
            if name in self._store.load():
                raise AlreadyExistsError(f"Connector {name} already exists")
            return self._put(name, validation, target)

    def put_config(self, name: str, config: Mapping[str, str | None]) -> tuple[ConnectorInfo, bool]:
        """Create or reconfigure; the second value says whether it was created."""
        self._membership.require_leader()
        validation = self._validator.valid(config, deep=True)
        with self._changing:
            old = self._store.load().get(name)
            info = self._put(name, validation, old.target if old else TargetState.STARTED)
        return info, old is None

    def patch_config(
        self, name: str, patch: Mapping[str, str | None], expect: str | None = None
    ) -> ConnectorInfo:
        """Change some keys; null removes one. `expect` is the version that the changes were made to: if the
        config has another one by now, nothing changes."""
        self._membership.require_leader()
        while True:
            connector = self._find(name, "Connector {} not found")
            before = connector.config
            if expect is not None and connector.stored.version != expect:
                raise ConfigChanged(
                    f"The config of connector '{name}' was changed since it was read; look at what is stored "
                    "now, and save again",
                    before,
                    connector.stored.version,
                )
            merged = {**before, **patch}
            validation = self._validator.valid(
                {key: value for key, value in merged.items() if value is not None}, deep=True
            )
            with self._changing:
                # Others may have changed or deleted it while it was validated.
                connector = self._find(name, "Connector {} not found")
                if connector.config == before:
                    return self._put(name, validation, connector.target)

    def delete(self, name: str) -> None:
        self._membership.require_leader()
        with self._changing:
            connector = self._find(name, "Connector {} not found")
            self._store.remove(name)
        self.connectors.settle(name)
        for task in (None, *connector.task_ids):
            self._status_store.forget(name, task)
        self._status_store.reset_topics(name)
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
        self._membership.require_leader()
        self._find(name, "Unknown connector: {}")
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
        self._membership.require_leader()
        connector = self._find(name, "Unknown connector: {}")
        if task not in connector.task_ids:
            raise NotFoundError(f"Unknown task: {name}-{task}")
        self._new_run(name)

    # Offsets and topics

    def offsets(self, name: str) -> list[OffsetEntry]:
        with self._job_config(name) as config:
            return self._offset_admin().read(name, config)

    def alter_offsets(self, name: str, entries: Sequence[OffsetEntry]) -> str:
        with self._changing, self._validator.job_config(self._stopped(name).config) as config:
            answer = self._offset_admin().alter(name, config, entries)
        self.tell(name, "offsets", f"offsets of {len(entries)} partitions were moved by hand")
        return answer

    def reset_offsets(self, name: str) -> str:
        with self._changing, self._validator.job_config(self._stopped(name).config) as config:
            answer = self._offset_admin().reset(name, config)
        self.tell(name, "offsets", "all offsets were reset by hand")
        return answer

    def topics(self, name: str) -> list[str]:
        return self._status_store.topics(name)

    def reset_topics(self, name: str) -> None:
        self._status_store.reset_topics(name)

    # Loggers

    def loggers(self) -> Mapping[str, LoggerLevel]:
        return self._loggers.levels()

    def logger(self, name: str) -> LoggerLevel:
        return self._loggers.level(name)

    def set_logger(self, name: str, level: str, scope: str = "worker") -> list[str]:
        """The names of the loggers that changed here; in cluster scope all workers follow."""
        if scope != "cluster":
            return self._loggers.set_level(name, level)
        self._membership.require_leader()
        self._store.set_logger(name, level)
        return []

    # What is told

    def tell(self, name: str, kind: str, text: str, user: str | None = None, **numbers: float) -> None:
        """An event of a connector, of whoever asks now if nobody else is named."""
        who = ACTING_USER.get() if user is None else user
        at_ms = time.time_ns() // 1_000_000
        self.observer.event(name, Event(at_ms, kind, text, who, numbers=numbers))

    def _replay_ended(self, name: str, progress: ReplayProgress) -> None:
        text = f"{progress.sent:,} of {progress.total:,} dead letters were sent again"
        why = f": {progress.problem}" if progress.problem else ""
        self.tell(name, "replay", text + why, records=progress.sent)

    def _tell_changes(self, name: str, before: KnownConnector | None) -> None:
        """What is new of a connector. Every worker hears of it: its owner tells, and whoever was asked."""
        user, after = self._asked.pop(name, None), self.connectors.known.get(name)
        if after is None or not self._is_ready or not (user is not None or self._membership.owns(name)):
            return
        for kind, text in changes(before.stored if before else None, after.stored):
            self.tell(name, kind, text, user or "")

    # How

    def _find(self, name: str, message: str) -> KnownConnector:
        connector = self.connectors.known.get(name)
        if connector is None:
            raise NotFoundError(message.format(name))
        return connector

    def _put(self, name: str, validation: Validation, target: TargetState) -> ConnectorInfo:
        self._log(name).info("config %s", masked_config(validation.config, settings_of(validation.config)))
        old = self._store.load().get(name)
        stored = StoredConnector(validation.config, target, old.restarts if old else 0)
        self._asked[name] = ACTING_USER.get()
        self._store.put(name, stored)
        info = self.info(name)
        self.connectors.settle(name)
        # In a cluster of Kafka Connect a new connector gets its tasks a moment later; its clients look again.
        return replace(info, task_ids=()) if old is None and self._membership.is_shared else info

    def _retarget(self, name: str, target: TargetState) -> None:
        self._membership.require_leader()
        with self._changing:
            self._find(name, "Unknown connector {}")
            self._asked[name] = ACTING_USER.get()
            self._store.put(name, replace(self._store.load()[name], target=target))
        self.connectors.settle(name)

    def _new_run(self, name: str) -> None:
        with self._changing:
            self._find(name, "Connector {} not found")
            stored = self._store.load()[name]
            self._asked[name] = ACTING_USER.get()
            self._store.put(name, replace(stored, restarts=stored.restarts + 1))
        self.connectors.settle(name)

    def _stopped(self, name: str) -> KnownConnector:
        self._membership.require_leader()
        connector = self._find(name, "Connector {} not found")
        if connector.target is not TargetState.STOPPED or self.status(name).state is not State.STOPPED:
            raise BadOffsets(
                "Connectors must be in the STOPPED state before their offsets can be modified. This can be "
                "done for the specified connector by issuing a 'PUT' request to the "
                f"'/connectors/{name}/stop' endpoint"
            )
        return connector

    @contextmanager
    def _job_config(self, name: str) -> Iterator[Mapping[str, str]]:
        connector = self._find(name, "Connector {} not found")
        with self._validator.job_config(connector.config) as config:
            yield config

    def _offset_admin(self) -> OffsetAdmin:
        if self._extras.offsets is None:
            raise BadOffsets("this worker has no access to offsets")
        return self._extras.offsets

    def _log(self, name: str) -> logging.LoggerAdapter[logging.Logger]:
        return for_connector(_LOG, name)
