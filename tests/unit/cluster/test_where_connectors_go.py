"""Where a connector may go, and that it takes no login of the worker along."""

from __future__ import annotations

import pytest

from icestream.cluster.configs.allowed_hosts import host_problems
from icestream.cluster.configs.validation import with_worker_defaults
from icestream.plugins import find_connector

ICEBERG = find_connector("IcebergSink").plugin
AVRO = "io.confluent.connect.avro.AvroConverter"
WORKER = {
    "bootstrap.servers": "kafka:9092",
    "value.converter": AVRO,
    "value.converter.schema.registry.url": "https://registry",
    "value.converter.basic.auth.credentials.source": "USER_INFO",
    "value.converter.basic.auth.user.info": "worker:s3cret",
    "value.converter.bearer.auth.token": "s3cret",
    "value.converter.schema.registry.ssl.keystore.location": "/s3cret.p12",
    "value.converter.enhanced.avro.schema.support": "true",
    "icestream.allowed.hosts": "catalog, *.example.com,10.0.0.7",
}


def test_who_names_another_registry_brings_the_login() -> None:
    effective = with_worker_defaults({"value.converter.schema.registry.url": "http://elsewhere"}, WORKER)
    assert "s3cret" not in str(effective)
    assert effective == {
        "value.converter": AVRO,
        "value.converter.schema.registry.url": "http://elsewhere",
        "value.converter.enhanced.avro.schema.support": "true",
    }


@pytest.mark.parametrize("config", [{}, {"value.converter.schema.registry.url": "https://registry"}])
def test_the_workers_own_registry_is_reached_with_its_login(config: dict[str, str]) -> None:
    assert with_worker_defaults(config, WORKER)["value.converter.basic.auth.user.info"] == "worker:s3cret"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("consumer.override.bootstrap.servers", "kafka:9092,inner:9092"),
        ("producer.override.bootstrap.servers", "PLAINTEXT://inner:9092"),
        ("iceberg.kafka.bootstrap.servers", "inner:1"),
        ("admin.override.sasl.oauthbearer.token.endpoint.url", "http://inner/token"),
        (
            "admin.override.sasl.jaas.config",
            'x required sasl.oauthbearer.token.endpoint.url="http://inner/t";',
        ),
        ("iceberg.kafka.sasl.jaas.config", 'x required oauth.token.endpoint.uri="http://inner/t";'),
        (
            "consumer.override.sasl.jaas.config",
            r'x required sasl.oauthbearer.token.endpoint.url="\150ttp:/\57inner/t";',
        ),
        ("value.converter.schema.registry.url", "https://a.example.com,http://me:pw@inner:8081"),
        ("iceberg.catalog.uri", "http://inner:8181/x"),
        ("iceberg.catalog.uri", "jdbc:postgresql://inner:5432/db"),
        ("iceberg.catalog.s3.endpoint", "http://INNER"),
        ("iceberg.catalog.oauth2-server-uri", "http://inner"),
        ("iceberg.catalog.s3.proxy-uri", "http://inner"),
    ],
)
def test_only_hosts_of_the_list_and_the_workers_own_are_reached(key: str, value: str) -> None:
    (problem,) = host_problems({key: value}, WORKER, ICEBERG)
    assert problem.key == key
    assert "leads to 'inner'" in problem.message
    without = {key: value for key, value in WORKER.items() if key != "icestream.allowed.hosts"}
    assert host_problems({key: value}, without, ICEBERG) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("iceberg.catalog.uri", "http://catalog:8181"),
        ("iceberg.catalog.uri", "jdbc:sqlite:/data/catalog.db"),
        ("iceberg.catalog.s3.endpoint", "https://minio.example.com:9000"),
        ("iceberg.catalog.s3.endpoint", "http://10.0.0.7"),
        ("value.converter.schema.registry.url", "https://registry"),
        ("consumer.override.bootstrap.servers", "kafka:9093"),
    ],
)
def test_what_is_on_the_list_is_reached(key: str, value: str) -> None:
    assert host_problems({key: value}, WORKER, ICEBERG) == []


SQL = {"iceberg.catalog.type": "jdbc", "iceberg.catalog.uri": "jdbc:sqlite:/data/catalog.db"}


@pytest.mark.parametrize(
    ("key", "value", "host"),
    [
        ("iceberg.catalog.warehouse", "hdfs://inner:8020/lake", "inner"),
        ("iceberg.catalog.warehouse", "abfss://lake@inner/x", "inner"),
        ("iceberg.catalog.warehouse", "s3://bucket/lake", "s3.amazonaws.com"),
        ("iceberg.catalog.warehouse", "gs://bucket/lake", "storage.googleapis.com"),
        ("iceberg.tables.auto-create-props.write.data.path", "hdfs://inner/lake", "inner"),
        ("iceberg.tables.write-props.write.data.path", "S3A://bucket/lake", "s3.amazonaws.com"),
    ],
)
def test_folders_and_buckets_are_at_hosts_as_well(key: str, value: str, host: str) -> None:
    (problem,) = host_problems({**SQL, key: value}, WORKER, ICEBERG)
    assert (problem.key, f"leads to '{host}'" in problem.message) == (key, True)
    allowed = {**WORKER, "icestream.allowed.hosts": host}
    assert host_problems({**SQL, key: value}, allowed, ICEBERG) == []


@pytest.mark.parametrize(
    ("config", "key", "host"),
    [
        ({}, "s3.bucket.name", "s3.us-west-2.amazonaws.com"),
        ({"s3.region": "eu-central-1"}, "s3.bucket.name", "s3.eu-central-1.amazonaws.com"),
        ({"store.url": "http://inner:9000"}, "store.url", "inner"),
    ],
)
def test_a_bucket_without_an_address_is_at_amazon(config: dict[str, str], key: str, host: str) -> None:
    s3 = find_connector("S3Sink").plugin
    (problem,) = host_problems({"s3.bucket.name": "lake", **config}, WORKER, s3)
    assert (problem.key, f"leads to '{host}'" in problem.message) == (key, True)
    assert host_problems(config, {**WORKER, "icestream.allowed.hosts": host}, s3) == []


@pytest.mark.parametrize(
    "config",
    [
        {**SQL, "iceberg.catalog.warehouse": "file:///data/lake"},
        {**SQL, "iceberg.catalog.warehouse": "/data/lake"},
        {**SQL, "iceberg.catalog.warehouse": "s3://bucket", "iceberg.catalog.s3.endpoint": "http://10.0.0.7"},
        {"iceberg.catalog.type": "rest", "iceberg.catalog.warehouse": "s3://name-to-the-catalog"},
    ],
)
def test_places_without_a_host_and_buckets_of_an_allowed_endpoint_are_reached(config: dict[str, str]) -> None:
    assert host_problems(config, WORKER, ICEBERG) == []


@pytest.mark.parametrize("key", ["iceberg.catalog.uri", "iceberg.catalog.oauth2-server-uri"])
def test_an_address_that_two_readers_cut_in_two_places_is_not_allowed(key: str) -> None:
    """To Python's urlsplit the host comes after the @, to the client it ends at the backslash."""
    assert host_problems({key: "http://inner:80\\@catalog/"}, WORKER, ICEBERG)
