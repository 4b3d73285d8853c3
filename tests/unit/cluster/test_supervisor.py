"""What the supervisor tells the board, and when it starts failed jobs again."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import replace

import pytest

from icestream.api.status import Progress, State
from icestream.cluster.boards import MemoryBoard
from icestream.cluster.membership import Alone
from icestream.cluster.service import ConnectorService, Extras
from icestream.cluster.stores import MemoryStore
from icestream.cluster.supervisor import Supervisor
from icestream.cluster.worker import Patience, Worker
from icestream.testing import FakeJob, FakeStarter

WORKER = {"key.converter": "org.apache.kafka.connect.storage.StringConverter"}
WORKER |= {"value.converter": "org.apache.kafka.connect.storage.StringConverter"}
CONFIG = {"name": "sink", "connector.class": "FileStreamSink", "topics": "t", "tasks.max": "2"}
NOON = dt.datetime(2026, 11, 15, 12, tzinfo=dt.UTC)


class Shared(Alone):
    """A member of a group that has lost some connectors."""

    generation = 3
    is_shared = True
    lost: frozenset[str] = frozenset()

    def owns(self, name: str) -> bool:
        return name not in self.lost


class Bench:
    def __init__(self, extras: Extras | None = None) -> None:
        self.now = 0.0
        self.starter = FakeStarter()
        self.board = MemoryBoard()
        self.membership = Shared()
        worker = Worker("w:1", Patience(2.0, 2.0))
        worker.use(self.starter)
        self.service = ConnectorService(MemoryStore(), worker, WORKER, self.membership, self.board, extras)
        self.supervisor = Supervisor(
            "w:1", self.service.roster, self.board, self.membership, lambda: self.now, lambda: NOON
        )

    def create(self, **more: str) -> None:
        self.service.create("sink", {**CONFIG, **{k.replace("_", "."): v for k, v in more.items()}})

    @property
    def job(self) -> FakeJob:
        return self.starter.latest("sink")

    def look(self, after: float = 0.25) -> list[tuple[int | None, State]]:
        self.now += after
        self.supervisor.turn()
        self.service.roster.settle("sink")
        return [(status.task, status.state) for status in self.board.statuses("sink")]


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.service.close()


def test_connector_and_tasks_are_told_and_forgotten(bench: Bench) -> None:
    bench.create()
    assert bench.look() == [(None, State.RUNNING), (0, State.RUNNING), (1, State.RUNNING)]
    assert bench.board.statuses("sink")[0].generation == 3
    bench.service.stop("sink")
    assert bench.look() == [(None, State.STOPPED)]
    bench.service.delete("sink")
    assert bench.look() == []


def test_a_failure_is_told_with_its_trace(bench: Bench) -> None:
    bench.create()
    bench.job.fail("boom")
    assert bench.look()[0] == (None, State.FAILED)
    assert bench.board.statuses("sink")[1].trace == "boom"
    bench.look(after=1000)
    assert len(bench.starter.jobs) == 1, "a failed connector waits for a person"


def test_progress_is_told_now_and_then(bench: Bench) -> None:
    bench.create()
    bench.look()
    bench.job.advance(Progress(rows=5))
    bench.look()
    assert (bench.board.statuses("sink")[0].progress or {})["rows"] == 0
    bench.look(after=31)
    assert (bench.board.statuses("sink")[0].progress or {})["rows"] == 5


def test_topics_in_use_come_back_after_a_reset_when_records_come(bench: Bench) -> None:
    bench.create()
    bench.job.advance(Progress(batches=1, topics=("t",)))
    bench.look()
    assert bench.service.topics("sink") == ["t"]
    bench.service.reset_topics("sink")
    bench.look()
    assert bench.service.topics("sink") == []
    bench.job.advance(Progress(batches=2, topics=("t",)))
    bench.look()
    assert bench.service.topics("sink") == ["t"]


def test_on_failure_starts_again_and_says_when(bench: Bench) -> None:
    bench.create(icestream_restart_policy="on-failure")
    bench.job.fail("boom")
    bench.look()
    status = bench.service.status("sink")
    assert status.state is State.FAILED
    assert (status.trace or "").startswith("restart 1 of 10 at 2026-11-15T12:00:01+00:00\nboom")
    bench.look(after=1.0)
    assert len(bench.starter.jobs) == 2
    assert bench.service.status("sink").state is State.RUNNING
    assert bench.service.progress("sink").warnings == ("restart 1 of 10 is under way",)
    bench.job.advance(Progress(batches=1))
    bench.look()
    assert bench.service.progress("sink").warnings == ()


def test_the_owner_starts_again_when_a_former_one_fenced_it(bench: Bench) -> None:
    bench.create()
    bench.job.fail("fenced")
    bench.job.is_fenced = True
    bench.look()
    bench.look(after=1.0)
    assert len(bench.starter.jobs) == 2


def test_what_another_worker_has_is_not_told(bench: Bench) -> None:
    bench.create()
    bench.look()
    bench.membership.lost = frozenset(["sink"])
    bench.service.roster.ownership_changed()
    theirs = replace(bench.board.statuses("sink")[0], worker_id="other:1")
    bench.board.publish(theirs)
    bench.look()
    assert bench.board.statuses("sink")[0] == theirs
    assert bench.service.status("sink").worker_id == "other:1"


def test_at_the_end_nobody_runs_them(bench: Bench) -> None:
    bench.create()
    bench.look()
    bench.supervisor.close()
    assert {status.state for status in bench.board.statuses("sink")} == {State.UNASSIGNED}


def test_the_policy_may_be_a_placeholder() -> None:
    bench = Bench(Extras(resolve=lambda config: {k: v.replace("${env:N}", "3") for k, v in config.items()}))
    bench.create(icestream_restart_policy="on-failure", icestream_restart_attempts="${env:N}")
    bench.job.fail("boom")
    bench.look()
    assert (bench.service.status("sink").trace or "").startswith("restart 1 of 3 at")
    bench.service.close()


def test_a_job_that_cannot_be_looked_at_hides_no_other(bench: Bench) -> None:
    bench.create()
    bench.service.create("other", {**CONFIG, "name": "other"})
    bench.job.status = lambda: 1 / 0  # type: ignore[method-assign, assignment, return-value]
    bench.supervisor.turn()
    assert bench.board.statuses("other")


def test_jobs_that_fence_each_other_wait_longer_each_time(bench: Bench) -> None:
    bench.create()
    notes = []
    for _ in range(3):
        bench.job.fail("fenced")
        bench.job.is_fenced = True
        bench.look()
        notes.append((bench.service.status("sink").trace or "").partition(" of ")[0])
        bench.look(after=40)
        bench.look()
    assert notes == ["restart 1", "restart 2", "restart 3"]


def test_late_words_of_a_former_owner_are_corrected(bench: Bench) -> None:
    bench.create()
    bench.look()
    for status in bench.board.statuses("sink"):
        bench.board.publish(replace(status, worker_id="dead:1", state=State.PAUSED))
    bench.board.publish(replace(bench.board.statuses("sink")[1], task=2))
    assert bench.look() == [(None, State.RUNNING), (0, State.RUNNING), (1, State.RUNNING)]
    assert {status.worker_id for status in bench.board.statuses("sink")} == {"w:1"}


def test_deleted_and_lost_at_once_it_is_forgotten(bench: Bench) -> None:
    bench.create()
    bench.look()
    late = bench.board.statuses("sink")[0]
    bench.service.delete("sink")
    bench.board.publish(late)
    bench.membership.lost = frozenset(["sink"])
    assert bench.look() == []


def test_progress_of_a_worker_of_another_version_is_read(bench: Bench) -> None:
    bench.create()
    bench.look()
    bench.membership.lost = frozenset(["sink"])
    bench.service.roster.ownership_changed()
    bench.board.publish(replace(bench.board.statuses("sink")[0], progress={"rows": 1, "brand_new": 2}))
    assert bench.service.progress("sink").rows == 1
