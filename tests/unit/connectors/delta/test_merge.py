"""Merging changes into the files of a Delta table: which files are read, which are written again, and what
they say of themselves."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.transaction import AddAction, RemoveAction

from icestream.api.errors import ConfigError
from icestream.connectors.delta.files.live import live_files
from icestream.connectors.delta.files.stage import TablePlan
from icestream.connectors.delta.storage import Storage
from icestream.connectors.delta.upserts.merge import Merge, Merged, Pruning
from icestream.connectors.delta.upserts.unfit import refuse_unfit_for_upserts
from icestream.tables.upserts.changes import DELETE, KIND, OFFSET, PUT, SOURCE, UpsertPlan, staged_schema
from tests.unit.connectors.delta.lake import Lake

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("part", pa.string()),
        pa.field("key", pa.struct([pa.field("code", pa.string())])),
        pa.field("amount", pa.decimal128(38, 6)),
        pa.field("share", pa.float64()),
        pa.field("at", pa.timestamp("us", "UTC")),
    ]
)
AT = dt.datetime(2026, 11, 16, 12, 0, 0, 123456, dt.UTC)


def row(id_: int, part: str | None = "a b", share: float = 0.5) -> dict[str, Any]:
    amount = Decimal("1234567890123456.123451") + id_
    return {"id": id_, "part": part, "key": {"code": f"c{id_}"}, "amount": amount, "share": share, "at": AT}


class World:
    def __init__(self, folder: Path, partition_by: list[str]) -> None:
        self.place = str(folder / "t")
        self.partition_by = partition_by
        DeltaTable.create(self.place, SCHEMA, partition_by=partition_by)

    def append(self, rows: list[dict[str, Any]]) -> None:
        write_deltalake(self.place, pa.Table.from_pylist(rows, SCHEMA), mode="append")

    def merge(self, puts: list[dict[str, Any]], deletes: list[dict[str, Any]], *ids: str) -> Merged:
        """Merge and commit, as `table` does."""
        table = DeltaTable(self.place)
        plan = TablePlan(
            *("t", self.place, "", table.schema().to_json(), self.partition_by, {}, Storage()),
            upserts=UpsertPlan(ids),
        )
        schema = staged_schema(plan.arrow_schema)
        own = {SOURCE: 1, OFFSET: 1}
        changes = [{**one, **own, KIND: PUT} for one in puts] + [
            {**one, **own, KIND: DELETE} for one in deletes
        ]
        merge = Merge(plan, ids, pa.Table.from_pylist(changes, schema), False, "batch")
        merged = merge.run(live_files(table, plan.arrow_schema))
        actions = [
            *(
                AddAction(one.path, one.size, dict(one.partition), 1, True, one.statistics)
                for one in merged.added
            ),
            *(RemoveAction(one.path, True, 1, one.size, dict(one.partition)) for one in merged.removed),
        ]
        table.create_write_transaction(actions, "append", table.schema(), self.partition_by)
        return merged

    def rows(self) -> dict[int, dict[str, Any]]:
        found = DeltaTable(self.place).to_pyarrow_table().to_pylist()
        assert len({one["id"] for one in found}) == len(found)
        return {one["id"]: one for one in found}


@pytest.mark.parametrize("partition_by", [[], ["part"]])
@pytest.mark.parametrize("ids", [["id"], ["key.code"], ["id", "key.code"], ["part", "id"]])
def test_rows_of_changed_keys_are_replaced_and_all_others_stay(
    tmp_path: Path, partition_by: list[str], ids: list[str]
) -> None:
    world = World(tmp_path, partition_by)
    world.append([row(1), row(2), row(3, "c/d")])
    world.append([row(4, None), row(5, "ü=%25")])
    changed = {**row(2), "share": 9.0}
    world.merge([changed, row(6, "new")], [row(3, "c/d"), row(77)], *ids)
    expected = [row(1), changed, row(4, None), row(5, "ü=%25"), row(6, "new")]
    assert world.rows() == {one["id"]: one for one in expected}


def test_a_partition_column_that_changes_moves_the_row(tmp_path: Path) -> None:
    world = World(tmp_path, ["part"])
    world.append([row(1, "a"), row(2, "a")])
    world.merge([row(1, "b")], [], "id")
    assert world.rows() == {1: row(1, "b"), 2: row(2, "a")}


def test_only_files_that_may_have_a_key_are_read_and_only_those_that_have_it_are_written(
    tmp_path: Path,
) -> None:
    world = World(tmp_path, [])
    for start in range(0, 40, 10):
        world.append([row(id_) for id_ in range(start, start + 10)])
    table = DeltaTable(world.place)
    changes = pa.table({"id": pa.array([12, 13, 25])})
    pruning = Pruning.of(changes, ["id"], [])
    kept = [file for file in live_files(table, SCHEMA) if pruning.may_have(file)]
    assert sorted(file.bounds["id"][0] for file in kept) == [10, 20]
    merged = world.merge([row(12)], [row(13)], "id")
    assert [file.bounds["id"] for file in merged.removed] == [(10, 19)]
    assert sorted(world.rows()) == [id_ for id_ in range(40) if id_ != 13]


def test_partitions_that_are_part_of_the_key_are_left_alone(tmp_path: Path) -> None:
    pruning = Pruning.of(pa.table({"part": ["a", "b", "a"], "id": [1, 2, 3]}), ["part", "id"], ["part"])
    world = World(tmp_path, ["part"])
    for part in ("a", "b", "c"):
        world.append([row(1, part)])
    kept = [
        dict(one.partition) for one in live_files(DeltaTable(world.place), SCHEMA) if pruning.may_have(one)
    ]
    assert sorted(one["part"] or "" for one in kept) == ["a", "b"]


def test_what_is_copied_has_bounds_by_which_no_reader_loses_a_row(tmp_path: Path) -> None:
    """delta-rs writes bounds of decimals as floats, and bounds of floats that leave NaN out."""
    world = World(tmp_path, [])
    world.append([row(1), row(2, share=float("nan")), row(3)])
    (added, _) = world.merge([row(4)], [row(3)], "id").added
    said = json.loads(added.statistics, parse_float=str)
    assert said["minValues"]["amount"] == "1234567890123457.123451"
    assert "share" not in said["minValues"] and "share" not in said["maxValues"]
    assert said["maxValues"]["at"] == "2026-11-16T12:00:00.123Z"


def test_files_of_others_are_read_in_the_columns_that_the_table_has_now(tmp_path: Path) -> None:
    """Of before a column was added, and with times of 96 bits, as Spark writes them."""
    world = World(tmp_path, [])
    name = "foreign.parquet"
    old = pa.Table.from_pylist([row(1), row(2)], SCHEMA).drop_columns(["share"])
    pq.write_table(old, f"{world.place}/{name}", use_deprecated_int96_timestamps=True)
    table = DeltaTable(world.place)
    size = Path(f"{world.place}/{name}").stat().st_size
    action = AddAction(name, size, {}, 1, True, '{"numRecords":2}')
    table.create_write_transaction([action], "append", table.schema(), [])
    world.merge([], [row(1)], "id")
    assert world.rows() == {2: {**row(2), "share": None}}


@pytest.mark.parametrize(
    ("ids", "properties", "why"),
    [
        ([], {}, "has no id columns"),
        (["nowhere"], {}, "has no column 'nowhere'"),
        (["share"], {}, "which cannot identify a row"),
        (["key"], {}, "which cannot identify a row"),
        (["id"], {"delta.appendOnly": "true"}, "takes appends alone"),
        (["id"], {"delta.enableChangeDataFeed": "true"}, "keeps a feed of its changes"),
    ],
)
def test_tables_that_cannot_get_upserts_are_refused(
    tmp_path: Path, ids: list[str], properties: dict[str, str], why: str
) -> None:
    table = DeltaTable.create(str(tmp_path / "t"), SCHEMA, configuration=dict(properties))
    with pytest.raises(ConfigError, match=why):
        refuse_unfit_for_upserts("t", table, ids)


def test_a_key_that_readers_take_for_null_is_a_bad_record(tmp_path: Path) -> None:
    """Else it would be in the table once more with every change: nobody finds it again."""
    lake = keyed(tmp_path)
    DeltaTable.create(
        str(lake.path), pa.schema([("id", pa.string()), ("n", pa.int64())]), partition_by=["id"]
    )
    assert list(lake.stage([{"id": "", "n": 1}, {"id": "a", "n": 2}]).failed) == [0]


def test_rows_prove_nothing_of_changes_also_when_the_job_appends_by_now(tmp_path: Path) -> None:
    lake = keyed(tmp_path)
    DeltaTable.create(str(lake.path), pa.schema([("id", pa.string()), ("n", pa.int64())]))
    lake.land([{"id": "a", "n": 1}, {"id": "a", "n": 2}])
    appends = Lake(tmp_path)
    assert appends.target().audit().rows is None


def keyed(folder: Path) -> Lake:
    return Lake(folder, {"delta.tables.upsert-mode-enabled": "true", "delta.table.ns.t.id-columns": "id"})
