"""Where source offsets are kept: Kafka Connect's file on a standalone worker, its topic on a distributed one.

Used by the outlets of source jobs and by the offsets of REST.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from icestream.api.config import Config, subset
from icestream.api.errors import ConfigError, Problem, SourceUnavailable
from icestream.api.offset_admin import OffsetEntry
from icestream.jobs.offset_file import OffsetFile
from icestream.jobs.offset_records import entries_of, offset_key, offset_value
from icestream.kafka.bulk_producer import BulkProducer
from icestream.kafka.clients import ANSWER_SECONDS, client_settings
from icestream.kafka.offset_topic import prepare_offset_topic, read_offset_topic


class SourceOffsets(Protocol):
    """Each call asks anew, with a time limit. An offset of None removes the entry."""

    def read(self, connector: str) -> list[OffsetEntry]: ...

    def write(self, connector: str, entries: Sequence[OffsetEntry]) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class SourcePlace:
    """Where the offsets of one connector are, and how safely they are written."""

    worker: Mapping[str, str]
    config: Config

    @property
    def is_distributed(self) -> bool:
        return "group.id" in self.worker and "offset.storage.topic" in self.worker

    @property
    def is_exactly_once(self) -> bool:
        asked = self.worker.get("exactly.once.source.support", "disabled").strip().lower()
        return self.is_distributed and asked == "enabled"

    @property
    def workers_topic(self) -> str:
        return self.worker["offset.storage.topic"].strip()

    @property
    def topic(self) -> str:
        """The connector's own topic if it names one, else the worker's."""
        return self.config.get("offsets.storage.topic", "").strip() or self.workers_topic

    def transactional_id(self, connector: str) -> str:
        """That of the connector's only task, as Kafka Connect names it."""
        return f"{self.worker['group.id'].strip()}-{connector}-0"

    def store(self) -> SourceOffsets:
        """What the connector's job and REST read, and what is written outside of transactions."""
        if not self.is_distributed:
            return file_store(self.worker)
        committed = self.is_exactly_once
        stores = [OffsetTopic(self.worker, self.config, self.topic, only_committed=committed)]
        if self.topic != self.workers_topic:
            stores.append(OffsetTopic(self.worker, {}, self.workers_topic, only_committed=committed))
        return LayeredOffsets(stores)

    def records(self, connector: str, entries: Sequence[OffsetEntry]) -> list[tuple[bytes, bytes | None]]:
        return [(offset_key(connector, entry.partition), offset_value(entry.offset)) for entry in entries]


def file_store(worker: Mapping[str, str]) -> OffsetFile:
    key = "offset.storage.file.filename"
    if not worker.get(key, "").strip():
        raise ConfigError(
            [Problem(key, f"'{key}' is not set in the worker's config; sources keep offsets in it")]
        )
    return OffsetFile(Path(worker[key].strip()))


class OffsetTopic:
    """One topic of offsets; created when it is missing."""

    def __init__(
        self, worker: Mapping[str, str], config: Config, topic: str, *, only_committed: bool
    ) -> None:
        self._worker = worker
        self._config = config
        self._topic = topic
        self._only_committed = only_committed
        self._producer: BulkProducer | None = None

    def prepare(self) -> None:
        prepare_offset_topic(
            client_settings(self._worker, "admin", subset(self._config, "admin.override.")),
            self._topic,
            int(self._worker.get("offset.storage.partitions", "25")),
            int(self._worker.get("offset.storage.replication.factor", "3")),
        )

    def read(self, connector: str) -> list[OffsetEntry]:
        settings = client_settings(self._worker, "consumer", subset(self._config, "consumer.override."))
        return entries_of(
            connector, read_offset_topic(settings, self._topic, only_committed=self._only_committed)
        )

    def write(self, connector: str, entries: Sequence[OffsetEntry]) -> None:
        if self._producer is None:
            self.prepare()
            settings = client_settings(self._worker, "producer", subset(self._config, "producer.override."))
            self._producer = BulkProducer(settings)
        records = [(offset_key(connector, entry.partition), offset_value(entry.offset)) for entry in entries]
        try:
            self._producer.send_keyed(self._topic, records)
            if not self._producer.flush(ANSWER_SECONDS):
                raise SourceUnavailable(f"topic '{self._topic}' takes no offsets; is the broker up?")
        except BaseException:
            producer, self._producer = self._producer, None
            producer.abandon()
            raise

    def close(self) -> None:
        if self._producer is not None:
            self._producer.close()
            self._producer = None


class LayeredOffsets:
    """The connector's own topic over the worker's: what the first knows wins, both are written."""

    def __init__(self, stores: Sequence[OffsetTopic]) -> None:
        self._stores = stores

    def read(self, connector: str) -> list[OffsetEntry]:
        found: dict[bytes, OffsetEntry] = {}
        for store in reversed(self._stores):
            found |= {offset_key(connector, entry.partition): entry for entry in store.read(connector)}
        return list(found.values())

    def write(self, connector: str, entries: Sequence[OffsetEntry]) -> None:
        # Removals reach the worker's topic first: else an entry that is gone from the first would show again.
        removed = [entry for entry in entries if entry.offset is None]
        for store in reversed(self._stores[1:]):
            if removed:
                store.write(connector, removed)
        self._stores[0].write(connector, entries)
        kept = [entry for entry in entries if entry.offset is not None]
        for store in self._stores[1:]:
            if kept:
                store.write(connector, kept)

    def close(self) -> None:
        for store in self._stores:
            store.close()
