"""Upserts: the table is what a dict of the same changes is, whatever dies in between, and whoever writes."""

from __future__ import annotations

import datetime as dt
import itertools
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icestream.connectors.iceberg.sink import table_from
from icestream.connectors.iceberg.upserts.branch_publish import BranchWrite
from icestream.connectors.iceberg.upserts.commit import UpsertCommit
from icestream.embedded.kafka import Broker
from icestream.pipeline.spark_runner import SparkPlane
from tests.crashes.conftest import StartManager
from tests.crashes.processes import Fault
from tests.crashes.upserts import Change, UpsertPipeline, random_changes, upsert_pipeline
from tests.crashes.without_spark import verdicts
from tests.long_form import sized
from tests.spark_settings import with_iceberg

_NUMBERS = itertools.count(1)
MakeUpserts = Callable[..., UpsertPipeline]


@pytest.fixture
def make_upserts(broker: Broker, tmp_path: Path) -> MakeUpserts:
    def make(**options: str) -> UpsertPipeline:
        return upsert_pipeline(broker.bootstrap, tmp_path, f"upsert-{next(_NUMBERS)}", **options)

    return make


class Killed(BaseException):
    """A manager that ends here and now; nothing of it catches this."""


POINTS = ("staged", "prepared", "branched", "merged", "published to readers", "committed db.t", "published")


