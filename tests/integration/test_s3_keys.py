"""The keys that decide what a reader of the bucket finds, through a real broker, the job manager and what a
task does; the bucket is a folder. What Confluent's connector would have written is told by hand."""

from __future__ import annotations

import io
import itertools
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer

from icestream.embedded.kafka import Broker
from icestream.jobs.sinks.build import sink_manager
from icestream.kafka.topics import Topics
from icestream.pipeline.in_worker import InWorkerRunner
from icestream.pipeline.record_path import RecordSettings

FORMATS = "io.confluent.connect.s3.format."
JSON, AVRO = f"{FORMATS}json.JsonFormat", f"{FORMATS}avro.AvroFormat"
PARQUET, RAW = f"{FORMATS}parquet.ParquetFormat", f"{FORMATS}bytearray.ByteArrayFormat"
PARTITIONERS = "io.confluent.connect.storage.partitioner."
CONVERTERS = "org.apache.kafka.connect."
AT = 1_772_964_123_456  # 2026-03-08T10:02:03.456Z
_NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class Topic:
    """One partition, six records: five values and a tombstone, ten minutes from one to the next."""

    broker: Broker
    name: str
    folder: Path

    def read(self, config: Mapping[str, str], wanted: int) -> dict[str, bytes]:
        """What a new connector writes, once it has written as many objects."""
        number = next(_NUMBERS)
        name, bucket = f"keys-{number}", f"lake{number}"
        (self.folder / bucket).mkdir()
        whole = {
            "connector.class": "io.confluent.connect.s3.S3SinkConnector",
            "topics": self.name,
            "tasks.max": "1",
            "s3.bucket.name": bucket,
            "store.url": f"file://{self.folder}",
            "format.class": JSON,
            "flush.size": "100",
            "icestream.s3.commit.interval.ms": "100",
            "key.converter": f"{CONVERTERS}storage.StringConverter",
            "value.converter": f"{CONVERTERS}json.JsonConverter",
            "value.converter.schemas.enable": "false",
            "behavior.on.null.values": "ignore",
            "report.null.values.to.dlq": "false",
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": f"{name}-dlq",
            "errors.deadletterqueue.topic.replication.factor": "1",
            **config,
        }
        kafka = {"bootstrap.servers": self.broker.bootstrap}
        needs = {f"needs_{one}": whole.get(f"store.kafka.{one}") == "true" for one in ("keys", "headers")}
        manager = sink_manager(name, whole, kafka, InWorkerRunner(kafka, RecordSettings.of(whole, **needs)))
        deadline = time.monotonic() + 60
        try:
            while True:
                manager.tick()
                found = self._objects(bucket)
                if len(found) >= wanted:
                    return found
                assert time.monotonic() < deadline, (found, manager.progress)
        finally:
            manager.close()

    def _objects(self, bucket: str) -> dict[str, bytes]:
        root = self.folder / bucket
        ours = {".icestream", "_icestream"}
        files = sorted(one for one in root.rglob("*") if one.is_file() and not ours & {*one.parts})
        return {one.relative_to(root).as_posix(): one.read_bytes() for one in files}


def values() -> list[dict[str, Any] | None]:
    cities = ["Bonn", "Ulm/Donau", "../../../escape", None, "Bonn"]
    return [
        *({"id": at, "ts": AT + 600_000 * at, "at": {"city": city}} for at, city in enumerate(cities)),
        None,
    ]


def enveloped(value: dict[str, Any] | None) -> bytes | None:
    if value is None:
        return None
    city = {
        "type": "struct",
        "field": "at",
        "fields": [{"type": "string", "optional": True, "field": "city"}],
    }
    fields = [{"type": "int32", "field": "id"}, {"type": "int64", "field": "ts"}, city]
    schema = {"type": "struct", "name": "shop.Order", "version": 1, "fields": fields}
    return json.dumps({"schema": schema, "payload": value}).encode()


Written = Callable[[dict[str, Any] | None], bytes | None]


def topic(broker: Broker, name: str, folder: Path, written: Written) -> Topic:
    settings = {"bootstrap.servers": broker.bootstrap}
    Topics(settings).create(name, 1, 1, {})
    producer = Producer(settings)
    for at, value in enumerate(values()):
        producer.produce(
            name, written(value), key=f"k{at}", headers=[("h", str(at))], timestamp=AT + 600_000 * at
        )
    assert producer.flush(60) == 0
    return Topic(broker, name, folder)


@pytest.fixture(scope="module")
def plain(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Topic]:
    folder = tmp_path_factory.mktemp("plain")
    yield topic(broker, "s3keys", folder, lambda value: None if value is None else json.dumps(value).encode())


@pytest.fixture(scope="module")
def typed(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Topic]:
    yield topic(broker, "s3typed", tmp_path_factory.mktemp("typed"), enveloped)


def ids(objects: Mapping[str, bytes]) -> dict[str, list[int]]:
    return {key: [json.loads(line)["id"] for line in text.splitlines()] for key, text in objects.items()}


def test_names(plain: Topic) -> None:
    """`flush.size`, `topics.dir`, `file.delim`, `directory.delim`, `filename.offset.zero.pad.width`."""
    config = {"flush.size": "2", "topics.dir": "a", "file.delim": "-", "filename.offset.zero.pad.width": "3"}
    folder = "a/s3keys/partition=0/s3keys-0-"
    found = ids(plain.read(config, 3))
    assert found == {f"{folder}000.json": [0, 1], f"{folder}002.json": [2, 3], f"{folder}004.json": [4]}
    found = plain.read({"topics.dir": "", "directory.delim": "|"}, 1)
    assert list(found) == ["s3keys|partition=0|s3keys+0+0000000000.json"]


