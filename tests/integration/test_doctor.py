"""`icestream doctor` against real parts: a broker, S3, a catalog, a worker; and what is away."""

from __future__ import annotations

import json
import re
import socket
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from icestream.cli import main
from icestream.cluster.service import ConnectorService
from icestream.cluster.stores.connector_store import MemoryStore
from icestream.embedded import ports
from icestream.embedded.kafka import Broker
from icestream.embedded.topics import ensure_topic
from icestream.kafka.topics import Topics
from icestream.rest.server import serve
from icestream.testing import FakeManagers

JSON = "org.apache.kafka.connect.json.JsonConverter"
STRING = "org.apache.kafka.connect.storage.StringConverter"
SECRET = "very-secret-value"
PAGE = Path(__file__).parents[2] / "docs" / "doctor.md"
Finding = dict[str, str]


@pytest.fixture
def written(tmp_path: Path) -> Callable[[Mapping[str, str], str], str]:
    def write(config: Mapping[str, str], name: str = "worker.properties") -> str:
        file = tmp_path / name
        file.write_text("".join(f"{key}={value}\n" for key, value in config.items()))
        return str(file)

    return write


def worker(bootstrap: str, **more: str) -> dict[str, str]:
    return {
        "bootstrap.servers": bootstrap,
        "listeners": f"http://127.0.0.1:{ports.free_port()}",
        "key.converter": STRING,
        "value.converter": JSON,
        "value.converter.schemas.enable": "false",
        **more,
    }


def in_cluster(tmp_path: Path, bootstrap: str, **more: str) -> dict[str, str]:
    run = uuid.uuid4().hex[:8]
    topics = {f"{kind}.storage.topic": f"{kind}-{run}" for kind in ("config", "offset", "status")}
    copies = {f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")}
    return worker(bootstrap, **{"group.id": f"group-{run}", **topics, **copies, **more})


def standalone(tmp_path: Path, bootstrap: str, **more: str) -> dict[str, str]:
    return worker(bootstrap, **{"offset.storage.file.filename": str(tmp_path / "offsets"), **more})


def examined(*arguments: str) -> tuple[int, list[Finding]]:
    result = run(*arguments, "--json")
    told = json.loads(result.stdout)
    assert told["ok"] == (result.exit_code == 0)
    return result.exit_code, told["findings"]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main.icestream, ["doctor", *arguments])


def one(findings: list[Finding], what: str) -> Finding:
    found = [finding for finding in findings if finding["what"].startswith(what)]
    assert found, f"{what} is not in {[finding['what'] for finding in findings]}"
    return found[0]


def test_a_cluster_worker_that_could_start(broker: Broker, tmp_path: Path, written: Any) -> None:
    config = in_cluster(tmp_path, broker.bootstrap)
    Topics({"bootstrap.servers": broker.bootstrap}).create(
        config["config.storage.topic"], 1, 1, {"cleanup.policy": "compact"}
    )
    code, found = examined("--worker", written(config))
    assert code == 0, [it for it in found if it["sign"] == "wrong"]
    assert "1 broker(s)" in one(found, "Kafka")["fact"]
    assert one(found, "Kafka version")["fact"].startswith("4.")
    assert one(found, "Kafka clock")["sign"] == "fine"
    assert one(found, f"topic {config['config.storage.topic']}")["sign"] == "fine"
    missing = one(found, f"topic {config['status.storage.topic']}")
    assert (missing["sign"], missing["advice"]) == (
        "notice",
        "nothing: the first worker creates it, if it may",
    )
    assert one(found, "port ")["sign"] == "fine"
    names = Topics({"bootstrap.servers": broker.bootstrap}).names()
    assert config["status.storage.topic"] not in names, "the doctor changes nothing"


def test_internal_topics_that_would_forget(broker: Broker, tmp_path: Path, written: Any) -> None:
    config = in_cluster(tmp_path, broker.bootstrap, **{"status.storage.replication.factor": "3"})
    Topics({"bootstrap.servers": broker.bootstrap}).create(config["config.storage.topic"], 3, 1)
    code, found = examined("--worker", written(config))
    assert code == 1
    facts = [one["fact"] for one in found if one["what"] == f"topic {config['config.storage.topic']}"]
    assert any("3 partitions, and configs need one" in fact for fact in facts)
    assert any("cleanup.policy=delete" in fact for fact in facts)
    too_many = one(found, f"topic {config['status.storage.topic']}")
    assert "3 copies are more than 1 broker(s) can have" in too_many["fact"]
    assert too_many["advice"] == "set 'status.storage.replication.factor=1'"


