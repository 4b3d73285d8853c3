"""What the S3 sink makes of a topic's entry and of the environment."""

from __future__ import annotations

import pytest

from icestream.api.errors import ConfigError
from icestream.api.topics_file import TopicEntry
from icestream.cluster.configs.validation import validate_connector
from icestream.connectors.s3.topics_file import rules

SEED = TopicEntry(
    "user-events",
    "user-events",
    '{"type": "object"}',
    "production-data-lake",
    "events/user",
    "user_events",
    ("year", "month", "day"),
    2000,
    30,
    5,
)
WORKER = {"bootstrap.servers": "localhost:9092"}


def problems(config: dict[str, str]) -> list[str]:
    return [str(one) for one in validate_connector({"name": "n", **config}, WORKER).problems]


def test_the_entry_of_the_seed_with_the_environments_defaults() -> None:
    config = rules({}).connector(SEED)
    assert config == {
        "connector.class": "io.confluent.connect.s3.S3SinkConnector",
        "topics": "user-events",
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "s3.bucket.name": "production-data-lake",
        "s3.region": "us-east-1",
        "topics.dir": "events/user",
        "storage.class": "io.confluent.connect.s3.storage.S3Storage",
        "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
        "flush.size": "2000",
        "rotate.schedule.interval.ms": "30000",
        "timezone": "UTC",
        "locale": "en-US",
        "partitioner.class": "io.confluent.connect.storage.partitioner.TimeBasedPartitioner",
        "path.format": "'year'=YYYY/'month'=MM/'day'=dd",
        "partition.duration.ms": "86400000",
        "timestamp.extractor": "Record",
        "transforms": "table",
        "transforms.table.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.table.regex": ".*",
        "transforms.table.replacement": "user_events",
        "value.schema.inline": '{"type": "object"}',
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": "user-events-dlq",
        "errors.deadletterqueue.topic.replication.factor": "-1",
        "errors.deadletterqueue.context.headers.enable": "true",
        "icestream.retry.max": "5",
    }
    assert problems(config) == []


def test_an_empty_entry_is_what_the_environment_says() -> None:
    config = rules({}).connector(TopicEntry("t", "t"))
    assert (config["s3.bucket.name"], config["s3.region"]) == ("test-data-lake", "us-east-1")
    assert (config["flush.size"], config["rotate.schedule.interval.ms"]) == ("1000", "60000")
    assert config["partitioner.class"].endswith(".DefaultPartitioner")
    assert not config.keys() & {"store.url", "transforms", "errors.tolerance", "icestream.retry.max"}
    assert problems(config) == []
    environ = {
        "S3_BUCKET_NAME": "lake",
        "S3_REGION": "eu-central-1",
        "S3_ENDPOINT_URL": "http://minio:9000",
        "BATCH_SIZE": "5",
        "FLUSH_INTERVAL": "7",
    }
    config = rules(environ).connector(TopicEntry("t", "t"))
    assert (config["s3.bucket.name"], config["s3.region"]) == ("lake", "eu-central-1")
    assert config["store.url"] == "http://minio:9000"
    assert (config["flush.size"], config["rotate.schedule.interval.ms"]) == ("5", "7000")
    assert problems(config) == []


def test_the_environment_describes_a_worker() -> None:
    assert rules({}).worker["bootstrap.servers"] == "localhost:9092"
    assert rules({}).worker["group.id"] == "kafka-s3-connect-cluster"
    said = {"KAFKA_BOOTSTRAP_SERVERS": "kafka:9092", "CONNECT_GROUP_ID": "prod"}
    assert rules(said).worker["bootstrap.servers"] == "kafka:9092"
    assert rules(said).worker["group.id"] == "prod"


def test_what_is_wrong_with_the_environment() -> None:
    with pytest.raises(ConfigError) as told:
        rules({"BATCH_SIZE": "many", "FLUSH_INTERVAL": "0"})
    assert {one.key for one in told.value.problems} == {"BATCH_SIZE", "FLUSH_INTERVAL"}
    assert "environment variable BATCH_SIZE" in str(told.value)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (("year",), {"path.format": "'year'=YYYY", "partition.duration.ms": "86400000"}),
        (
            ("year", "month", "day", "hour"),
            {"path.format": "'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH", "partition.duration.ms": "3600000"},
        ),
        (("country", "city"), {"partition.field.name": "country,city"}),
    ],
)
def test_partition_columns_are_times_or_fields(columns: tuple[str, ...], expected: dict[str, str]) -> None:
    config = rules({}).connector(TopicEntry("t", "t", partition_columns=columns))
    assert expected.items() <= config.items()
    assert problems(config) == []


@pytest.mark.parametrize("columns", [("year", "country"), ("day", "month"), ("month",), ("year", "day")])
def test_other_partition_columns_are_refused(columns: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as told:
        rules({}).connector(TopicEntry("t", "t", partition_columns=columns))
    assert told.value.problems[0].key == "destination.partition-columns"


def test_a_table_may_be_called_as_it_likes() -> None:
    config = rules({}).connector(TopicEntry("t", "t", table="a$1\\b"))
    assert config["transforms.table.replacement"] == "a\\$1\\\\b"
    assert "transforms" not in rules({}).connector(TopicEntry("t", "t", table="t"))
