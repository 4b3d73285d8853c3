"""A batch and what becomes of it. Plain data: all of it crosses process boundaries."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from icestream.api.offsets import Offsets, Partition


class Slice(NamedTuple):
    """Offsets `start` (in) to `until` (out) of one partition."""

    partition: Partition
    start: int
    until: int

    @property
    def span(self) -> int:
        return self.until - self.start


@dataclass(frozen=True)
class Batch:
    """A part of the source with fixed ends: the same batch always yields the same rows."""

    id: str
    start: Offsets
    end: Offsets

    def slices(self) -> list[Slice]:
        start, end = self.start.positions, self.end.positions
        return [
            Slice(partition, start[partition], end[partition])
            for partition in self.end
            if end[partition] > start[partition]
        ]

    @functools.cached_property
    def span(self) -> int:
        return sum(piece.span for piece in self.slices())


def split(slices: Sequence[Slice], tasks: int) -> list[list[Slice]]:
    """Cut slices into one list per task, of equal span, in order; a partition may be cut at any offset."""
    total = sum(piece.span for piece in slices)
    tasks = max(1, min(tasks, total))
    bounds = [total * task // tasks for task in range(tasks + 1)]
    parts: list[list[Slice]] = [[] for _ in range(tasks)]
    position = 0
    for piece in slices:
        for task in range(tasks):
            low = max(position, bounds[task])
            high = min(position + piece.span, bounds[task + 1])
            if low < high:
                shift = piece.start - position
                parts[task].append(Slice(piece.partition, low + shift, high + shift))
        position += piece.span
    return parts


def split_whole(slices: Sequence[Slice], tasks: int) -> list[list[Slice]]:
    """Share slices among tasks, about equally, without cutting one."""
    parts: list[list[Slice]] = [[] for _ in range(max(1, min(tasks, len(slices))))]
    spans = [0] * len(parts)
    for piece in sorted(slices, key=lambda one: -one.span):
        least = spans.index(min(spans))
        parts[least].append(piece)
        spans[least] += piece.span
    return parts


@dataclass(frozen=True)
class Counts:
    """What became of the records of one partition. `read = written + rejected + filtered`, always."""

    read: int = 0
    written: int = 0
    rejected: int = 0
    filtered: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.read + other.read,
            self.written + other.written,
            self.rejected + other.rejected,
            self.filtered + other.filtered,
        )

    @property
    def reconcile(self) -> bool:
        return self.read == self.written + self.rejected + self.filtered


def add_counts(parts: Iterable[Mapping[Partition, Counts]]) -> dict[Partition, Counts]:
    total: dict[Partition, Counts] = {}
    for part in parts:
        for partition, counts in part.items():
            total[partition] = total.get(partition, Counts()) + counts
    return total


SINK_TASK: Final = "org.apache.kafka.connect.sink.SinkTask"
DATA_EXCEPTION: Final = "org.apache.kafka.connect.errors.DataException"
_OVERHEAD: Final = 200


@dataclass(frozen=True)
class Failure:
    """Why a record failed, in Java's words where Java has words for it, from the converter to the dead
    letter."""

    reason: str
    exception: str = DATA_EXCEPTION
    """Java's name of what was raised."""
    stage: str = ""
    """As Kafka Connect names them: KEY_CONVERTER, VALUE_CONVERTER, HEADER_CONVERTER, TRANSFORMATION or
    TASK_PUT; empty while it is clear from who found it."""
    class_name: str = SINK_TASK
    """Java's name of the converter or transform that failed; of write errors that of the task."""
    breaks_schema: bool = False
    """Whether it is the JSON Schema of the topic that the value breaks."""