def test_folders_by_field(plain: Topic, typed: Topic) -> None:
    """`partition.field.name`: a value that leads elsewhere is a dead letter, and nothing is outside."""
    config = {"partitioner.class": f"{PARTITIONERS}FieldPartitioner", "partition.field.name": "at.city"}
    for one, more in ((plain, {}), (typed, {"value.converter.schemas.enable": "true"})):
        assert ids(one.read({**config, **more}, 3)) == {
            f"topics/{one.name}/at.city=Bonn/{one.name}+0+0000000000.json": [0, 4],
            f"topics/{one.name}/at.city=Ulm/Donau/{one.name}+0+0000000001.json": [1],
            f"topics/{one.name}/at.city=null/{one.name}+0+0000000003.json": [3],
        }
        assert not list(one.folder.parent.glob("**/escape*"))


def test_folders_by_time(plain: Topic) -> None:
    """`partition.duration.ms`, `path.format`, `locale`, `timezone`, `timestamp.extractor`, `timestamp.field`,
    `rotate.interval.ms`, `rotate.file.on.partition.change`."""
    config = {
        "partitioner.class": f"{PARTITIONERS}TimeBasedPartitioner",
        "partition.duration.ms": "1800000",
        "path.format": "'on'=EEE-dd/'at'=HHmm",
        "locale": "en",
        "timezone": "Asia/Kolkata",
        "timestamp.extractor": "RecordField",
        "timestamp.field": "ts",
    }
    folder = "topics/s3keys/on=Sun-08/at="
    name = "s3keys+0+000000000"
    assert ids(plain.read(config, 2)) == {
        f"{folder}1530/{name}0.json": [0, 1, 2],
        f"{folder}1600/{name}3.json": [3, 4],
    }
    rotated = {**config, "timestamp.extractor": "Record", "rotate.interval.ms": "1200000"}
    assert ids(plain.read(rotated, 3)) == {
        f"{folder}1530/{name}0.json": [0, 1],
        f"{folder}1530/{name}2.json": [2],
        f"{folder}1600/{name}3.json": [3, 4],
    }
    kept = {**rotated, "rotate.file.on.partition.change": "false"}
    assert ids(plain.read(kept, 4)) == {
        f"{folder}1530/{name}0.json": [0, 1],
        f"{folder}1530/{name}2.json": [2],
        f"{folder}1600/{name}3.json": [3],
        f"{folder}1600/{name}4.json": [4],
    }
    daily = {**config, "partitioner.class": f"{PARTITIONERS}DailyPartitioner"}
    assert list(plain.read(daily, 1)) == [f"topics/s3keys/year=2026/month=03/day=08/{name}0.json"]


def test_avro_with_keys_and_headers(typed: Topic) -> None:
    """`format.class`, `avro.codec`, `store.kafka.keys`, `store.kafka.headers`, `behavior.on.null.values`,
    `tombstone.encoded.partition`, `s3.schema.partition.affix.type`, `schema.compatibility`."""
    config = {
        "format.class": AVRO,
        "avro.codec": "deflate",
        "value.converter.schemas.enable": "true",
        "store.kafka.keys": "true",
        "store.kafka.headers": "true",
        "behavior.on.null.values": "write",
        "tombstone.encoded.partition": "gone",
        "s3.schema.partition.affix.type": "PREFIX",
        "schema.compatibility": "BACKWARD",
    }
    found = {key: list(fastavro.reader(io.BytesIO(data))) for key, data in typed.read(config, 5).items()}
    name = "topics/s3typed/schema_name=shop.Order/partition=0/s3typed+0+0000000000"
    gone = "topics/s3typed/gone/s3typed+0+0000000005"
    assert found == {
        f"{name}.avro": values()[:5],
        f"{name}.keys.avro": [f"k{at}" for at in range(5)],
        f"{name}.headers.avro": [[{"key": "h", "value": str(at)}] for at in range(5)],
        f"{gone}.keys.avro": ["k5"],
        f"{gone}.headers.avro": [[{"key": "h", "value": "5"}]],
    }


def test_parquet_with_keys_and_headers(typed: Topic) -> None:
    """`parquet.codec`, `keys.format.class`, `headers.format.class`."""
    config = {
        "format.class": PARQUET,
        "parquet.codec": "zstd",
        "value.converter.schemas.enable": "true",
        "store.kafka.keys": "true",
        "keys.format.class": PARQUET,
        "store.kafka.headers": "true",
        "headers.format.class": JSON,
    }
    found = typed.read(config, 3)
    name = "topics/s3typed/partition=0/s3typed+0+0000000000"
    assert list(found) == [f"{name}.headers.json", f"{name}.keys.zstd.parquet", f"{name}.zstd.parquet"]
    headers, keys, orders = found.values()
    assert pq.read_table(io.BytesIO(orders)).to_pylist() == values()[:5]
    assert pq.read_table(io.BytesIO(keys)).to_pylist() == [{"key": f"k{at}"} for at in range(5)]
    assert json.loads(headers.splitlines()[3]) == {"headers": [{"key": "h", "value": "3"}]}


def test_bytes(plain: Topic) -> None:
    """`format.bytearray.extension`, `format.bytearray.separator`, which may be a blank."""
    config = {
        "format.class": RAW,
        "value.converter": f"{CONVERTERS}converters.ByteArrayConverter",
        "format.bytearray.extension": ".txt",
        "format.bytearray.separator": " ",
    }
    found = plain.read(config, 1)
    text = b"".join(json.dumps(value).encode() + b" " for value in values()[:5])
    assert found == {"topics/s3keys/partition=0/s3keys+0+0000000000.txt": text}
