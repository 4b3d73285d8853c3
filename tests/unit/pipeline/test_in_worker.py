"""Batches that run in the worker itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import MagicMock

import pytest

from icestream.api.batch import Batch, BatchResult, PartlyStaged, Staged
from icestream.api.errors import Cancelled
from icestream.api.offsets import Offsets, Partition
from icestream.api.sink import SinkPlan
from icestream.kafka import reader
from icestream.pipeline import in_worker
from icestream.pipeline.in_worker import InWorkerRunner
from icestream.pipeline.record_path import RecordSettings
from tests.unit.pipeline.batches import CONFIG

P = Partition("t", 0)
BATCH = Batch("b", Offsets({P: 0}), Offsets({P: 1}))


def test_what_a_batch_has_staged_when_it_is_cancelled_can_be_removed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runner = InWorkerRunner({"bootstrap.servers": "127.0.0.1:1"}, RecordSettings.of(CONFIG))
    staged = BatchResult({"target": Staged(["file"], 1)}, [], 1, {})

    def staging(*_: Any) -> BatchResult:
        runner.cancel()
        return staged

    monkeypatch.setattr(in_worker, "task_result", staging)
    with pytest.raises(PartlyStaged) as told:
        runner.run(BATCH, SinkPlan(lambda task: pytest.fail("nothing is written"), []))
    assert isinstance(told.value.reason, Cancelled)
    assert told.value.done == [staged]
    with pytest.raises(Cancelled):
        runner.run(BATCH, SinkPlan(lambda task: pytest.fail("nothing is written"), []))
    runner.close()


class Silent:
    """A consumer of a broker that hangs. The first poll is when somebody cancels."""

    def __init__(self, settings: object) -> None:
        self.polled: Callable[[], None] = lambda: None

    def poll(self, seconds: float) -> None:
        self.polled()

    def assign(self, partitions: object) -> None: ...
    def unassign(self) -> None: ...
    def close(self) -> None: ...


def test_a_batch_that_kafka_keeps_waiting_is_given_up_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = Silent({})
    monkeypatch.setattr(reader, "Consumer", lambda settings: silent)
    runner = InWorkerRunner({}, RecordSettings.of(CONFIG))
    silent.polled = runner.cancel
    plan = SinkPlan(lambda task: MagicMock(), [])
    with pytest.raises(Cancelled):
        runner.run(BATCH, plan)
    runner.close()
