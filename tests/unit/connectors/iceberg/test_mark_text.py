"""How a mark is written down, and what a rollback, an upgrade and a cut history leave of it."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from pyiceberg.io import InputFile
from pyiceberg.schema import Schema
from pyiceberg.serializers import FromInputFile
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Summary
from pyiceberg.types import LongType, NestedField

from icestream.api.batch import Batch, Counts
from icestream.api.errors import FatalError
from icestream.api.offsets import NOTHING, Offsets, Partition
from icestream.connectors.iceberg.catalogs import new_catalog, open_catalog
from icestream.connectors.iceberg.job_mark import PRUNE_AFTER
from icestream.connectors.iceberg.mark_text import (
    mark_from_property,
    mark_from_summary,
    property_text,
    summary_text,
)
from icestream.connectors.iceberg.marks import JobMark, Source, key_of, mark_after, mark_moved
from icestream.connectors.iceberg.table import IcebergTable

A, B, C = Partition("a", 0), Partition("a", 7), Partition("b", 1)
SOURCE = Source("cluster", {"a": "id-a", "b": "id-b"})
MIXED = {A: Counts(9, 6, 1, 2), B: Counts(10, 10), C: Counts(7, 6, 0, 1)}

VERSION_0_1 = json.dumps(
    {
        "commit": "c1",
        "previous": "c0",
        "cluster": "cluster",
        "topics": {"a": "id-a"},
        "partitions": {"a": {"0": [5, 10, 20, 14, 12, 1, 1]}, "b": {"1": [0, 3, 3, 3, 3, 0, 0]}},
        "began": [3, 1_700_000_000_000],
        "earlier": {"a": {"0": [[0, 5, 0, 5, 5, 0, 0]]}},
    }
)


def after(before: JobMark | None, **changes: object) -> JobMark:
    """Ten offsets further in each partition, of which some hold no record, some are rejected or filtered."""
    start = {p: before.offsets.get(p) or 0 if before else 0 for p in MIXED}
    batch = Batch(str(uuid4()), Offsets(start), Offsets({p: at + 10 for p, at in start.items()}))
    mark = mark_after(before, batch, MIXED, SOURCE, {"ns.t": "t-id"}, frozenset())
    return replace(mark, **changes)  # type: ignore[arg-type]


def marks(count: int) -> list[JobMark]:
    made: list[JobMark] = []
    for _ in range(count):
        made.append(after(made[-1] if made else None))
    return made


def test_a_mark_survives_the_property_whole() -> None:
    mark = mark_moved(marks(3)[-1], "m", {A: 4, C: None}, SOURCE, NOTHING)
    mark = replace(mark, joining=frozenset(["x"]), gone={"b": 3}, base=Counts(3, 2, 1))
    assert mark_from_property(property_text(mark)) == mark


def test_a_mark_without_partitions_survives() -> None:
    mark = JobMark("c", None, SOURCE)
    assert mark_from_property(property_text(mark)) == mark
    assert mark_from_summary(summary_text(mark), None).standings == {}


def test_marks_of_version_0_1_are_read() -> None:
    mark = mark_from_property(VERSION_0_1)
    assert mark == mark_from_summary(VERSION_0_1, None)
    assert mark.offsets == Offsets({A: 20, C: 3})
    assert (mark.standings[A].first, mark.standings[A].start) == (5, 10)
    assert mark.totals == Counts(22, 20, 1, 1)
    assert mark.began is not None
    assert mark_from_property(property_text(mark)) == mark


def test_a_format_of_the_future_is_refused_with_its_name() -> None:
    with pytest.raises(FatalError, match="format '3'"):
        mark_from_property("3abc")


def test_a_rollback_restores_positions_and_counts_of_every_partition() -> None:
    made = marks(4)
    for mark in made:
        found = mark_from_summary(summary_text(mark), made[-1])
        assert (found.commit, found.offsets, found.totals) == (mark.commit, mark.offsets, mark.totals)
        assert {p: (at.first, at.counts) for p, at in found.standings.items()} == {
            p: (at.first, at.counts) for p, at in mark.standings.items()
        }


def test_a_rollback_over_an_offset_moved_by_hand_keeps_positions_and_sums() -> None:
    first, second = marks(2)
    moved = after(mark_moved(second, "moved", {A: 5}, SOURCE, NOTHING))
    found = mark_from_summary(summary_text(first), moved)
    assert (found.offsets, found.totals, found.base) == (first.offsets, first.totals, first.totals)
    onwards = after(found)
    assert onwards.totals == second.totals
    assert mark_from_summary(summary_text(onwards), onwards) == onwards


def test_a_summary_is_enough_if_somebody_removes_the_property() -> None:
    mark = marks(3)[-1]
    found = mark_from_summary(summary_text(mark), None)
    assert (found.offsets, found.totals, found.source) == (mark.offsets, mark.totals, mark.source)


def test_the_first_mark_tells_where_its_batch_began_without_the_property() -> None:
    first = marks(1)[0]
    assert mark_from_summary(summary_text(first), None).start == first.start


def test_topics_that_are_gone_are_in_the_property_only_and_come_back_if_they_exist_after_all() -> None:
    only_a = Source("cluster", {"a": "id-a"})
    mark = marks(2)[-1]
    for number in range(PRUNE_AFTER):
        assert mark_from_summary(summary_text(mark), None).offsets[C] == 20
        batch = Batch(f"next-{number}", mark.offsets, mark.offsets)
        mark = mark_after(mark, batch, {}, only_a)
    assert mark.pruned == {"b"}
    assert (mark.offsets[C], mark.source.topics) == (20, SOURCE.topics)
    short = mark_from_summary(summary_text(mark), None)
    assert C not in short.offsets
    assert "b" not in short.source.topics
    assert short.totals == mark.totals
    assert mark_from_summary(summary_text(mark), mark) == mark
    again = mark_after(mark, Batch("later", NOTHING, NOTHING), {}, SOURCE)
    assert (again.gone, again.offsets[C]) == ({}, 20)


@pytest.mark.parametrize("seed", range(3))
def test_a_thousand_partitions_take_less_than_4_kb_of_a_summary(seed: int) -> None:
    chance = random.Random(seed)
    start = {Partition("t", number): 0 for number in range(1000)}
    end = {p: int(1e6 * chance.uniform(0.5, 1.5)) for p in start}
    counts: Mapping[Partition, Counts] = {p: Counts(at, at) for p, at in end.items()}
    source = Source("5L6g3nShT-eMCtK--X86sw", {"t": "V8qKJ6LmR2CzDVnkSyYw4Q"})
    first = mark_after(None, Batch(str(uuid4()), Offsets(start), Offsets(end)), counts, source)
    batch = Batch(str(uuid4()), first.offsets, Offsets({p: at + 7 for p, at in end.items()}))
    mark = mark_after(first, batch, dict.fromkeys(end, Counts(7, 7)), source, {"ns.t": str(uuid4())})
    assert len(summary_text(mark)) <= 4096
    assert mark_from_property(property_text(mark)) == mark


def test_a_commit_neither_reads_its_own_metadata_again_nor_copies_the_history(
    table: IcebergTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What each commit would otherwise do some twenty times, for every snapshot that the table has."""
    before = commit(table, commit(table, None))
    parsed: list[str] = []
    copied: list[object] = []
    parse = FromInputFile.table_metadata

    def counted(file: InputFile) -> TableMetadata:
        parsed.append(file.location)
        return parse(file)

    monkeypatch.setattr(FromInputFile, "table_metadata", staticmethod(counted))
    monkeypatch.setattr(Summary, "__deepcopy__", lambda self, memo=None: copied.append(self) or self)
    current = commit(table, before)
    assert (parsed, copied) == ([], [])
    assert table.found().mark == current
    assert len(table._loaded().snapshots()) == 3


