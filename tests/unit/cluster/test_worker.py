"""The worker's slots: none starts a job after the end, none outlives its connector."""

from __future__ import annotations

import threading
import time

from icestream.cluster.job_slot import Wish
from icestream.cluster.stores import TargetState
from icestream.cluster.worker import Patience, Worker
from icestream.testing import FakeStarter


def _worker(starter: FakeStarter) -> Worker:
    worker = Worker("w:1", Patience(2.0, 2.0))
    worker.use(starter)
    return worker


def _wish(worker: Worker) -> Wish:
    return Wish(worker.new_run(), {}, TargetState.STARTED)


def _threads_of(prefix: str) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith(f"connector-{prefix}")]


def test_a_closed_worker_starts_nothing_any_more() -> None:
    starter = FakeStarter()
    worker = _worker(starter)
    assert worker.ask("a", _wish(worker))()
    worker.close()
    for name in ("a", "b"):
        assert worker.ask(name, _wish(worker))()
    assert [job.name for job in starter.jobs] == ["a"]
    assert starter.alive("a") == []


def test_connectors_that_went_elsewhere_leave_no_threads() -> None:
    worker = _worker(FakeStarter())
    for number in range(10):
        assert worker.ask(f"gone-{number}", _wish(worker))()
        # As the roster does when a rebalance takes it: the function that waits is never called.
        worker.ask(f"gone-{number}", None)
        while worker.running():
            time.sleep(0.005)
    worker.ask("here", _wish(worker))
    for thread in _threads_of("gone-"):
        thread.join(60)
    assert _threads_of("gone-") == []
    worker.close()
