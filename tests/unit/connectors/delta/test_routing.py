"""Tables that the records of a job name: routed, created, and found again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable

from icestream.api.batch import Batch, Counts
from icestream.api.checkpoint import checkpoint_after
from icestream.api.offsets import Offsets
from icestream.api.sink import Commit, TargetTask, WriterTask, Written
from icestream.pipeline.record_path import RecordSettings, record_path_from
from icestream.records.origins import RowOrigins
from tests.unit.connectors.delta.lake import IDS, Lake
from tests.unit.pipeline.batches import CONFIG, SOURCE, chunk


def written(lake: Lake, names: Sequence[str], values: Sequence[Any]) -> tuple[Written, dict[str, Any]]:
    sink = lake.sink()
    targets = [TargetTask(name, sink.target(name).plan({}), Offsets({SOURCE: 0})) for name in names]
    writer = sink.writer(WriterTask(targets, "00000000-0000-0000-0000-000000000000", routing=sink.routing))
    texts = [json.dumps(value).encode() for value in values]
    records = record_path_from(RecordSettings.of(CONFIG)).prepare(chunk(texts)).records
    return writer.write(records, RowOrigins.of_one(SOURCE, np.arange(len(texts)))), dict(writer.close())


def commit(lake: Lake, name: str, staged: Any, count: int) -> None:
    target = lake.sink().target(name)
    batch = Batch("00000000-0000-0000-0000-000000000000", Offsets({SOURCE: 0}), Offsets({SOURCE: count}))
    after = checkpoint_after(None, batch, {SOURCE: Counts(count, count)}, IDS)
    target.commit(Commit(after, None, target.plan({}), staged))


VALUES = [{"id": 1, "kind": "a"}, {"id": 2, "kind": "b"}, {"id": 3, "kind": "a"}, {"id": 4, "kind": "c"}]


def test_records_go_to_the_tables_whose_pattern_they_match(lake: Lake) -> None:
    routed = Lake(
        lake.folder,
        {
            "delta.tables": "x.first,second",
            "delta.tables.route-field": "kind",
            "delta.table.x.first.route-regex": "a|c",
            "delta.table.second.route-regex": "b",
            "delta.tables.route-unmatched": "reject",
        },
    )
    for place in ("x/first", "second"):
        DeltaTable.create(str(lake.folder / place), schema_of_values())
    found, staged = written(routed, ["x.first", "second"], [*VALUES, {"id": 5, "kind": "d"}])
    assert list(found.failed) == [4]
    for name in ("x.first", "second"):
        commit(routed, name, staged[name], 5)
    assert ids_at(lake, "x/first") == [1, 3, 4]
    assert ids_at(lake, "second") == [2]


def test_the_table_may_be_named_by_the_record(lake: Lake) -> None:
    """And is found again by its log, also where only a key names its place."""
    elsewhere = lake.folder / "else" / "where"
    routed = Lake(
        lake.folder,
        {
            "delta.tables": "",
            "delta.tables.dynamic-enabled": "true",
            "delta.tables.route-field": "kind",
            "delta.table.c.location": str(elsewhere),
        },
    )
    sink = routed.sink()
    assert sink.routing is not None and sink.routing.grows
    names = ["a", "b", "c"]
    _, seen = written(routed, names, VALUES)
    for name in names:
        assert sink.target(name).found().is_missing
        sink.target(name).create(seen[name].new_fields)
    _, staged = written(routed, names, VALUES)
    for name in names:
        commit(routed, name, staged[name], 4)
    DeltaTable.create(str(lake.folder / "not" / "ours"), schema_of_values())
    DeltaTable.create(str(lake.folder / "a" / "not_ours"), schema_of_values())
    assert [target.name for target in routed.sink().known_targets()] == names
    assert (ids_at(lake, "a"), ids_at(lake, "b"), ids_at(lake, "else/where")) == ([1, 3], [2], [4])


def test_records_reach_neither_the_log_of_a_table_nor_names_that_no_folder_has(lake: Lake) -> None:
    """One such record would stop the job for all others."""
    routed = Lake(
        lake.folder,
        {"delta.tables": "", "delta.tables.dynamic-enabled": "true", "delta.tables.route-field": "kind"},
    )
    DeltaTable.create(str(lake.folder / "a"), schema_of_values())
    kinds = ["a", "a._delta_log", "_DELTA_LOG", "é" * 200]
    found, _ = written(routed, ["a"], [{"id": at, "kind": kind} for at, kind in enumerate(kinds)])
    assert sorted(found.failed) == [1, 2, 3]


def test_tables_inside_of_others_are_found_again(lake: Lake) -> None:
    routed = Lake(
        lake.folder,
        {"delta.tables": "", "delta.tables.dynamic-enabled": "true", "delta.tables.route-field": "kind"},
    )
    names = ["a", "a.b"]
    values = [{"id": 1, "kind": "a"}, {"id": 2, "kind": "a.b"}]
    for name in names:
        DeltaTable.create(str(lake.folder / name.replace(".", "/")), schema_of_values())
    _, staged = written(routed, names, values)
    for name in names:
        commit(routed, name, staged[name], 2)
    assert [target.name for target in routed.sink().known_targets()] == names


def test_a_template_names_tables(lake: Lake) -> None:
    routed = Lake(
        lake.folder,
        {"delta.tables": "", "delta.tables.route-template": "${topic}_${value.kind}"},
    )
    names = ["events_a", "events_b", "events_c"]
    found, _ = written(routed, names, VALUES)
    assert found.routed is not None and sorted(found.routed) == names
    few = Lake(lake.folder, {**routed.config, "delta.tables.route-max-tables": "2"})
    routing = few.sink().routing
    assert routing is not None
    assert (routing.most_targets, routing.most_targets_key) == (2, "delta.tables.route-max-tables")


def schema_of_values() -> Any:
    return pa.schema([("id", pa.int64()), ("kind", pa.string())])


def ids_at(lake: Lake, place: str) -> list[int]:
    return sorted(DeltaTable(str(lake.folder / place)).to_pyarrow_table()["id"].to_pylist())
