"""The job of a JDBC sink in this process, without Spark: a real manager, a real broker, a real database."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from confluent_kafka import Producer

from icestream.connectors.jdbc.connections import Access, access_from, connection_to
from icestream.connectors.jdbc.dialects.base import execute, rows_of
from icestream.embedded.kafka import Broker
from icestream.embedded.topics import ensure_topic
from icestream.jobs.audits.audit import findings
from icestream.jobs.audits.audit_facts import gather
from icestream.jobs.sinks.build import sink_manager
from icestream.jobs.sinks.manager import SinkManager
from icestream.pipeline.in_worker import InWorkerRunner
from icestream.pipeline.record_path import RecordSettings
from icestream.plugins import sink_plugin
from tests.crashes.pipeline import values

CONFLUENT: Final = "io.confluent.connect.jdbc.JdbcSinkConnector"
DEBEZIUM: Final = "io.debezium.connector.jdbc.JdbcSinkConnector"
AIVEN: Final = "io.aiven.connect.jdbc.JdbcSinkConnector"
_PATIENCE: Final = 120


@dataclass
class SinkTest:
    """A topic, a table of the same name (`T` in statements), and a job between them."""

    settings: Mapping[str, str]
    broker: Broker
    name: str = field(default_factory=lambda: f"t{uuid.uuid4().hex[:10]}")
    config: dict[str, str] = field(default_factory=dict)
    manager: SinkManager | None = None
    reached: Callable[[str], None] = lambda point: None

    @property
    def access(self) -> Access:
        return access_from(self.settings)

    def sql(self, *statements: str) -> None:
        with connection_to(self.access, "prepare a test") as connection:
            for statement in statements:
                execute(connection, self._named(statement))
            connection.commit()

    def rows(self, query: str = "SELECT * FROM T ORDER BY 1") -> list[tuple[Any, ...]]:
        with connection_to(self.access, "read") as connection:
            return rows_of(connection, self._named(query))

    def _named(self, statement: str) -> str:
        return " ".join(self.name if word == "T" else word for word in statement.split(" "))

    def produce(
        self,
        *records: Any,
        topic: str = "",
        keys: Sequence[Any] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        topic = topic or self.name
        ensure_topic(self.broker.bootstrap, topic, 1)
        producer = Producer({"bootstrap.servers": self.broker.bootstrap})
        for at, value in enumerate(records):
            key = keys[at] if keys else None
            producer.produce(topic, encoded(value), encoded(key), partition=0, headers=dict(headers or {}))
        assert producer.flush(60) == 0

    def run(self, given: Mapping[str, str] | None = None) -> None:
        """Until nothing is left to read. Later runs go on with the same manager, unless keys are given."""
        if self.manager is None or given is not None:
            self._open(given or {})
        assert self.manager is not None
        until = time.monotonic() + _PATIENCE
        while True:
            pause = self.manager.tick()
            if pause and self.manager.progress.lag == 0:
                return
            assert time.monotonic() < until, self.manager.progress
            time.sleep(min(pause, 0.05))

    def _open(self, given: Mapping[str, str]) -> None:
        self.close()
        self.config = {
            "connector.class": CONFLUENT,
            "name": self.name,
            "topics": self.name,
            "tasks.max": "1",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
            "icestream.jdbc.commit.interval.ms": "0",
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": f"{self.name}-dlq",
            "errors.deadletterqueue.topic.replication.factor": "1",
            **self.settings,
            **given,
        }
        plugin = sink_plugin(self.config["connector.class"])
        assert plugin.problems(self.config) == []
        options = plugin.options(self.config)
        records = RecordSettings.of(
            self.config, needs_keys=options.needs_keys, needs_headers=options.needs_headers
        )
        runner = InWorkerRunner({"bootstrap.servers": self.broker.bootstrap}, records)
        self.manager = sink_manager(self.name, self.config, self.worker, runner, self.reached)

    @property
    def worker(self) -> dict[str, str]:
        return {"bootstrap.servers": self.broker.bootstrap}

    def dead(self) -> list[Any]:
        return [
            json.loads(one) if one else None for one in values(self.broker.bootstrap, f"{self.name}-dlq", 1)
        ]

    def problems(self) -> list[str]:
        """What `icestream verify --deep` finds."""
        return [
            str(one)
            for _, facts in gather(self.name, self.config, self.worker, deep=True)
            for one in findings(facts).problems
        ]

    def close(self) -> None:
        if self.manager is not None:
            self.manager.close()
            self.manager = None


def encoded(value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return value.encode() if isinstance(value, str) else json.dumps(value).encode()


def with_schema(fields: Mapping[str, Any], value: Mapping[str, Any]) -> dict[str, Any]:
    """A value as JsonConverter has it with its schema; a type is its name, or a whole schema."""
    held = [
        {"field": name, **(kind if isinstance(kind, dict) else {"type": kind, "optional": True})}
        for name, kind in fields.items()
    ]
    return {"schema": {"type": "struct", "fields": held, "optional": False}, "payload": value}
