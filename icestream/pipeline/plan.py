"""What a task of a batch is told and what it answers. Plain data: both are pickled."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from icestream.api.batch import BatchResult, Slice
from icestream.api.errors import RetriableError
from icestream.api.sink import SinkPlan
from icestream.pipeline.record_path import RecordSettings

RESULT_SCHEMA = "task long, answer binary"


@dataclass(frozen=True)
class BatchPlan:
    """One batch for all its tasks."""

    kafka: Mapping[str, str]
    records: RecordSettings
    sink: SinkPlan
    tasks: Sequence[Sequence[Slice]]
    stages: bool = True
    """False: decode only, to find the dead letters of a batch that is in the targets already."""
    batch: str = ""
    """Its id, for the names of files."""
    most_bytes: int | None = None
    """A task that has read more than this gives up: the batch has to be smaller."""


@dataclass(frozen=True)
class TaskFailed:
    """An error of a task, told as data, so that the driver decides on its class and not on Spark's text."""

    retriable: type[RetriableError] | None
    """Of which kind it is, if a new attempt may do better."""
    reason: str
    trace: str


def packed(answer: BatchResult | TaskFailed) -> bytes:
    return pickle.dumps(answer, protocol=pickle.HIGHEST_PROTOCOL)


def unpacked(answer: bytes) -> BatchResult | TaskFailed:
    content = pickle.loads(answer)
    if not isinstance(content, BatchResult | TaskFailed):
        raise TypeError(f"a task answered with {type(content).__name__}")
    return content
