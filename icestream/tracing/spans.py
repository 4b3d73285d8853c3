"""A batch that has ended as a trace: a span for all of it, one for each stage, one for each target's commit.

Pure: `tracer.py` gives them to OpenTelemetry. The stages are told in seconds, without the moments at which
they began; what is known is their order. `plan` and `queue` stand at the beginning, `commit` and `publish` at
the end, and the stages inside tasks share the time of the longest task, by their parts of the sum over tasks.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from icestream.api.history import STAGES, BatchRecord, Outcome, TargetCommit

BATCH: Final = "batch"
_BEFORE: Final = ("plan", "queue")
_IN_TASKS: Final = ("read", "convert", "transform", "stage")
_AFTER: Final = ("commit", "publish")
_MOST_TARGETS: Final = 50
"""Of a batch that landed in a thousand tables, the largest commits are shown."""
_TROUBLE: Final = (
    Outcome.FAILED,
    Outcome.CONFLICT,
    Outcome.UNKNOWN,
    Outcome.UNAVAILABLE,
)

Value = str | int | float | Sequence[str]
assert set(STAGES) == {*_BEFORE, *_IN_TASKS, *_AFTER}


@dataclass(frozen=True)
class Span:
    """Times in nanoseconds since the epoch."""

    name: str
    start: int
    end: int
    attributes: Mapping[str, Value] = field(default_factory=dict)
    error: str | None = None
    """What went wrong, if something did."""
    children: tuple[Span, ...] = ()


def trace_id(batch: str) -> int:
    """That of a batch is its own id, so that whoever has a line of the log finds the trace."""
    try:
        found = uuid.UUID(batch).int
    except ValueError:
        found = int.from_bytes(hashlib.sha256(batch.encode(errors="replace")).digest()[:16])
    return found or 1


def batch_span(connector: str, record: BatchRecord) -> Span:
    """The whole batch, with its stages as children."""
    start = record.started_ms * 1_000_000
    end = start + _nanoseconds(record.seconds)
    about: dict[str, Value] = {"icestream.connector": connector, "icestream.batch.id": record.id}
    counts: dict[str, Value] = {
        "icestream.batch.outcome": record.outcome.value,
        "icestream.records.read": record.read,
        "icestream.records.written": record.written,
        "icestream.records.rejected": sum(record.rejected.values()),
        "icestream.records.filtered": sum(record.filtered.values()),
        "icestream.read.bytes": record.bytes,
        "icestream.tasks": record.tasks,
        "icestream.targets": [one.name for one in _largest(record.targets)],
    }
    if record.lag_after is not None:
        counts["icestream.lag.records"] = record.lag_after
    if record.note:
        counts["icestream.batch.note"] = record.note
    error = (record.note or record.outcome.value) if record.outcome in _TROUBLE else None
    return Span(BATCH, start, end, {**about, **counts}, error, _stages(about, record, start, end))


def _stages(about: Mapping[str, Value], record: BatchRecord, start: int, end: int) -> tuple[Span, ...]:
    known = {name: _nanoseconds(seconds) for name, seconds in record.stages.items() if name in STAGES}
    in_tasks: dict[str, int] = {name: known[name] for name in _IN_TASKS if name in known}
    seconds = {name: known[name] for name in (*_BEFORE, *_AFTER) if name in known}
    tasks_start = min(end, start + sum(seconds.get(name, 0) for name in _BEFORE))
    tasks_end = max(tasks_start, end - sum(seconds.get(name, 0) for name in _AFTER))
    longest = _nanoseconds(record.longest_task) or sum(in_tasks.values())
    room = min(longest, tasks_end - tasks_start)
    shares = _shared(in_tasks, room)
    parts = [
        *_one_after_another({name: seconds[name] for name in _BEFORE if name in seconds}, start, end),
        *_one_after_another(shares, tasks_start, end),
        *_one_after_another({name: seconds[name] for name in _AFTER if name in seconds}, tasks_end, end),
    ]
    return tuple(
        Span(
            name,
            begin,
            finish,
            {**about, "icestream.stage.seconds": record.stages[name]},
            children=_commits(about, record, begin, finish) if name == "commit" else (),
        )
        for name, begin, finish in parts
    )


def _shared(parts: Mapping[str, int], room: int) -> dict[str, int]:
    total = sum(parts.values())
    return {name: part * room // total if total else 0 for name, part in parts.items()}


def _one_after_another(parts: Mapping[str, int], start: int, end: int) -> list[tuple[str, int, int]]:
    found, at = [], start
    for name, length in parts.items():
        after = min(at + length, end)
        found.append((name, at, after))
        at = after
    return found


def _commits(about: Mapping[str, Value], record: BatchRecord, start: int, end: int) -> tuple[Span, ...]:
    return tuple(
        Span(
            "commit to a target",
            start,
            min(start + _nanoseconds(one.seconds), end),
            {
                **about,
                "icestream.target": one.name,
                "icestream.commit.id": one.id,
                "icestream.commit.outcome": one.outcome.value,
                "icestream.records.written": one.rows,
                "icestream.files": len(one.file_bytes),
                "icestream.files.bytes": sum(one.file_bytes),
            },
            one.outcome.value if one.outcome in _TROUBLE else None,
        )
        for one in _largest(record.targets)
    )


def _largest(targets: Sequence[TargetCommit]) -> list[TargetCommit]:
    if len(targets) <= _MOST_TARGETS:
        return list(targets)
    return sorted(targets, key=lambda one: -one.rows)[:_MOST_TARGETS]


def _nanoseconds(seconds: float) -> int:
    return max(0, round(seconds * 1e9))
