"""A job in a process of its own, from the worker's side; the process is real, its job is a toy."""

from __future__ import annotations

import datetime as dt
import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from icestream.api.errors import (
    Cancelled,
    CommitConflict,
    ConfigError,
    FatalError,
    Fenced,
    IcestreamError,
    RetriableError,
    SinkUnavailable,
)
from icestream.api.history import BatchRecord, Event, Outcome, PartitionLag
from icestream.api.status import Progress, Waiting
from icestream.jobs.processes import child_process
from icestream.jobs.processes.child_process import ChildOptions
from icestream.jobs.processes.process_manager import JobOrder, Places, ProcessManager, StartDamper
from icestream.jobs.processes.process_wire import fact, plain, plain_error, raised_error
from icestream.traces import shown_trace
from icestream.waits import oldest_wait
from tests.unit.jobs.managed_sink import Told
from tests.unit.jobs.toy_job import FULL

TOY = (sys.executable, "-m", "tests.unit.jobs.toy_job")
Make = Callable[..., ProcessManager]


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def make(told: Told) -> Iterator[Make]:
    made: list[ProcessManager] = []

    def started(turn: str, heartbeat: float = 60.0, wake: Callable[[], None] = lambda: None, **more: str):
        order = JobOrder("toy", {"turn": turn, **more}, {})
        made.append(ProcessManager(order, ChildOptions(TOY, heartbeat), wake, observer=told))
        return made[-1]

    yield started
    for one in made:
        one.close()


def wait_for(look: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not look():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def pid_of(manager: ProcessManager) -> int:
    assert manager._child is not None
    return manager._child.pid


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_turn_is_made_there_and_told_here(make: Make, tmp_path: Path) -> None:
    manager = make("well", closed=str(tmp_path / "closed"))
    assert manager.tick() == 0.5
    assert manager.progress == Progress(lag=3, batches=1, topics=("a", "b"))
    manager.tick()
    assert manager.progress.batches == 2, "it is the same process"
    pid = pid_of(manager)
    manager.close()
    assert is_gone(pid)
    assert (tmp_path / "closed").read_text() == "closed"


@pytest.mark.parametrize("name", ["Fenced", "LostOffsets", "SourceUnavailable", "CommitUnknown"])
def test_an_error_is_of_the_class_that_it_had_and_has_its_trace(make: Make, name: str) -> None:
    with pytest.raises(IcestreamError, match="as it was told") as error:
        make(f"raise {name}").tick()
    assert type(error.value).__name__ == name
    assert "toy_job.py" in shown_trace(error.value) and "process_manager.py" not in shown_trace(error.value)


def test_errors_with_more_than_a_text_keep_it(make: Make) -> None:
    with pytest.raises(ConfigError) as config:
        make("config").tick()
    assert config.value.problems[0].key == "topics"
    with pytest.raises(CommitConflict) as conflict:
        make("raise CommitConflict").tick()
    assert conflict.value.certain


def test_a_bug_fails_the_job_and_not_the_process(make: Make) -> None:
    manager = make("bug")
    for _ in range(2):
        with pytest.raises(FatalError, match="ZeroDivisionError: no number"):
            manager.tick()
    assert manager.progress.batches == 2


@pytest.mark.parametrize(
    ("turn", "how"), [("die", "was killed by SIGKILL"), ("exit", "ended by itself with exit code 7")]
)
def test_a_process_that_ends_is_an_outage_and_is_replaced(make: Make, turn: str, how: str) -> None:
    manager = make(turn)
    with pytest.raises(SinkUnavailable, match=f"the process of the job {how}.*; another one is started"):
        manager.tick()
    with pytest.raises(SinkUnavailable, match=how):
        manager.tick()
    with pytest.raises(SinkUnavailable, match=r"2 times in a row; another one is started in \d s"):
        manager.tick()


def test_a_process_that_is_killed_between_two_turns_wakes_the_job(make: Make) -> None:
    woken = threading.Event()
    manager = make("well", wake=woken.set)
    manager.tick()
    pid = pid_of(manager)
    os.kill(pid, signal.SIGKILL)
    assert woken.wait(60)
    with pytest.raises(SinkUnavailable, match="SIGKILL"):
        manager.tick()
    assert manager.tick() == 0.5
    assert pid_of(manager) != pid


def test_a_process_that_is_stopped_is_noticed_killed_and_replaced(make: Make) -> None:
    manager = make("stop", heartbeat=1.0)
    with pytest.raises(SinkUnavailable, match=r"did not answer for \d+ s and was killed"):
        manager.tick()


def test_a_process_that_is_stopped_between_two_turns_is_killed(make: Make) -> None:
    manager = make("well", heartbeat=1.0)
    manager.tick()
    pid = pid_of(manager)
    os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: is_gone(pid))


