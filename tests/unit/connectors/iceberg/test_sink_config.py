"""What a sink makes of keys that are read when it is opened."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import pytest

from icestream.connectors.iceberg import sink
from icestream.connectors.iceberg.catalogs.opening import open_catalog
from icestream.connectors.iceberg.plugin import IcebergPlugin
from icestream.connectors.iceberg.sink import IcebergSink
from icestream.tables.given import Given
from icestream.tables.routing.routes import RoutePlan
from tests.unit.connectors.iceberg.maintained import catalog_config


def test_records_find_their_tables(tmp_path: Path) -> None:
    config = {
        **catalog_config(tmp_path),
        "iceberg.tables": "ns.t,ns.u",
        "iceberg.tables.route-field": "kind",
        "iceberg.tables.route-unmatched": "reject",
        "iceberg.tables.route-max-tables": "7",
        "iceberg.table.ns.t.route-regex": "t.*",
    }
    routing = IcebergSink("job", config).routing
    assert routing is not None
    assert routing.plan == RoutePlan(("kind",), {"ns.t": "t.*"}, rejects_unmatched=True)
    assert (routing.grows, routing.most_targets) == (False, 7)
    assert routing.most_targets_key == "iceberg.tables.route-max-tables"


def test_events_go_to_the_control_topic_by_the_clients_of_the_config(tmp_path: Path) -> None:
    config = {
        **catalog_config(tmp_path),
        "iceberg.catalog": "lake",
        "iceberg.control.topic": "control",
        "iceberg.kafka.linger.ms": "5",
    }
    assert IcebergSink("job", config).event_topics() == ["control"]
    assert IcebergPlugin().client_overrides(config, "producer") == {"linger.ms": "5"}


def test_tables_are_created_and_written_as_the_config_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Mock()
    monkeypatch.setattr(sink, "IcebergTable", opened)
    config = {
        **catalog_config(tmp_path),
        "iceberg.tables": "ns.t,ns.u",
        "iceberg.tables.auto-create-enabled": "true",
        "iceberg.tables.default-partition-by": "day(at)",
        "iceberg.tables.schema-force-optional": "true",
        "iceberg.tables.write-props.write.parquet.compression-codec": "zstd",
        "iceberg.table.write-props.write.metadata.metrics.default": "full",
        "iceberg.table.ns.t.partition-by": "id",
    }
    IcebergSink("job", config)
    of_t, of_u = (call.kwargs for call in opened.call_args_list)
    assert (of_t["force_optional"], of_u["force_optional"]) == (True, True)
    assert of_t["new_table"].partition_by == Given("iceberg.table.ns.t.partition-by", "id")
    assert of_u["new_table"].partition_by == Given("iceberg.tables.default-partition-by", "day(at)")
    assert of_t["write_props"] == {
        "write.parquet.compression-codec": "zstd",
        "write.metadata.metrics.default": "full",
    }


def test_the_store_may_be_named_in_hadoops_words(tmp_path: Path) -> None:
    (tmp_path / "core-site.xml").write_text(
        "<configuration><property><name>fs.s3a.endpoint.region</name><value>eu-west-1</value></property>"
        "</configuration>"
    )
    config = {
        **catalog_config(tmp_path),
        "iceberg.hadoop-conf-dir": str(tmp_path),
        "iceberg.hadoop.fs.s3a.endpoint": "http://127.0.0.1:9000",
    }
    IcebergSink("job", config)
    properties = open_catalog(config).properties
    assert properties["s3.endpoint"] == "http://127.0.0.1:9000"
    assert properties["s3.region"] == "eu-west-1"
