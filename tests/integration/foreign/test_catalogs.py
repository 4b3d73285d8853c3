"""A connector through each kind of catalog, and Spark, which finds its tables there: a real PostgreSQL, a
real MariaDB, a Hive metastore, Iceberg's own REST server with S3, and Glue and DynamoDB as moto has them."""

import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyiceberg import types as ty
from pyiceberg.catalog import Catalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform

from icestream.api.errors import SinkUnavailable
from icestream.connectors.iceberg.catalogs.java_catalogs import java_catalog
from icestream.connectors.iceberg.catalogs.opening import open_catalog
from icestream.embedded import ports
from icestream.embedded.kafka import Broker
from icestream.jobs.probes import probe_connector
from tests.catalog_examples import example
from tests.integration.foreign.catalog_servers import PASSWORD
from tests.running import RunningConnector, StartConnector

pytestmark = pytest.mark.network

Produce = Callable[[str, Sequence[Mapping[str, Any]]], None]
ON_PAGE = {"postgresql": "PostgreSQL", "mariadb": "MySQL and MariaDB", "hive": "Hive"}
IN_AWS = {"glue": "Glue", "dynamodb": "DynamoDB"}
Drained = Callable[[RunningConnector, int], None]


@pytest.fixture
def opened(catalog: dict[str, str]) -> Iterator[Catalog]:
    with open_catalog(catalog) as its_own:
        yield its_own


@pytest.fixture(params=["postgresql", "postgresql on s3", "mariadb", "hive", "rest", "glue", "dynamodb"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """As the page about catalogs has it, with the addresses and logins of here."""
    name = {"iceberg.catalog": f"own_{uuid.uuid4().hex[:8]}"}
    if request.param == "rest":
        return {**request.getfixturevalue("rest"), **name}
    if request.param in ("glue", "dynamodb"):
        s3 = request.getfixturevalue("s3")
        shown = example(IN_AWS[request.param], warehouse=f"s3://warehouse/{request.param}")
        login = {
            f"iceberg.catalog.{request.param}.endpoint": s3["iceberg.catalog.s3.endpoint"],
            "iceberg.catalog.client.access-key-id": s3["iceberg.catalog.s3.access-key-id"],
            "iceberg.catalog.client.secret-access-key": s3["iceberg.catalog.s3.secret-access-key"],
        }
        return {**shown, **login, **s3, **name}
    kind, _, place = request.param.partition(" on ")
    server = request.getfixturevalue(kind)
    login = {key.removeprefix("iceberg.catalog."): value for key, value in server.items()}
    here = {key: login[key] for key in ("uri", "jdbc.user", "jdbc.password") if key in login}
    here["warehouse"] = "s3://warehouse/postgresql" if place else f"file://{tmp_path}/warehouse"
    shown = example(ON_PAGE[kind], **{key.replace(".", "_"): value for key, value in here.items()})
    return {**shown, **(request.getfixturevalue("s3") if place else {}), **name}


def test_a_connector_lands_every_record_once_and_spark_finds_them_there(
    catalog: dict[str, str],
    opened: Catalog,
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
