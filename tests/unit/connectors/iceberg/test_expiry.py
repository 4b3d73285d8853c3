"""Old snapshots go with their files; checkpoints, branches, tags and live batches stay."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table

from icestream.api.errors import CommitConflict, FatalError
from icestream.connectors.iceberg.maintenance.compaction import CompactionLimits, compact
from icestream.connectors.iceberg.maintenance.expiry import ExpiryLimits, expire, to_expire
from icestream.connectors.iceberg.maintenance.replace_commit import Replacement, replace_files
from tests.unit.connectors.iceberg.maintained import Job, ids, loaded, new_catalog, on_disk

NOW = dt.datetime.now(dt.UTC)
LATER = NOW + dt.timedelta(days=10)
LAST = ExpiryLimits(dt.timedelta(0), retain_last=1)


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return new_catalog(tmp_path)


def snapshots(catalog: Catalog) -> int:
    return len(loaded(catalog).metadata.snapshots)


def test_snapshots_and_the_files_only_they_had_go(catalog: Catalog, tmp_path: Path) -> None:
    job = Job(catalog)
    for _ in range(6):
        job.commit()
    compact(loaded(catalog), CompactionLimits(4))
    staged = job.stage(60, 70, "live")
    dry = expire(lambda: loaded(catalog), LAST, LATER, dry_run=True)
    assert (dry.snapshots_before, dry.snapshots_after, dry.files_removed) == (7, 1, 6 + 6 + 6)
    assert snapshots(catalog) == 7
    done = expire(lambda: loaded(catalog), LAST, LATER)
    assert done == dry
    assert snapshots(catalog) == 1
    assert len(on_disk(tmp_path, "*.parquet")) == 1 + len(staged), (
        "the merged one, and what a batch has staged"
    )
    # One list, and a manifest of what was merged and one of what was replaced.
    assert len(on_disk(tmp_path, "*.avro")) == 3
    assert ids(catalog) == Counter(range(60))
    job.proves(60)
    job.commit()
    job.proves(70)


def test_what_branches_and_tags_have_stays(catalog: Catalog) -> None:
    job = Job(catalog)
    job.commit()
    table = loaded(catalog)
    tagged = table.metadata.current_snapshot_id
    assert tagged is not None
    table.manage_snapshots().create_tag(tagged, "kept").commit()
    job.commit()
    branched = loaded(catalog).metadata.current_snapshot_id
    assert branched is not None
    loaded(catalog).manage_snapshots().create_branch(branched, "other").commit()
    for _ in range(4):
        job.commit()
    compact(loaded(catalog), CompactionLimits(2))
    expire(lambda: loaded(catalog), LAST, LATER)
    assert {one.snapshot_id for one in loaded(catalog).metadata.snapshots} > {tagged, branched}
    assert snapshots(catalog) == 3
    assert loaded(catalog).scan(snapshot_id=tagged).to_arrow().num_rows == 10
    assert loaded(catalog).scan(snapshot_id=branched).to_arrow().num_rows == 20
    job.proves(60)


def test_age_number_and_the_most_count_together(catalog: Catalog) -> None:
    job = Job(catalog)
    for _ in range(6):
        job.commit()
    metadata = loaded(catalog).metadata
    week = dt.timedelta(days=7)
    assert len(to_expire(metadata, ExpiryLimits(week, 1, 500), NOW)) == 0, "all are young"
    assert len(to_expire(metadata, ExpiryLimits(week, 1, 4), NOW)) == 2, "too many of them"
    assert len(to_expire(metadata, ExpiryLimits(week, 5, 4), NOW)) == 1, "so many stay, whatever the most is"
    assert len(to_expire(metadata, ExpiryLimits(week, 2, 500), LATER)) == 4
    assert expire(lambda: loaded(catalog), ExpiryLimits(week, 2), LATER, least=5).snapshots_after == 6


def test_a_branch_has_its_own_limits(catalog: Catalog) -> None:
    job = Job(catalog)
    for _ in range(5):
        job.commit()
    table = loaded(catalog)
    head = table.metadata.current_snapshot_id
    assert head is not None
    table.manage_snapshots().create_branch(head, "long", min_snapshots_to_keep=4).commit()
    assert len(to_expire(loaded(catalog).metadata, LAST, LATER)) == 1


def test_an_idle_job_does_not_lose_its_checkpoint(catalog: Catalog) -> None:
    job, idle = Job(catalog), Job(catalog, "idle", first=1000)
    idle.commit()
    for _ in range(4):
        job.commit()
    before = idle.table.found()
    done = expire(lambda: loaded(catalog), LAST, LATER)
    assert (done.snapshots_before, done.snapshots_after, snapshots(catalog)) == (5, 1, 1)
    head = loaded(catalog).current_snapshot()
    assert head is not None
    assert head.summary is not None
    assert head.summary["icestream.maintenance"] == "checkpoints"
    assert idle.table.found() == before
    idle.commit()
    idle.proves(20)
    job.proves(40)


def test_what_stays_tells_where_every_job_was(catalog: Catalog) -> None:
    """Somebody may roll the table back to any snapshot that is left."""
    job, other = Job(catalog), Job(catalog, "other", first=1000)
    places: dict[int, tuple[int, int]] = {}
    for _ in range(5):
        for one in (job, other):
            one.commit()
            head = loaded(catalog).metadata.current_snapshot_id
            assert head is not None
            places[head] = (job.at, other.at)
    # The heads of both are kept by number; what tells of the other job by its need.
    expire(lambda: loaded(catalog), ExpiryLimits(dt.timedelta(0), retain_last=3), LATER)
    left = [one.snapshot_id for one in loaded(catalog).metadata.snapshots if one.snapshot_id in places]
    assert left
    for id_ in reversed(left):
        loaded(catalog).manage_snapshots().rollback_to_snapshot(id_).commit()
        assert (job.at, other.at) == places[id_]


def test_a_job_that_was_rolled_back_goes_on_where_the_rollback_left_it(catalog: Catalog) -> None:
    """The table property says that it was further: it must not count."""
    idle, job = Job(catalog, "idle", first=1000), Job(catalog)
    idle.commit()
    job.commit()
    back = loaded(catalog).metadata.current_snapshot_id
    assert back is not None
    idle.commit()
    loaded(catalog).manage_snapshots().rollback_to_snapshot(back).commit()
    for _ in range(3):
        job.commit()
    assert idle.at == 10
    expire(lambda: loaded(catalog), LAST, LATER)
    assert idle.at == 10
    assert job.at == 40
    idle.commit()
    idle.proves(20)


def test_the_history_that_says_a_job_was_rolled_back_altogether_stays(catalog: Catalog) -> None:
    other, job = Job(catalog, "other", first=1000), Job(catalog)
    other.commit()
    back = loaded(catalog).metadata.current_snapshot_id
    assert back is not None
    job.commit()
    loaded(catalog).manage_snapshots().rollback_to_snapshot(back).commit()
    for _ in range(3):
        other.commit()
    assert job.table.found().checkpoint is None
    with pytest.raises(FatalError, match="let the job commit first"):
        expire(lambda: loaded(catalog), LAST, LATER)
    assert job.table.found().checkpoint is None
    job.commit()
    expire(lambda: loaded(catalog), LAST, LATER)
    assert job.at == 10
    job.proves(10)
    other.proves(40)


def test_the_offsets_of_a_java_sink_are_carried_on(catalog: Catalog) -> None:
    job = Job(catalog)
    table = loaded(catalog)
    job.commit()
    java = {"kafka.connect.offsets.control.group": '{"0":5}', "kafka.connect.commit-id": "x"}
    table.append(table.refresh().scan(row_filter="id < 1").to_arrow(), snapshot_properties=java)
    for _ in range(3):
        job.commit()
    expire(lambda: loaded(catalog), LAST, LATER)
    head = loaded(catalog).current_snapshot()
    assert head is not None
    assert head.summary is not None
    assert head.summary["kafka.connect.offsets.control.group"] == '{"0":5}'
    assert head.summary["kafka.connect.commit-id"] is None, "that is one snapshot's own"


def test_that_a_java_sink_has_committed_since_is_carried_on(catalog: Catalog) -> None:
    """Otherwise the job would go on at its own checkpoint, and read again what Java's workers have."""
    job = Job(catalog)
    job.commit()
    table = loaded(catalog)
    java = {"kafka.connect.offsets.control.connect-job": '{"0":5}', "kafka.connect.commit-id": "x"}
    table.append(table.scan(row_filter="id < 1").to_arrow(), snapshot_properties=java)
    assert job.table.found().follows_group
    for _ in range(2):
        replace_files(loaded(catalog), Replacement("checkpoints"))
        assert job.table.found().follows_group
        expire(lambda: loaded(catalog), LAST, LATER)
        assert job.table.found().follows_group
    job.commit()
    assert not job.table.found().follows_group
    replace_files(loaded(catalog), Replacement("checkpoints"))
    assert not job.table.found().follows_group


