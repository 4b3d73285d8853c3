"""Which connectors share a circuit breaker, and their own words for how often and when to try again."""

from __future__ import annotations

import pytest

from icestream.api.connector import Retries
from icestream.plugins import find_connector

S3 = "io.confluent.connect.s3.S3SinkConnector"
DELTA = "io.icestream.connect.delta.DeltaSinkConnector"
JDBC = "io.confluent.connect.jdbc.JdbcSinkConnector"
SOURCE = "io.confluent.connect.jdbc.JdbcSourceConnector"
DEBEZIUM = "io.debezium.connector.jdbc.JdbcSinkConnector"
DATABASE = {
    "connection.url": "jdbc:postgresql://db:5432/shop?user=joe&password=s3cret",
    "connection.password": "s3cret",
    "topics": "t",
}
JSON = "io.confluent.connect.s3.format.json.JsonFormat"
BUCKET = {"s3.bucket.name": "lake"}


@pytest.mark.parametrize(
    ("name", "config", "destination"),
    [
        (S3, BUCKET, "s3://lake"),
        (S3, {**BUCKET, "store.url": "http://joe:s3cret@minio:9000/x"}, "s3://lake at minio:9000"),
        (S3, {**BUCKET, "store.url": "file:///data"}, "file:///data/lake"),
        (DELTA, {"delta.location": "s3://lake/tables"}, "s3://lake"),
        (
            DELTA,
            {"delta.location": "s3://lake/tables", "delta.storage.s3.endpoint": "http://minio:9000"},
            "s3://lake at minio:9000",
        ),
        (DELTA, {"delta.location": "/data/tables"}, "file:///data/tables"),
        (DELTA, {}, ""),
        (JDBC, DATABASE, "postgresql://db:5432/shop"),
        (DEBEZIUM, DATABASE, "postgresql://db:5432/shop"),
        (SOURCE, {**DATABASE, "mode": "bulk", "topic.prefix": "p"}, "postgresql://db:5432/shop"),
        ("FileStreamSink", {"file": "/tmp/x"}, ""),
    ],
)
def test_a_destination_is_where_it_is_and_tells_no_login(
    name: str, config: dict[str, str], destination: str
) -> None:
    assert find_connector(name).plugin.destination(config) == destination


@pytest.mark.parametrize(
    ("name", "config", "retries"),
    [
        (S3, BUCKET, Retries()),
        (
            S3,
            {**BUCKET, "format.class": JSON, "flush.size": "1", "retry.backoff.ms": "500"},
            Retries(first_seconds=0.5),
        ),
        (JDBC, DATABASE, Retries()),
        (JDBC, {**DATABASE, "max.retries": "10"}, Retries(most=10)),
        (JDBC, {**DATABASE, "max.retries": "0", "retry.backoff.ms": "3000"}, Retries(0, 3.0)),
        (DEBEZIUM, DATABASE, Retries()),
        (
            DEBEZIUM,
            {**DATABASE, "flush.max.retries": "7", "flush.retry.delay.ms": "1000"},
            Retries(7, 1.0),
        ),
    ],
)
def test_only_what_a_config_sets_counts(name: str, config: dict[str, str], retries: Retries) -> None:
    assert find_connector(name).plugin.retries(config) == retries
