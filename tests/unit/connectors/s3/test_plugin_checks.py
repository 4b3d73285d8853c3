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
    assert "rotate.interval.ms" in S3SinkPlugin().warnings({**CONFIG, "rotate.interval.ms": "5"})[0]
    assert S3SinkPlugin().warnings({**CONFIG, **HOURLY, "rotate.interval.ms": "5"}) == []
