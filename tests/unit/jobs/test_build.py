"""Which parts a connector gets, and that Spark comes late."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, cast

import pytest

from icestream.api.status import State
from icestream.jobs import build, build_iceberg
from icestream.jobs.job_thread import Bell, Manager
from icestream.jobs.shared import Shared
from icestream.retry import Patience


class FakeRunner:
    is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True

    def allow(self) -> None:
        self.is_cancelled = False


class FakeSpark:
    def plane(self) -> Any:
        return None


def test_a_job_may_be_cancelled_before_its_runner_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    runner, manager = FakeRunner(), cast(Manager, object())
    monkeypatch.setattr(build_iceberg, "spark_runner", lambda *_: runner)
    monkeypatch.setattr(build_iceberg, "job_manager", lambda *_, **__: manager)
    late = build.LateRunner(cast(Any, FakeSpark()), "job", {}, {}, Shared(), Bell())
    late.cancel()
    assert late.manager() is manager
    assert runner.is_cancelled
    late.allow()
    assert not runner.is_cancelled
    late.cancel()
    assert runner.is_cancelled


def test_file_connectors_start_without_spark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def no_spark(self: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(build.LateSpark, "plane", no_spark)
    config = {"connector.class": "FileStreamSource", "file": str(tmp_path / "none"), "topic": "t"}
    worker = {"bootstrap.servers": "127.0.0.1:1", "offset.storage.file.filename": str(tmp_path / "offsets")}
    job = build.job_starter(worker)("source", config, paused=False)
    try:
        assert job.status().state is State.RUNNING
    finally:
        job.stop()


def test_spark_starts_at_once_for_a_worker_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[object] = []
    monkeypatch.setattr(build.LateSpark, "plane", lambda spark: started.append(spark))
    build.job_starter({"bootstrap.servers": "127.0.0.1:1"})
    assert not started
    build.job_starter({"bootstrap.servers": "127.0.0.1:1", "spark.master": "local[2]"})
    assert len(started) == 1


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, Patience(600, 15)),
        ({"errors.retry.timeout": "0"}, Patience(600, 15)),
        ({"errors.retry.timeout": "60000"}, Patience(600, 15)),
        ({"errors.retry.timeout": "3600000", "errors.retry.delay.max.ms": "60000"}, Patience(3600, 60)),
        ({"errors.retry.timeout": "-1", "errors.retry.delay.max.ms": "500"}, Patience(math.inf, 0.5)),
    ],
)
def test_retry_keys_lengthen_the_patience_with_outages(keys: dict[str, str], expected: Patience) -> None:
    config = {"name": "n", "connector.class": "FileStreamSink", **keys}
    assert build.patience_with(config) == expected
