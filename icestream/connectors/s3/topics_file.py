"""What the S3 sink makes of a topics file and of environment variables: one connector per topic, in the keys
of Confluent's. For `plugin`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from icestream.api.config import ConfigDef, Setting, Type
from icestream.api.errors import ConfigError, Problem
from icestream.api.topics_file import TopicEntry, TopicsFileRules

VARIABLES: Final = ConfigDef(
    (
        Setting("KAFKA_BOOTSTRAP_SERVERS", Type.STRING, "localhost:9092", "The brokers."),
        Setting("CONNECT_GROUP_ID", Type.STRING, "kafka-s3-connect-cluster", "The group of the workers."),
        Setting("S3_BUCKET_NAME", Type.STRING, "test-data-lake", "The bucket of topics that name none."),
        Setting("S3_REGION", Type.STRING, "us-east-1", "The region of the buckets."),
        Setting("S3_ENDPOINT_URL", Type.STRING, "", "The address of a store that is not AWS, such as MinIO."),
        Setting("BATCH_SIZE", Type.INT, 1000, "Records of an object, for topics that say none.", at_least=1),
        Setting(
            "FLUSH_INTERVAL",
            Type.INT,
            60,
            "Seconds until an object is written that is not full, for topics that say none.",
            at_least=1,
        ),
    )
)

_CLASS: Final = "io.confluent.connect.s3.S3SinkConnector"
_PARTITIONERS: Final = "io.confluent.connect.storage.partitioner."
_CONVERTERS: Final = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}
_DAY, _HOUR = 86_400_000, 3_600_000
_TIMES: Final = {"year": ("YYYY", _DAY), "month": ("MM", _DAY), "day": ("dd", _DAY), "hour": ("HH", _HOUR)}
"""Columns that are times, in their order, with their letters in `path.format` and the width of a folder."""


def rules(environ: Mapping[str, str]) -> TopicsFileRules:
    """ConfigError, with every variable that is wrong."""
    given = {name: environ[name] for name in VARIABLES.names if environ.get(name, "").strip()}
    problems = [
        Problem(one.key, one.message.replace("configuration ", "environment variable "))
        for one in VARIABLES.problems(given)
    ]
    if problems:
        raise ConfigError(problems)
    values = VARIABLES.parse(given)
    worker = {
        "bootstrap.servers": values["KAFKA_BOOTSTRAP_SERVERS"],
        "group.id": values["CONNECT_GROUP_ID"],
        **_CONVERTERS,
    }
    return TopicsFileRules(worker, lambda entry: _connector(entry, values))


def _connector(entry: TopicEntry, values: Mapping[str, Any]) -> dict[str, str]:
    seconds = entry.flush_seconds or values["FLUSH_INTERVAL"]
    config = {
        "connector.class": _CLASS,
        "topics": entry.topic,
        **_CONVERTERS,
        "s3.bucket.name": entry.bucket or values["S3_BUCKET_NAME"],
        "s3.region": values["S3_REGION"],
        "topics.dir": (entry.prefix or "").strip("/"),
        "storage.class": "io.confluent.connect.s3.storage.S3Storage",
        "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
        "flush.size": str(entry.batch_size or values["BATCH_SIZE"]),
        "rotate.schedule.interval.ms": str(seconds * 1000),
        "timezone": "UTC",
        "locale": "en-US",
        **_partitioner(entry.partition_columns),
    }
    if values["S3_ENDPOINT_URL"]:
        config["store.url"] = values["S3_ENDPOINT_URL"]
    if entry.table is not None and entry.table != entry.topic:
        config |= _renamed(entry.table)
    if entry.schema is not None:
        config |= {
            "value.schema.inline": entry.schema,
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": f"{entry.topic}-dlq",
            "errors.deadletterqueue.topic.replication.factor": "-1",
            "errors.deadletterqueue.context.headers.enable": "true",
        }
    if entry.max_retries is not None:
        config["icestream.retry.max"] = str(entry.max_retries)
    return config


def _partitioner(columns: tuple[str, ...]) -> dict[str, str]:
    if not columns:
        return {"partitioner.class": f"{_PARTITIONERS}DefaultPartitioner"}
    times = [name for name in columns if name in _TIMES]
    if not times:
        return {
            "partitioner.class": f"{_PARTITIONERS}FieldPartitioner",
            "partition.field.name": ",".join(columns),
        }
    if len(times) < len(columns):
        raise _refused(f"{', '.join(columns)}: these are times and fields; keep one kind of them")
    if times != list(_TIMES)[: len(times)]:
        raise _refused(f"{', '.join(columns)}: times come as year, month, day, hour; write them so")
    return {
        "partitioner.class": f"{_PARTITIONERS}TimeBasedPartitioner",
        "path.format": "/".join(f"'{name}'={_TIMES[name][0]}" for name in times),
        "partition.duration.ms": str(_TIMES[times[-1]][1]),
        "timestamp.extractor": "Record",
    }


def _refused(reason: str) -> ConfigError:
    return ConfigError([Problem("destination.partition-columns", reason)])


def _renamed(table: str) -> dict[str, str]:
    """The folder of a topic, and its objects, are called like its table."""
    return {
        "transforms": "table",
        "transforms.table.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.table.regex": ".*",
        "transforms.table.replacement": table.replace("\\", "\\\\").replace("$", "\\$"),
    }
