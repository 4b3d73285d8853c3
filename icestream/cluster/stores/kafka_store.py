"""The connectors of a cluster, in Kafka Connect's config topic. Used by the service of a distributed worker.

Every worker follows the topic; only the leader writes, in transactions that fence a leader from before.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from icestream.api.errors import ConfigError, Fenced, IcestreamError, NotReadyError, Problem
from icestream.api.offsets import NOTHING
from icestream.cluster.stores.connector_store import StoredConnector, StoreListener, TargetState
from icestream.cluster.stores.internal_records import (
    ConnectorConfigured,
    LoggerSet,
    Record,
    RestartAsked,
    TargetSet,
    config_event,
    connector_records,
    logger_record,
    removal_records,
    restart_record,
    target_record,
    task_records,
)
from icestream.kafka.log import LogRecord, TopicLog
from icestream.kafka.transactions import Outgoing, Transactions

_MOST_BYTES: Final = 1_000_000
"""A broker's default limit for a record, less what Kafka adds."""

TasksOf = Callable[[str, StoredConnector], Sequence[Mapping[str, str]]]
"""The configs of a connector's tasks, which Kafka Connect keeps beside the connector."""


class KafkaStore:
    """A `ConnectorStore`. What is written is visible here before `put` returns."""

    def __init__(self, settings: Mapping[str, str], topic: str, group: str, tasks_of: TasksOf) -> None:
        self._settings = dict(settings)
        self._topic = topic
        self._group = group
        self._tasks_of = tasks_of
        self._listener: StoreListener | None = None
        self._configs: dict[str, Mapping[str, str]] = {}
        self._versions: dict[str, str] = {}
        """The offset of the record that has the config: every worker reads the same."""
        self._targets: dict[str, TargetState] = {}
        self._restarts: dict[str, int] = {}
        self._connectors: dict[str, StoredConnector] = {}
        self._writing = threading.Lock()
        self._writer: Transactions | None = None
        self._is_live = False
        self._log = TopicLog(settings, topic, self._take)

    def start(self) -> None:
        """Read all that is there."""
        self._log.start()
        self._log.read_to_end()
        self._is_live = True

    def lead(self) -> None:
        """Become the only one who writes, and see what the one before wrote last."""
        with self._writing:
            self._close_writer()
            # The same id as Kafka Connect's leader takes: workers of both kinds fence each other.
            self._writer = Transactions(self._settings, f"connect-cluster-{self._group}", self._group)
        self._log.read_to_end()

    @property
    def can_write(self) -> bool:
        """False after a write that failed, too: whoever leads must call `lead` again."""
        return self._writer is not None

    def follow(self) -> None:
        """Write no more."""
        with self._writing:
            self._close_writer()

    # ConnectorStore

    def load(self) -> dict[str, StoredConnector]:
        return dict(self._connectors)

    def put(self, name: str, connector: StoredConnector) -> None:
        records = self._records(name, connector)
        if any(len(key) + len(value or b"") > _MOST_BYTES for key, value in records):
            message = (
                f"the config of connector '{name[:100]}' is larger than {_MOST_BYTES:,} bytes, the most that "
                "a record of the config topic takes; make it smaller"
            )
            raise ConfigError([Problem("name", message)])
        self._write(records)

    def remove(self, name: str) -> None:
        if name in self._connectors:
            self._write(removal_records(name))

    def set_logger(self, namespace: str, level: str) -> None:
        self._write([logger_record(namespace, level)])

    def listen(self, listener: StoreListener) -> None:
        self._listener = listener

    def close(self) -> None:
        self.follow()
        self._log.close()

    # How

    def _records(self, name: str, connector: StoredConnector) -> list[Record]:
        """What must be written to get from what is known to what is asked for."""
        old = self._connectors.get(name)
        records: list[Record] = []
        # Before the config: whoever reads a new connector must know whether it starts.
        if connector.target is not (old.target if old else TargetState.STARTED):
            records.append(target_record(name, connector.target))
        tasks = self._tasks_of(name, connector)
        if old is None or dict(old.config) != dict(connector.config):
            records += connector_records(name, connector.config, tasks)
        elif len(tasks) != len(self._tasks_of(name, old)):
            records += task_records(name, tasks)
        if old is not None and connector.restarts > old.restarts:
            records.append(restart_record(name, include_tasks=True, only_failed=False))
        return records

    def _write(self, records: Sequence[Record]) -> None:
        with self._writing:
            if self._writer is None:
                raise NotReadyError("This worker no longer leads the group; try again")
            try:
                messages = [Outgoing(self._topic, key, value) for key, value in records]
                written = self._writer.write(messages, NOTHING, "")
            except Fenced:
                self._close_writer()
                raise NotReadyError("Another worker leads the group by now; try again") from None
            except IcestreamError:
                # Its transaction is still open; opening the writer anew ends it.
                self._close_writer()
                raise
        self._log.read_past(written)

    def _close_writer(self) -> None:
        if self._writer is not None:
            writer, self._writer = self._writer, None
            writer.close()

    def _take(self, record: LogRecord) -> None:
        event = config_event(record.key, record.value)
        match event:
            case ConnectorConfigured(name, None):
                self._configs.pop(name, None)
                self._versions.pop(name, None)
                self._restarts.pop(name, None)
            case ConnectorConfigured(name, config) if config is not None:
                self._configs[name] = config
                self._versions[name] = str(record.offset)
            case TargetSet(name, None):
                self._targets.pop(name, None)
            case TargetSet(name, target) if target is not None:
                self._targets[name] = target
            case RestartAsked(name):
                # What was asked of workers before us has been done, or died with them.
                if self._is_live:
                    self._restarts[name] = self._restarts.get(name, 0) + 1
            case LoggerSet(namespace, level):
                if self._listener and self._is_live:
                    self._listener.logger_changed(namespace, level)
                return
            case _:
                return
        self._refresh_one(event.name)

    def _refresh_one(self, name: str) -> None:
        connectors = dict(self._connectors)
        if name in self._configs:
            target = self._targets.get(name, TargetState.STARTED)
            restarts = self._restarts.get(name, 0)
            connectors[name] = StoredConnector(self._configs[name], target, restarts, self._versions[name])
        else:
            connectors.pop(name, None)
        old, new = self._connectors.get(name), connectors.get(name)
        # A worker of Java writes the same config anew: it has another version then, on every worker.
        is_same = old == new and (old is None or new is None or old.version == new.version)
        self._connectors = connectors
        if is_same:
            return
        if self._listener:
            self._listener.connector_changed(name)
