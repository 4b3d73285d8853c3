"""A large first table: all rows once, page by page, in memory that does not grow with it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import psycopg2
import pytest
from confluent_kafka import Consumer, TopicPartition

from icestream.connectors.jdbc.source import table_reader
from icestream.embedded.kafka import Broker
from icestream.kafka.topics import Topics
from tests.crashes.processes import wait_for
from tests.crashes.test_sources import SourceProcess
from tests.databases import Server
from tests.long_form import sized

_MOST_MB = 1500


@pytest.mark.parametrize("rows", sized(150_000, 10_000_000))
def test_a_large_table_is_read_in_bounded_memory(
    broker: Broker, postgresql: Server, tmp_path: Path, rows: int
) -> None:
    table = f"large_{rows}"
    connection = psycopg2.connect(postgresql.address, user=postgresql.user, password=postgresql.password)
    connection.autocommit = True
    connection.cursor().execute(
        f"CREATE TABLE {table} AS SELECT i::bigint AS id, 'name ' || i AS name, i % 97 AS a, i / "
        "3.0::float8 AS b, "
        "(i % 1000)::numeric(12, 2) AS c, i % 2 = 0 AS d, date '2024-01-01' + i % 365 AS e, "
        f"now() AS f, md5(i::text) AS g, NULL::int AS h FROM generate_series(1, {rows}) i"
    )
    connection.cursor().execute(f"ALTER TABLE {table} ADD PRIMARY KEY (id)")
    connection.close()
    Topics({"bootstrap.servers": broker.bootstrap}).create(table, 1, 1)
    config = {
        **postgresql.settings,
        "connector.class": "JdbcSource",
        "mode": "incrementing",
        "incrementing.column.name": "id",
        "table.whitelist": table,
        "topic.prefix": "",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "producer.override.compression.type": "lz4",
    }
    worker = {
        "bootstrap.servers": broker.bootstrap,
        "group.id": "large",
        "offset.storage.topic": "large-offsets",
        "offset.storage.replication.factor": "1",
        "exactly.once.source.support": "enabled",
    }
    process = SourceProcess(tmp_path, table, config, worker)
    try:
        numbers = _numbers(broker, table, rows, process)
        status = Path(f"/proc/{_job(process)}/status").read_text()
    finally:
        process.kill()
    assert np.array_equal(numbers, np.arange(1, rows + 1))
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", status)
    assert int(peak) < _MOST_MB * 1024
    # The long form takes many pages.
    assert rows < 1_000_000 or rows > 10 * table_reader.PAGE_ROWS


def _job(process: SourceProcess) -> int:
    """The process itself, and not one that only waits for it."""
    import psutil

    started = psutil.Process(process.process.pid)
    return max((started, *started.children(recursive=True)), key=lambda one: one.memory_info().rss).pid


def _numbers(broker: Broker, topic: str, rows: int, process: SourceProcess) -> np.ndarray:  # type: ignore[type-arg]
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "large", "isolation.level": "read_committed"}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[int] = []

    def more() -> bool | None:
        for message in consumer.consume(50_000, 1):
            assert message.error() is None
            value = message.value() or b""
            found.append(int(value[6 : value.index(b",")]))
        return True if len(found) >= rows else None

    try:
        wait_for(more, 3000, lambda: f"{len(found)} of {rows}\n{process.text[-3000:]}")
    finally:
        consumer.close()
    return np.array(found)
