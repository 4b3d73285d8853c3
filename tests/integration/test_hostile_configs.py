"""One worker, attacked with connector configs through REST: `validate` opens what they name for real.

After each attack the worker answers, and nothing has been loaded, run, created or sent elsewhere.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

PROGRAM = """
import sys
from pathlib import Path
from icestream import logs
from icestream.cli.standalone import StandaloneWorker
from icestream.cli.worker_process import DataPlane, run_until_told
from icestream.cluster.configs.properties import read_properties
from icestream.cluster.settings.worker_config import parse_standalone
from icestream.jobs.probes import probe_connector
from icestream.testing import FakeManagers

logs.configure()
config = parse_standalone(read_properties(Path(sys.argv[1])))
# The real check, which waits a little less for a Kafka that is not there.
plane = DataPlane(FakeManagers, lambda connector: probe_connector(connector, config.raw, 3.0))
worker = StandaloneWorker(config, [], plane)
print(worker.url, flush=True)
run_until_told(worker)
"""
JSON = "org.apache.kafka.connect.json.JsonConverter"


@dataclass
class Attacked:
    url: str
    folder: Path

    def config(self, **more: str) -> dict[str, str]:
        return {
            "name": "attack",
            "connector.class": "IcebergSink",
            "topics": "t",
            "iceberg.tables": "ns.t",
            "iceberg.catalog.type": "sql",
            "iceberg.catalog.uri": f"jdbc:sqlite:{self.folder}/catalog.db",
            "iceberg.catalog.warehouse": f"file://{self.folder}/warehouse",
            **more,
        }

    def validate(self, config: dict[str, str]) -> dict[str, list[str]]:
        """The errors by key."""
        answer = httpx.put(
            f"{self.url}/connector-plugins/{config['connector.class']}/config/validate",
            json=config,
            timeout=60,
        )
        assert answer.status_code == 200, answer.text
        values = [one["value"] for one in answer.json()["configs"]]
        return {value["name"]: value["errors"] for value in values if value["errors"]}

    def files(self) -> set[str]:
        return {str(path) for path in self.folder.rglob("*")}


def _started(folder: Path, **settings: str) -> Iterator[Attacked]:
    file = folder / "worker.properties"
    given: dict[str, Any] = {
        "bootstrap.servers": "127.0.0.1:1",
        "listeners": "http://127.0.0.1:0",
        "key.converter": JSON,
        "value.converter": JSON,
        "value.converter.schemas.enable": "false",
        "offset.storage.file.filename": folder / "offsets",
        "icestream.database.folders": str(folder),
        **settings,
    }
    file.write_text("".join(f"{key}={value}\n" for key, value in given.items()))
    log = folder.parent / f"{folder.name}.log"
    with log.open("w") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(file)], stdout=subprocess.PIPE, stderr=stderr, text=True
        )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url, log.read_text()
        yield Attacked(url, folder)
    finally:
        process.terminate()
        process.communicate(timeout=60)


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    yield from _started(tmp_path_factory.mktemp("attacked"))


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    """A worker that lets connectors override nothing."""
    policy = {"connector.client.config.override.policy": "None"}
    yield from _started(tmp_path_factory.mktemp("strict"), **policy)


@pytest.fixture(autouse=True)
def alive(worker: Attacked) -> Iterator[None]:
    yield
    assert httpx.get(f"{worker.url}/connectors", timeout=30).status_code == 200


def test_a_config_runs_no_command(worker: Attacked, tmp_path: Path) -> None:
    """`subprocess.getoutput` takes the names of the properties for its command line."""
    command = {f"iceberg.catalog.touch {tmp_path}/ran #": ""}
    hostile = {**command, **worker.config(**{"iceberg.catalog.py-io-impl": "subprocess.getoutput"})}
    errors = worker.validate(hostile)
    assert "iceberg.catalog.py-io-impl" in errors
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("key", ["py-catalog-impl", "s3.retry-strategy-impl"])
def test_a_config_names_no_class(worker: Attacked, key: str) -> None:
    full = f"iceberg.catalog.{key}"
    (errors,) = worker.validate(worker.config(**{full: "os.abort"}))[full]
    assert "names no code" in errors


def test_a_write_property_names_no_class_and_has_a_value_that_can_be(worker: Attacked) -> None:
    prefix = "iceberg.tables.write-props."
    bad = {
        f"{prefix}write.py-location-provider.impl": "os.abort",
        f"{prefix}write.parquet.compression-codec": "rar",
        f"{prefix}write.target-file-size-bytes": "-1",
        f"{prefix}write.metadata.metrics.default": "truncate(0)",
    }
    assert worker.validate(worker.config(**bad)).keys() >= bad.keys()


def test_a_client_loads_no_library(worker: Attacked, strict: Attacked) -> None:
    key = "consumer.override.plugin.library.paths"
    hostile = {key: "/no/such/library"}
    (told,) = worker.validate(worker.config(**hostile))[key]
    assert "not among the settings that a connector may override" in told
    (told,) = strict.validate(strict.config(**hostile))[key]
    assert told.startswith("The 'None' policy does not allow 'plugin.library.paths'")


def test_no_pattern_stops_the_worker(worker: Attacked) -> None:
    letters = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "a" * 200}
    config = worker.config(**{"topics.regex": "(a+)+b"}, **letters)
    config.pop("topics")
    (told,) = worker.validate(config)["topics.regex"]
    assert "Kafka at 127.0.0.1:1 does not answer" in told  # and no word about the pattern
    for pattern in ("a{99999999999}", "(" * 9_000, "[" * 9_000):
        assert "Invalid regex" in worker.validate({**config, "topics.regex": pattern})["topics.regex"][0]


def test_no_number_of_tasks_stops_the_worker(worker: Attacked) -> None:
    config = worker.config(**{"tasks.max": "2147483647"})
    assert "more than this worker allows" in worker.validate(config)["tasks.max"][0]
    answer = httpx.post(f"{worker.url}/connectors", json={"name": "attack", "config": config}, timeout=60)
    assert answer.status_code == 400
    assert httpx.get(f"{worker.url}/connectors", timeout=30).json() == []


def test_validate_creates_nothing(worker: Attacked) -> None:
    before = worker.files()
    errors = worker.validate(worker.config())
    assert "there is no database" in errors["iceberg.catalog.uri"][0]
    assert worker.files() == before


class Inner(BaseHTTPRequestHandler):
    """A host that only the worker reaches, with things to tell."""

    def do_GET(self) -> None:
        body = json.dumps(
            {"message": "inner-secret", "error": {"message": "inner-secret", "type": "inner-secret"}}
        )
        if "xml" in self.path:
            body = "<Error><Code>inner-secret</Code><Message>inner-secret</Message></Error>"
        self.send_response(403 if "config" in self.path else 500)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    do_HEAD = do_PUT = do_POST = do_GET

    def log_message(self, *given: Any) -> None:
        pass


@pytest.fixture
def inner() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Inner) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_what_an_inner_host_answers_is_not_told(worker: Attacked, inner: str) -> None:
    registry = {
        "value.converter": "io.confluent.connect.avro.AvroConverter",
        "value.converter.schema.registry.url": inner,
    }
    rest = {"iceberg.catalog.type": "rest", "iceberg.catalog.uri": inner}
    store = {"iceberg.catalog.warehouse": "s3://b/w", "iceberg.catalog.s3.endpoint": inner}
    keys = {"iceberg.catalog.s3.access-key-id": "a", "iceberg.catalog.s3.secret-access-key": "b"}
    for hostile in ({**registry, **rest}, {**store, **keys, "iceberg.catalog.s3.region": "us-east-1"}):
        errors = worker.validate(worker.config(**hostile))
        assert errors
        assert "inner-secret" not in str(errors)


def test_no_file_of_the_worker_is_read(worker: Attacked) -> None:
    config = {"name": "f", "connector.class": "FileStreamSource", "topic": "t", "file": "/dev/zero"}
    answer = httpx.post(f"{worker.url}/connectors", json={"name": "f", "config": config}, timeout=60)
    assert answer.status_code == 400
    assert "is switched off" in answer.json()["message"]


# -- S3, Delta and JDBC --

S3 = {
    "name": "attack",
    "connector.class": "io.confluent.connect.s3.S3SinkConnector",
    "topics": "t",
    "s3.bucket.name": "bucket",
    "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
    "flush.size": "3",
    "store.url": "http://127.0.0.1:1",
    "aws.access.key.id": "a",
    "aws.secret.access.key": "hush",
}
ROLE = {
    "s3.credentials.provider.class": "io.confluent.connect.s3.auth.AwsAssumeRoleCredentialsProvider",
    "s3.credentials.provider.sts.role.arn": "arn:aws:iam::123456789012:role/x",
}
DELTA = {
    "name": "attack",
    "connector.class": "io.icestream.connect.delta.DeltaSinkConnector",
    "topics": "t",
    "delta.tables": "t",
    "delta.location": "s3://bucket/lake",
}
JDBC = {
    "name": "attack",
    "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
    "topics": "t",
    "auto.create": "true",
}
SOURCE = {
    "name": "attack",
    "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector",
    "mode": "bulk",
    "topic.prefix": "t",
}


@pytest.fixture(scope="module")
def walled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    """A worker whose connectors reach few hosts."""
    hosts = {"icestream.allowed.hosts": "s3.amazonaws.com,s3.us-west-2.amazonaws.com,127.0.0.1"}
    yield from _started(tmp_path_factory.mktemp("walled"), **hosts)


@pytest.mark.parametrize(
    ("key", "config"),
    [
        ("s3.bucket.name", {**S3, "store.url": "", "s3.region": "cn-north-1"}),
        ("s3.credentials.provider.sts.region", {**S3, **ROLE}),
        ("delta.storage.s3.region", {**DELTA, "delta.storage.s3.region": "evil.com:1/"}),
        ("delta.storage.s3.endpoint", {**DELTA, "delta.storage.s3.endpoint": "http://127.0.0.1@evil.com"}),
        ("delta.location", {**DELTA, "delta.location": "s3://evil.com:1/x"}),
        ("connection.url", {**JDBC, "connection.url": "jdbc:postgresql://127.0.0.1,evil.com/db"}),
        ("connection.url", {**SOURCE, "connection.url": "jdbc:mysql://evil.com/db"}),
    ],
)
def test_no_host_is_reached_by_another_way(walled: Attacked, key: str, config: dict[str, str]) -> None:
    assert key in walled.validate(config)


@pytest.mark.parametrize(
    ("key", "config"),
    [
        ("filename.offset.zero.pad.width", {**S3, "filename.offset.zero.pad.width": "2147483647"}),
        ("timezone", {**S3, "timezone": "../../etc/passwd", "rotate.schedule.interval.ms": "1"}),
        ("store.url", {**S3, "store.url": "http://["}),
        ("store.url", {**S3, "store.url": "file:///x\0"}),
        ("s3.proxy.url", {**S3, "s3.proxy.url": "http://["}),
        ("aws.access.key.id", {**S3, "aws.access.key.id": "a\r\nX-Header: b"}),
        ("delta.location", {**DELTA, "delta.location": "s3://["}),
        ("delta.storage.s3.endpoint", {**DELTA, "delta.storage.s3.endpoint": "u:hush@h"}),
        ("delta.storage.s3.endpoint", {**DELTA, "delta.storage.s3.endpoint": "http://u:hush@h"}),
        ("connection.url", {**JDBC, "connection.url": "jdbc:mysql://[/db"}),
        ("connection.url", {**JDBC, "connection.url": "jdbc:postgresql://h/db?connectTimeout=x"}),
    ],
)
def test_strange_values_are_told_by_their_keys(worker: Attacked, key: str, config: dict[str, str]) -> None:
    errors = worker.validate(config)
    assert key in errors
    assert "hush" not in str(errors)


def test_absurd_times_and_tries_keep_nobody(worker: Attacked) -> None:
    longest = str(2**63 - 1)
    absurd = {
        "rotate.schedule.interval.ms": longest,
        "icestream.s3.commit.interval.ms": longest,
        "retry.backoff.ms": longest,
        "s3.part.retries": "2147483647",
    }
    (told,) = worker.validate({**S3, **absurd, "timezone": "UTC"})["store.url"]
    assert "Could not connect" in told


def test_a_certificate_that_is_a_pipe_is_not_waited_for(worker: Attacked, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    url = f"jdbc:mysql://127.0.0.1:1/db?sslMode=VERIFY_CA&serverSslCert={pipe}"
    for config in (JDBC, SOURCE):
        (told,) = worker.validate({**config, "connection.url": url})["connection.url"]
        assert "is not a regular file" in told


def test_validate_creates_no_sqlite_database(worker: Attacked) -> None:
    before = worker.files()
    url = {"connection.url": f"jdbc:sqlite:{worker.folder}/new.db"}
    worker.validate({**JDBC, **url})
    assert "there is no database" in worker.validate({**SOURCE, **url})["connection.url"][0]
    assert worker.files() == before


def test_what_an_inner_store_answers_is_not_told(worker: Attacked, inner: str) -> None:
    errors = worker.validate({**S3, "store.url": f"{inner}/xml"})
    assert "store.url" in errors
    assert "inner-secret" not in str(errors)
