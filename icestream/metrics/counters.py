"""Counts what jobs tell of their batches, for scrapes. An `Observer` (`api/history.py`) that the worker gives
to its jobs; `facts.py` asks for what was counted.

What is counted of a connector is replaced as a whole, in one step: a scrape sees all of a batch or nothing of
it, so the books balance at every moment.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from icestream.api.history import STAGES, BatchRecord, Event, Outcome, TargetCommit
from icestream.metrics import catalog
from icestream.metrics.histograms import Exemplar, Histogram, copies

_COMMIT_OUTCOMES: Final[Mapping[Outcome, str]] = {
    Outcome.COMMITTED: "landed",
    Outcome.EMPTY: "landed",
    Outcome.CONFLICT: "refused",
    Outcome.UNKNOWN: "unknown",
}


@dataclass
class Counts:
    """Of one connector, since this worker took it."""

    read: int = 0
    written: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    """By stage."""
    filtered: Counter[str] = field(default_factory=Counter)
    """By the transform's alias."""
    bytes_read: int = 0
    letters: int = 0
    replayed: int = 0
    batches: Counter[str] = field(default_factory=Counter)
    """By outcome."""
    under_way: Mapping[str, BatchRecord] = field(default_factory=dict)
    """By id."""
    batch_seconds: Histogram = field(default_factory=lambda: Histogram(catalog.BATCH_SECONDS.buckets))
    stage_seconds: dict[str, Histogram] = field(
        default_factory=lambda: {stage: Histogram(catalog.STAGE_SECONDS.buckets) for stage in STAGES}
    )
    spark_seconds: Histogram = field(default_factory=lambda: Histogram(catalog.SPARK_JOB_SECONDS.buckets))
    commits: Counter[str] = field(default_factory=Counter)
    commit_seconds: Histogram = field(default_factory=lambda: Histogram(catalog.COMMIT_SECONDS.buckets))
    files: int = 0
    file_bytes: int = 0
    file_sizes: Histogram = field(default_factory=lambda: Histogram(catalog.FILE_SIZES.buckets))
    end_to_end: Histogram = field(default_factory=lambda: Histogram(catalog.END_TO_END.buckets))
    retries: Counter[str] = field(default_factory=Counter)
    """By who did not answer."""
    restarts: int = 0
    fenced: int = 0
    schema_changes: Counter[str] = field(default_factory=Counter)
    maintenance: Counter[str] = field(default_factory=Counter)
    """Turns by outcome."""
    maintenance_seconds: float = 0.0
    maintenance_files: int = 0
    maintenance_bytes: int = 0
    rejected_exemplars: Mapping[str, Exemplar] = field(default_factory=dict)
    """The last batch that had rejected records, by stage."""
    last: BatchRecord | None = None
    """The last batch that ended."""

    def copy(self) -> Counts:
        return replace(
            self,
            rejected=self.rejected.copy(),
            filtered=self.filtered.copy(),
            batches=self.batches.copy(),
            batch_seconds=self.batch_seconds.copy(),
            stage_seconds=copies(self.stage_seconds),
            spark_seconds=self.spark_seconds.copy(),
            commits=self.commits.copy(),
            commit_seconds=self.commit_seconds.copy(),
            file_sizes=self.file_sizes.copy(),
            end_to_end=self.end_to_end.copy(),
            retries=self.retries.copy(),
            schema_changes=self.schema_changes.copy(),
            maintenance=self.maintenance.copy(),
        )


NOTHING: Final = Counts()
"""Of a connector that has told nothing yet; nobody changes it."""


class Counters:
    """Of all connectors of a worker. Called by their threads, and by those that answer scrapes."""

    def __init__(self, wall: Callable[[], float] = time.time) -> None:
        self._wall = wall
        self._lock = threading.Lock()
        self._counts: dict[str, Counts] = {}

    # Observer

    def batch(self, connector: str, record: BatchRecord) -> None:
        self._change(connector, lambda counts: _add_batch(counts, record, self._wall()))

    def event(self, connector: str, event: Event) -> None:
        if event.kind in _EVENTS:
            self._change(connector, lambda counts: _EVENTS[event.kind](counts, event))

    def forget(self, connector: str) -> None:
        with self._lock:
            self._counts.pop(connector, None)

    # For scrapes

    def snapshot(self) -> Mapping[str, Counts]:
        """What was counted until now; nobody changes it afterwards."""
        with self._lock:
            return MappingProxyType(dict(self._counts))

    def retain(self, connectors: Collection[str]) -> None:
        """Forget all others: they have left this worker."""
        with self._lock:
            for name in self._counts.keys() - set(connectors):
                del self._counts[name]

    def _change(self, connector: str, change: Callable[[Counts], None]) -> None:
        with self._lock:
            counts = self._counts.get(connector, NOTHING).copy()
            change(counts)
            self._counts[connector] = counts


