"""A real worker process, a real broker, a real table: what a user does through REST and the command line."""

from __future__ import annotations

import json
import signal
import time

import psutil  # type: ignore[import-untyped]
import pytest

from icestream.api.errors import ConfigError, IcestreamError
from icestream.embedded import kafka
from icestream.kafka.topics import Topics
from tests.integration.worker_world import World, eventually, start_worker
from tests.kit.leaks import shared


def test_records_land_and_new_fields_become_columns(world: World) -> None:
    world.topic("evolving")
    world.produce("evolving", *({"id": number, "text": "x"} for number in range(300)))
    world.client.create(
        "evolving", world.config("evolving", **{"iceberg.tables.evolve-schema-enabled": "true"})
    )
    eventually(lambda: len(world.ids("evolving")) == 300)
    world.produce("evolving", {"id": 300, "fresh": {"deep": [1, 2]}, "text": None}, {"id": 301})
    eventually(lambda: len(world.ids("evolving")) == 302)
    assert world.ids("evolving") == list(range(302))
    rows = world.catalog.load_table("ns.evolving").scan("id == 300").to_arrow().to_pylist()
    assert rows == [{"id": 300, "text": None, "fresh": {"deep": [1, 2]}}]

    verified = world.command(
        "verify", "evolving", "--deep", "--url", world.url, "--bootstrap-servers", world.bootstrap
    )
    assert verified.returncode == 0, verified.stderr
    assert "302 in the topic, 302 in the table. None missing, none twice." in verified.stdout


def test_every_line_of_the_log_is_an_object_with_worker_connector_and_batch(world: World) -> None:
    name = 'logged] ERROR "x"\u2028|batch-1] forged'
    world.topic("logged")
    world.produce("logged", *({"id": number} for number in range(3)))
    world.client.create(name, world.config("logged"))
    eventually(lambda: len(world.ids("logged")) == 3)

    def lines() -> list[dict[str, str]]:
        return [json.loads(line) for line in (world.folder / "worker.log").read_bytes().splitlines()]

    eventually(lambda: any("committed" in line["message"] for line in lines() if line["connector"] == name))
    fields = ["time", "level", "logger", "message", "worker", "connector", "batch"]
    told = lines()
    assert [line for line in told if list(line)[:7] != fields] == []
    address = world.url.removeprefix("http://")
    mine = [line for line in told if line["connector"] == name]
    assert {line["worker"] for line in mine} == {address}
    batches = {line["batch"] for line in mine if line["message"].startswith(("planned ", "committed "))}
    assert len(batches) == 1 and "" not in batches
    # What the JVM itself says when it starts, which nobody of ours has written.
    assert any(line["logger"] == "stderr" for line in told)
    world.client.delete(name)


def test_a_table_is_created_from_its_records_and_grows_with_them(world: World) -> None:
    Topics({"bootstrap.servers": world.bootstrap}).create("created", 3, 1)
    # Of a catalog only what is in it is created: a config makes no new databases.
    assert not world.catalog.namespace_exists("lake")
    options = {
        "iceberg.tables": "lake.raw.created",
        "iceberg.tables.auto-create-enabled": "true",
        "iceberg.tables.auto-create-props.owner": "them",
        "iceberg.tables.evolve-schema-enabled": "true",
        "iceberg.tables.schema-force-optional": "true",
        "iceberg.tables.schema-case-insensitive": "true",
        "iceberg.tables.default-id-columns": "id",
        "iceberg.table.lake.raw.created.partition-by": "truncate(text, 1), bucket(id, 2)",
        "icestream.iceberg.kafka-columns": "partition,offset",
    }
    wrong = {**options, "iceberg.table.lake.raw.created.partition-by": "week(text)"}
    with pytest.raises(
        IcestreamError, match=r"'week\(text\)' for iceberg.table.lake.raw.created.partition-by"
    ):
        world.client.create("created", world.config("created", **wrong))
    world.client.create("created", world.config("created", **options))
    world.produce("created", *({"id": number, "text": f"{number % 3}x"} for number in range(300)))
    eventually(lambda: world.catalog.table_exists("lake.raw.created"))

    def ids() -> list[int]:
        rows = world.catalog.load_table("lake.raw.created").scan(selected_fields=("id",)).to_arrow()
        return sorted(rows["id"].to_pylist())

    eventually(lambda: len(ids()) == 300)
    world.produce("created", {"ID": 300, "Text": None, "fresh": {"deep": [1, 2.5]}})
    eventually(lambda: len(ids()) == 301)
    assert ids() == list(range(301))
    table = world.catalog.load_table("lake.raw.created")
    (row,) = table.scan("id == 300").to_arrow().to_pylist()
    assert (row["text"], row["fresh"]) == (None, {"deep": [1, 2.5]})
    offsets = table.scan().to_arrow().select(["_kafka_metadata_partition", "_kafka_metadata_offset"])
    assert len(offsets.group_by(offsets.column_names).aggregate([])) == 301
    assert table.properties["owner"] == "them"
    assert table.schema().identifier_field_names() == {"id"}
    assert [field.name for field in table.spec().fields] == ["text_trunc", "id_bucket"]
    verified = world.command(
        "verify", "created", "--deep", "--url", world.url, "--bootstrap-servers", world.bootstrap
    )
    assert verified.returncode == 0, verified.stderr
    assert "301 in the topic, 301 in the table. None missing, none twice." in verified.stdout


