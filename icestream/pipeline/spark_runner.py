"""One batch as one Spark job: cut into slices, read, decoded, staged. Called by the sink manager."""

from __future__ import annotations

import contextlib
import datetime as dt
import functools
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from icestream.api.batch import (
    Batch,
    BatchResult,
    Left,
    PartlyStaged,
    Staged,
    TaskTimes,
    add_counts,
    split,
    split_whole,
)
from icestream.api.engine import EngineNumbers
from icestream.api.errors import Cancelled, EngineUnavailable, FatalError, RetriableError, SinkUnavailable
from icestream.api.offsets import Partition
from icestream.api.sink import SinkPlan
from icestream.api.status import Outage
from icestream.deadlines import Overdue, within
from icestream.kafka.reader import process_reader
from icestream.pipeline.engine_numbers import EngineWatch, numbers_of
from icestream.pipeline.kept_jobs import KeptJobs
from icestream.pipeline.lasting_session import LastingSession
from icestream.pipeline.plan import RESULT_SCHEMA, BatchPlan, TaskFailed, unpacked
from icestream.pipeline.record_path import RecordSettings
from icestream.pipeline.session import (
    answers,
    is_local,
    lacks_own_process,
    let_go,
    open_session,
    slots,
    words_of,
)
from icestream.pipeline.spark_queries import JobQueries, SessionPool
from icestream.pipeline.task import run_tasks, settle_process
from icestream.rows.new_columns import combined
from icestream.waits import waiting_for

_ROWS_A_TASK = 20_000
"""A batch below this runs as one task: fewer files, less overhead."""
_CANCEL_SECONDS = 5.0
_LONGEST_JOB = 1800.0
"""Seconds: a batch is cut so that it takes far less."""


class SparkPlane:
    """The worker's Spark session, shared by all its jobs."""

    def __init__(self, worker: Mapping[str, str]) -> None:
        self._worker = worker
        self._warm_with: Mapping[str, str] | None = None
        self._session = LastingSession(self, lambda: dt.datetime.now(dt.UTC)).start()
        self._pool = SessionPool(self._session)
        self._watch = EngineWatch(lambda: numbers_of(self._session.current()))

    @property
    def outage(self) -> Outage | None:
        return self._session.outage

    def numbers(self) -> EngineNumbers | None:
        """What Spark tells of itself; waits for a moment at most."""
        return EngineNumbers(is_up=False) if self.outage is not None else self._watch.numbers()

    def runner(
        self, job: str, kafka: Mapping[str, str], records: RecordSettings, tasks_max: int, most_bytes: int
    ) -> SparkRunner:
        """`most_bytes`: about how large a batch is meant to be."""
        kept = KeptJobs(run_tasks) if is_local(self._worker) else None
        tasks = slots(self._worker, tasks_max)
        return SparkRunner(self._session, job, kafka, records, tasks, most_bytes, kept, self._pool)

    def warm_up(self, kafka: Mapping[str, str]) -> None:
        """Start the Python workers and their consumers, so that the first batch does not pay for them."""
        self._warm_with = kafka
        self._warm_session(self._session.current())

    def _warm_session(self, spark: SparkSession) -> None:
        if self._warm_with is None:
            return
        tasks = slots(self._worker, tasks_max=8)
        warm = functools.partial(_warm, self._warm_with)
        spark.range(0, tasks, 1, tasks).mapInArrow(warm, RESULT_SCHEMA).collect()

    # What the lasting session asks for

    def open(self) -> SparkSession:
        spark = open_session(self._worker)
        self._warm_session(spark)
        return spark

    def answers(self, session: SparkSession, seconds: float) -> bool:
        return answers(session, seconds)

    def let_go(self, session: SparkSession) -> None:
        let_go(session)

    def lacks_own_process(self) -> bool:
        return lacks_own_process(self._worker)


