"""What the workers of a cluster tell each other of their connectors: states, and topics in use.

Used by the service. A standalone worker keeps its board in memory, a distributed one in the status topic.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from icestream.cluster.internal_records import (
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


class StatusBoard(Protocol):
    def publish(self, status: PublishedStatus) -> None: ...

    def forget(self, name: str, task: int | None) -> None: ...

    def statuses(self, name: str) -> Sequence[PublishedStatus]:
        """The connector's own first, then its tasks'; empty if nobody has published any."""

    def use_topic(self, name: str, topic: str) -> None: ...

    def topics(self, name: str) -> list[str]: ...

    def reset_topics(self, name: str) -> None: ...

    def close(self) -> None: ...


class MemoryBoard:
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


class KafkaBoard:
    """The status topic, and a copy of it in memory that follows."""

    def __init__(self, settings: Mapping[str, str], topic: str, wall_ms: Callable[[], int]) -> None:
        self._seen = MemoryBoard()
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
