"""Counts what jobs tell of their batches, as meters of Micrometer have it: by connector and topic. An
`Observer`, which the worker adds if the actuator is on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from icestream.api.history import OTHER_TOPICS, BatchRecord, Event, TopicCounts

Tags = Mapping[str, str]
SEVERAL: Final = "several"
"""The topic of what belongs to a batch of several topics."""
_MOST_TOPICS: Final = 200
_WINDOW_SECONDS: Final = 60.0
_WINDOWS: Final = 3


class Kind(StrEnum):
    COUNTER = "counter"
    TIMER = "timer"
    GAUGE = "gauge"


@dataclass(frozen=True)
class Meter:
    name: str
    kind: Kind
    description: str
    unit: str | None = None


PROCESSED: Final = Meter("kafka.connector.records.processed", Kind.COUNTER, "Records that are in the target")
FAILED: Final = Meter("kafka.connector.records.failed", Kind.COUNTER, "Records that were rejected")
INVALID: Final = Meter(
    "kafka.connector.schema.validation.failures",
    Kind.COUNTER,
    "Records that were rejected because they break the JSON Schema of their topic",
)
WRITE: Final = Meter(
    "kafka.connector.s3.write.duration",
    Kind.TIMER,
    "How long a batch took to be written to its target and committed",
    "seconds",
)


@dataclass
class RecentMax:
    """The largest value of the last minutes, by windows of which the oldest is dropped, as Micrometer's."""

    _windows: list[float] = field(default_factory=lambda: [0.0] * _WINDOWS)
    _turned: float = 0.0

    def add(self, value: float, now: float) -> None:
        self._turn(now)
        self._windows = [max(value, one) for one in self._windows]

    def value(self, now: float) -> float:
        self._turn(now)
        return self._windows[0]

    def _turn(self, now: float) -> None:
        passed = int((now - self._turned) // _WINDOW_SECONDS)
        if passed > 0:
            dropped = min(passed, _WINDOWS)
            self._windows = self._windows[dropped:] + [0.0] * dropped
            self._turned += passed * _WINDOW_SECONDS


@dataclass
class TopicMeters:
    """Of one connector and topic."""

    processed: int = 0
    failed: int = 0
    invalid: int = 0
    writes: int = 0
    write_seconds: float = 0.0
    longest: RecentMax = field(default_factory=RecentMax)


@dataclass(frozen=True)
class Measured:
    """One series of a meter: its statistics by Micrometer's names."""

    meter: Meter
    tags: Tags
    values: Mapping[str, float]


class ConnectorMeters:
    """Told by the threads of jobs, read by those that answer."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._connectors: dict[str, dict[str, TopicMeters]] = {}

    # Observer

    def batch(self, connector: str, record: BatchRecord) -> None:
        if not record.landed:
            return
        with self._lock:
            topics = self._connectors.setdefault(connector, {})
            counted = record.topics or _uncounted(record)
            for topic, counts in counted.items():
                meters = _of_topic(topics, topic)
                meters.processed += counts.written
                meters.failed += counts.rejected
                meters.invalid += counts.invalid
            if record.targets:
                self._time(topics, next(iter(counted)) if len(counted) == 1 else SEVERAL, record)

    def event(self, connector: str, event: Event) -> None:
        """Nothing that these meters count."""

    def forget(self, connector: str) -> None:
        with self._lock:
            self._connectors.pop(connector, None)

    def _time(self, topics: dict[str, TopicMeters], topic: str, record: BatchRecord) -> None:
        meters = _of_topic(topics, topic)
        seconds = record.stages.get("stage", 0.0) + record.stages.get("commit", 0.0)
        meters.writes += 1
        meters.write_seconds += seconds
        meters.longest.add(seconds, self._clock())

    # Readers

    def measured(self, connectors: Collection[str]) -> Iterator[Measured]:
        """Of these connectors; the others have left this worker, and are forgotten."""
        with self._lock:
            for gone in self._connectors.keys() - set(connectors):
                del self._connectors[gone]
            now = self._clock()
            found = [
                one
                for connector, topics in sorted(self._connectors.items())
                for topic, meters in sorted(topics.items())
                for one in _series({"connector": connector, "topic": topic}, meters, now)
            ]
        yield from found


def _series(tags: Tags, meters: TopicMeters, now: float) -> Iterator[Measured]:
    yield Measured(PROCESSED, tags, {"COUNT": float(meters.processed)})
    yield Measured(FAILED, tags, {"COUNT": float(meters.failed)})
    yield Measured(INVALID, tags, {"COUNT": float(meters.invalid)})
    times = {"COUNT": float(meters.writes), "TOTAL_TIME": meters.write_seconds}
    yield Measured(WRITE, tags, {**times, "MAX": meters.longest.value(now)})


def _of_topic(topics: dict[str, TopicMeters], topic: str) -> TopicMeters:
    """However many topics a pattern matches, only so many are told apart."""
    known = topic in topics or len(topics) < _MOST_TOPICS
    return topics.setdefault(topic if known else OTHER_TOPICS, TopicMeters())


def _uncounted(record: BatchRecord) -> dict[str, TopicCounts]:
    """Of a job that does not count by topic."""
    topics = list(record.newest_ms)
    counts = TopicCounts(record.written, sum(record.rejected.values()))
    return {topics[0] if len(topics) == 1 else SEVERAL: counts}
