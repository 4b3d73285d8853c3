"""`validate` opens what a config names: each wrong or silent thing is an error on its own key, in time."""

from __future__ import annotations

import socket
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from icestream.api.errors import Problem
from icestream.connectors.iceberg.catalogs.opening import open_catalog
from icestream.embedded import kafka, ports
from icestream.jobs.probes import probe_connector
from tests.conftest import SECRET
from tests.integration.foreign.catalog_servers import PASSWORD

pytestmark = pytest.mark.network
SHORT = 3.0
"""Seconds, where something hangs."""


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that takes connections and never says a word."""
    with socket.create_server((ports.HOST, 0), backlog=50) as listener:
        yield f"{ports.HOST}:{listener.getsockname()[1]}"


@pytest.fixture
def worker(broker: kafka.Broker) -> dict[str, str]:
    return {"bootstrap.servers": broker.bootstrap}


@pytest.fixture
def config(sqlite_catalog: dict[str, str]) -> dict[str, str]:
    """A connector with a table, and topics that do not exist yet."""
    settings = {
        "name": "checked",
        "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
        "topics": "not-there-yet",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": "not-there-either",
        "iceberg.tables": "ns.t",
        **sqlite_catalog,
    }
    opened = open_catalog(settings)
    opened.create_namespace("ns")
    opened.create_table("ns.t", Schema(NestedField(1, "id", LongType())))
    return settings


def keys(problems: list[Problem]) -> list[str]:
    return [problem.key for problem in problems]


def test_what_is_there_is_no_problem_nor_are_topics_that_may_come(
    config: dict[str, str], worker: dict[str, str]
) -> None:
    assert probe_connector(config, worker) == []


def test_a_missing_table_is_named(config: dict[str, str], worker: dict[str, str]) -> None:
    problems = probe_connector({**config, "iceberg.tables": "ns.t,ns.absent,no.where"}, worker)
    assert keys(problems) == ["iceberg.tables"] * 2
    assert "Table 'ns.absent' is not in catalog" in problems[0].message


def test_a_connector_that_names_no_catalog_is_not_looked_at() -> None:
    config = {"connector.class": "FileStreamSink", "topics": "t", "file": "/no/such/folder/file"}
    assert probe_connector(config, {"bootstrap.servers": "127.0.0.1:1"}) == []


# -- catalogs --


@pytest.mark.parametrize(
    ("kind", "uri"),
    [
        ("jdbc", "jdbc:postgresql://somebody:s3cret@{}/db"),
        ("jdbc", "jdbc:mysql://somebody:s3cret@{}/db"),
        ("rest", "http://{}/"),
        ("hive", "thrift://{}"),
    ],
)
def test_a_silent_catalog_is_an_error_on_its_address_in_time(
    kind: str, uri: str, silent: str, config: dict[str, str], worker: dict[str, str]
) -> None:
    wrong = {**config, "iceberg.catalog.type": kind, "iceberg.catalog.uri": uri.format(silent)}
    problems = probe_connector(wrong, worker, SHORT)
    assert problems == [
        Problem(
            "iceberg.catalog.uri",
            f"iceberg.catalog.uri: the catalog at {silent} did not answer in 3 s; "
            "check address, login and network.",
        )
    ]


@pytest.mark.parametrize(
    ("kind", "uri"),
    [
        ("rest", "http://127.0.0.1:1"),
        ("jdbc", "jdbc:postgresql://127.0.0.1:1/db"),
        ("jdbc", "jdbc:mariadb://127.0.0.1:1/db"),
        ("jdbc", "jdbc:sqlite:/no/such/folder/catalog.db"),
        ("hive", "thrift://127.0.0.1:1"),
    ],
)
def test_a_wrong_address_is_an_error_on_it(
    kind: str, uri: str, config: dict[str, str], worker: dict[str, str]
) -> None:
    wrong = {**config, "iceberg.catalog.type": kind, "iceberg.catalog.uri": uri}
    (problem,) = probe_connector(wrong, worker)
    assert problem.key == "iceberg.catalog.uri"
    advice = "create it: an empty file is enough" if "sqlite" in uri else "check the address, and that the"
    assert f"; {advice}" in problem.message
    assert "\n" not in problem.message


@pytest.mark.parametrize("kind", ["glue", "dynamodb"])
def test_catalogs_of_aws_are_asked_where_they_are(
    kind: str, silent: str, s3: dict[str, str], config: dict[str, str], worker: dict[str, str]
) -> None:
    aws = {
        **config,
        **s3,
        "iceberg.catalog.type": kind,
        "iceberg.catalog.warehouse": "s3://warehouse/checked",
        f"iceberg.catalog.{kind}.endpoint": s3["iceberg.catalog.s3.endpoint"],
        "iceberg.catalog.dynamodb.table-name": "nobody-made-this",
        "iceberg.catalog.client.access-key-id": "some-key",
        "iceberg.catalog.client.secret-access-key": SECRET,
    }
    (missing,) = probe_connector(aws, worker)
    assert missing.key == ("iceberg.tables" if kind == "glue" else "iceberg.catalog.dynamodb.table-name")
    (away,) = probe_connector({**aws, f"iceberg.catalog.{kind}.endpoint": "http://127.0.0.1:1"}, worker)
    assert away.key == f"iceberg.catalog.{kind}.endpoint"
    (quiet,) = probe_connector({**aws, f"iceberg.catalog.{kind}.endpoint": f"http://{silent}"}, worker, SHORT)
    assert quiet.key == f"iceberg.catalog.{kind}.endpoint"
    assert f"at {silent} did not answer in 3 s" in quiet.message
    (half,) = probe_connector({**aws, "iceberg.catalog.client.secret-access-key": ""}, worker)
    assert half.key == "iceberg.catalog.client.secret-access-key"


def test_a_catalog_of_aws_for_whom_nobody_is_names_the_missing_key(
    config: dict[str, str], worker: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    nobody = {**config, "iceberg.catalog.type": "glue", "iceberg.catalog.client.region": "us-east-1"}
    (problem,) = probe_connector(nobody, worker)
    assert problem.key == "iceberg.catalog.client.access-key-id"


def test_wrong_keys_of_glue_are_an_error_on_them(
    strict_s3: dict[str, str], config: dict[str, str], worker: dict[str, str]
) -> None:
    wrong = {
        **config,
        "iceberg.catalog.type": "glue",
        "iceberg.catalog.glue.endpoint": strict_s3["iceberg.catalog.s3.endpoint"],
        "iceberg.catalog.glue.access-key-id": "unknown",
        "iceberg.catalog.glue.secret-access-key": "wrong-s3cret",
        "iceberg.catalog.client.region": "us-east-1",
    }
    (problem,) = probe_connector(wrong, worker)
    assert problem.key == "iceberg.catalog.glue.access-key-id"
    assert "wrong-s3cret" not in problem.message


@pytest.mark.parametrize("database", ["postgresql", "mariadb"])
def test_a_wrong_password_is_an_error_on_it_and_not_shown(
    database: str,
    request: pytest.FixtureRequest,
    config: dict[str, str],
    worker: dict[str, str],
) -> None:
    server = request.getfixturevalue(database)
    there = {key: value for key, value in config.items() if key != "iceberg.catalog.type"} | server
    assert keys(probe_connector(there, worker)) == ["iceberg.tables"]
    wrong = {**there, "iceberg.catalog.jdbc.password": "wrong-s3cret"}
    (problem,) = probe_connector(wrong, worker)
    assert problem.key == "iceberg.catalog.jdbc.password"
    refusal = "password authentication failed" if database == "postgresql" else "Access denied for user"
    assert refusal in problem.message
    assert "wrong-s3cret" not in problem.message and PASSWORD not in problem.message


def test_a_server_that_is_no_catalog_is_one_sentence(
    s3: dict[str, str], config: dict[str, str], worker: dict[str, str]
) -> None:
    wrong = {
        **config,
        "iceberg.catalog.type": "rest",
        "iceberg.catalog.uri": s3["iceberg.catalog.s3.endpoint"],
    }
    (problem,) = probe_connector(wrong, worker)
    assert problem.key == "iceberg.catalog.uri"
    assert "\n" not in problem.message


# -- warehouses --


def on_s3(config: dict[str, str], s3: dict[str, str], bucket: str = "warehouse") -> dict[str, str]:
    return {**config, **s3, "iceberg.catalog.warehouse": f"s3://{bucket}/checked"}


def test_a_bucket_that_is_there_is_no_problem_and_a_wrong_one_is_named(
    s3: dict[str, str], config: dict[str, str], worker: dict[str, str]
) -> None:
    assert probe_connector(on_s3(config, s3), worker) == []
    (problem,) = probe_connector(on_s3(config, s3, "nobody-made-this"), worker)
    assert problem.key == "iceberg.catalog.warehouse"
    assert "bucket 'nobody-made-this' does not exist" in problem.message


def test_a_silent_object_store_is_an_error_on_its_endpoint(
    silent: str, s3: dict[str, str], config: dict[str, str], worker: dict[str, str]
) -> None:
    wrong = on_s3(config, {**s3, "iceberg.catalog.s3.endpoint": f"http://{silent}"})
    (problem,) = probe_connector(wrong, worker, SHORT)
    assert problem.key == "iceberg.catalog.s3.endpoint"
    assert f"S3 at {silent} did not answer in 3 s" in problem.message


def test_an_object_store_that_is_away_is_an_error_on_its_endpoint(
    s3: dict[str, str], config: dict[str, str], worker: dict[str, str]
) -> None:
    wrong = on_s3(config, {**s3, "iceberg.catalog.s3.endpoint": "http://127.0.0.1:1"})
    (problem,) = probe_connector(wrong, worker)
    assert problem.key == "iceberg.catalog.s3.endpoint"


@pytest.fixture
def strict_s3(s3: dict[str, str]) -> Iterator[dict[str, str]]:
    """The same server, which now knows no access key."""
    url = f"{s3['iceberg.catalog.s3.endpoint']}/moto-api/reset-auth"

    def checks_from(request: bytes) -> None:
        headers = {"Content-Type": "text/plain"}
        with urllib.request.urlopen(urllib.request.Request(url, request, headers), timeout=60):
            pass

    checks_from(b"0")
    yield s3
    checks_from(b"inf")


def test_wrong_keys_of_an_object_store_are_an_error_on_them(
    strict_s3: dict[str, str], config: dict[str, str], worker: dict[str, str]
) -> None:
    (problem,) = probe_connector(on_s3(config, strict_s3), worker)
    assert problem.key == "iceberg.catalog.s3.access-key-id"
    assert SECRET not in problem.message


def test_a_warehouse_below_a_file_is_refused(
    tmp_path: Path, config: dict[str, str], worker: dict[str, str]
) -> None:
    (tmp_path / "file").touch()
    problems = probe_connector(
        {**config, "iceberg.catalog.warehouse": f"file://{tmp_path}/file/warehouse"}, worker
    )
    assert keys(problems) == ["iceberg.catalog.warehouse"]
    assert f"'{tmp_path}/file' is not a folder" in problems[0].message


def test_everything_wrong_at_once_is_told_at_once(
    silent: str, s3: dict[str, str], config: dict[str, str]
) -> None:
    wrong = {
        **on_s3(config, {**s3, "iceberg.catalog.s3.endpoint": f"http://{silent}"}),
        "iceberg.catalog.uri": f"jdbc:postgresql://{silent}/db",
    }
    problems = probe_connector(wrong, {"bootstrap.servers": silent}, SHORT)
    assert keys(problems) == ["iceberg.catalog.uri", "iceberg.catalog.s3.endpoint", "topics"]


# -- Kafka --


def test_an_override_that_leads_nowhere_is_an_error_on_it(
    silent: str, config: dict[str, str], worker: dict[str, str]
) -> None:
    wrong = {**config, "producer.override.bootstrap.servers": silent}
    (problem,) = probe_connector(wrong, worker, SHORT)
    assert problem.key == "producer.override.bootstrap.servers"
    assert f"Kafka at {silent} does not answer" in problem.message


def test_a_dead_letter_queue_that_cannot_be_is_an_error_on_it(
    config: dict[str, str], worker: dict[str, str]
) -> None:
    (problem,) = probe_connector({**config, "errors.deadletterqueue.topic.name": "no topic!"}, worker)
    assert problem.key == "errors.deadletterqueue.topic.name"


def test_a_login_that_kafka_refuses_is_an_error_on_it(
    secure_settings: dict[str, str], config: dict[str, str]
) -> None:
    login = secure_settings["sasl.jaas.config"]
    assert probe_connector(config, secure_settings) == []
    wrong = {**config, "consumer.override.sasl.jaas.config": login.replace("alice-secret", "not-hers")}
    (problem,) = probe_connector(wrong, secure_settings)
    assert problem.key == "consumer.override.sasl.jaas.config"
    assert "Kafka refuses the login" in problem.message
    assert "not-hers" not in problem.message
