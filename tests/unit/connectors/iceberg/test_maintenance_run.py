"""What a connector's maintenance does by its config: each switch and each number has its effect."""

from __future__ import annotations

import datetime as dt
import os
from contextlib import closing, nullcontext
from pathlib import Path

from icestream.api.maintenance import MaintenanceRun
from icestream.connectors.iceberg.plugin import IcebergPlugin
from tests.unit.connectors.iceberg.maintained import (
    Job,
    catalog_config,
    data_files,
    loaded,
    new_catalog,
    on_disk,
)

ON = {"icestream.maintenance.enabled": "true"}
DAY = dt.timedelta(days=1)


def run(
    folder: Path, keys: dict[str, str], *, after: dt.timedelta = dt.timedelta(seconds=1)
) -> MaintenanceRun:
    config = {**catalog_config(folder), **keys}
    with closing(IcebergPlugin().maintainer("job", config, "ns.t")) as maintainer:
        return maintainer.run(dt.datetime.now(dt.UTC) + after, thorough=True, turn=nullcontext())


def names(done: MaintenanceRun) -> list[str]:
    assert done.error is None
    return [step.name for step in done.steps]


def test_the_switches(tmp_path: Path) -> None:
    catalog = new_catalog(tmp_path)
    job = Job(catalog)
    for _ in range(12):
        job.commit()
    assert names(run(tmp_path, {})) == []
    assert names(run(tmp_path, {**ON, "icestream.maintenance.table.ns.t.enabled": "false"})) == []
    off = {f"icestream.maintenance.{step}.enabled": "false" for step in ("compaction", "expire", "orphans")}
    done = run(tmp_path, {**ON, **off})
    assert names(done) == ["manifests"]
    assert (done.steps[0].before, done.steps[0].after) == (12, 1)
    assert data_files(catalog) == 12
    done = run(tmp_path, ON)
    assert names(done) == ["compaction", "manifests", "expiry", "orphans"]
    assert (done.steps[0].before, done.steps[0].after) == (12, 1)
    job.proves(120)


def test_the_numbers(tmp_path: Path) -> None:
    catalog = new_catalog(tmp_path)
    job = Job(catalog)
    for _ in range(30):
        job.commit()
    quiet = {**ON, "icestream.maintenance.manifests.min-count": "100"}
    run(tmp_path, {**quiet, "icestream.maintenance.compaction.min-files": "31"})
    run(tmp_path, {**quiet, "icestream.maintenance.compaction.target-bytes": "1024"})
    assert data_files(catalog) == 30
    few = {
        **quiet,
        "icestream.maintenance.table.ns.t.compaction.min-files": "30",
        "icestream.maintenance.expire.max-snapshots": "5",
        "icestream.maintenance.expire.retain-last": "2",
    }
    done = run(tmp_path, few)
    assert data_files(catalog) == 1
    assert [(step.before, step.after) for step in done.steps if step.name == "expiry"] == [(31, 5)]
    for _ in range(20):
        job.commit()
    done = run(tmp_path, {**few, "icestream.maintenance.expire.older-than-ms": "0"})
    assert len(loaded(catalog).metadata.snapshots) == 2
    job.proves(500)


def test_the_age_of_orphans(tmp_path: Path) -> None:
    catalog = new_catalog(tmp_path)
    job = Job(catalog)
    job.commit()
    stray = Path(next(iter(on_disk(tmp_path, "*.parquet")))).with_name("stray.parquet")
    stray.write_bytes(b"x")
    two_days_ago = (dt.datetime.now(dt.UTC) - 2 * DAY).timestamp()
    os.utime(stray, (two_days_ago, two_days_ago))
    run(tmp_path, ON)
    assert stray.exists(), "three days are the default"
    run(tmp_path, {**ON, "icestream.maintenance.orphans.older-than-ms": "86400000"})
    assert not stray.exists()


def test_what_fails_is_told_and_the_next_steps_are_done(tmp_path: Path) -> None:
    catalog = new_catalog(tmp_path)
    job = Job(catalog)
    for _ in range(12):
        job.commit()
    Path(sorted(on_disk(tmp_path, "*.parquet"))[0]).unlink()
    done = run(tmp_path, ON)
    assert done.error is not None
    assert done.error.startswith("compaction: rewriting files of ns.t")
    assert [(step.name, step.error is None) for step in done.steps] == [
        ("compaction", False),
        ("manifests", True),
        ("expiry", True),
        ("orphans", True),
    ]
    assert len(on_disk(tmp_path, "*.parquet")) == 11, "nothing was left behind"
