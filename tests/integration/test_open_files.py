"""Jobs and those who look at them come and go; what they had open is closed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from sqlalchemy import QueuePool

from icestream.connectors.iceberg.catalogs import sharing, sql_catalog
from icestream.embedded.kafka import Broker
from icestream.jobs.audits.audit_facts import gather
from icestream.jobs.build import offset_admin
from icestream.jobs.probes import probe_connector
from icestream.jobs.sinks.target_commits import target_commits
from tests.integration.local_job import World
from tests.open_files import times_open

PATIENCE = 60.0


def test_no_catalog_stays_open_when_jobs_have_ended(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(broker, tmp_path, options={"icestream.maintenance.enabled": "true"})
    config = {**world.config, "name": world.name}
    # Connections to this file are kept for as long as those to a server.
    monkeypatch.setattr(sql_catalog, "NullPool", QueuePool)
    before = {*sharing._OPEN}
    admin = offset_admin(world.settings)
    for turn in range(3):
        world.produce({"id": number} for number in range(turn * 10, turn * 10 + 10))
        world.drain()
        assert probe_connector(config, world.settings) == []
        assert len(gather(world.name, config, world.settings, deep=True)) == 1
        assert admin.read(world.name, config)
        assert len(target_commits(world.name, config, 10)) >= turn + 1
    # Maintenance and sweeps are done beside the job, and may end after it.
    deadline = time.monotonic() + PATIENCE
    while times_open(tmp_path / "catalog.db") or {*sharing._OPEN} != before:
        assert time.monotonic() < deadline, "a catalog is still open"
        time.sleep(0.05)
