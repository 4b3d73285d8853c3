"""How the records of a source job reach Kafka: flushed before their offset, or with it in one transaction."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from icestream.api.config import subset
from icestream.api.errors import RetriableError
from icestream.api.offset_admin import OffsetEntry
from icestream.api.source_settings import new_topic
from icestream.jobs.source_stores import OffsetTopic, SourcePlace
from icestream.kafka.bulk_producer import BulkProducer, Outgoing
from icestream.kafka.clients import client_settings
from icestream.kafka.topics import Topics

_log = logging.getLogger(__name__)

_FLUSH_SECONDS = 5.0


class Outlet(Protocol):
    """Opened for one connector. After an error from `send` or `commit` it is given up for a new one."""

    def stored(self) -> list[OffsetEntry]:
        """The offsets of the connector, once everything that an earlier outlet began has ended."""

    @property
    def has_room(self) -> bool:
        """Whether Kafka keeps up with what is sent."""

    def send(self, outgoing: Outgoing) -> None: ...

    def commit(self, entries: Sequence[OffsetEntry]) -> bool:
        """Make durable what was sent, then, or together with it, where the source stands.

        False: Kafka has not answered yet, nothing is lost, try again.
        """

    def close(self) -> None: ...

    def abandon(self) -> None:
        """Let go of it without waiting."""


class FlushedOutlet:
    """At least once: records first, flushed, then the offset."""

    def __init__(self, name: str, place: SourcePlace) -> None:
        self._name = name
        self._offsets = place.store()
        self._producer = BulkProducer(_producer_settings(place))

    def stored(self) -> list[OffsetEntry]:
        return self._offsets.read(self._name)

    @property
    def has_room(self) -> bool:
        return self._producer.has_room

    def send(self, outgoing: Outgoing) -> None:
        self._producer.send(outgoing)

    def commit(self, entries: Sequence[OffsetEntry]) -> bool:
        if not self._producer.flush(_FLUSH_SECONDS):
            return False
        self._offsets.write(self._name, entries)
        return True

    def close(self) -> None:
        self._producer.close()
        self._offsets.close()

    def abandon(self) -> None:
        self._producer.abandon()
        self._offsets.close()


class TransactionalOutlet:
    """Exactly once: records and offset in one transaction. Opening it fences every older one."""

    def __init__(self, name: str, place: SourcePlace, reached: Callable[[str], None]) -> None:
        self._name = name
        self._place = place
        self._reached = reached
        own = place.config if place.topic != place.workers_topic else {}
        self._primary = OffsetTopic(place.worker, own, place.topic, only_committed=True)
        self._primary.prepare()
        self._producer = BulkProducer(_producer_settings(place), place.transactional_id(name))

    def stored(self) -> list[OffsetEntry]:
        offsets = self._place.store()
        try:
            return offsets.read(self._name)
        finally:
            offsets.close()

    @property
    def has_room(self) -> bool:
        return self._producer.has_room

    def send(self, outgoing: Outgoing) -> None:
        self._producer.begin()
        self._producer.send(outgoing)

    def commit(self, entries: Sequence[OffsetEntry]) -> bool:
        self._producer.begin()
        self._producer.send_keyed(self._place.topic, self._place.records(self._name, entries))
        self._reached("sent")
        self._producer.commit()
        self._reached("committed")
        if self._place.topic != self._place.workers_topic:
            self._tell_worker(entries)
        return True

    def close(self) -> None:
        self._producer.close()

    def abandon(self) -> None:
        self._producer.abandon()

    def _tell_worker(self, entries: Sequence[OffsetEntry]) -> None:
        """The worker's topic follows the connector's own, which decides."""
        follower = OffsetTopic(self._place.worker, {}, self._place.workers_topic, only_committed=True)
        try:
            follower.write(self._name, entries)
        except RetriableError as error:
            _log.warning("the worker's offsets topic lags behind: %s", error, extra={"connector": self._name})
        finally:
            follower.close()


def open_outlet(name: str, place: SourcePlace, reached: Callable[[str], None] = lambda point: None) -> Outlet:
    if place.is_exactly_once:
        return TransactionalOutlet(name, place, reached)
    return FlushedOutlet(name, place)


def _producer_settings(place: SourcePlace) -> dict[str, str]:
    return client_settings(place.worker, "producer", subset(place.config, "producer.override."))


def ensure_topic(topic: str, place: SourcePlace) -> None:
    """Create the topic that records go to, if it is missing and the worker may."""
    if place.worker.get("topic.creation.enable", "true").strip().lower() == "false":
        return
    wanted = new_topic(topic, place.config)
    topics = Topics(client_settings(place.worker, "admin", subset(place.config, "admin.override.")))
    if topic not in topics.describe([topic]):
        topics.create(topic, wanted.partitions, wanted.replication, wanted.config)
        _log.info("created topic '%s'", topic)
