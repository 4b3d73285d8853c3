"""What a worker tells the others of its connectors, and when failed ones start again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from icestream.api.errors import Fenced
from icestream.api.history import Event, PartitionLag
from icestream.api.status import Progress, State
from icestream.cluster.connector_registry import Patience
from icestream.cluster.group.membership import Alone
from icestream.cluster.service import ConnectorService, Extras
from icestream.cluster.stores.connector_store import MemoryStore
from icestream.cluster.stores.status_store import MemoryStatusStore, StatusReporter
from icestream.testing import FakeManager, FakeManagers

WORKER = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "icestream.file.connectors.enabled": "true",
}
WORKER |= {"value.converter": "org.apache.kafka.connect.storage.StringConverter"}
CONFIG = {"name": "sink", "connector.class": "FileStreamSink", "topics": "t", "tasks.max": "2"}


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
        self.managers = FakeManagers()
        self.store = MemoryStatusStore()
        self.membership = Shared()
        extras = replace(extras or Extras(), patience=Patience(60.0, 60.0))
        self.service = ConnectorService("w:1", MemoryStore(), WORKER, self.membership, self.store, extras)
        self.service.connectors.use(self.managers)
        self.reporter = StatusReporter(
            "w:1",
            self.service.connectors,
            self.store,
            self.membership,
            lambda: self.now,
            history=self.service.history,
        )

    def create(self, **more: str) -> None:
        self.service.create("sink", {**CONFIG, **{k.replace("_", "."): v for k, v in more.items()}})

    @property
    def manager(self) -> FakeManager:
        return self.managers.latest("sink")

    def look(self, after: float = 0.25) -> list[tuple[int | None, State]]:
        self.now += after
        # As many as it takes for a full look at those that say the same as before.
        for _ in range(12):
            self.reporter.turn()
        return [(status.task, status.state) for status in self.store.statuses("sink")]


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.service.close()


def test_connector_and_tasks_are_told_and_forgotten(bench: Bench) -> None:
    bench.create()
    assert bench.look() == [(None, State.RUNNING), (0, State.RUNNING), (1, State.RUNNING)]
    assert bench.store.statuses("sink")[0].generation == 3
    bench.service.stop("sink")
    assert bench.look() == [(None, State.STOPPED)]
    bench.service.delete("sink")
    assert bench.look() == []


def test_a_failure_is_told_with_its_trace(bench: Bench) -> None:
    bench.create()
    bench.manager.fail("boom")
    assert bench.look()[0] == (None, State.FAILED)
    assert (bench.store.statuses("sink")[1].trace or "").endswith("ValueError: boom\n")


def test_progress_is_told_now_and_then(bench: Bench) -> None:
    bench.create()
    bench.look()
    bench.manager.advance(Progress(rows=5))
    bench.look()
    assert (bench.store.statuses("sink")[0].progress or {})["rows"] == 0
    bench.look(after=31)
    assert (bench.store.statuses("sink")[0].progress or {})["rows"] == 5


def test_topics_in_use_come_back_after_a_reset_when_records_come(bench: Bench) -> None:
    bench.create()
    bench.manager.advance(Progress(batches=1, topics=("t",)))
    bench.look()
    assert bench.service.topics("sink") == ["t"]
    bench.service.reset_topics("sink")
    bench.look()
    assert bench.service.topics("sink") == []
    bench.manager.advance(Progress(batches=2, topics=("t",)))
    bench.look()
    assert bench.service.topics("sink") == ["t"]


def test_on_failure_starts_again_and_says_when(bench: Bench) -> None:
    bench.create(icestream_restart_policy="on-failure", icestream_restart_delay_ms="1000")
    bench.manager.fail("boom")
    status = bench.service.status("sink")
    assert status.state is State.FAILED
    assert (status.trace or "").startswith("restart 1 of 10 at 20")
    assert (status.trace or "").endswith("ValueError: boom\n")
    eventually(lambda: len(bench.managers.made) == 2)
    eventually(lambda: bench.service.status("sink").state is State.RUNNING)
    assert bench.service.progress("sink").warnings == ("restart 1 of 10 is under way",)
    bench.manager.advance(Progress(batches=1))
    assert bench.service.progress("sink").warnings == ()


def test_the_owner_starts_again_when_a_former_one_fenced_it(bench: Bench) -> None:
    bench.create()
    bench.manager.fail("fenced", Fenced)
    eventually(lambda: len(bench.managers.made) == 2)


def test_what_another_worker_has_is_not_told(bench: Bench) -> None:
    bench.create()
    bench.look()
    bench.membership.lost = frozenset(["sink"])
    bench.service.connectors.ownership_changed()
    theirs = replace(bench.store.statuses("sink")[0], worker_id="other:1")
    bench.store.publish(theirs)
    bench.look()
    assert bench.store.statuses("sink")[0] == theirs
    assert bench.service.status("sink").worker_id == "other:1"


def test_at_the_end_nobody_runs_them(bench: Bench) -> None:
    bench.create()
    bench.look()
    bench.reporter.close()
    assert {status.state for status in bench.store.statuses("sink")} == {State.UNASSIGNED}


def test_the_policy_may_be_a_placeholder() -> None:
    bench = Bench(Extras(resolve=lambda config: {k: v.replace("${env:N}", "3") for k, v in config.items()}))
    bench.create(icestream_restart_policy="on-failure", icestream_restart_attempts="${env:N}")
    bench.manager.fail("boom")
    bench.look()
    assert (bench.service.status("sink").trace or "").startswith("restart 1 of 3 at")
    bench.service.close()


def test_a_job_that_cannot_be_looked_at_hides_no_other(bench: Bench) -> None:
    bench.create()
    bench.service.create("other", {**CONFIG, "name": "other"})
    broken = bench.service.connectors._reconcilers["sink"]
    broken.status = lambda: 1 / 0  # type: ignore[method-assign, assignment, return-value]
    bench.reporter.turn()
    assert bench.store.statuses("other")


def test_late_words_of_a_former_owner_are_corrected(bench: Bench) -> None:
    bench.create()
    bench.look()
    for status in bench.store.statuses("sink"):
        bench.store.publish(replace(status, worker_id="dead:1", state=State.PAUSED))
    bench.store.publish(replace(bench.store.statuses("sink")[1], task=2))
    assert bench.look() == [(None, State.RUNNING), (0, State.RUNNING), (1, State.RUNNING)]
    assert {status.worker_id for status in bench.store.statuses("sink")} == {"w:1"}


def test_deleted_and_lost_at_once_it_is_forgotten(bench: Bench) -> None:
    bench.create()
    bench.look()
    late = bench.store.statuses("sink")[0]
    bench.service.delete("sink")
    bench.store.publish(late)
    bench.membership.lost = frozenset(["sink"])
    assert bench.look() == []


def test_progress_of_a_worker_of_another_version_is_read(bench: Bench) -> None:
    bench.create()
    bench.look()
    bench.membership.lost = frozenset(["sink"])
    bench.service.connectors.ownership_changed()
    bench.store.publish(replace(bench.store.statuses("sink")[0], progress={"rows": 1, "brand_new": 2}))
    assert bench.service.progress("sink").rows == 1


def test_the_history_gets_a_sample_of_every_job_that_runs(bench: Bench) -> None:
    bench.create()
    bench.manager.advance(Progress(lag=7, source_end=100))
    bench.look()
    view = bench.service.history.series("sink", 30)
    assert view is not None
    assert 7 in view.values["lag"]


def test_the_history_hears_of_changes_and_of_nothing_else(bench: Bench) -> None:
    bench.create()
    bench.look()
    history = bench.service.history
    before = history.version
    bench.look()
    assert history.version == before
    bench.manager.advance(Progress(lag=7))
    bench.look()
    assert history.changed_since(before).names == {"sink"}


def test_partitions_are_not_published(bench: Bench) -> None:
    bench.create()
    bench.manager.advance(Progress(lag=4, partitions=(PartitionLag("t", 0, 5, 9),)))
    bench.look(after=31)
    assert "partitions" not in (bench.store.statuses("sink")[0].progress or {})
    assert [one.lag for one in bench.service.progress("sink").partitions] == [4]


def test_the_history_of_a_connector_ends_with_it_wherever_it_ran(bench: Bench) -> None:
    # Another worker runs it; this one leads, was asked, and has told so.
    history = bench.service.history
    bench.membership.lost = frozenset(["sink"])
    bench.create()
    bench.service.tell("sink", "config", "created")
    history.event("sink", Event(1, "config", "created"))
    bench.look(60.0)
    assert history.events("sink")
    bench.service.delete("sink")
    history.event("sink", Event(2, "state", "late words"))
    bench.look(60.0)
    assert history.batches("sink").since_ms is None