def test_a_batch_in_between_is_no_reason_to_give_up(catalog: Catalog, tmp_path: Path) -> None:
    job = Job(catalog)
    for _ in range(4):
        job.commit()
    other = new_catalog(tmp_path)
    calls: list[int] = []

    def load() -> Table:
        table = loaded(catalog)
        calls.append(1)
        if len(calls) < 4:
            Job(other).commit()
        return table

    # Once after the first look, once before the commit, which is refused, and once after the second look.
    done = expire(load, LAST, LATER)
    assert len(calls) == 4
    assert (done.snapshots_before, done.snapshots_after) == (6, 2)
    job.proves(70)


def test_an_expiry_whose_answer_is_lost_is_asked_about(catalog: Catalog, tmp_path: Path) -> None:
    job = Job(catalog)
    for _ in range(4):
        job.commit()
    sent = catalog.commit_table

    def lost(*arguments: object) -> object:
        catalog.__dict__.pop("commit_table")
        sent(*arguments)  # type: ignore[arg-type]
        raise OSError("connection reset")

    catalog.__dict__["commit_table"] = lost
    assert expire(lambda: loaded(catalog), LAST, LATER).snapshots_after == 1

    def never(*arguments: object) -> object:
        raise CommitFailedException("no")

    job.commit()
    job.commit()
    files = on_disk(tmp_path, "*.parquet")
    catalog.__dict__["commit_table"] = never
    with pytest.raises(CommitConflict):
        expire(lambda: loaded(catalog), LAST, LATER)
    assert on_disk(tmp_path, "*.parquet") == files
    catalog.__dict__.pop("commit_table")
    job.proves(60)


def test_files_stay_where_their_owner_says_so(catalog: Catalog, tmp_path: Path) -> None:
    job = Job(catalog)
    for _ in range(4):
        job.commit()
    compact(loaded(catalog), CompactionLimits(4))
    with loaded(catalog).transaction() as change:
        change.set_properties({"gc.enabled": "false"})
    files = on_disk(tmp_path, "*.parquet") | on_disk(tmp_path, "*.avro")
    assert expire(lambda: loaded(catalog), LAST, LATER).files_removed == 0
    assert files <= on_disk(tmp_path, "*.parquet") | on_disk(tmp_path, "*.avro")
