"""Which manager a connector gets, and that Spark comes late."""

from __future__ import annotations

from pathlib import Path

import pytest

from icestream.jobs import build


def test_file_connectors_start_without_spark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def no_spark(self: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(build.LateSpark, "plane", no_spark)
    config = {"connector.class": "FileStreamSource", "file": str(tmp_path / "none"), "topic": "t"}
    worker = {"bootstrap.servers": "127.0.0.1:1", "offset.storage.file.filename": str(tmp_path / "offsets")}
    build.manager_maker(worker)("source", config, lambda: None).close()


def test_spark_starts_at_once_for_a_worker_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[object] = []
    monkeypatch.setattr(build.LateSpark, "plane", lambda spark: started.append(spark))
    build.manager_maker({"bootstrap.servers": "127.0.0.1:1"})
    assert not started
    build.manager_maker({"bootstrap.servers": "127.0.0.1:1", "spark.master": "local[2]"})
    assert len(started) == 1
