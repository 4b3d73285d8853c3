"""How records of a source reach Kafka: flushed before their offsets, or with them in one transaction.

Opened by `source_manager`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from icestream.api.offset_admin import OffsetEntry
from icestream.api.source_settings import new_topic
from icestream.jobs.offsets.source_offsets import OffsetLocation
from icestream.kafka.bulk_producer import BulkProducer, OutgoingColumns
from icestream.kafka.topics import Topics

_FLUSH_SECONDS = 5.0


class SourceWriter(Protocol):
    """Opened for one connector. After an error from `send` or `commit` it is given up for a new one."""

    def stored(self) -> list[OffsetEntry]:
        """The offsets of the connector, once everything that an earlier writer began has ended."""

    @property
    def has_room(self) -> bool:
        """Whether Kafka keeps up with what is sent."""

    def send(self, outgoing: OutgoingColumns) -> None:
        """Queue records for a topic, which is created if it is missing and the worker may."""

    def commit(self, entries: Sequence[OffsetEntry]) -> bool:
        """Make durable what was sent, then, or together with it, how far the sources were read.

        False: Kafka has not answered yet, nothing is lost, try again.
        """

    def close(self) -> None: ...

    def abandon(self) -> None:
        """Let go of it without waiting."""


class FlushingWriter:
    """At least once: records first, flushed, then the offsets."""

    def __init__(self, location: OffsetLocation) -> None:
        self._topics = _NewTopics(location)
        self._offsets = location.store()
        self._producer = BulkProducer(location.client("producer"))

    def stored(self) -> list[OffsetEntry]:
        return self._offsets.read()

    @property
    def has_room(self) -> bool:
        return self._producer.has_room

    def send(self, outgoing: OutgoingColumns) -> None:
        self._topics.ensure(outgoing.topic)
        self._producer.send(outgoing)

    def commit(self, entries: Sequence[OffsetEntry]) -> bool:
        if not self._producer.flush(_FLUSH_SECONDS):
            return False
        self._offsets.write(entries)
        return True

    def close(self) -> None:
        self._producer.close()
        self._offsets.close()

    def abandon(self) -> None:
        self._producer.abandon()
        self._offsets.close()


class TransactionalWriter:
    """Exactly once: records and offsets in one transaction. Opening it fences every older one."""

    def __init__(self, location: OffsetLocation, reached: Callable[[str], None]) -> None:
        self._location = location
        self._topics = _NewTopics(location)
        self._reached = reached
        self._producer = location.transaction()

    def stored(self) -> list[OffsetEntry]:
        offsets = self._location.store()
        try:
            return offsets.read()
        finally:
            offsets.close()

    @property
    def has_room(self) -> bool:
        return self._producer.has_room

    def send(self, outgoing: OutgoingColumns) -> None:
        self._topics.ensure(outgoing.topic)
        self._producer.begin()
        self._producer.send(outgoing)

    def commit(self, entries: Sequence[OffsetEntry]) -> bool:
        self._location.send(self._producer, entries)
        self._reached("sent")
        self._producer.commit()
        self._reached("committed")
        self._location.tell_worker(entries)
        return True

    def close(self) -> None:
        self._producer.close()

    def abandon(self) -> None:
        self._producer.abandon()


def open_writer(
    location: OffsetLocation, reached: Callable[[str], None] = lambda point: None
) -> SourceWriter:
    if location.is_exactly_once:
        return TransactionalWriter(location, reached)
    return FlushingWriter(location)


class _NewTopics:
    """Creates topics as `topic.creation.*` of the connector says, each asked about once."""

    def __init__(self, location: OffsetLocation) -> None:
        self._location = location
        self._known: set[str] = set()
        self._may_create = location.worker.get("topic.creation.enable", "true").strip().lower() != "false"

    def ensure(self, topic: str) -> None:
        if topic in self._known or not self._may_create:
            return
        wanted = new_topic(topic, self._location.config)
        topics = Topics(self._location.client("admin"))
        if topic not in topics.describe([topic]):
            topics.create(topic, wanted.partitions, wanted.replication, wanted.config)
        self._known.add(topic)
