"""Keys of commits, groups and clients through a real worker: what each does to tables, topics and groups."""

from __future__ import annotations

import datetime as dt

from confluent_kafka import Consumer, Producer, TopicPartition

from icestream.api.offsets import Partition
from icestream.kafka.topics import Topics
from tests.integration.worker_world import SCHEMA, World, eventually

LONG_AGO_MS = 1_600_000_000_000


def send(world: World, topic: str, ids: range, partition: int, timestamp_ms: int = 0) -> None:
    producer = Producer({"bootstrap.servers": world.bootstrap})
    for number in ids:
        producer.produce(topic, b'{"id": %d}' % number, partition=partition, timestamp=timestamp_ms)
    assert producer.flush(60) == 0


def summary(world: World, table: str) -> dict[str, str]:
    current = world.catalog.load_table(table).current_snapshot()
    assert current is not None and current.summary is not None
    return current.summary.additional_properties


def valid_through(world: World, table: str) -> dt.datetime:
    return dt.datetime.fromisoformat(summary(world, table)["kafka.connect.valid-through-ts"])


def test_keys_of_the_coordinator(world: World) -> None:
    world.topic("keyed")
    world.catalog.create_table("ns.keyed_too", SCHEMA)
    send(world, "keyed", range(20), 0)
    port = world.bootstrap.rpartition(":")[2]
    more = {
        "iceberg.tables": "ns.keyed,ns.keyed_too",
        "iceberg.control.topic": "control-of-keyed",
        "iceberg.control.commit.threads": "2",
        "iceberg.control.commit.timeout-ms": "120000",
        "iceberg.control.commit.max-consecutive-failures": "3",
        "iceberg.connect.group-id": "group-of-keyed",
        "iceberg.coordinator.transactional.prefix": "team.",
        "iceberg.kafka.bootstrap.servers": f"localhost:{port}",
        "iceberg.kafka.compression.type": "zstd",
    }
    config = {**world.config("keyed"), **more}
    assert not world.client.validate("IcebergSinkConnector", config).get("warnings")
    world.client.create("keyed", config)
    eventually(lambda: world.ids("keyed") == world.ids("keyed_too") == list(range(20)))
    topics = Topics({"bootstrap.servers": world.bootstrap})
    zeroth = Partition("keyed", 0)
    eventually(lambda: zeroth in topics.group_offsets("group-of-keyed", [zeroth]))
    assert topics.group_offsets("group-of-keyed", [zeroth])[zeroth].next == 20
    assert not topics.group_offsets("connect-keyed", [zeroth])
    control = Partition("control-of-keyed", 0)
    assert topics.ends([control])[control] > 0

    # Whoever takes the transactional id fences the job: so it is this one.
    rival = Producer(
        {"bootstrap.servers": world.bootstrap, "transactional.id": "team.group-of-keyed-coordinator"}
    )
    rival.init_transactions(60)
    send(world, "keyed", range(20, 25), 1)
    eventually(lambda: "another manager" in str(world.client.status("keyed")))
    world.client.delete("keyed")


def test_a_group_of_tabulars_sink_says_where_to_go_on(world: World) -> None:
    world.topic("taken")
    send(world, "taken", range(10), 0)
    left = Consumer({"bootstrap.servers": world.bootstrap, "group.id": "cg-control-taken"})
    left.commit(offsets=[TopicPartition("taken", 0, 6)], asynchronous=False)
    left.close()
    config = world.config("taken")
    config["connector.class"] = "io.tabular.iceberg.connect.IcebergSinkConnector"
    config["iceberg.control.group-id"] = "cg-control-taken"
    world.client.create("taken", config)
    eventually(lambda: world.ids("taken") == [6, 7, 8, 9])
    world.client.delete("taken")


def test_a_full_batch_is_committed_before_the_interval_is_over(world: World) -> None:
    limits = {"rows": {"icestream.commit.rows": "20"}, "bytes": {"icestream.commit.bytes": "400"}}
    for name, limit in limits.items():
        world.topic(f"full_{name}")
        send(world, f"full_{name}", range(5), 0)
        hourly = {"iceberg.control.commit.interval-ms": "3600000"}
        world.client.create(f"full_{name}", {**world.config(f"full_{name}"), **hourly, **limit})
        # The first batch starts at once; what comes then would wait for an hour.
        eventually(lambda name=name: len(world.ids(f"full_{name}")) == 5)
        send(world, f"full_{name}", range(5, 50), 1)
        eventually(lambda name=name: world.ids(f"full_{name}")[:25] == list(range(25)))
        world.client.delete(f"full_{name}")


def test_the_time_up_to_which_topics_are_read_is_told_while_partitions_are_idle(world: World) -> None:
    world.topic("timed")
    send(world, "timed", range(5), 0, LONG_AGO_MS)
    world.client.create("timed", world.config("timed"))
    eventually(lambda: len(world.ids("timed")) == 5)
    # Two partitions have had no record at all, and hold nobody back.
    assert valid_through(world, "ns.timed").timestamp() * 1000 == LONG_AGO_MS
    send(world, "timed", range(5, 10), 1, LONG_AGO_MS + 60_000)
    eventually(lambda: len(world.ids("timed")) == 10)
    assert valid_through(world, "ns.timed").timestamp() * 1000 == LONG_AGO_MS + 60_000
    world.client.restart("timed")
    send(world, "timed", range(10, 15), 1, LONG_AGO_MS + 120_000)
    eventually(lambda: len(world.ids("timed")) == 15)
    assert valid_through(world, "ns.timed").timestamp() * 1000 == LONG_AGO_MS + 120_000
    world.client.delete("timed")


def test_the_time_up_to_which_topics_are_read_may_be_the_brokers(world: World) -> None:
    topics = Topics({"bootstrap.servers": world.bootstrap})
    topics.create("appended", 3, 1, {"message.timestamp.type": "LogAppendTime"})
    world.topic("appended")
    before = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=1)
    send(world, "appended", range(5), 0, LONG_AGO_MS)
    world.client.create("appended", world.config("appended"))
    eventually(lambda: len(world.ids("appended")) == 5)
    assert before <= valid_through(world, "ns.appended") <= dt.datetime.now(dt.UTC)
    world.client.delete("appended")
