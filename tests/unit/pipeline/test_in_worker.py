"""Batches that run in the worker itself."""

from __future__ import annotations

from typing import Any

import pytest

from icestream.api.batch import Batch, BatchResult, PartlyStaged, Staged
from icestream.api.errors import Cancelled
from icestream.api.offsets import Offsets, Partition
from icestream.api.sink import SinkPlan
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