def test_a_long_turn_is_cancelled(make: Make) -> None:
    manager = make("long")
    threading.Timer(1.0, manager.cancel).start()
    with pytest.raises(Cancelled, match="given up"):
        manager.tick()
    pid = pid_of(manager)
    manager.allow()
    threading.Timer(0.2, manager.cancel).start()
    with pytest.raises(Cancelled):
        manager.tick()
    assert pid_of(manager) == pid


def test_a_turn_that_cannot_be_cancelled_ends_with_its_process(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_process, "_CANCEL_SECONDS", 0.5)
    manager = make("hang", heartbeat=2.0)
    threading.Timer(1.0, manager.cancel).start()
    with pytest.raises(Cancelled, match="did not give up its batch and was killed"):
        manager.tick()


def test_what_the_process_waits_for_is_what_the_thread_of_the_job_waits_for(make: Make) -> None:
    manager = make("hang", heartbeat=2.0)

    def tick() -> None:
        with pytest.raises(RetriableError):
            manager.tick()

    thread = threading.Thread(target=tick)
    thread.start()
    wait_for(lambda: (oldest_wait(thread) or Progress()) != Progress())
    wait = oldest_wait(thread)
    assert wait is not None and wait.what == "the catalog"
    assert oldest_wait(thread) is wait
    os.kill(pid_of(manager), signal.SIGKILL)
    thread.join(60)
    assert oldest_wait(thread) is None


def test_the_process_can_wake_the_job(make: Make) -> None:
    woken = threading.Event()
    manager = make("wake", wake=woken.set)
    assert manager.tick() == 600
    assert woken.wait(60)


def test_log_levels_follow_those_of_the_worker(make: Make) -> None:
    logger = logging.getLogger("icestream.toy")
    logger.setLevel(logging.ERROR)
    manager = make("well", heartbeat=2.0, level="icestream.toy")
    manager.tick()
    assert manager.progress.rows == logging.ERROR
    logger.setLevel(logging.DEBUG)

    def followed() -> bool:
        manager.tick()
        return manager.progress.rows == logging.DEBUG

    wait_for(followed)


def test_a_job_that_was_cancelled_before_its_process_began_starts_none(make: Make) -> None:
    manager = make("well")
    manager.cancel()
    with pytest.raises(Cancelled):
        manager.tick()
    assert manager._child is None
    manager.allow()
    assert manager.tick() == 0.5


def test_a_worker_has_only_so_many_processes() -> None:
    places = Places(1)
    first = ProcessManager(JobOrder("a", {}, {}), ChildOptions(TOY), lambda: None, places)
    with pytest.raises(SinkUnavailable, match=r"raise 'icestream\.job\.manager\.processes\.max'"):
        ProcessManager(JobOrder("b", {}, {}), ChildOptions(TOY), lambda: None, places)
    first.close()
    first.close()
    ProcessManager(JobOrder("b", {}, {}), ChildOptions(TOY), lambda: None, places).close()


def test_starts_that_fail_in_a_row_wait_longer_each_time() -> None:
    damper = StartDamper()
    pauses = []
    now = 0.0
    for _ in range(9):
        damper.ended(started=now, now=now)
        pauses.append(damper.pause(now))
    assert pauses == [0, 1, 2, 4, 8, 16, 30, 30, 30]
    damper.ended(started=now, now=now + 61)
    assert damper.pause(now + 61) == 0


