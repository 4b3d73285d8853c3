"""What `validate` says of the keys that decide names, folders and formats."""

from __future__ import annotations

import pytest

from icestream.connectors.s3.plugin import S3SinkPlugin

FORMATS = "io.confluent.connect.s3.format."
CONFIG = {
    "s3.bucket.name": "lake",
    "format.class": f"{FORMATS}json.JsonFormat",
    "flush.size": "10",
}
HOURLY = {
    "partitioner.class": "io.confluent.connect.storage.partitioner.HourlyPartitioner",
    "locale": "en",
    "timezone": "UTC",
}


@pytest.mark.parametrize(
    "key, config",
    [
        ("timezone", {**HOURLY, "timezone": "Nowhere"}),
        ("locale", {**HOURLY, "locale": ""}),
        (
            "partition.field.name",
            {"partitioner.class": HOURLY["partitioner.class"].replace("Hourly", "Field")},
        ),
        ("s3.compression.type", {"format.class": f"{FORMATS}avro.AvroFormat", "s3.compression.type": "gzip"}),
        ("parquet.codec", {"format.class": f"{FORMATS}parquet.ParquetFormat", "parquet.codec": "lzo"}),
        ("behavior.on.null.values", {"behavior.on.null.values": "write"}),
        ("topics.dir", {"topics.dir": "../x"}),
    ],
)
def test_problems_name_their_key(key: str, config: dict[str, str]) -> None:
    assert [problem.key for problem in S3SinkPlugin().problems({**CONFIG, **config})] == [key]
    assert S3SinkPlugin().problems({**CONFIG, **HOURLY}) == []


def test_warnings() -> None:
    """`rotate.interval.ms` without a partitioner by time; texts that come out in quotation marks."""
    texts = {"value.converter": "org.apache.kafka.connect.storage.StringConverter"}
    assert "quotation marks" in S3SinkPlugin().warnings({**CONFIG, **texts})[0]
    json = {"value.converter": "org.apache.kafka.connect.json.JsonConverter"}
    plain = {**json, "value.converter.schemas.enable": "false"}
    parquet = {**CONFIG, "format.class": f"{FORMATS}parquet.ParquetFormat"}
    assert "need values with a schema" in S3SinkPlugin().warnings({**parquet, **plain})[0]
    assert S3SinkPlugin().warnings({**parquet, **json}) == S3SinkPlugin().warnings({**CONFIG, **plain}) == []
    assert "rotate.schedule.interval.ms" in S3SinkPlugin().warnings({**CONFIG, "rotate.interval.ms": "5"})[0]
    assert S3SinkPlugin().warnings({**CONFIG, **HOURLY, "rotate.interval.ms": "5"}) == []


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (
            {"aws.access.key.id": "a"},
            "'aws.secret.access.key' is missing, and 'aws.access.key.id' is set; set both, or neither",
        ),
        (
            {"aws.secret.access.key": "a"},
            "'aws.access.key.id' is missing, and 'aws.secret.access.key' is set; set both, or neither",
        ),
        (
            {
                **HOURLY,
                "partitioner.class": HOURLY["partitioner.class"].replace("Hourly", "TimeBased"),
                "partition.duration.ms": "3600000",
                "path.format": "year=YYYY",
            },
            "words stand in quotation marks, such as 'year'=YYYY",
        ),
    ],
)
def test_problems_say_what_to_write(keys: dict[str, str], said: str) -> None:
    (problem,) = S3SinkPlugin().problems({**CONFIG, **keys})
    assert said in problem.message


def test_a_bucket_is_named_without_its_scheme() -> None:
    (problem,) = S3SinkPlugin().settings.problems({**CONFIG, "s3.bucket.name": "s3://lake"})
    assert "without s3:// and folders" in problem.message