class Steps:
    """Tells of every step of a commit, those inside the merge included, to one listener at a time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached: Callable[[str], None] = lambda point: None
        for owner, method, point in (
            (UpsertCommit, "_prepared", "prepared"),
            (UpsertCommit, "_merge", "merged"),
            (BranchWrite, "publish", "published to readers"),
        ):
            monkeypatch.setattr(owner, method, self._telling(getattr(owner, method), point))
        begin = BranchWrite.begin

        def begun(*arguments: Any) -> BranchWrite:
            write = begin(*arguments)
            self.reached("branched")
            return write

        monkeypatch.setattr(BranchWrite, "begin", begun)

    def _telling(self, method: Callable[..., Any], point: str) -> Callable[..., Any]:
        def tell(*arguments: Any) -> Any:
            answer = method(*arguments)
            self.reached(point)
            return answer

        return tell


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    return Steps(monkeypatch)


def killed_at(pipeline: UpsertPipeline, spark: SparkPlane, steps: Steps, point: str) -> None:
    """Run the job until a point, and leave everything as it is then."""

    def reached(now: str) -> None:
        if now == point:
            steps.reached = lambda point: None
            raise Killed

    steps.reached = reached
    manager = pipeline.manager(spark, reached)
    with pytest.raises(Killed):
        while True:
            time.sleep(manager.tick())
    manager.close()


def sweep_later(pipeline: UpsertPipeline) -> None:
    table = table_from(pipeline.catalog, "db.t", pipeline.name, pipeline.config)
    last = table.found().checkpoint
    assert last is not None
    table.sweep(last.commit, dt.datetime.now(dt.UTC) + dt.timedelta(hours=3))


@pytest.mark.parametrize("batches", sized(10, 200))
def test_the_table_is_what_a_dict_is_after_random_batches_and_kills(
    make_upserts: MakeUpserts, spark: SparkPlane, steps: Steps, batches: int
) -> None:
    """Kills at every step; a real `kill -9` is below, where a process costs a Spark."""
    rng = random.Random(f"upserts {batches}")
    pipeline = make_upserts()
    pipeline.change([Change(1, "c", "a", 1), Change(2, "r", "a", 2), Change(1, "u", "b", 11), Change(9, "d")])
    points = itertools.cycle(rng.sample(POINTS, len(POINTS)))
    for number in range(batches):
        pipeline.change(random_changes(rng, 60, rng.choice([1, 20, 300])))
        if number % 3 != 2:
            killed_at(pipeline, spark, steps, next(points))
        pipeline.drain(spark)
        pipeline.check()
    # What the last commit left behind is swept after the next.
    pipeline.change(random_changes(rng, 60, 20))
    pipeline.drain(spark)
    pipeline.check()
    assert list(pipeline.table().metadata.refs) == ["main"]
    assert pipeline.rows_in_spark(spark) == pipeline.rows()
    sweep_later(pipeline)
    assert not pipeline.staged_files(), "changes that were merged are removed, those of dead batches swept"
    (verdict,) = verdicts(pipeline)
    assert not verdict.problems and any("cannot be counted" in one for one in verdict.unknown)


def test_appends_of_others_are_kept_and_the_merge_runs_again(
    make_upserts: MakeUpserts, spark: SparkPlane, steps: Steps
) -> None:
    pipeline = make_upserts()
    pipeline.change([Change(1, "c", "a", 1)])
    pipeline.drain(spark)
    merges = 0

    def append_once(point: str) -> None:
        nonlocal merges
        merges += point == "merged"
        if point == "merged" and merges == 1:
            foreign = pa.table({"id": [1000], "region": ["z"], "amount": [5]}, schema=schema)
            pipeline.table().append(foreign)

    schema = pipeline.table().schema().as_arrow()
    steps.reached = append_once
    pipeline.model[1000] = (1000, "z", 5)
    pipeline.change([Change(1, "u", "b", 2), Change(2, "c", "b", 2)])
    pipeline.drain(spark)
    assert merges == 2
    pipeline.check()


def test_a_truncate_removes_what_was_before_it(make_upserts: MakeUpserts, spark: SparkPlane) -> None:
    pipeline = make_upserts()
    pipeline.change(Change(id_, "c", "a", id_) for id_ in range(30))
    pipeline.drain(spark)
    pipeline.check()
    # In one partition, so that its offsets tell what was before.
    pipeline.change([Change(0, "u", "b", 1), Change(3, "u", "b", 1), Change(6, "t"), Change(3, "c", "c", 7)])
    pipeline.model = {3: (3, "c", 7)}
    pipeline.drain(spark)
    pipeline.check()
    pipeline.change([Change(3, "t")])
    pipeline.model = {}
    pipeline.drain(spark)
    pipeline.check()


def test_new_columns_come_before_the_merge(make_upserts: MakeUpserts, spark: SparkPlane) -> None:
    pipeline = make_upserts(**{"iceberg.tables.evolve-schema-enabled": "true"})
    pipeline.change([Change(1, "c", "a", 1), Change(2, "c", "a", 2), Change(2, None)])
    pipeline.drain(spark)
    pipeline.check()
    assert "op" in pipeline.table().schema().column_names
    assert pipeline.table().scan().to_arrow()["op"].to_pylist() == ["c"]


def test_records_that_name_no_row_are_dead_letters(make_upserts: MakeUpserts, spark: SparkPlane) -> None:
    pipeline = make_upserts()
    pipeline.change([Change(1, "c", "a", 1)])
    bad = [b'{"id":null,"op":"u","amount":1}', b'{"id":7,"op":"x","amount":1}', b'{"id":8,"op":"u"}']
    pipeline.send_bad([(value, b'{"id":1}') for value in bad])
    pipeline.send_bad([(None, None), (None, b'{"other":1}')])
    pipeline.drain(spark)
    pipeline.check()
    assert sorted(pipeline.dead_letters().elements()) == sorted([b"", b"", *bad])


@pytest.mark.parametrize(
    "fault",
    [
        # The table's first batch: 1 prepares it, 2 makes the branch, 3 publishes.
        pytest.param(Fault("accepted", "kill", turn=2), id="after the branch", marks=pytest.mark.long),
        pytest.param(Fault("sending", "kill", turn=3), id="merged and not published"),
        pytest.param(Fault("accepted", "kill", turn=3), id="published", marks=pytest.mark.long),
        pytest.param(Fault("closing", "kill"), id="before Kafka", marks=pytest.mark.long),
        pytest.param(Fault("staged", "kill"), id="staged", marks=pytest.mark.long),
    ],
)
def test_a_manager_killed_in_mid_upsert_loses_and_repeats_nothing(
    make_upserts: MakeUpserts, start_manager: StartManager, spark: SparkPlane, fault: Fault
) -> None:
    pipeline = make_upserts()
    pipeline.change(random_changes(random.Random(3), 40, 200))
    start_manager(pipeline, fault, spark=with_iceberg()).killed_itself()
    pipeline.change(random_changes(random.Random(4), 40, 100))
    pipeline.drain(spark)
    pipeline.check()


@pytest.mark.long
def test_a_jvm_that_dies_in_mid_merge_is_an_outage(
    make_upserts: MakeUpserts, start_manager: StartManager
) -> None:
    pipeline = make_upserts()
    pipeline.change(random_changes(random.Random(5), 40, 200))
    process = start_manager(pipeline, spark=with_iceberg())
    process.wait_line("drained")
    process.wait_settled(pipeline)
    done = threading.Event()

    def kill_when_merging() -> None:
        seen = process.lines().count("accepted")
        # The first commit of a batch makes the branch; the merge follows.
        process.wait(lambda: True if process.lines().count("accepted") > seen else None, "no merge")
        jvm = process.jvm()
        assert jvm is not None
        os.kill(jvm, signal.SIGKILL)
        done.set()

    killer = threading.Thread(target=kill_when_merging)
    killer.start()
    pipeline.change(random_changes(random.Random(6), 40, 200))
    killer.join()
    assert done.is_set()
    process.wait_settled(pipeline)
    pipeline.check()
