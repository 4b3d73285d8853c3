"""How a checkpoint is written down, and what a rollback, an upgrade and a cut history leave of it."""

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
from icestream.api.checkpoint import PRUNE_AFTER, TopicIds, checkpoint_after, checkpoint_moved
from icestream.api.errors import FatalError
from icestream.api.offsets import NOTHING, Offsets, Partition
from icestream.api.sink import Commit
from icestream.connectors.iceberg.catalogs.opening import open_catalog
from icestream.connectors.iceberg.commits.checkpoint_text import (
    TableCheckpoint,
    checkpoint_from_property,
    checkpoint_from_summary,
    property_text,
    summary_text,
)
from icestream.connectors.iceberg.commits.checkpoints import key_of
from icestream.connectors.iceberg.table import IcebergTable

A, B, C = Partition("a", 0), Partition("a", 7), Partition("b", 1)
SOURCE = TopicIds("cluster", {"a": "id-a", "b": "id-b"})
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


def after(before: TableCheckpoint | None, **changes: object) -> TableCheckpoint:
    """Ten offsets further in each partition, of which some hold no record, some are rejected or filtered."""
    start = {p: before.offsets.get(p) or 0 if before else 0 for p in MIXED}
    batch = Batch(str(uuid4()), Offsets(start), Offsets({p: at + 10 for p, at in start.items()}))
    next_one = checkpoint_after(before, batch, MIXED, SOURCE, {"ns.t": "t-id"}, frozenset())
    checkpoint = next_one if before else TableCheckpoint(**vars(next_one))
    return replace(checkpoint, **changes)  # type: ignore[arg-type]


def checkpoints(count: int) -> list[TableCheckpoint]:
    made: list[TableCheckpoint] = []
    for _ in range(count):
        made.append(after(made[-1] if made else None))
    return made


def test_a_checkpoint_survives_the_property_whole() -> None:
    checkpoint = checkpoint_moved(checkpoints(3)[-1], "m", {A: 4, C: None}, SOURCE, NOTHING)
    checkpoint = replace(checkpoint, joining=frozenset(["x"]), gone={"b": 3}, base=Counts(3, 2, 1))
    assert checkpoint_from_property(property_text(checkpoint)) == checkpoint


def test_a_checkpoint_without_partitions_survives() -> None:
    checkpoint = TableCheckpoint("c", None, SOURCE)
    assert checkpoint_from_property(property_text(checkpoint)) == checkpoint
    assert checkpoint_from_summary(summary_text(checkpoint), None).partitions == {}


def test_marks_of_version_0_1_are_read() -> None:
    checkpoint = checkpoint_from_property(VERSION_0_1)
    assert checkpoint == checkpoint_from_summary(VERSION_0_1, None)
    assert checkpoint.offsets == Offsets({A: 20, C: 3})
    assert (checkpoint.partitions[A].first, checkpoint.partitions[A].start) == (5, 10)
    assert checkpoint.totals == Counts(22, 20, 1, 1)
    assert checkpoint.began is not None
    assert checkpoint_from_property(property_text(checkpoint)) == checkpoint


def test_a_format_of_the_future_is_refused_with_its_name() -> None:
    with pytest.raises(FatalError, match="format '3'"):
        checkpoint_from_property("3abc")


def test_a_rollback_restores_positions_and_counts_of_every_partition() -> None:
    made = checkpoints(4)
    for checkpoint in made:
        found = checkpoint_from_summary(summary_text(checkpoint), made[-1])
        assert (found.commit, found.offsets, found.totals) == (
            checkpoint.commit,
            checkpoint.offsets,
            checkpoint.totals,
        )
        assert {p: (at.first, at.counts) for p, at in found.partitions.items()} == {
            p: (at.first, at.counts) for p, at in checkpoint.partitions.items()
        }


def test_a_rollback_over_an_offset_moved_by_hand_keeps_positions_and_sums() -> None:
    first, second = checkpoints(2)
    moved = after(checkpoint_moved(second, "moved", {A: 5}, SOURCE, NOTHING))
    found = checkpoint_from_summary(summary_text(first), moved)
    assert (found.offsets, found.totals, found.base) == (first.offsets, first.totals, first.totals)
    onwards = after(found)
    assert onwards.totals == second.totals
    assert checkpoint_from_summary(summary_text(onwards), onwards) == onwards


def test_a_summary_is_enough_if_somebody_removes_the_property() -> None:
    checkpoint = checkpoints(3)[-1]
    found = checkpoint_from_summary(summary_text(checkpoint), None)
    assert (found.offsets, found.totals, found.source) == (
        checkpoint.offsets,
        checkpoint.totals,
        checkpoint.source,
    )


