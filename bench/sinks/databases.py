"""The JDBC connectors between Kafka and a PostgreSQL: how long a topic or a table takes to get across.

The clock runs from the creation of the connector (the start of the loop) to the last row; then it is checked.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.machine import Foreign
from bench.profile import thread_times
from bench.sinks import rows
from bench.sinks.running import Running, exactly_once, running_ours, running_peer
from bench.sinks.servers import Database, running_postgresql
from bench.worker import RunFailed
from icestream.embedded import kafka

PARTITIONS: Final = 3
_LOOK_S: Final = 0.25
_PATIENCE_S: Final = 180.0
_BATCH_SIZE: Final = 3000
_TABLE: Final = "accounts"
_JSON: Final = "org.apache.kafka.connect.json.JsonConverter"


@dataclass(frozen=True)
class DrainOptions:
    records: int
    """That go into the database."""
    rows: int
    """That come out of it."""
    profile: bool = False


@dataclass(frozen=True)
class DrainRun:
    case: str
    side: str
    rows: int
    seconds: float
    cpu_seconds: float
    peak_memory_mb: float
    foreign_share: float

    @property
    def rate(self) -> float:
        return self.rows / self.seconds

    @property
    def cpu_per_million(self) -> float:
        return self.cpu_seconds * 1e6 / self.rows


def run(case: str, side: str, folder: Path, broker: kafka.Broker, options: DrainOptions) -> DrainRun:
    with running_postgresql() as database:
        if case == "source":
            return _source(side, folder, broker, database, options)
        return _sink(case, side, folder, broker, database, options)


def _sink(
    case: str, side: str, folder: Path, broker: kafka.Broker, database: Database, options: DrainOptions
) -> DrainRun:
    upserts = case == "upsert"
    topic = f"rows-{case}"
    _produce(broker.bootstrap, topic, options.records)
    database.run(rows.create_table(_TABLE, key="id" if upserts else ""))
    if upserts:
        database.run(rows.half_filled(_TABLE, options.records))
        database.run(f'VACUUM ANALYZE "{_TABLE}"')
    given = {
        "bootstrap": broker.bootstrap,
        "topic": topic,
        "dsn": database.dsn,
        "table": _TABLE,
        "upserts": upserts,
        "batch_size": _BATCH_SIZE,
    }
    config = {
        "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
        "topics": topic,
        "tasks.max": str(PARTITIONS),
        "table.name.format": _TABLE,
        "insert.mode": "upsert" if upserts else "insert",
        "pk.mode": "record_value" if upserts else "none",
        **({"pk.fields": "id"} if upserts else {}),
        "batch.size": str(_BATCH_SIZE),
        "value.converter": _JSON,
        "value.converter.schemas.enable": "true",
        **database.connector,
    }

    def there() -> int:
        (count,) = database.run(f'SELECT count(*) FROM "{_TABLE}" WHERE version >= 0')
        return int(count)

    with _side(side, folder, broker, config, "to_table", given) as running:
        run_ = _timed(case, side, running, broker, database, there, options.records, options)
    found = database.run(f'SELECT count(*), count(DISTINCT id), sum(version) FROM "{_TABLE}"')
    if found != (options.records, options.records, sum(range(options.records))):
        raise RunFailed(f"the table does not have each of {options.records:,} rows once; void")
    return run_


def _source(
    side: str, folder: Path, broker: kafka.Broker, database: Database, options: DrainOptions
) -> DrainRun:
    from icestream.embedded.topics import ensure_topic

    topic = f"pg-{_TABLE}"
    ensure_topic(broker.bootstrap, topic, PARTITIONS)
    database.run(rows.create_table(_TABLE, key="id"))
    database.run(rows.filled(_TABLE, options.rows))
    database.run(f'VACUUM ANALYZE "{_TABLE}"')
    given = {
        "bootstrap": broker.bootstrap,
        "topic": topic,
        "dsn": database.dsn,
        "table": _TABLE,
    }
    config = {
        "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector",
        "tasks.max": "1",
        "mode": "incrementing",
        "incrementing.column.name": "id",
        "table.whitelist": _TABLE,
        "topic.prefix": "pg-",
        "poll.interval.ms": "1000",
        "value.converter": _JSON,
        "value.converter.schemas.enable": "false",
        **database.connector,
    }
    ends = _Ends(broker.bootstrap, topic)
    with _side(side, folder, broker, config, "from_table", given) as running:
        run_ = _timed(
            "source", side, running, broker, database, ends.records, options.rows, options, at_rest=True
        )
    found = ends.counted()
    if found != options.rows:
        raise RunFailed(f"the topic has {found:,} records for {options.rows:,} rows; it counts for nothing")
    return run_


@contextmanager
def _side(
    side: str,
    folder: Path,
    broker: kafka.Broker,
    config: Mapping[str, str],
    loop: str,
    given: Mapping[str, Any],
) -> Iterator[Running]:
    if side == "peer":
        with running_peer(folder, loop, given) as running:
            yield running
    else:
        worker = exactly_once() if loop == "from_table" else None
        with running_ours(folder, broker.bootstrap, config, worker) as running:
            yield running


def _timed(
    case: str,
    side: str,
    running: Running,
    broker: kafka.Broker,
    database: Database,
    there: Callable[[], int],
    wanted: int,
    options: DrainOptions,
    *,
    at_rest: bool = False,
) -> DrainRun:
    """`at_rest`: what `there` counts may include more than rows; then the end is when it stays the same."""
    running.meter.mark()
    foreign = Foreign([broker.pid, database.pid])
    began = moved = time.monotonic()
    running.begin()
    found = 0
    while True:
        now_there, now = there(), time.monotonic()
        if now_there != found:
            found, moved = now_there, now
        if found >= wanted and (not at_rest or now - moved > 3.0):
            break
        if now - moved > _PATIENCE_S:
            raise RunFailed(f"{case}, {side}: {found:,} of {wanted:,}, and none more for {_PATIENCE_S:.0f} s")
        running.check()
        time.sleep(_LOOK_S)
    usage = running.meter.read()
    if options.profile:
        for line in thread_times(running.meter.living())[:25]:
            print(f"{line.cpu_seconds:8.1f} s  {line.process}  {line.thread} x{line.threads}")
    return DrainRun(
        case=case,
        side=side,
        rows=wanted,
        seconds=round(moved - began, 2),
        cpu_seconds=round(usage.cpu_seconds, 1),
        peak_memory_mb=round(usage.peak_memory_bytes / 2**20),
        foreign_share=round(foreign.share(usage.cpu_seconds), 3),
    )


def _produce(bootstrap: str, topic: str, count: int) -> None:
    from confluent_kafka import Producer

    from icestream.embedded.topics import ensure_topic

    ensure_topic(bootstrap, topic, PARTITIONS)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "compression.type": "lz4"})
    for number, value in enumerate(rows.records(count)):
        producer.produce(topic, value, partition=number % PARTITIONS)
        if number % 10_000 == 0:
            producer.flush()
    producer.flush()


class _Ends:
    """How much a topic holds, by its ends: markers of transactions and aborted records count as well."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        from confluent_kafka import Consumer, TopicPartition

        self._bootstrap, self._topic = bootstrap, topic
        self._partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "ends"})

    def records(self) -> int:
        return sum(self._consumer.get_watermark_offsets(one, timeout=30)[1] for one in self._partitions)

    def counted(self) -> int:
        """Those that a reader of committed records gets."""
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "count",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
            }
        )
        consumer.assign([TopicPartition(self._topic, number, 0) for number in range(PARTITIONS)])
        count = ended = 0
        while ended < PARTITIONS:
            for message in consumer.consume(10_000, timeout=10):
                ended += message.error() is not None
                count += message.error() is None
        consumer.close()
        return count