def test_pause_resume_stop_restart_and_delete(world: World) -> None:
    world.topic("steered")
    client = world.client
    client.create("steered", world.config("steered"))
    client.pause("steered")
    eventually(lambda: client.status("steered").state == "PAUSED")
    world.produce("steered", *({"id": number} for number in range(30)))
    time.sleep(1)
    assert world.ids("steered") == []
    client.resume("steered")
    eventually(lambda: len(world.ids("steered")) == 30)
    client.stop("steered")
    eventually(lambda: client.status("steered").state == "STOPPED")
    world.produce("steered", *({"id": number} for number in range(30, 60)))
    client.resume("steered")
    client.restart("steered")
    eventually(lambda: len(world.ids("steered")) == 60)
    client.delete("steered")
    assert "steered" not in client.names()
    client.create("steered", world.config("steered"))
    world.produce("steered", {"id": 60})
    eventually(lambda: len(world.ids("steered")) == 61)
    assert world.ids("steered") == list(range(61))


def test_idle_connectors_share_clients_and_wake_for_a_record(world: World) -> None:
    names = [f"idle{number}" for number in range(12)]
    for name in names:
        world.topic(name)
        world.client.create(name, world.config(name))
    # Each had six of its own, and fourteen threads; what is left is the worker's, whatever their number.
    eventually(lambda: connections_to_kafka(world) < len(names))
    world.produce("idle7", {"id": 1}, {"id": 2})
    eventually(lambda: world.ids("idle7") == [1, 2])
    world.produce("idle7", {"id": 3})
    eventually(lambda: world.ids("idle7") == [1, 2, 3])
    for name in names:
        world.client.delete(name)


def connections_to_kafka(world: World) -> int:
    port = int(world.bootstrap.rpartition(":")[2])
    connections = psutil.Process(world.worker.pid).net_connections(kind="tcp")
    return sum(1 for one in connections if one.raddr and one.raddr.port == port)


def test_a_bad_record_fails_the_connector_after_what_precedes_it_has_landed(world: World) -> None:
    world.topic("strict")
    world.produce("strict", {"id": 0}, {"id": 1}, {"id": 2}, {"id": 3}, b'{"id":', {"id": 5})
    world.client.create("strict", world.config("strict"))
    eventually(lambda: world.client.status("strict").state == "FAILED")
    status = world.client.status("strict")
    trace = status.trace or status.tasks[0].trace or ""
    assert "topic 'strict', partition 1, offset 1: Converting byte[] to Kafka Connect data failed" in trace
    assert world.ids("strict") == [0, 1, 2, 3, 5]


def test_bad_records_go_to_the_dead_letter_queue(world: World) -> None:
    world.topic("tolerant")
    world.produce("tolerant", {"id": 0}, b"no JSON", {"text": "no id"}, {"id": "x"}, {"id": 4})
    config = world.config(
        "tolerant",
        errors__tolerance="all",
        errors__deadletterqueue__topic__name="tolerant-dead",
        errors__deadletterqueue__context__headers__enable="true",
    )
    world.client.create("tolerant", config)
    eventually(lambda: world.ids("tolerant") == [0, 4])
    verified = world.command(
        "verify", "tolerant", "--deep", "--url", world.url, "--bootstrap-servers", world.bootstrap
    )
    assert "5 in the topic, 2 in the table, 3 in the dead letter queue." in verified.stdout, verified.stderr
    assert verified.returncode == 0


def test_verify_tells_which_offsets_are_missing(world: World) -> None:
    world.topic("robbed")
    world.produce("robbed", *({"id": number} for number in range(9)))
    world.client.create("robbed", world.config("robbed"))
    eventually(lambda: len(world.ids("robbed")) == 9)
    world.client.stop("robbed")
    world.catalog.load_table("ns.robbed").delete("id >= 0")
    verified = world.command(
        "verify", "robbed", "--deep", "--url", world.url, "--bootstrap-servers", world.bootstrap
    )
    assert verified.returncode == 1
    assert "robbed-0: offsets missing from the table: 0..2" in verified.stderr


