"""Spark jobs that are planned once and run for every batch of a connector; used by the runner where driver
and tasks share a disk.

Making a DataFrame, and having Spark analyse and plan it, takes longer than the work of a batch of one record.
So the plan of a batch is not in the job: tasks find it in a file. docs/decisions/015-one-record.md has the
figures.
"""

from __future__ import annotations

import functools
import os
import pickle
import shutil
import tempfile
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from icestream.api.errors import EngineUnavailable
from icestream.pipeline.plan import RESULT_SCHEMA, BatchPlan

Tasks = Callable[[BatchPlan, Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""Made by the runner: does the tasks whose numbers it is given."""


class KeptJobs:
    """Those of one connector, which runs one batch at a time."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._session: SparkSession | None = None
        self._frames: dict[int, DataFrame] = {}
        self._file = self._in_a_new_folder()

    def answers(self, spark: SparkSession, plan: BatchPlan) -> list[bytes]:
        number = uuid.uuid4().bytes
        self._write(pickle.dumps((number, plan), pickle.HIGHEST_PROTOCOL))
        try:
            found = self._frame(spark, len(plan.tasks)).toArrow()
        finally:
            self._file.unlink(missing_ok=True)
        if any(told != number for told in found["told"].to_pylist()):
            raise EngineUnavailable("a Spark task has read the plan of another batch; the batch runs again")
        answers: list[bytes] = found["answer"].to_pylist()
        return answers

    def _frame(self, spark: SparkSession, tasks: int) -> DataFrame:
        if self._session is not spark:
            self._session, self._frames = spark, {}
        if tasks not in self._frames:
            work = functools.partial(_told, self._tasks, str(self._file))
            frame = spark.range(0, tasks, 1, tasks).mapInArrow(work, f"{RESULT_SCHEMA}, told binary")
            self._frames[tasks] = frame
        return self._frames[tasks]

    def _in_a_new_folder(self) -> Path:
        # For its owner only: a plan has logins in it.
        folder = tempfile.mkdtemp(prefix="icestream-plan-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return Path(folder) / "plan"

    def _write(self, content: bytes) -> None:
        if not self._file.parent.exists():
            # Tidied away while the connector had nothing to do. Under its old name anybody could make it.
            self._file, self._frames = self._in_a_new_folder(), {}
        draft = self._file.with_suffix(".new")
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(content)
        # In one step: a task of a batch that was given up may still be looking.
        draft.replace(self._file)


def _told(tasks: Tasks, file: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs in a Python worker of Spark."""
    number, plan = pickle.loads(Path(file).read_bytes())
    for batch in tasks(plan, batches):
        yield batch.append_column("told", pa.array([number] * batch.num_rows, pa.binary()))