def test_what_somebody_else_commits_is_read(table: IcebergTable, tmp_path: Path) -> None:
    first = commit(table, None)
    stranger = IcebergTable(new_catalog(catalog_config(tmp_path)), "ns.t", "job", write_props={})
    second = commit(stranger, first)
    assert table.found().mark == second
    third = commit(table, second)
    assert stranger.found().mark == third


def catalog_config(folder: Path) -> dict[str, str]:
    return {
        "iceberg.catalog.type": "jdbc",
        "iceberg.catalog.uri": f"jdbc:sqlite:{folder}/catalog.db",
        "iceberg.catalog.warehouse": f"file://{folder}/warehouse",
    }


@pytest.fixture
def table(tmp_path: Path) -> IcebergTable:
    catalog = open_catalog(catalog_config(tmp_path))
    catalog.create_namespace("ns")
    catalog.create_table("ns.t", Schema(NestedField(1, "id", LongType(), required=True)))
    return IcebergTable(catalog, "ns.t", "job", write_props={})


def commit(table: IcebergTable, before: JobMark | None) -> JobMark:
    mark = after(before)
    expect = before.offsets if before else NOTHING
    receipt = table.commit([], mark, expect=expect, new_fields={}, written_with=table.plan({}), summary={})
    assert receipt.mark is not None
    return receipt.mark


def test_a_job_of_version_0_1_goes_on_in_its_table(table: IcebergTable) -> None:
    loaded = table._loaded()
    with loaded.transaction() as transaction:
        transaction.set_properties({key_of("job"): VERSION_0_1})
        transaction.update_snapshot(snapshot_properties={key_of("job"): VERSION_0_1}).fast_append().commit()
    before = table.found().mark
    assert before == mark_from_property(VERSION_0_1)
    commit(table, before)
    found = table.found().mark
    assert found is not None
    assert found.offsets == Offsets({A: 30, B: 10, C: 13})
    assert found.earlier == before.earlier
    assert found.began == before.began


def test_a_table_that_is_rolled_back_has_the_mark_of_then(table: IcebergTable) -> None:
    made: list[JobMark] = []
    snapshots: list[int] = []
    for _ in range(3):
        made.append(commit(table, made[-1] if made else None))
        current = table._loaded().current_snapshot()
        assert current is not None
        snapshots.append(current.snapshot_id)
    for snapshot, mark in reversed(list(zip(snapshots, made, strict=True))):
        with table._loaded().manage_snapshots() as manage:
            manage.rollback_to_snapshot(snapshot)
        found = table.found().mark
        assert found is not None
        assert (found.commit, found.offsets, found.totals) == (mark.commit, mark.offsets, mark.totals)
    again = commit(table, table.found().mark)
    assert again.totals == made[1].totals
    assert table.found().mark == again
