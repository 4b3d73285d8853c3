"""The worker's facts as the console's JSON. Numbers that a browser cannot hold exactly, offsets and ids of
commits, are strings. Shapes: docs/console-api.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from icestream.api.history import BatchRecord, Event, PartitionLag, TableCommit, TargetCommit
from icestream.api.status import Progress
from icestream.cluster.configs.masking import Masks
from icestream.cluster.history.series import SeriesView

Json = dict[str, Any]


def progress_json(progress: Progress, masks: Masks) -> Json:
    shape = asdict(progress)
    del shape["partitions"]
    shape["warnings"] = [masks.text(warning) for warning in progress.warnings]
    shape["waits_for"] = masks.text(progress.waits_for)
    shape["circuit"] = _masked(progress.circuit, masks)
    shape["maintenance"] = [_masked(run, masks) for run in progress.maintenance]
    return shape


def _masked(told: Any, masks: Masks) -> Any:
    """Whatever texts are in it, without secrets: reasons quote what others answered."""
    if isinstance(told, str):
        return masks.text(told)
    if isinstance(told, Mapping):
        return {key: _masked(value, masks) for key, value in told.items()}
    return [_masked(value, masks) for value in told] if isinstance(told, list | tuple) else told


def partition_json(one: PartitionLag) -> Json:
    return {
        "topic": one.topic,
        "partition": one.partition,
        "next_offset": str(one.next_offset),
        "end": str(one.end),
        "lag": str(one.lag),
        "newest_ms": one.newest_ms,
    }


def batch_json(record: BatchRecord, masks: Masks) -> Json:
    shape = asdict(record)
    shape["outcome"] = record.outcome.value
    shape["seconds"] = round(record.seconds, 4)
    shape["longest_task"] = round(record.longest_task, 4)
    shape["stages"] = {stage: round(seconds, 4) for stage, seconds in record.stages.items()}
    shape["targets"] = [target_json(target) for target in record.targets]
    shape["note"] = masks.text(record.note) or None
    return shape


def target_json(target: TargetCommit) -> Json:
    return {
        "name": target.name,
        "id": target.id,
        "rows": target.rows,
        "seconds": round(target.seconds, 4),
        "files": len(target.file_bytes),
        "bytes": sum(target.file_bytes),
        "outcome": target.outcome.value,
    }


def commit_json(commit: TableCommit) -> Json:
    shape = asdict(commit)
    shape["commit_id"] = shape.pop("commit")
    return shape


def event_json(event: Event, masks: Masks) -> Json:
    return {
        "at_ms": event.at_ms,
        "kind": event.kind,
        "text": masks.text(event.text),
        "user": event.user,
        "about": event.about,
        "numbers": dict(event.numbers),
    }


def series_json(view: SeriesView | None) -> Json:
    """Points that nobody filled are null."""
    if view is None:
        return {"since_ms": None, "step_ms": None, "times": [], "series": {}}
    size = max((len(values) for values in view.values.values()), default=0)
    return {
        "since_ms": view.since_ms,
        "step_ms": view.step_ms,
        "times": [view.start_ms + at * view.step_ms for at in range(size)],
        "series": {name: [_short(value) for value in values] for name, values in view.values.items()},
    }


def _short(value: float | None) -> float | None:
    """Seven digits are all that the rings keep."""
    return None if value is None else float(f"{value:.7g}")


def unique(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))
