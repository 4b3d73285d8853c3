"""Offsets of source connectors: where they are stored, and how they are read and changed by hand.

A standalone worker stores them in Kafka Connect's file, a distributed one in its topic. The writers of
`source_writers` store the offsets of running connectors; REST asks `SourceConnectorOffsets` while a connector
is stopped.
"""

from __future__ import annotations

import logging
import os
import struct
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Protocol

from icestream.api.config import Config, subset
from icestream.api.errors import ConfigError, PreconditionError, Problem, RetriableError, SourceUnavailable
from icestream.api.offset_admin import OffsetEntry
from icestream.api.source import SourcePlugin
from icestream.jobs.offsets.formats import entries_of, offset_key, offset_records, parsed, serialized
from icestream.kafka.bulk_producer import BulkProducer
from icestream.kafka.clients import ANSWER_SECONDS, client_settings
from icestream.kafka.offset_topic import prepare_offset_topic, read_offset_topic

_log = logging.getLogger(__name__)

_LOCKS: Final[dict[Path, threading.Lock]] = defaultdict(threading.Lock)
"""Jobs of one worker share the file: each change reads, changes and replaces it whole."""
_ALTERED: Final = "The offsets for this connector have been altered successfully"
_RESET: Final = "The offsets for this connector have been reset successfully"


class OffsetStore(Protocol):
    """The offsets of one connector. Each call asks anew, with a time limit; an offset of None removes."""

    def read(self) -> list[OffsetEntry]: ...

    def write(self, entries: Sequence[OffsetEntry]) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class OffsetLocation:
    """Where the offsets of one connector are stored, and the Kafka clients that reach them."""

    name: str
    worker: Mapping[str, str] = field(repr=False)
    config: Config = field(repr=False)

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

    @property
    def transactional_id(self) -> str:
        """That of the connector's first task, as Kafka Connect names it. All tasks share one transaction, so
        this one fences an older manager, however many tasks it had."""
        return f"{self.worker['group.id'].strip()}-{self.name}-0"

    def client(self, role: str) -> dict[str, str]:
        """Settings of a Kafka client of the connector: producer, consumer or admin."""
        return client_settings(self.worker, role, subset(self.config, f"{role}.override."))

    def store(self) -> OffsetStore:
        """What the connector's manager and REST read, and what is written outside of transactions."""
        if not self.is_distributed:
            return self._file()
        if self.topic == self.workers_topic:
            return self._own_topic()
        return LayeredOffsets(self._own_topic(), self._workers_topic())

    def transaction(self) -> BulkProducer:
        """A producer of records and offsets in transactions; it fences every older one of the connector."""
        topic = self._workers_topic() if self.topic == self.workers_topic else self._own_topic()
        topic.prepare()
        return BulkProducer(self.client("producer"), self.transactional_id)

    def send(self, producer: BulkProducer, entries: Sequence[OffsetEntry]) -> None:
        """Add offsets to the producer's transaction."""
        producer.begin()
        producer.send_keyed(self.topic, offset_records(self.name, entries))

    def tell_worker(self, entries: Sequence[OffsetEntry]) -> None:
        """After a transaction: the worker's topic follows the connector's own, which decides."""
        if self.topic == self.workers_topic:
            return
        follower = self._workers_topic()
        try:
            follower.write(entries)
        except RetriableError as error:
            _log.warning("the worker's offsets topic lags behind: %s", error, extra={"connector": self.name})
        finally:
            follower.close()

    def _file(self) -> OffsetFile:
        key = "offset.storage.file.filename"
        if not self.worker.get(key, "").strip():
            raise ConfigError(
                [Problem(key, f"'{key}' is not set in the worker's config; sources keep offsets in it")]
            )
        return OffsetFile(self.name, Path(self.worker[key].strip()))

    def _own_topic(self) -> OffsetTopic:
        return OffsetTopic(self, self.topic)

    def _workers_topic(self) -> OffsetTopic:
        return OffsetTopic(replace(self, config={}), self.workers_topic)


