"""Maintenance that is killed between any two of its steps: the table is as before or as after, the job goes
on, the next maintenance finishes, and what was left behind is removed."""

from __future__ import annotations

import datetime as dt
import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.crashes.faults import Faults
from tests.crashes.maintenance_process import maintainer
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
    for _ in range(12):
        job.commit()
    staged = job.stage(120, 130, "11111111-1111-1111-1111-111111111111")
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
    assert data_files(catalog) == (12 if (point, turn) in BEFORE else 1)

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