class SparkRunner:
    """Runs the batches of one job; `cancel` may be called from another thread."""

    def __init__(
        self,
        session: LastingSession,
        job: str,
        kafka: Mapping[str, str],
        records: RecordSettings,
        slots: int,
        most_bytes: int,
        kept: KeptJobs | None = None,
        pool: SessionPool | None = None,
    ) -> None:
        self._session = session
        self._tag = f"icestream-{job}".replace(",", "-")
        self._kafka = kafka
        self._records = records
        self._slots = slots
        self._most_bytes = most_bytes
        self._kept = kept
        self._cancelled = threading.Event()
        self._is_overdue = False
        self.queries = JobQueries(session, pool or SessionPool(session), self._tag, self._cancelled)
        """For commits that need Spark SQL."""

    def run(self, batch: Batch, sink: SinkPlan, *, stages: bool = True) -> BatchResult:
        most_tasks = min(self._slots, -(-batch.span // _ROWS_A_TASK))
        tasks = (split_whole if sink.whole_partitions else split)(batch.slices(), most_tasks)
        # Sizes of records are known from earlier ones only: twice as much as was meant is still borne.
        most = 2 * self._most_bytes // len(tasks)
        plan = BatchPlan(self._kafka, self._records, sink, tasks, stages, batch.id, most)
        began = time.perf_counter()
        collected = self._collected(plan)
        seconds = time.perf_counter() - began
        if len(collected) != len(tasks):
            # What a task has read and nobody counts would be lost in silence.
            raise EngineUnavailable(
                f"Spark gave answers of {len(collected)} of {len(tasks)} tasks of a batch"
            )
        answers = [unpacked(answer) for answer in collected]
        done = [answer for answer in answers if isinstance(answer, BatchResult)]
        for answer in answers:
            if isinstance(answer, TaskFailed):
                raise PartlyStaged(_error_of(answer), done)
        return replace(_summed(done), times=TaskTimes.beside((one.times for one in done), seconds))

    def _collected(self, plan: BatchPlan) -> list[bytes]:
        self.refuse_cancelled()
        spark = self._session.current()
        try:
            with waiting_for("Spark: the job of a batch"):
                answers = self._answers(spark, plan)
        except PySparkException as error:
            raise self._spark_error(error) from error
        except Exception as error:
            # py4j's own errors have no common base with Spark's: the JVM told of a job that it gave up.
            # A session that is gone shows itself by errors of any kind.
            if isinstance(error, Py4JError) or self._session.has_lost(spark):
                raise self._spark_error(error) from error
            raise
        # A job that was about to start when it was cancelled has run to its end.
        self.refuse_cancelled()
        return answers

    def _answers(self, spark: SparkSession, plan: BatchPlan) -> list[bytes]:
        tasks = len(plan.tasks)
        spark.addTag(self._tag)
        self._is_overdue = False
        watchdog = threading.Timer(_LONGEST_JOB, self._end_overdue, [spark])
        watchdog.daemon = True
        watchdog.start()
        try:
            if self._kept is not None:
                return self._kept.answers(spark, plan)
            work = functools.partial(run_tasks, plan)
            job = spark.range(0, tasks, 1, tasks).mapInArrow(work, RESULT_SCHEMA)
            return [bytes(row["answer"]) for row in job.collect()]
        finally:
            watchdog.cancel()
            # It cannot be told to a session that is gone, and must not hide what happened.
            with contextlib.suppress(Exception):
                spark.removeTag(self._tag)

    def _end_overdue(self, spark: SparkSession) -> None:
        """The tasks wait for something that has no limit of its own: the batch is tried again."""
        self._is_overdue = True
        self._interrupt(spark)

    def refuse_cancelled(self) -> None:
        """Cancelled, after `cancel`."""
        if self._cancelled.is_set():
            raise Cancelled("the batch was given up")

    def _spark_error(self, error: Exception) -> RetriableError:
        if self._cancelled.is_set():
            return Cancelled("the batch was given up")
        if self._is_overdue:
            return SinkUnavailable(f"the Spark job of a batch did not end in {_LONGEST_JOB:.0f} s")
        return EngineUnavailable(f"the Spark job failed: {words_of(error).splitlines()[0]}")

    def cancel(self) -> None:
        """Give up the batch under way, and every later one until `allow`."""
        self._cancelled.set()
        self.queries.cancel()
        # Without Spark there is no batch to interrupt; one that does not answer must not hold up a stop.
        with contextlib.suppress(SinkUnavailable):
            self._interrupt(self._session.current())

    def _interrupt(self, spark: SparkSession) -> None:
        with contextlib.suppress(Overdue, PySparkException, OSError, Py4JError):
            within(_CANCEL_SECONDS, lambda: spark.interruptTag(self._tag), "Spark: the end of a job")

    def allow(self) -> None:
        self._cancelled.clear()

    def close(self) -> None:
        """The session is the worker's."""


def _error_of(failed: TaskFailed) -> Exception:
    if failed.retriable is not None:
        return failed.retriable(failed.reason)
    return FatalError(f"a task failed: {failed.reason}\n{failed.trace}")


def _summed(parts: list[BatchResult]) -> BatchResult:
    newest: dict[Partition, int] = {}
    for part in parts:
        for partition, timestamp in part.newest_ms.items():
            newest[partition] = max(timestamp, newest.get(partition, timestamp))
    return BatchResult(
        staged={
            name: _summed_target([part.staged[name] for part in parts if name in part.staged])
            for name in sorted({name for part in parts for name in part.staged})
        },
        rejected=[rejected for part in parts for rejected in part.rejected],
        bytes_read=sum(part.bytes_read for part in parts),
        newest_ms=newest,
        dropped=sum((Counter(part.dropped) for part in parts), Counter()),
        overflow=any(part.overflow for part in parts),
        records_read=sum(part.records_read for part in parts),
        counts=add_counts(part.counts for part in parts),
        unknown_targets=frozenset[str]().union(*(part.unknown_targets for part in parts)),
    )


def _summed_target(parts: Sequence[Staged]) -> Staged:
    fields: dict[tuple[str, ...], pa.DataType] = {}
    for part in parts:
        fields = combined(fields, part.new_fields)
    payload = [one for part in parts for one in part.payload]
    rows = sum(part.rows for part in parts)
    left: dict[Partition, Left] = {}
    for part in parts:
        left |= part.left
    return Staged(payload, rows, add_counts(part.counts for part in parts), fields, left)


def _warm(kafka: Mapping[str, str], batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    settle_process()
    process_reader(kafka)
    for _ in batches:
        # Long enough for every slot to get a process of its own.
        time.sleep(0.3)
    yield pa.RecordBatch.from_pydict({"task": pa.array([], pa.int64()), "answer": pa.array([], pa.binary())})
