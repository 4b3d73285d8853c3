"""`icestream.iceberg.kafka-columns`: where in Kafka each row is from."""

import datetime as dt
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyiceberg import types as it
from pyiceberg.schema import Schema

from icestream.api.batch import Batch
from icestream.api.errors import ConfigError
from icestream.api.offsets import NOTHING, Offsets
from icestream.connectors.iceberg.plugin import IcebergPlugin
from icestream.connectors.iceberg.settings import ICEBERG_SINK
from icestream.connectors.iceberg.sink import IcebergSink
from icestream.jobs.sinks.batches.creating import create, look_at
from icestream.jobs.sinks.batches.staging import StagedBatch, stage
from icestream.pipeline.record_path import RecordSettings
from tests.unit.pipeline.batches import CONFIG, SOURCE, OneTask, Topic, rows_of

ALL = {"icestream.iceberg.kafka-columns": "topic, partition,offset,timestamp"}
ROUTED = {
    "transforms": "r",
    "transforms.r.type": "org.apache.kafka.connect.transforms.RegexRouter",
    "transforms.r.regex": ".*",
    "transforms.r.replacement": "elsewhere",
}


def opened(folder: Path, **options: str) -> IcebergSink:
    config = {
        "name": "job",
        "iceberg.tables": "ns.t",
        "iceberg.catalog.type": "jdbc",
        "iceberg.catalog.uri": f"jdbc:sqlite:{folder}/catalog.db",
        "iceberg.catalog.warehouse": f"file://{folder}/warehouse",
        **options,
    }
    sink = IcebergPlugin().open("job", config)
    assert isinstance(sink, IcebergSink)
    sink.targets()[0]._catalog.create_namespace_if_not_exists("ns")
    return sink


def staged(sink: IcebergSink, values: list[bytes], config: Mapping[str, str] | None = None) -> StagedBatch:
    """One batch of these records; the table is created first if it is missing."""
    batch = Batch(str(uuid.uuid4()), Offsets({SOURCE: 0}), Offsets({SOURCE: len(values)}))
    runner = OneTask(RecordSettings.of({**CONFIG, **(config or {})}), Topic(values))
    targets = sink.targets()
    if targets[0].found().is_missing:
        create(targets, look_at(batch, sink, targets, runner), batch, lambda point: None)
    return stage(batch, sink, targets, [NOTHING], runner)


def told(offset: int) -> dict[str, Any]:
    return {
        "_kafka_metadata_topic": "events",
        "_kafka_metadata_partition": 0,
        "_kafka_metadata_offset": offset,
        "_kafka_metadata_timestamp": dt.datetime.fromtimestamp(1 + offset / 1000, dt.UTC),
    }


@pytest.mark.parametrize("how", ["auto-create-enabled", "evolve-schema-enabled"])
def test_the_columns_come_with_the_table_or_are_added_to_it(how: str, tmp_path: Path) -> None:
    sink = opened(tmp_path, **ALL, **{f"iceberg.tables.{how}": "true"})
    if how.startswith("evolve"):
        schema = Schema(it.NestedField(1, "id", it.LongType(), required=True))
        sink.targets()[0]._catalog.create_table("ns.t", schema)
    batch = staged(sink, [b'{"id":1}', b"null", b'{"id":2}'], ROUTED)
    rows = sorted(rows_of(batch), key=lambda row: row["id"])
    assert rows == [{"id": 1, **told(0)}, {"id": 2, **told(2)}]


def test_a_table_that_has_them_in_other_types_keeps_these(tmp_path: Path) -> None:
    sink = opened(tmp_path, **ALL)
    F = it.NestedField
    schema = Schema(
        F(1, "id", it.LongType()),
        F(2, "_kafka_metadata_topic", it.StringType(), required=True),
        F(3, "_kafka_metadata_partition", it.LongType()),
        F(4, "_kafka_metadata_offset", it.StringType()),
        F(5, "_kafka_metadata_timestamp", it.LongType()),
    )
    sink.targets()[0]._catalog.create_table("ns.t", schema)
    (row,) = rows_of(staged(sink, [b'{"id":1}']))
    assert list(row.values()) == [1, "events", 0, "0", 1000]


def test_a_table_that_lacks_them_and_may_not_grow_is_an_error(tmp_path: Path) -> None:
    sink = opened(tmp_path, **ALL)
    sink.targets()[0]._catalog.create_table("ns.t", Schema(it.NestedField(1, "id", it.LongType())))
    with pytest.raises(ConfigError, match=r"lacks _kafka_metadata_topic, .*kafka-columns asks for"):
        sink.targets()[0].plan({})


def test_other_facts_are_refused() -> None:
    with pytest.raises(ConfigError, match="'colour' is none of topic, partition, offset, timestamp"):
        ICEBERG_SINK.parse({"icestream.iceberg.kafka-columns": "topic,colour"})


def test_a_new_table_has_text_for_fields_of_no_fixed_shape(tmp_path: Path) -> None:
    options = {"iceberg.tables.auto-create-enabled": "true", "icestream.iceberg.json-columns": "free, a.b"}
    sink = opened(tmp_path, **options)
    batch = staged(sink, [b'{"id":1,"free":{"x":{"y":1}},"a":{"b":[1],"c":2}}'])
    assert rows_of(batch) == [{"id": 1, "free": '{"x":{"y":1}}', "a": {"b": "[1]", "c": 2}}]


def test_a_table_for_upserts_is_created_and_its_id_columns_match_in_any_case(tmp_path: Path) -> None:
    options = {
        "iceberg.tables.auto-create-enabled": "true",
        "iceberg.tables.upsert-mode-enabled": "true",
        "iceberg.tables.default-id-columns": "ID",
        "iceberg.tables.schema-case-insensitive": "true",
    }
    sink = opened(tmp_path, **ALL, **options)
    batch = staged(sink, [b'{"id":1,"v":1}', b'{"Id":1,"V":2}', b'{"iD":2}'])
    assert not batch.result.rejected
    assert batch.staged("ns.t").rows == 3
    schema = sink.targets()[0]._catalog.load_table("ns.t").schema()
    assert [field.name.lower() for field in schema.fields][:2] == ["id", "v"]
    assert {name.lower() for name in schema.identifier_field_names()} == {"id"}
