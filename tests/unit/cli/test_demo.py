"""`icestream demo`: what it says of a failure, and what it does with a demo that did not end."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from icestream.api.errors import PreconditionError
from icestream.cli.demo import _reason
from icestream.cli.demo_stack import end_leftovers, ended_by_signals, note_process
from icestream.client import ConnectorView
from icestream.client.views import TaskView
from icestream.embedded.process import Process, spawn, start_mark

TRACE = """Traceback (most recent call last):
  File "a.py", line 1, in tick
    open()
icestream.api.errors.PreconditionError: the catalog is away; start it
"""


@pytest.mark.parametrize(
    ("trace", "of_task", "reason"),
    [
        (TRACE, None, "the catalog is away; start it"),
        (None, TRACE, "the catalog is away; start it"),
        (None, None, "no reason is known"),
    ],
)
def test_a_failed_connector_is_one_sentence(trace: str | None, of_task: str | None, reason: str) -> None:
    task = TaskView(0, "FAILED", "worker", of_task)
    assert _reason(ConnectorView("logs", "FAILED", "worker", trace, [task], None)) == reason


def test_a_demo_that_runs_is_named_with_the_command_that_ends_it(tmp_path: Path) -> None:
    note_process(tmp_path, "demo", Process(os.getpid(), start_mark(os.getpid()) or ""))
    with pytest.raises(PreconditionError, match=f"a demo is running in .*; end it first: kill {os.getpid()}"):
        end_leftovers(tmp_path)


def test_the_worker_of_a_demo_that_was_killed_is_ended(tmp_path: Path) -> None:
    worker = spawn([sys.executable, "-c", "import time; time.sleep(600)"], output=tmp_path / "log")
    note_process(tmp_path, "demo", Process(os.getpid(), "of another process with this number"))
    note_process(tmp_path, "worker", worker)
    assert worker.is_alive()
    end_leftovers(tmp_path)
    assert not worker.is_alive()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_demo_in_order(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    steps: list[str] = []
    with pytest.raises(SystemExit) as ended, ended_by_signals():
        try:
            signal.raise_signal(number)
        finally:
            steps.append("stopped")
    assert ended.value.code == 128 + number
    assert steps == ["stopped"]
    assert signal.getsignal(number) is before