class OffsetFile:
    """In the file of a standalone worker, `offset.storage.file.filename`."""

    def __init__(self, connector: str, path: Path) -> None:
        self._connector = connector
        self._path = path
        self._lock = _LOCKS[path.absolute()]

    def read(self) -> list[OffsetEntry]:
        with self._lock:
            return entries_of(self._connector, self._load().items())

    def write(self, entries: Sequence[OffsetEntry]) -> None:
        with self._lock:
            stored = self._load()
            for key, value in offset_records(self._connector, entries):
                stored.pop(key, None)
                if value is not None:
                    stored[key] = value
            self._replace(serialized(stored))

    def close(self) -> None:
        pass

    def _load(self) -> dict[bytes, bytes | None]:
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise PreconditionError(
                f"cannot read {self._path}: {error.strerror}; check the owner and mode of "
                "offset.storage.file.filename"
            ) from error
        try:
            # Kafka Connect takes an empty file for a new one.
            return parsed(content) if content else {}
        except (ValueError, IndexError, struct.error) as error:
            raise PreconditionError(
                f"{self._path} does not hold offsets of Kafka Connect ({error}); move it, or name another "
                "offset.storage.file.filename"
            ) from error

    def _replace(self, content: bytes) -> None:
        temporary = self._path.with_name(f".{self._path.name}.tmp")
        try:
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self._path)
        except OSError as error:
            raise PreconditionError(
                f"cannot write {self._path}: {error.strerror}; free or allow it, or name another "
                "offset.storage.file.filename"
            ) from error


class OffsetTopic:
    """In a topic of Kafka, which is created when it is missing."""

    def __init__(self, location: OffsetLocation, topic: str) -> None:
        self._location = location
        self._topic = topic
        self._producer: BulkProducer | None = None

    def prepare(self) -> None:
        worker = self._location.worker
        prepare_offset_topic(
            self._location.client("admin"),
            self._topic,
            int(worker.get("offset.storage.partitions", "25")),
            int(worker.get("offset.storage.replication.factor", "3")),
        )

    def read(self) -> list[OffsetEntry]:
        settings = self._location.client("consumer")
        stored = read_offset_topic(settings, self._topic, only_committed=self._location.is_exactly_once)
        return entries_of(self._location.name, stored)

    def write(self, entries: Sequence[OffsetEntry]) -> None:
        if self._producer is None:
            self.prepare()
            self._producer = BulkProducer(self._location.client("producer"))
        try:
            self._producer.send_keyed(self._topic, offset_records(self._location.name, entries))
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
    """In the connector's own topic and the worker's: what the first knows wins, both are written."""

    def __init__(self, own: OffsetTopic, workers: OffsetTopic) -> None:
        self._own = own
        self._workers = workers

    def read(self) -> list[OffsetEntry]:
        both = (*self._workers.read(), *self._own.read())
        return list({offset_key("", entry.partition): entry for entry in both}.values())

    def write(self, entries: Sequence[OffsetEntry]) -> None:
        # Removals reach the worker's topic first: else an entry that is gone from the first would show again.
        if removed := [entry for entry in entries if entry.offset is None]:
            self._workers.write(removed)
        self._own.write(entries)
        if kept := [entry for entry in entries if entry.offset is not None]:
            self._workers.write(kept)

    def close(self) -> None:
        self._own.close()
        self._workers.close()


class SourceConnectorOffsets:
    """The `OffsetAdmin` of sources. Called by the service, while the connector does not run."""

    def __init__(self, worker: Mapping[str, str], plugin: SourcePlugin) -> None:
        self._worker = worker
        self._plugin = plugin

    def read(self, name: str, config: Config) -> list[OffsetEntry]:
        store = OffsetLocation(name, self._worker, config).store()
        try:
            return store.read()
        finally:
            store.close()

    def positions(self, name: str, config: Config, entries: Sequence[OffsetEntry] = ()) -> None:
        """Only the plugin can read the offsets of a source; entries are refused as `alter` would."""
        self._plugin.check_offsets(config, entries)

    def alter(self, name: str, config: Config, entries: Sequence[OffsetEntry]) -> str:
        self._plugin.check_offsets(config, entries)
        _write(OffsetLocation(name, self._worker, config), entries)
        return _ALTERED

    def reset(self, name: str, config: Config) -> str:
        known = [OffsetEntry(entry.partition, None) for entry in self.read(name, config)]
        self._plugin.check_offsets(config, known)
        if known:
            _write(OffsetLocation(name, self._worker, config), known)
        return _RESET


def _write(location: OffsetLocation, entries: Sequence[OffsetEntry]) -> None:
    if not location.is_exactly_once:
        store = location.store()
        try:
            store.write(entries)
        finally:
            store.close()
        return
    # With the connector's own transactional id: a manager that is still alive somewhere is fenced by it.
    producer = location.transaction()
    try:
        location.send(producer, entries)
        producer.commit()
        location.tell_worker(entries)
    except BaseException:
        producer.abandon()
        raise
    producer.close()
