"""A job of real Kafka records that keeps its table in shape between batches, and tells what that cost."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyiceberg.table import Table

from icestream.cli.connectors import notes
from icestream.client import view_of
from icestream.embedded.kafka import Broker
from icestream.jobs.audits.audit import findings
from icestream.jobs.audits.audit_facts import gather
from icestream.jobs.sinks.build import sink_manager
from icestream.jobs.sinks.manager import SinkManager
from icestream.pipeline.record_path import RecordSettings
from icestream.rest.shapes import progress_json
from tests.integration.local_job import InThisProcess, World

MAINTAINED = {
    "icestream.commit.rows": "100",
    "icestream.maintenance.enabled": "true",
    "icestream.maintenance.interval-ms": "100",
    "icestream.maintenance.commits": "5",
    "icestream.maintenance.compaction.min-files": "4",
    "icestream.maintenance.manifests.min-count": "4",
    "icestream.maintenance.expire.older-than-ms": "0",
    "icestream.maintenance.expire.retain-last": "5",
}


def table(world: World) -> Table:
    return world.catalog.load_table(f"ns.{world.name}")


def files(world: World) -> list[str]:
    return [task.file.file_path for task in table(world).scan().plan_files()]


def run_until(world: World, holds: Callable[[SinkManager], bool]) -> None:
    runner = InThisProcess(world.settings, RecordSettings.of(world.config))
    manager = sink_manager(world.name, world.config, world.settings, runner)
    deadline = time.monotonic() + 120
    try:
        while not (manager.tick() and manager.progress.lag == 0 and holds(manager)):
            assert time.monotonic() < deadline, manager.progress
            time.sleep(0.01)
    finally:
        manager.close()


def shown(manager: SinkManager) -> Any:
    """The last run, as the status has it."""
    runs: Any = progress_json(manager.progress)["maintenance"]
    return runs[-1] if runs else None


def test_a_job_keeps_its_table_in_shape_and_every_record_is_proved(broker: Broker, tmp_path: Path) -> None:
    world = World(broker, tmp_path, options=MAINTAINED)
    world.produce({"id": number, "text": f"text {number}"} for number in range(3000))

    def is_tidy(manager: SinkManager) -> bool:
        run = shown(manager)
        return run is not None and len(files(world)) <= 8 and len(table(world).metadata.snapshots) <= 30

    seen: list[Any] = []

    def noted(manager: SinkManager) -> bool:
        seen.append(shown(manager))
        return is_tidy(manager)

    run_until(world, noted)
    assert world.ids() == list(range(3000))
    run = seen[-1]
    assert (run["target"], run["error"]) == (f"ns.{world.name}", None)
    assert {step["name"] for step in run["steps"]} >= {"compaction", "manifests", "expiry"}
    assert run["seconds"] > 0
    ((_, facts),) = gather(world.name, world.config, world.settings, deep=True)
    assert facts is not None
    found = findings(facts)
    assert (found.problems, found.unknown) == ([], [])
    assert found.line.endswith("None missing, none twice.")
    assert facts.deep is not None
    assert facts.deep.foreign_rows == 0


def test_maintenance_that_fails_is_told_and_the_job_goes_on(broker: Broker, tmp_path: Path) -> None:
    world = World(broker, tmp_path, options=MAINTAINED)
    world.produce({"id": number} for number in range(100))
    world.drain()
    (broken,) = files(world)
    Path(broken.removeprefix("file://")).write_bytes(b"no longer a data file")
    world.produce({"id": number} for number in range(100, 1000))
    told: list[str] = []

    def is_told(manager: SinkManager) -> bool:
        run = shown(manager)
        if run is None or not run["error"]:
            return False
        status = {"name": "sink", "connector": {"state": "RUNNING"}, "tasks": [], "type": "sink"}
        told.extend(notes(view_of({**status, "progress": progress_json(manager.progress)})))
        return True

    run_until(world, is_told)
    head = table(world).current_snapshot()
    assert head is not None
    assert head.summary is not None
    assert head.summary["total-records"] == "1000"
    assert any(f"warning: maintenance of ns.{world.name}: compaction: " in line for line in told)
