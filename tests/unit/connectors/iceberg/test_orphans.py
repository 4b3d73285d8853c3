"""Files that nobody has go when they are old; those of a live batch, of others and of any snapshot stay."""

from __future__ import annotations

import datetime as dt
import os
import uuid
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog

from icestream.api.errors import FatalError
from icestream.connectors.iceberg.maintenance.compaction import CompactionLimits, compact
from icestream.connectors.iceberg.maintenance.expiry import ExpiryLimits, expire
from icestream.connectors.iceberg.maintenance.orphans import remove_orphans
from tests.unit.connectors.iceberg.maintained import Job, loaded, new_catalog, on_disk

DAY = dt.timedelta(days=1)
NOW = dt.datetime.now(dt.UTC)
LATER = NOW + 4 * DAY


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return new_catalog(tmp_path)


def data_folder(tmp_path: Path) -> Path:
    (found,) = {Path(path).parent for path in on_disk(tmp_path, "*.parquet")}
    return found


def test_only_old_files_that_nobody_has_go(catalog: Catalog, tmp_path: Path) -> None:
    job = Job(catalog)
    for _ in range(4):
        job.commit()
    compact(loaded(catalog), CompactionLimits(4))
    known = on_disk(tmp_path, "*.*")
    folder = data_folder(tmp_path)
    stray = folder / "another-engine.parquet"
    list_ = folder.parent / "metadata" / "snap-1-0-lost.avro"
    notes = folder / "README.txt"
    for path in (stray, list_, notes):
        path.write_bytes(b"x" * 10)
    assert remove_orphans(loaded(catalog), {}, DAY, NOW).orphans == 0, "they are young"
    assert remove_orphans(loaded(catalog), {}, dt.timedelta(0), NOW).orphans == 0, "whatever one says"
    dry = remove_orphans(loaded(catalog), {}, DAY, LATER, dry_run=True)
    assert (dry.orphans, dry.bytes) == (2, 20)
    assert stray.exists()
    assert remove_orphans(loaded(catalog), {}, DAY, LATER).orphans == 2
    assert on_disk(tmp_path, "*.*") == known | {str(notes)}
    job.proves(40)


def test_what_a_live_batch_has_staged_stays_until_its_job_has_landed_another(
    catalog: Catalog, tmp_path: Path
) -> None:
    job = Job(catalog)
    job.commit()
    staged = {file.path.removeprefix("file://") for file in job.stage(10, 20, str(uuid.uuid4()))}
    # It has been at work for two days, and its job has landed nothing since.
    for path in staged:
        os.utime(path, ((NOW + DAY).timestamp(),) * 2)
    assert remove_orphans(loaded(catalog), {}, DAY, LATER).orphans == 0
    compact(loaded(catalog), CompactionLimits(2))
    assert remove_orphans(loaded(catalog), {}, DAY, LATER).orphans == 0, "that was no commit of the job"
    # Dead: a later batch has landed.
    for path in staged:
        os.utime(path, ((NOW - 2 * DAY).timestamp(),) * 2)
    assert remove_orphans(loaded(catalog), {}, DAY, LATER).orphans == len(staged)
    assert not staged & on_disk(tmp_path, "*.parquet")


def test_what_a_killed_expiry_leaves_is_found(catalog: Catalog, tmp_path: Path) -> None:
    job = Job(catalog)
    for _ in range(4):
        job.commit()
    compact(loaded(catalog), CompactionLimits(4))

    class Killed(BaseException):
        pass

    def kill(point: str) -> None:
        raise Killed

    job.commit()
    with pytest.raises(Killed):
        expire(lambda: loaded(catalog), ExpiryLimits(dt.timedelta(0), 1), NOW + DAY, reached=kill)
    files = on_disk(tmp_path, "*.parquet")
    assert len(files) == 6
    for path in files:
        os.utime(path, ((NOW - 2 * DAY).timestamp(),) * 2)
    done = remove_orphans(loaded(catalog), {}, DAY, LATER)
    assert done.orphans >= 4
    assert len(on_disk(tmp_path, "*.parquet")) == 2
    job.proves(50)


def test_paths_that_are_spelt_otherwise_are_the_same(catalog: Catalog, tmp_path: Path) -> None:
    job = Job(catalog)
    job.commit()
    table = loaded(catalog)
    location = table.metadata.location
    assert location.startswith("file:///")
    plain = table.metadata.model_copy(update={"location": location.replace("file://", "")})
    table.metadata = plain
    assert remove_orphans(table, {}, DAY, LATER).orphans == 0
    job.proves(10)


def test_a_folder_without_any_file_of_the_table_is_not_cleaned(catalog: Catalog, tmp_path: Path) -> None:
    job = Job(catalog)
    job.commit()
    table = loaded(catalog)
    other = tmp_path / "other" / "data"
    other.mkdir(parents=True)
    (other / "theirs.parquet").write_bytes(b"x")
    table.metadata = table.metadata.model_copy(update={"location": f"file://{tmp_path}/other"})
    with pytest.raises(FatalError, match="spells their paths otherwise"):
        remove_orphans(table, {}, DAY, LATER)
    # A folder that the owner chose may be shared: only our own names count there.
    table = loaded(catalog)
    assert remove_orphans(table, {"write.data.path": f"file://{other}"}, DAY, LATER).orphans == 0
    assert (other / "theirs.parquet").exists()


def test_files_stay_where_their_owner_says_so(catalog: Catalog, tmp_path: Path) -> None:
    Job(catalog).commit()
    (data_folder(tmp_path) / "stray.parquet").write_bytes(b"x")
    with loaded(catalog).transaction() as change:
        change.set_properties({"gc.enabled": "false"})
    done = remove_orphans(loaded(catalog), {}, DAY, LATER)
    assert (done.orphans, done.note) == (0, "gc.enabled=false: files stay")
