"""What the workers of a cluster tell each other of their connectors: states, progress, topics in use.

A standalone worker keeps its store in memory, a distributed one in the status topic. The service reads it;
the reporter of each worker writes how its own connectors are.
"""

from __future__ import annotations

import datetime as dt
import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Final, Protocol

from icestream.api.status import JobStatus, Progress, State, Waiting
from icestream.cluster.connector_registry import ConnectorRegistry, KnownConnector
from icestream.cluster.group.membership import Membership
from icestream.cluster.history.health import freshness_ms
from icestream.cluster.history.history import History
from icestream.cluster.history.series import FINE_SECONDS
from icestream.cluster.stores.internal_records import (
    PublishedStatus,
    StatusGone,
    TopicUse,
    no_status_record,
    no_topic_record,
    status_event,
    status_record,
    topic_record,
)
from icestream.kafka.log import LogRecord, LogWriter, TopicLog
from icestream.logs import for_connector

_LOG = logging.getLogger(__name__)
_LOOK_SECONDS: Final = 0.25
_FULL_LOOK: Final = 12
"""Every so many turns all connectors are looked at, also those that say the same as before: others write to
the store too. With a thousand of them the full look at each would take a tenth of a core."""
_PROGRESS_SECONDS: Final = 30.0
"""How old the progress that other workers see may be."""


class StatusStore(Protocol):
    def publish(self, status: PublishedStatus) -> None: ...

    def forget(self, name: str, task: int | None) -> None: ...

    def statuses(self, name: str) -> Sequence[PublishedStatus]:
        """The connector's own first, then its tasks'; empty if nobody has published any."""

    def use_topic(self, name: str, topic: str) -> None: ...

    def topics(self, name: str) -> list[str]: ...

    def reset_topics(self, name: str) -> None: ...

    def close(self) -> None: ...


class MemoryStatusStore:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._statuses: dict[str, dict[int, PublishedStatus]] = {}
        self._topics: dict[str, dict[str, None]] = {}

    def publish(self, status: PublishedStatus) -> None:
        with self._lock:
            self._statuses.setdefault(status.name, {})[_place(status.task)] = status

    def forget(self, name: str, task: int | None) -> None:
        with self._lock:
            known = self._statuses.get(name, {})
            known.pop(_place(task), None)
            if not known:
                self._statuses.pop(name, None)

    def statuses(self, name: str) -> Sequence[PublishedStatus]:
        with self._lock:
            known = self._statuses.get(name, {})
            return [known[place] for place in sorted(known)]

    def use_topic(self, name: str, topic: str) -> None:
        with self._lock:
            self._topics.setdefault(name, {})[topic] = None

    def topics(self, name: str) -> list[str]:
        with self._lock:
            return list(self._topics.get(name, ()))

    def reset_topics(self, name: str) -> None:
        for topic in self.topics(name):
            self.forget_topic(name, topic)

    def forget_topic(self, name: str, topic: str) -> None:
        with self._lock:
            self._topics.get(name, {}).pop(topic, None)

    def close(self) -> None:
        pass


def _place(task: int | None) -> int:
    return -1 if task is None else task


class KafkaStatusStore:
    """The status topic, and a copy of it in memory that follows."""

    def __init__(self, settings: Mapping[str, str], topic: str, wall_ms: Callable[[], int]) -> None:
        self._seen = MemoryStatusStore()
        self._wall_ms = wall_ms
        self._writer = LogWriter(settings, topic)
        self._log = TopicLog(settings, topic, self._take)

    def start(self) -> None:
        self._log.start()
        self._log.read_to_end()

    def publish(self, status: PublishedStatus) -> None:
        self._seen.publish(status)
        self._writer.send(*status_record(status))

    def forget(self, name: str, task: int | None) -> None:
        self._seen.forget(name, task)
        self._writer.send(*no_status_record(name, task))

    def statuses(self, name: str) -> Sequence[PublishedStatus]:
        return self._seen.statuses(name)

    def use_topic(self, name: str, topic: str) -> None:
        self._seen.use_topic(name, topic)
        self._writer.send(*topic_record(name, topic, 0, self._wall_ms()))

    def topics(self, name: str) -> list[str]:
        return self._seen.topics(name)

    def reset_topics(self, name: str) -> None:
        for topic in self._seen.topics(name):
            self._writer.send(*no_topic_record(name, topic))
        self._seen.reset_topics(name)

    def close(self) -> None:
        self._writer.close()
        self._log.close()

    def _take(self, record: LogRecord) -> None:
        match status_event(record.key, record.value):
            case PublishedStatus() as status:
                self._seen.publish(status)
            case StatusGone(name, task):
                self._seen.forget(name, task)
            case TopicUse(name, topic, True):
                self._seen.use_topic(name, topic)
            case TopicUse(name, topic, False):
                self._seen.forget_topic(name, topic)