def test_a_fence_is_still_a_fence(make: Make) -> None:
    with pytest.raises(Fenced):
        make("raise Fenced").tick()


def test_every_fact_of_a_progress_arrives_as_it_was() -> None:
    progress = Progress(
        1,
        2,
        3,
        4,
        5,
        6,
        7,
        ("w",),
        ("a", "b"),
        ({"target": "t", "ms": 5, "more": [1]},),
        {"state": "open"},
        "w",
        8,
        9,
        10,
        11,
        (PartitionLag("t", 0, 5, 9, 1_700_000_000_000), PartitionLag("t", 1, 5, 5)),
    )
    assert [field.name for field in fields(Progress) if getattr(progress, field.name) == field.default] == []
    assert fact(Progress, json.loads(json.dumps(plain(progress)))) == progress
    waiting = Waiting("the catalog", dt.datetime.now(dt.UTC))
    assert fact(Waiting, json.loads(json.dumps(plain(waiting)))) == waiting


def test_an_error_below_one_of_ours_is_as_that_one() -> None:
    class NoAnswer(SinkUnavailable):
        pass

    arrived = raised_error(json.loads(json.dumps(plain_error(NoAnswer("in 300 s")))))
    assert (type(arrived), str(arrived)) == (SinkUnavailable, "in 300 s")


def test_a_process_that_cannot_be_started_is_an_outage() -> None:
    manager = ProcessManager(JobOrder("a", {}, {}), ChildOptions(("/no/such/program",)), lambda: None)
    with pytest.raises(SinkUnavailable, match="a process for the job cannot be started: No such file"):
        manager.tick()
    manager.close()


def test_batches_and_events_cross_the_border_in_order_and_whole(make: Make, told: Told) -> None:
    assert [field.name for field in fields(FULL) if getattr(FULL, field.name) == field.default] == []
    manager = make("well", tells="end")
    manager.tick()
    wait_for(lambda: len(told.batches) == 2)
    assert told.events == [Event(5, "retry", "again", about="kafka", numbers={"seconds": 2.0})]
    assert told.batches == [BatchRecord("b1", 7, Outcome.UNDER_WAY, planned=9), FULL]


def test_a_batch_whose_process_dies_is_over(make: Make, told: Told) -> None:
    manager = make("well", tells="begin")
    manager.tick()
    wait_for(lambda: len(told.batches) == 1)
    os.kill(pid_of(manager), signal.SIGKILL)
    with pytest.raises(SinkUnavailable):
        for _ in range(1_000):
            manager.tick()
    last = told.batches[-1]
    assert (last.outcome, last.planned) == (Outcome.UNAVAILABLE, 9)
    assert last.note.startswith("the process of the job was killed by SIGKILL")


def test_partitions_that_are_as_they_were_are_not_told_again(make: Make) -> None:
    manager = make("well", partitions="2")
    manager.tick()
    first = manager.progress.partitions
    assert [one.end for one in first] == [0, 1]
    manager.tick()
    assert manager.progress.partitions is first


def test_what_a_process_tells_harms_it_never(make: Make, told: Told) -> None:
    manager = make("well", tells="end")

    def refused(connector: str, record: BatchRecord) -> None:
        raise ValueError("no room")

    told.batch = refused  # type: ignore[method-assign]
    for _ in range(3):
        manager.tick()
    first = pid_of(manager)
    manager._hear({"said": "batch", "record": {"id": "b", "a field of tomorrow": 1}})
    manager.tick()
    assert pid_of(manager) == first


def test_a_new_process_has_no_partitions_of_the_one_before(make: Make) -> None:
    manager = make("well", partitions="2")
    manager.tick()
    assert len(manager.progress.partitions) == 2
    os.kill(pid_of(manager), signal.SIGKILL)
    with pytest.raises(RetriableError):
        wait_for(lambda: manager.tick() < 0)
    manager._order = JobOrder("toy", {"turn": "well"}, {})
    manager.tick()
    assert manager.progress.partitions == ()