@dataclass(frozen=True)
class Rejected:
    """A record that cannot be landed: where it is from, its bytes as they were, and why."""

    partition: Partition
    offset: int
    stage: str
    """As Kafka Connect names them: KEY_CONVERTER, VALUE_CONVERTER, HEADER_CONVERTER, TRANSFORMATION or
    TASK_PUT."""
    reason: str
    key: bytes | None = None
    value: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp_ms: int | None = None
    class_name: str = SINK_TASK
    """Java's name of the converter or transform that failed; of write errors that of the task."""
    exception: str = DATA_EXCEPTION
    """Java's name of what it raised."""
    task: int = 0
    breaks_schema: bool = False
    """Whether it is the JSON Schema of the topic that the value breaks."""

    @property
    def size(self) -> int:
        """About how much memory it takes, in bytes."""
        size = len(self.key or b"") + len(self.value or b"") + len(self.reason) + _OVERHEAD
        for name, value in self.headers:
            size += len(name) + len(value or b"") + _OVERHEAD
        return size

    def __str__(self) -> str:
        return (
            f"topic '{self.partition.topic}', partition {self.partition.number}, offset {self.offset}: "
            f"{self.reason} ({self.stage})"
        )


@dataclass(frozen=True)
class Left:
    """The end of a partition that a writer left to a later batch, because it fills no file."""

    until: int
    """Up to here the batch is staged."""
    rows: int
    """That would be written of what is left."""


@dataclass(frozen=True)
class Staged:
    """What became of a batch for one target. Nothing of it is visible yet."""

    payload: Sequence[Any] = ()
    """What the target commits, such as files; only the sink knows."""
    rows: int = 0
    counts: Mapping[Partition, Counts] = field(default_factory=dict)
    new_fields: Mapping[tuple[str, ...], Any] = field(default_factory=dict)
    """Fields that the target lacks, by path, as inferred types: the batch has to run again for a target that
    has them."""
    left: Mapping[Partition, Left] = field(default_factory=dict)
    """What the writer left, where it may (`WriterTask.may_leave`)."""


@dataclass(frozen=True)
class TaskTimes:
    """How long the tasks of a batch took, in seconds."""

    stages: Mapping[str, float] = field(default_factory=dict)
    """`read`, `convert`, `transform` and `stage`, summed over tasks, and `queue`: what the engine took beyond
    its longest task."""
    longest: float = 0.0
    tasks: int = 0

    def __add__(self, other: TaskTimes) -> TaskTimes:
        """Of one run after the other."""
        names = {**self.stages, **other.stages}
        stages = {name: self.stages.get(name, 0.0) + other.stages.get(name, 0.0) for name in names}
        return TaskTimes(stages, self.longest + other.longest, max(self.tasks, other.tasks))

    @classmethod
    def beside(cls, parts: Iterable[TaskTimes], seconds: float) -> TaskTimes:
        """Of tasks at the same time, by an engine that took so many seconds for all of them."""
        tasks = list(parts)
        stages: dict[str, float] = {}
        for one in tasks:
            for name, spent in one.stages.items():
                stages[name] = stages.get(name, 0.0) + spent
        longest = max((one.longest for one in tasks), default=0.0)
        stages["queue"] = max(0.0, seconds - longest)
        return cls(stages, longest, len(tasks))


@dataclass(frozen=True)
class BatchResult:
    """What tasks made of their slices: what is staged for each target, and what concerns all of them."""

    staged: Mapping[str, Staged] = field(default_factory=dict)
    """By the target's name."""
    rejected: Sequence[Rejected] = ()
    bytes_read: int = 0
    newest_ms: Mapping[Partition, int] = field(default_factory=dict)
    """Timestamp of the last record of each partition."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """How many records each transform dropped, by its alias."""
    overflow: bool = False
    """More rejected bytes than a driver should hold, or more bytes than a batch may have: it has to be
    smaller."""
    records_read: int = 0
    """Of those `bytes_read`; what a target has already is among them."""
    counts: Mapping[Partition, Counts] = field(default_factory=dict)
    """Of a job that routes: what became of all records, whichever targets they were for."""
    unknown_targets: frozenset[str] = frozenset()
    """Targets that records name and that nobody has asked yet: the batch has to run again with them."""
    times: TaskTimes = field(default_factory=TaskTimes)

    @property
    def needs_new_fields(self) -> bool:
        return any(staged.new_fields for staged in self.staged.values())


class PartlyStaged(Exception):
    """A task of a batch has failed, and others have not: their files are of no use to anybody."""

    def __init__(self, reason: Exception, done: Sequence[BatchResult]) -> None:
        super().__init__(str(reason))
        self.reason = reason
        self.done = done