def test_a_misspelt_key_is_refused_with_a_suggestion(world: World) -> None:
    world.topic("typo")
    with pytest.raises((ConfigError, IcestreamError), match=r"did you mean .iceberg\.tables"):
        world.client.create("typo", {**world.config("typo"), "iceberg.tabels": "ns.typo"})
    assert "typo" not in world.client.names()


def test_a_table_that_does_not_exist_is_refused(world: World) -> None:
    with pytest.raises(IcestreamError, match=r"Table 'ns\.nowhere' is not in catalog"):
        world.client.create("nowhere", {**world.config("evolving"), "iceberg.tables": "ns.nowhere"})


def test_the_live_table_and_sql_ask_the_worker(world: World) -> None:
    world.topic("shown")
    world.produce("shown", *({"id": number} for number in range(30)))
    world.client.create("shown", world.config("shown"))
    eventually(lambda: len(world.ids("shown")) == 30)
    shown = world.command("connectors", "--url", world.url)
    assert shown.returncode == 0
    (line,) = [line for line in shown.stdout.splitlines() if line.startswith("shown ")]
    assert "RUNNING" in line
    asked = world.command("sql", "SELECT count(*) AS n FROM ns.shown", "--url", world.url, "-o", "json")
    assert asked.returncode == 0, asked.stderr
    assert json.loads(asked.stdout)["rows"] == [{"n": 30}]


def test_a_connector_outlives_a_broker_that_is_away_for_a_while(world: World) -> None:
    world.topic("patient")
    world.client.create("patient", world.config("patient"))
    world.produce("patient", *({"id": number} for number in range(30)))
    eventually(lambda: len(world.ids("patient")) == 30)
    kafka.kill(world.folder / "kafka")
    # Longer than any request to Kafka may take.
    eventually(lambda: "patient" in told_of_trouble(world), 240)
    assert world.client.status("patient").state == "RUNNING"
    with shared():
        kafka.start(world.folder / "kafka", die_with_parent=True)
    world.produce("patient", *({"id": number} for number in range(30, 60)))
    eventually(lambda: len(world.ids("patient")) == 60, 240)
    assert world.ids("patient") == list(range(60))
    eventually(lambda: "patient" not in told_of_trouble(world))


def told_of_trouble(world: World) -> list[str]:
    return [view.name for view in world.client.overview() if view.progress and view.progress.warnings]


def test_connectors_survive_a_worker_that_was_killed(world: World) -> None:
    world.topic("lasting")
    world.client.create("lasting", world.config("lasting"))
    world.produce("lasting", *({"id": number} for number in range(30)))
    eventually(lambda: len(world.ids("lasting")) == 30)
    world.worker.send(signal.SIGKILL)
    assert world.worker.wait(60)
    world.produce("lasting", *({"id": number} for number in range(30, 60)))
    port = int(world.url.rpartition(":")[2])
    with shared():
        world.worker = start_worker(world.folder, world.bootstrap, port, world.actuator)
    eventually(lambda: len(world.ids("lasting")) == 60, 240)
    assert world.ids("lasting") == list(range(60))


def test_a_pattern_reads_every_topic_that_matches_also_those_that_come_later(world: World) -> None:
    world.topic("many_a")
    config = {**world.config("many_a"), "topics.regex": "many_.*"}
    del config["topics"]
    world.client.create("many", config)
    world.produce("many_a", *({"id": number} for number in range(10)))
    eventually(lambda: len(world.ids("many_a")) == 10)
    Topics({"bootstrap.servers": world.bootstrap}).create("many_b", 2, 1)
    world.produce("many_b", {"id": 10}, {"id": 11})
    eventually(lambda: len(world.ids("many_a")) == 12)


def test_a_connector_that_begins_at_the_end_takes_only_what_comes_after(world: World) -> None:
    world.topic("late")
    world.produce("late", *({"id": number} for number in range(10)))
    world.client.create("late", world.config("late", consumer__override__auto__offset__reset="latest"))
    eventually(lambda: world.client.overview() != [] and lag_is_known(world, "late"))
    world.produce("late", *({"id": number} for number in range(10, 20)))
    eventually(lambda: len(world.ids("late")) == 10)
    assert world.ids("late") == list(range(10, 20))


def lag_is_known(world: World, name: str) -> bool:
    return any(
        view.name == name and view.progress is not None and view.progress.lag is not None
        for view in world.client.overview()
    )