def test_the_first_checkpoint_tells_where_its_batch_began_without_the_property() -> None:
    first = checkpoints(1)[0]
    assert checkpoint_from_summary(summary_text(first), None).start == first.start


def test_topics_that_are_gone_are_in_the_property_only_and_come_back_if_they_exist_after_all() -> None:
    only_a = TopicIds("cluster", {"a": "id-a"})
    checkpoint = checkpoints(2)[-1]
    for number in range(PRUNE_AFTER):
        assert checkpoint_from_summary(summary_text(checkpoint), None).offsets[C] == 20
        batch = Batch(f"next-{number}", checkpoint.offsets, checkpoint.offsets)
        checkpoint = checkpoint_after(checkpoint, batch, {}, only_a)
    assert checkpoint.pruned == {"b"}
    assert (checkpoint.offsets[C], checkpoint.source.topics) == (20, SOURCE.topics)
    short = checkpoint_from_summary(summary_text(checkpoint), None)
    assert C not in short.offsets
    assert "b" not in short.source.topics
    assert short.totals == checkpoint.totals
    assert checkpoint_from_summary(summary_text(checkpoint), checkpoint) == checkpoint
    again = checkpoint_after(checkpoint, Batch("later", NOTHING, NOTHING), {}, SOURCE)
    assert (again.gone, again.offsets[C]) == ({}, 20)


@pytest.mark.parametrize("seed", range(3))
def test_a_thousand_partitions_take_less_than_4_kb_of_a_summary(seed: int) -> None:
    chance = random.Random(seed)
    start = {Partition("t", number): 0 for number in range(1000)}
    end = {p: int(1e6 * chance.uniform(0.5, 1.5)) for p in start}
    counts: Mapping[Partition, Counts] = {p: Counts(at, at) for p, at in end.items()}
    source = TopicIds("5L6g3nShT-eMCtK--X86sw", {"t": "V8qKJ6LmR2CzDVnkSyYw4Q"})
    whole = Batch(str(uuid4()), Offsets(start), Offsets(end))
    first = TableCheckpoint(**vars(checkpoint_after(None, whole, counts, source)))
    batch = Batch(str(uuid4()), first.offsets, Offsets({p: at + 7 for p, at in end.items()}))
    checkpoint = checkpoint_after(
        first, batch, dict.fromkeys(end, Counts(7, 7)), source, {"ns.t": str(uuid4())}
    )
    assert len(summary_text(checkpoint)) <= 4096
    assert checkpoint_from_property(property_text(checkpoint)) == checkpoint


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
    assert table.found().checkpoint == current
    assert len(table._loaded().snapshots()) == 3


def test_what_somebody_else_commits_is_read(table: IcebergTable, tmp_path: Path) -> None:
    first = commit(table, None)
    stranger = IcebergTable(open_catalog(catalog_config(tmp_path)), "ns.t", "job", write_props={})
    second = commit(stranger, first)
    assert table.found().checkpoint == second
    third = commit(table, second)
    assert stranger.found().checkpoint == third


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


def commit(table: IcebergTable, before: TableCheckpoint | None) -> TableCheckpoint:
    receipt = table.commit(Commit(after(before), before, table.plan({})))
    assert isinstance(receipt.checkpoint, TableCheckpoint)
    return receipt.checkpoint


def test_a_job_of_version_0_1_goes_on_in_its_table(table: IcebergTable) -> None:
    loaded = table._loaded()
    with loaded.transaction() as transaction:
        transaction.set_properties({key_of("job"): VERSION_0_1})
        transaction.update_snapshot(snapshot_properties={key_of("job"): VERSION_0_1}).fast_append().commit()
    before = table.found().checkpoint
    assert before == checkpoint_from_property(VERSION_0_1)
    commit(table, before)
    found = table.found().checkpoint
    assert found is not None
    assert found.offsets == Offsets({A: 30, B: 10, C: 13})
    assert found.earlier == before.earlier
    assert found.began == before.began


def test_a_table_that_is_rolled_back_has_the_checkpoint_of_then(table: IcebergTable) -> None:
    made: list[TableCheckpoint] = []
    snapshots: list[int] = []
    for _ in range(3):
        made.append(commit(table, made[-1] if made else None))
        current = table._loaded().current_snapshot()
        assert current is not None
        snapshots.append(current.snapshot_id)
    for snapshot, checkpoint in reversed(list(zip(snapshots, made, strict=True))):
        with table._loaded().manage_snapshots() as manage:
            manage.rollback_to_snapshot(snapshot)
        found = table.found().checkpoint
        assert found is not None
        assert (found.commit, found.offsets, found.totals) == (
            checkpoint.commit,
            checkpoint.offsets,
            checkpoint.totals,
        )
    again = commit(table, table.found().checkpoint)
    assert again.totals == made[1].totals
    assert table.found().checkpoint == again