def test_nobody_at_the_address_of_kafka(tmp_path: Path, written: Any) -> None:
    config = standalone(tmp_path, f"127.0.0.1:{ports.free_port()}")
    code, found = examined("--worker", written(config), "--timeout", "8")
    assert code == 1
    kafka = one(found, "Kafka")
    assert kafka["sign"] == "wrong" and "does not answer" in kafka["fact"]
    assert "check bootstrap.servers" in kafka["advice"]


def test_an_address_that_never_answers_costs_one_deadline(tmp_path: Path, written: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        config = standalone(tmp_path, address)
        catalog = {
            "name": "sink",
            "connector.class": "IcebergSinkConnector",
            "topics": "t",
            "iceberg.tables": "db.t",
            "iceberg.catalog.type": "rest",
            "iceberg.catalog.uri": f"http://{address}",
        }
        connector = written(catalog, "sink.properties")
        code, found = examined("--worker", written(config), connector, "--timeout", "4")
    assert code == 1
    assert one(found, "Kafka")["sign"] == "wrong"
    assert one(found, "the catalog at")["sign"] == "wrong"
    assert one(found, "Python")["sign"] == "fine"


def test_a_connector_with_all_that_it_needs(
    broker: Broker, tmp_path: Path, written: Any, sqlite_catalog: dict[str, str], s3: dict[str, str]
) -> None:
    topic = f"doctor-{uuid.uuid4().hex[:8]}"
    ensure_topic(broker.bootstrap, topic)
    (tmp_path / "catalog.db").touch()
    config = {
        "name": f"sink-{topic}",
        "connector.class": "IcebergSinkConnector",
        "topics": topic,
        "iceberg.tables": "ns.t",
        "iceberg.tables.auto-create-enabled": "true",
        **sqlite_catalog,
        **s3,
        "iceberg.catalog.warehouse": "s3://warehouse/doctor",
    }
    worker_file = written(standalone(tmp_path, broker.bootstrap))
    clock = ["--clock", s3["iceberg.catalog.s3.endpoint"]]
    code, found = examined("--worker", worker_file, written(config, "sink.properties"), *clock)
    assert code == 0, [it for it in found if it["sign"] == "wrong"]
    assert one(found, f"topic {topic}")["fact"] == "3 partition(s)"
    assert one(found, f"group connect-sink-{topic}")["sign"] == "fine"
    assert one(found, "the catalog at")["sign"] == "fine"
    assert one(found, "clock of 127.0.0.1")["sign"] == "fine"

    broken = {**config, "topics": f"no-{topic}", "iceberg.catalog.warehouse": "s3://no-such-bucket/doctor"}
    result = run("--worker", worker_file, written(broken, "sink.properties"))
    assert result.exit_code == 1
    assert f"! topic no-{topic}: does not exist → create it" in result.stdout
    assert "no-such-bucket" in result.stdout
    assert s3["iceberg.catalog.s3.secret-access-key"] not in result.stdout
    assert f"no-{topic}" not in Topics({"bootstrap.servers": broker.bootstrap}).names()


def test_a_config_with_a_typo_says_so(tmp_path: Path, written: Any) -> None:
    bad = {"name": "sink", "connector.class": "IcebergSinkConnector", "topics": "t", "iceberg.tabels": "ns.t"}
    worker_file = written(standalone(tmp_path, "127.0.0.1:1"))
    result = run("--worker", worker_file, written(bad, "sink.properties"), "--timeout", "4")
    assert result.exit_code == 1
    assert "iceberg.tables" in result.stdout


def test_a_topic_that_is_missing_is_told_beside_a_typo(broker: Broker, tmp_path: Path, written: Any) -> None:
    topic = f"no-{uuid.uuid4().hex[:8]}"
    config = {"name": "sink", "connector.class": "IcebergSinkConnector", "topics": topic, "tasks.max": "x"}
    worker_file = written(standalone(tmp_path, broker.bootstrap))
    code, found = examined("--worker", worker_file, written(config, "sink.properties"))
    assert code == 1
    assert "tasks.max" in one(found, "connector sink")["fact"]
    assert one(found, f"topic {topic}")["fact"] == "does not exist"
    # Nor what is refused: its Kafka is not asked at all.
    refused = {**config, "admin.override.plugin.library.paths": "/x"}
    code, found = examined("--worker", worker_file, written(refused, "sink.properties"))
    assert code == 1
    assert not [it for it in found if it["what"].startswith("topic ")]


def test_no_secret_of_an_invalid_value_is_told_and_nothing_else_is_hidden(
    tmp_path: Path, written: Any
) -> None:
    registry = {
        "name": "sink",
        "connector.class": "IcebergSinkConnector",
        "topics": "t",
        "iceberg.tables": "ns.t",
        "tasks.max": f"pwd={SECRET}",
        "value.converter": "io.confluent.connect.avro.AvroConverter",
        "value.converter.schema.registry.url": "http://alice:hush-hush@127.0.0.1:2",
    }
    address = f"127.0.0.1:{ports.free_port()}"
    worker_file = written(standalone(tmp_path, address))
    result = run("--worker", worker_file, written(registry, "sink.properties"), "--timeout", "4")
    assert result.exit_code == 1
    assert SECRET not in result.stdout and "hush-hush" not in result.stdout
    assert "tasks.max" in result.stdout
    assert f"✗ Kafka: {address} does not answer" in result.stdout


def test_a_worker_config_that_cannot_start(tmp_path: Path, written: Any) -> None:
    config = standalone(tmp_path, "127.0.0.1:1")
    config |= {"listners": "http://:8083", "ssl.key.password": SECRET}
    result = run("--worker", written(config), "--timeout", "4")
    assert result.exit_code == 1
    assert "listeners" in result.stdout
    assert SECRET not in result.stdout


def test_a_port_that_is_taken(broker: Broker, tmp_path: Path, written: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        config = standalone(tmp_path, broker.bootstrap, listeners=f"http://127.0.0.1:{port}")
        code, found = examined("--worker", written(config))
        assert code == 1
        assert "cannot have it" in one(found, f"port {port}")["fact"]


def test_a_worker_that_runs_and_its_connector(tmp_path: Path) -> None:
    service = ConnectorService("w:1", MemoryStore(), {"key.converter": JSON, "value.converter": JSON})
    server = serve(service)
    try:
        code, found = examined("--url", server.url)
        assert code == 1
        assert "not read yet" in one(found, "worker, ready")["fact"]
        service.restore()
        service.connectors.use(managers := FakeManagers())
        service.ready()
        config = {"name": "sink", "connector.class": "IcebergSink", "topics": "t"}
        service.create("sink", {**config, "iceberg.tables": "db.t", "iceberg.catalog.type": "sql"})
        code, found = examined("--url", server.url)
        assert code == 0, [it for it in found if it["sign"] == "wrong"]
        managers.made[0].fail("the disk is full")
        _, found = examined("--url", server.url, "sink", "--timeout", "4")
        assert "the disk is full" in one(found, "connector sink, state")["fact"]
        # The converters are the worker's: who has not its file cannot say that they are missing.
        assert not [it for it in found if "value.converter" in it["fact"]]
        _, found = examined("--url", server.url, "nobody")
        assert one(found, "connector nobody")["sign"] == "wrong"
    finally:
        server.stop()
        service.close()


def test_bad_input_is_one_sentence() -> None:
    for arguments in (["no-such.json"], ["--worker", "no-such.properties"], ["--timeout", "0"]):
        assert main.run(["doctor", *arguments]) == 2


def test_no_worker_at_the_address() -> None:
    code, found = examined("--url", f"http://127.0.0.1:{ports.free_port()}")
    assert code == 1
    assert one(found, "worker http")["advice"] == "start it, or correct --url"


def test_the_page_shows_what_is_printed(
    broker: Broker, tmp_path: Path, written: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`…` stands for any text."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "catalog.db").touch()
    written(standalone(tmp_path, broker.bootstrap))
    config = {
        "name": "iceberg-sink-apilogs",
        "connector.class": "IcebergSinkConnector",
        "topics": "apilogs-of-the-page",
        "iceberg.tables": "streaming.apilogs",
        "iceberg.catalog": "lake",
        "iceberg.catalog.type": "jdbc",
        "iceberg.catalog.uri": f"jdbc:sqlite:{tmp_path}/catalog.db",
        "iceberg.catalog.warehouse": f"file://{tmp_path}",
    }
    written(config, "sink.properties")
    result = run("--worker", "worker.properties", "sink.properties")
    command = "    $ icestream doctor --worker worker.properties sink.properties\n"
    shown = PAGE.read_text().partition(command)[2].partition("\n\n")[0].splitlines()
    printed = result.stdout.splitlines()
    assert len(shown) == len(printed), result.stdout
    for expected, line in zip(shown, printed, strict=True):
        pattern = re.escape(expected.strip()).replace("…", ".*")
        assert re.fullmatch(pattern, line), f"{line!r} is not {expected!r}"
    assert result.exit_code == 1