def _add_batch(counts: Counts, record: BatchRecord, now: float) -> None:
    if not record.is_over:
        # A job works on one batch at a time: what was under way before was given up with its thread.
        counts.under_way = {record.id: record}
        return
    counts.under_way = {one: other for one, other in counts.under_way.items() if one != record.id}
    counts.last = record
    counts.batches[record.outcome.value] += 1
    for commit in record.targets:
        _add_commit(counts, commit, record, now)
    if record.landed:
        _add_landed(counts, record, now)


def _add_landed(counts: Counts, record: BatchRecord, now: float) -> None:
    counts.read += record.read
    counts.written += record.written
    counts.rejected.update(record.rejected)
    counts.filtered.update(record.filtered)
    counts.bytes_read += record.bytes
    counts.letters += record.letters
    counts.batch_seconds.add(record.seconds)
    for stage, seconds in record.stages.items():
        if stage in counts.stage_seconds:
            counts.stage_seconds[stage].add(seconds)
    if "queue" in record.stages:
        # Only what runs on Spark waits in a queue.
        counts.spark_seconds.add(record.stages.get("queue", 0.0) + record.longest_task)
    landed_at = record.started_ms / 1000 + record.seconds
    for newest in record.newest_ms.values():
        age = max(0.0, landed_at - newest / 1000)
        counts.end_to_end.add(age, Exemplar(record.id, age, now))
    found = {stage: Exemplar(record.id, number, now) for stage, number in record.rejected.items() if number}
    if found:
        counts.rejected_exemplars = {**counts.rejected_exemplars, **found}


def _add_commit(counts: Counts, commit: TargetCommit, record: BatchRecord, now: float) -> None:
    outcome = _COMMIT_OUTCOMES.get(commit.outcome, "not_landed")
    counts.commits[outcome] += 1
    if outcome != "landed":
        return
    counts.commit_seconds.add(commit.seconds, Exemplar(record.id, commit.seconds, now))
    counts.files += len(commit.file_bytes)
    counts.file_bytes += sum(commit.file_bytes)
    for size in commit.file_bytes:
        counts.file_sizes.add(size)


# What events add, by their kind; whoever tells a word that is not on the list is counted with the others.


def _add_retry(counts: Counts, event: Event) -> None:
    counts.retries[event.about if event.about in catalog.RETRY_TARGETS else catalog.OTHER] += 1


def _add_restart(counts: Counts, event: Event) -> None:
    # One that a person asked for is no trouble.
    counts.restarts += "attempt" in event.numbers


def _add_fence(counts: Counts, event: Event) -> None:
    counts.fenced += 1


def _add_replay(counts: Counts, event: Event) -> None:
    counts.replayed += int(event.numbers.get("records", 0))


def _add_schema_change(counts: Counts, event: Event) -> None:
    change = event.about if event.about in catalog.SCHEMA_CHANGE_KINDS else catalog.OTHER
    counts.schema_changes[change] += int(event.numbers.get("columns", 1))


def _add_maintenance(counts: Counts, event: Event) -> None:
    counts.maintenance["failed" if event.about == "failed" else "done"] += 1
    counts.maintenance_seconds += event.numbers.get("seconds", 0.0)
    counts.maintenance_files += int(event.numbers.get("files", 0))
    counts.maintenance_bytes += int(event.numbers.get("bytes", 0))


_EVENTS: Final[Mapping[str, Callable[[Counts, Event], None]]] = {
    "retry": _add_retry,
    "restart": _add_restart,
    "fenced": _add_fence,
    "replay": _add_replay,
    "schema": _add_schema_change,
    "maintenance": _add_maintenance,
}
