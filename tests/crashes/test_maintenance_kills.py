"""Maintenance that is killed between any two of its steps: the table is as before or as after, the job goes
on, the next maintenance finishes, and what was left behind is removed."""

from __future__ import annotations

import datetime as dt
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

from icestream.api.errors import CommitConflict, CommitUnknown, SinkUnavailable
from icestream.connectors.iceberg.catalogs.opening import open_catalog as rest_catalog
from icestream.connectors.iceberg.maintenance.compaction import CompactionLimits, compact
from icestream.connectors.iceberg.maintenance.expiry import ExpiryLimits, expire
from tests.crashes.faults import Faults
from tests.crashes.maintenance_process import maintainer
from tests.crashes.rest_catalog import SilentCatalog
from tests.unit.connectors.iceberg.maintained import Job, data_files, ids, loaded, new_catalog, on_disk

ROOT = Path(__file__).parents[2]
DAY = dt.timedelta(days=1)
BEFORE = [("rewritten", 1), ("sending", 1)]
POINTS = [
    *BEFORE,
    ("accepted", 1),
    pytest.param("compacted", 1, marks=pytest.mark.long),
    ("sending", 2),
    pytest.param("accepted", 2, marks=pytest.mark.long),
    ("expired", 1),
]
"""The first commit is that of the compaction, the second that of the expiry."""


@pytest.mark.parametrize(("point", "turn"), POINTS)
def test_the_table_survives_a_kill(tmp_path: Path, point: str, turn: int) -> None:
    catalog = new_catalog(tmp_path)
    job = Job(catalog)
    for _ in range(24):
        job.commit(5)
    staged = job.stage(120, 125, "11111111-1111-1111-1111-111111111111")
    killed = subprocess.run(
        [sys.executable, "-m", "tests.crashes.maintenance_process", str(tmp_path), point, str(turn)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stdout + killed.stderr
    assert ids(catalog) == Counter(range(120))
    job.proves(120)
    assert data_files(catalog) == (24 if (point, turn) in BEFORE else 1)

    # The job goes on, and so does maintenance.
    job.commit()
    now = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=1)
    again = maintainer(tmp_path, Faults([])).run(now, thorough=True, turn=nullcontext())
    assert again.error is None
    assert data_files(catalog) <= 2
    assert ids(catalog) == Counter(range(130))
    job.proves(130)

    # What nobody has is gone in the end. Files of the last hours may be a live batch's.
    for path in on_disk(tmp_path, "*.parquet") | on_disk(tmp_path, "*.avro"):
        os.utime(path, ((now - 3 * DAY).timestamp(),) * 2)
    job.commit()
    later = maintainer(tmp_path, Faults([])).run(now + 4 * DAY, thorough=True, turn=nullcontext())
    assert later.error is None
    kept = {task.file.file_path.removeprefix("file://") for task in loaded(catalog).scan().plan_files()}
    assert not {file.path.removeprefix("file://") for file in staged} & kept
    referenced = {
        entry.data_file.file_path.removeprefix("file://")
        for snapshot in loaded(catalog).metadata.snapshots
        for manifest in snapshot.manifests(loaded(catalog).io)
        for entry in manifest.fetch_manifest_entry(loaded(catalog).io, discard_deleted=False)
    }
    assert on_disk(tmp_path, "*.parquet") <= referenced
    job.proves(140)


def test_a_rest_catalog_that_takes_a_commit_and_never_answers(tmp_path: Path) -> None:
    """Nothing is removed while nobody knows; what the catalog had taken is done when it speaks again."""
    behind = new_catalog(tmp_path)
    job = Job(behind)
    for _ in range(6):
        job.commit()
    server = SilentCatalog(behind)
    with server.serve() as address:
        ours: Any = rest_catalog(
            {
                "iceberg.catalog.type": "rest",
                "iceberg.catalog.uri": address,
                "iceberg.catalog.rest.client.socket-timeout-ms": "300",
            }
        )
        commit_table = ours.commit_table

        def hushed(*arguments: Any) -> Any:
            server.hush()
            return commit_table(*arguments)

        ours.commit_table = hushed
        files = on_disk(tmp_path, "*.parquet")
        with pytest.raises((CommitUnknown, SinkUnavailable)):
            compact(ours.load_table("ns.t"), CompactionLimits(4))
        assert len(on_disk(tmp_path, "*.parquet") - files) == 1, "the merged file stays"
        server.speak()
        ours.commit_table = commit_table
        ours = rest_catalog({"iceberg.catalog.type": "rest", "iceberg.catalog.uri": address})
        job.proves(60)
        with suppress(CommitConflict):
            compact(ours.load_table("ns.t"), CompactionLimits(4))
        deadline = time.monotonic() + 60
        while data_files(behind) != 1:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        last = ExpiryLimits(dt.timedelta(0), retain_last=1)
        now = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=1)
        done = expire(lambda: ours.load_table("ns.t"), last, now)
        assert done.snapshots_after == 1
    assert ids(behind) == Counter(range(60))
    job.proves(60)
