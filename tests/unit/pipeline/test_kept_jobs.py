"""Jobs that find the plan of their batch in a file, without Spark: what if the file is not there."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError, Py4JJavaError
from pyiceberg import types as it
from pyiceberg.schema import Schema
from pyspark.sql import SparkSession

from icestream.api.batch import Batch
from icestream.api.errors import EngineUnavailable, SinkUnavailable
from icestream.api.offsets import NOTHING, Offsets, Partition
from icestream.api.sink import SinkPlan
from icestream.connectors.iceberg.writer import IcebergWriter
from icestream.jobs.sinks.batches.staging import stage
from icestream.pipeline import spark_runner, task
from icestream.pipeline.kept_jobs import KeptJobs
from icestream.pipeline.lasting_session import LastingSession
from icestream.pipeline.plan import BatchPlan
from icestream.pipeline.record_path import RecordSettings
from icestream.pipeline.spark_runner import SparkRunner
from icestream.rows.new_columns import GrowthLimit
from tests.unit.pipeline.batches import CONFIG, SOURCE, Tables, Topic, World, rows_of

Work = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass
class Frame:
    """Runs its tasks here, as often as it is asked."""

    tasks: int
    work: Work | None = None

    def mapInArrow(self, work: Work, schema: str) -> Frame:
        return Frame(self.tasks, work)

    def toArrow(self) -> pa.Table:
        assert self.work is not None
        numbers = [pa.RecordBatch.from_pydict({"id": pa.array([task])}) for task in range(self.tasks)]
        return pa.Table.from_batches([done for number in numbers for done in self.work([number])])


class Here:
    """As much of a Spark session as a runner needs."""

    def range(self, start: int, end: int, step: int, tasks: int) -> Frame:
        return Frame(tasks)

    def addTag(self, tag: str) -> None: ...

    def removeTag(self, tag: str) -> None: ...

    def current(self) -> Here:
        return self


def batch_of(plan: BatchPlan, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_pydict(
            {"task": batch.column(0), "answer": pa.array([plan.batch.encode()], pa.binary())}
        )


def plan_of(batch: str) -> BatchPlan:
    return BatchPlan({}, cast(RecordSettings, None), [], [[], []], False, batch=batch)


def test_each_batch_finds_its_own_plan() -> None:
    kept, spark = KeptJobs(batch_of), cast(SparkSession, Here())
    assert kept.answers(spark, plan_of("a")) == [b"a", b"a"]
    assert kept.answers(spark, plan_of("b")) == [b"b", b"b"]


def test_a_folder_that_somebody_tidied_away_is_made_again() -> None:
    """Systems remove what nobody has touched in their folder for temporary files for some days."""
    kept, spark = KeptJobs(batch_of), cast(SparkSession, Here())
    kept.answers(spark, plan_of("a"))
    shutil.rmtree(kept._file.parent)
    assert kept.answers(spark, plan_of("b")) == [b"b", b"b"]


def test_an_answer_that_is_missing_is_no_batch() -> None:
    class Forgetful(KeptJobs):
        def answers(self, spark: SparkSession, plan: BatchPlan) -> list[bytes]:
            return super().answers(spark, plan)[1:]

    runner = SparkRunner(
        cast(LastingSession, Here()), "j", {}, cast(RecordSettings, None), 2, 2**30, Forgetful(batch_of)
    )
    many = Batch("b", Offsets({Partition("t", 0): 0}), Offsets({Partition("t", 0): 100_000}))
    with pytest.raises(SinkUnavailable, match="1 of 2 tasks"):
        runner.run(many, SinkPlan(IcebergWriter, []))


class Mute(Py4JJavaError):
    """An error of a JVM that has ended before it was asked what it says."""

    def __init__(self) -> None:
        self.args = ()

    def __str__(self) -> str:
        raise Py4JError("An error occurred while calling None.None")


def test_a_jvm_that_ends_in_the_middle_of_a_batch_is_an_outage() -> None:
    class Ending(KeptJobs):
        def answers(self, spark: SparkSession, plan: BatchPlan) -> list[bytes]:
            raise Mute

    runner = SparkRunner(
        cast(LastingSession, Here()), "j", {}, cast(RecordSettings, None), 2, 2**30, Ending(batch_of)
    )
    batch = Batch("b", Offsets({Partition("t", 0): 0}), Offsets({Partition("t", 0): 1}))
    with pytest.raises(EngineUnavailable, match="the Spark job failed: Mute, of a JVM that does not answer"):
        runner.run(batch, SinkPlan(IcebergWriter, []))


def test_tasks_that_find_parts_of_one_new_field_make_a_batch_within_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as an object that is used as a map: each record has a key of its own."""
    values = [b'{"attributes": {"k%d": 1}}' % number for number in range(6)]
    table = World(tmp_path, monkeypatch).table(Schema(it.NestedField(1, "id", it.LongType())))
    monkeypatch.setattr(spark_runner, "_ROWS_A_TASK", 3)
    monkeypatch.setattr(task, "process_reader", lambda kafka: Topic(values))
    table._growth = GrowthLimit.from_config({"icestream.new.columns.max": "2"})
    records = RecordSettings.of(CONFIG)
    session = cast(LastingSession, Here())
    runner = SparkRunner(session, "j", {}, records, 2, 2**30, KeptJobs(task.run_tasks))
    batch = Batch("b", Offsets({SOURCE: 0}), Offsets({SOURCE: len(values)}))
    staged = stage(batch, Tables([table]), [table], [NOTHING], runner)
    assert [record.offset for record in staged.result.rejected] == [2, 3, 4, 5]
    assert rows_of(staged) == [
        {"id": None, "attributes": {"k0": 1, "k1": None}},
        {"id": None, "attributes": {"k0": None, "k1": 1}},
    ]
