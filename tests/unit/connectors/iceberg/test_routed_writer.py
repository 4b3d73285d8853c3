"""A task that writes for several tables: each gets its records, whether tables are alike or not."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, LongType, NestedField, StringType

from icestream.api.batch import Staged
from icestream.api.offsets import NOTHING, Offsets
from icestream.api.sink import TargetTask, WriterTask, Written
from icestream.connectors.iceberg.catalogs.opening import open_catalog
from icestream.connectors.iceberg.plugin import IcebergPlugin
from icestream.pipeline.record_path import RecordSettings, record_path_from
from icestream.records.origins import RowOrigins
from icestream.tables.routing import routed_writer
from tests.unit.pipeline.batches import CONFIG, SOURCE, chunk

ALIKE = Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "text", StringType()))
OTHER = Schema(NestedField(1, "text", IntegerType()), NestedField(2, "id", LongType(), required=True))


class World:
    def __init__(self, folder: Path, **options: str) -> None:
        self.config = {
            "iceberg.catalog.type": "jdbc",
            "iceberg.catalog.uri": f"jdbc:sqlite:{folder}/catalog.db",
            "iceberg.catalog.warehouse": f"file://{folder}/warehouse",
            "iceberg.tables.dynamic-enabled": "true",
            "iceberg.tables.route-field": "to",
            **options,
        }
        self.catalog = open_catalog(self.config)
        self.catalog.create_namespace_if_not_exists("ns")

    def create(self, tables: Mapping[str, Schema]) -> World:
        for name, schema in tables.items():
            self.catalog.create_table(f"ns.{name}", schema)
        return self

    def staged(
        self,
        values: Sequence[Any],
        known: Sequence[str],
        absent: Mapping[str, str] | None = None,
        starts: Mapping[str, Offsets] | None = None,
    ) -> tuple[Written, Mapping[str, Staged]]:
        sink = IcebergPlugin().open("job", self.config)
        targets = [
            TargetTask(f"ns.{name}", sink.target(f"ns.{name}").plan({}), (starts or {}).get(name, NOTHING))
            for name in known
        ]
        writer = sink.writer(WriterTask(targets, "batch", True, sink.routing, absent or {}))
        bodies = [None if value is None else json.dumps(value).encode() for value in values]
        records = record_path_from(RecordSettings.of(CONFIG)).prepare(chunk(bodies, 0)).records
        written = writer.write(records, RowOrigins.of_one(SOURCE, np.arange(len(values))))
        return written, writer.close()


def rows(staged: Mapping[str, Staged], table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for file in staged[f"ns.{table}"].payload:
        found += pq.read_table(file.path.removeprefix("file://")).to_pylist()
    return sorted(found, key=lambda row: int(row["id"]))


def test_each_table_gets_its_records_whether_it_is_like_others_or_not(tmp_path: Path) -> None:
    world = World(tmp_path).create({"a": ALIKE, "b": ALIKE, "c": ALIKE, "d": OTHER})
    values = [{"id": n, "text": str(n), "to": f"ns.{'abcd'[n % 4]}"} for n in range(40)]
    values[5] = {"id": None, "text": "", "to": "ns.b"}
    values[9] = {"id": "x", "text": "", "to": "ns.b"}
    written, staged = world.staged([*values, None], "abcd", starts={"a": Offsets({SOURCE: 8})})
    assert sorted(written.failed) == [5, 9]
    assert list(written.skipped) == [40]
    assert [row["id"] for row in rows(staged, "a")] == list(range(8, 40, 4))
    assert rows(staged, "b")[0] == {"id": 1, "text": "1"}
    assert [row["id"] for row in rows(staged, "b")] == [1, *range(13, 40, 4)]
    assert [row["id"] for row in rows(staged, "c")] == list(range(2, 40, 4))
    assert rows(staged, "d")[0] == {"id": 3, "text": 3}
    assert written.routed is not None
    assert {name: len(found) for name, found in written.routed.items()} == dict.fromkeys(
        ("ns.a", "ns.b", "ns.c", "ns.d"), 10
    )


def test_a_new_field_is_that_of_the_table_whose_records_have_it(tmp_path: Path) -> None:
    world = World(tmp_path, **{"iceberg.tables.evolve-schema-enabled": "true"})
    world.create({"a": ALIKE, "b": ALIKE})
    values = [{"id": n, "to": f"ns.{'ab'[n % 2]}", **({"new": 1} if n == 7 else {})} for n in range(20)]
    # The route is a field of each record, too.
    _, staged = world.staged(values, "ab")
    assert set(staged["ns.a"].new_fields) == {("to",)}
    assert set(staged["ns.b"].new_fields) == {("to",), ("new",)}


def test_unknown_tables_are_told_and_nothing_is_staged_then(tmp_path: Path) -> None:
    world = World(tmp_path).create({"a": ALIKE, "b": ALIKE})
    values = [{"id": n, "to": f"ns.{'abx'[n % 3]}"} for n in range(9)]
    written, staged = world.staged(values, "a")
    assert written.unknown_targets == {"ns.b", "ns.x"}
    assert sum(one.rows for one in staged.values()) == 0
    written, staged = world.staged(values, "ab", absent={"ns.x": "it is not there"})
    assert not written.unknown_targets
    assert {why.reason for why in written.failed.values()} == {"it is not there"}
    assert (staged["ns.a"].rows, staged["ns.b"].rows) == (3, 3)


def test_deletions_from_a_table_that_is_yet_to_be_created_come_to_nothing(tmp_path: Path) -> None:
    """Otherwise a topic that has only deletions so far would hold up all others."""
    options = {"iceberg.tables.upsert-mode-enabled": "true", "iceberg.tables.default-id-columns": "id"}
    options |= {"iceberg.tables.auto-create-enabled": "true", "iceberg.tables.dynamic-enabled": "false"}
    options |= {"iceberg.tables.route-field": "", "iceberg.tables.route-template": "ns.${topic}"}
    world = World(tmp_path, **options)
    table = f"ns.{SOURCE.topic}"
    written, _ = world.staged([None, None], "")
    assert written.unknown_targets == {table}
    written, _ = world.staged([None, None], "", absent={table: ""})
    assert list(written.skipped) == [0, 1] and not written.unknown_targets and not written.failed
    written, _ = world.staged([None, {"id": 1}], "", absent={table: ""})
    assert list(written.skipped) == [0] and written.unknown_targets == {table}


def test_tables_share_memory_and_open_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routed_writer, "BUFFER_BYTES", 1)
    names = [f"t{number}" for number in range(60)]
    world = World(tmp_path).create(dict.fromkeys(names, ALIKE))
    most = 0
    opened = routed_writer.RoutedWriter._open_files

    def watched(self: Any) -> int:
        nonlocal most
        most = max(most, found := opened(self))
        return found

    monkeypatch.setattr(routed_writer.RoutedWriter, "_open_files", watched)
    monkeypatch.setattr("icestream.tables.data_files._OPEN_LOCAL", 10)
    _, staged = world.staged([{"id": n, "to": f"ns.t{n % 60}"} for n in range(600)], names)
    assert most == 11
    assert sum(one.rows for one in staged.values()) == 600