class StatusReporter:
    """Tells the status_store, in a thread of the worker, how the connectors of this worker are.

    `turn` is one look at all of them, four times a second. A job cannot do this for itself: it may hang.
    """

    def __init__(
        self,
        worker_id: str,
        connectors: ConnectorRegistry,
        store: StatusStore,
        membership: Membership,
        clock: Callable[[], float] = time.monotonic,
        *,
        tracks_topics: bool = True,
        history: History | None = None,
        wall_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        """`history` gets a sample of each job every ten seconds, and hears of every change."""
        self._history = history
        self._wall_ms = wall_ms
        self._sampled_at = -math.inf
        self._worker_id = worker_id
        self._connectors = connectors
        self._store = store
        self._membership = membership
        self._clock = clock
        self._tracks_topics = tracks_topics
        self._published: dict[str, list[PublishedStatus]] = {}
        self._progress_at: dict[str, float] = {}
        self._batches: dict[str, int] = {}
        self._turns = 0
        self._seen: dict[str, tuple[KnownConnector, JobStatus]] = {}
        self._waits: dict[str, dt.datetime] = {}
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="status-reporter", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """After the jobs have ended: nobody runs our connectors until others take them."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join(5)
        for statuses in self._published.values():
            for status in statuses:
                if status.state is not State.STOPPED:
                    self._store.publish(replace(status, state=State.UNASSIGNED, trace=None, progress=None))

    def turn(self) -> None:
        self._turns += 1
        connectors = self._connectors.known
        samples = self._history is not None and self._clock() - self._sampled_at >= FINE_SECONDS
        if samples:
            self._sampled_at = self._clock()
        for name, connector in connectors.items():
            if self._membership.owns(name):
                self._look_at(name, connector, samples=samples)
        for name in [name for name in self._published if name not in connectors]:
            self._forget(name)
        for name in [name for name in self._published if not self._membership.owns(name)]:
            self._leave(name)
        if samples and self._history is not None:
            # Whoever was asked for a change of a connector has events of it, also if it never ran there.
            self._history.retain(lambda: self._connectors.known)

    # How

    def _run(self) -> None:
        while not self._closing.wait(_LOOK_SECONDS):
            try:
                self.turn()
            except Exception:  # the reporter's edge: one failed look must not end all looks
                _LOG.exception("a look at the jobs failed")

    def _look_at(self, name: str, connector: KnownConnector, *, samples: bool) -> None:
        try:
            job = self._connectors.job_status(name)
            if samples:
                self._sample(name, job)
            if self._has_seen(name, connector, job):
                return
            before, self._seen[name] = self._seen.get(name), (connector, job)
            is_news = before is None or before[0] is not connector or before[1] is not job
            if self._history is not None and is_news:
                self._history.touched(name)
            self._publish(name, connector, job)
            self._note_topics(name, job.progress)
            self._tell_of_wait(name, job.waiting)
        except Exception:  # a job's edge: one that cannot be looked at must not hide the others
            for_connector(_LOG, name).exception("a look at the job failed")

    def _sample(self, name: str, job: JobStatus) -> None:
        if self._history is None or job.state is not State.RUNNING:
            # A gap: nobody knows how a job is that does not run.
            return
        progress = job.progress
        fresh = freshness_ms(progress, self._wall_ms())
        seconds = None if fresh is None else fresh / 1000
        self._history.sample(name, progress.lag, seconds, progress.source_end)

    def _has_seen(self, name: str, connector: KnownConnector, job: JobStatus) -> bool:
        if self._turns % _FULL_LOOK == 0:
            return False
        before = self._seen.get(name)
        return before is not None and before[0] is connector and before[1] is job

    def _publish(self, name: str, connector: KnownConnector, job: JobStatus) -> None:
        version = connector.plugin.version if connector.plugin else None
        generation = self._membership.generation
        plain = PublishedStatus(name, None, job.state, self._worker_id, generation, version, job.trace)
        tasks = [replace(plain, task=task) for task in connector.task_ids]
        shown = {status.task: status for status in self._store.statuses(name)}
        # What a former owner said last may arrive after what we said.
        is_ours = all(
            one.task in shown and shown[one.task].worker_id == self._worker_id for one in (plain, *tasks)
        )
        before = self._published.get(name, []) if is_ours else []
        told = [replace(status, progress=None) for status in before]
        now = self._clock()
        is_same = told == [plain, *tasks]
        if is_same and now - self._progress_at.get(name, 0.0) < _PROGRESS_SECONDS:
            return
        own = replace(plain, progress=_shown(job.progress))
        if not before or before[0] != own:
            self._store.publish(own)
        for status in tasks if not is_same else ():
            self._store.publish(status)
        for task in shown.keys() - {None, *connector.task_ids}:
            self._store.forget(name, task)
        self._published[name] = [own, *tasks]
        self._progress_at[name] = now

    def _note_topics(self, name: str, progress: Progress) -> None:
        # Only after a new batch: a topic that was reset is in use again when a record comes.
        if not self._tracks_topics or self._batches.get(name) == progress.batches:
            return
        self._batches[name] = progress.batches
        known = self._store.topics(name)
        for topic in progress.topics:
            if topic not in known:
                self._store.use_topic(name, topic)

    def _tell_of_wait(self, name: str, waiting: Waiting | None) -> None:
        """Once per wait: the job itself cannot say that a call does not return."""
        if waiting is None:
            self._waits.pop(name, None)
        elif self._waits.get(name) != waiting.since:
            self._waits[name] = waiting.since
            for_connector(_LOG, name).warning("still %s", waiting)

    def _leave(self, name: str) -> None:
        """Another worker has it now, and tells."""
        kept_by_name = (
            self._published,
            self._progress_at,
            self._batches,
            self._seen,
            self._waits,
        )
        for kept in kept_by_name:
            kept.pop(name, None)

    def _forget(self, name: str) -> None:
        """It was deleted."""
        for status in self._published[name]:
            self._store.forget(name, status.task)
        self._store.reset_topics(name)
        self._leave(name)


def _shown(progress: Progress) -> dict[str, object]:
    """Without what changes by the mere passing of time, and without partitions, which may be thousands: who
    wants them asks the worker that runs the job."""
    shown = {**asdict(replace(progress, partitions=())), "next_commit_in_ms": None}
    del shown["partitions"]
    return shown
