"""The checkpoint that a job leaves in a table's log with every commit, and the transactions beside it.

The whole checkpoint, the *mark*, is in the commit's `commitInfo`. Log clean-up takes that away one day, and
keeps transactions (`txn` actions) for ever: one of the job, which is the compare-and-set, one for each
partition with its next offset, and a few with the job's totals. docs/exactly-once.md tells the rules.
"""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from icestream.api.batch import Counts
from icestream.api.checkpoint import (
    Checkpoint,
    FoundCheckpoint,
    PartitionCheckpoint,
    TopicIds,
    from_json,
    to_json,
)
from icestream.api.errors import LostOffsets
from icestream.api.offsets import Partition

_PREFIX: Final = "icestream.job."
MADE_BY: Final = "icestream.maintenance"
"""In the `commitInfo` of maintenance: what was done. Such a commit changes no row."""
CHANGES: Final = "icestream.changes"
"""In the `commitInfo` of a batch of changes: its rows are not those that were written."""
_REMOVED: Final = -1
"""Of a partition's transaction: the job is no longer there. Transactions cannot be removed."""
_TOTALS: Final = ("read", "written", "rejected", "filtered")
_HIGH, _LOW = "commit-high", "commit-low"
_BITS: Final = 64
_MASK: Final = 0xFFFF_FFFF_FFFF_FFFF


def key_of(job: str) -> str:
    """The job's transaction, and the key of its marks in `commitInfo`."""
    return f"{_PREFIX}{job.replace('%', '%25').replace(':', '%3A')}"


def mark_of(checkpoint: Checkpoint) -> str:
    return json.dumps(to_json(checkpoint), separators=(",", ":"))


def checkpoint_of(entry: Mapping[str, Any], key: str) -> Checkpoint | None:
    """The mark in a `commitInfo`."""
    text = entry.get(key)
    if text is None:
        return None
    try:
        return from_json(json.loads(text))
    except (ValueError, KeyError, TypeError) as error:
        raise LostOffsets(
            f"commit {entry.get('version')} of the table has a checkpoint of the job that this version does "
            f"not read ({error}); run the version that wrote it, or move the offsets by hand"
        ) from error


# -- transactions, for ever --


def transactions(key: str, after: Checkpoint, before: Checkpoint | None, *, every: bool) -> dict[str, int]:
    """What has changed since the checkpoint before; `every`: all, where a table forgets old ones."""
    new, old = _positions(key, after), _positions(key, before) if before else {}
    found = {id_: next_ for id_, next_ in new.items() if every or old.get(id_) != next_}
    found |= dict.fromkeys(old.keys() - new.keys(), _REMOVED)
    totals = after.totals
    found |= {f"{key}:{name}": getattr(totals, name) for name in _TOTALS}
    try:
        number = uuid.UUID(after.commit).int
    except ValueError:
        return found
    return found | {f"{key}:{_HIGH}": _signed(number >> _BITS), f"{key}:{_LOW}": _signed(number)}


def _positions(key: str, checkpoint: Checkpoint) -> dict[str, int]:
    source = checkpoint.source
    return {
        f"{key}:{source.cluster}:{source.topics.get(one.topic, '')}:{one.topic}:{one.number}": at.next
        for one, at in checkpoint.partitions.items()
    }


def _signed(number: int) -> int:
    return int.from_bytes((number & _MASK).to_bytes(8, "big"), "big", signed=True)


def checkpoint_from(key: str, held: Mapping[str, int]) -> Checkpoint | None:
    """What transactions still tell when no mark is left: how far the job is, and what it has read in all.
    None: nothing."""
    partitions: dict[Partition, PartitionCheckpoint] = {}
    clusters: set[str] = set()
    left: set[str] = set()
    topics: dict[str, str] = {}
    for id_, next_ in held.items():
        owner, *parts = id_.rsplit(":", 4)
        if owner != key or len(parts) != 4:
            continue
        cluster, topic_id, topic, number = parts
        if next_ == _REMOVED:
            left.add(cluster)
            continue
        clusters.add(cluster)
        topics[topic] = topic_id
        partitions[Partition(topic, int(number))] = PartitionCheckpoint(next_, next_, next_, Counts())
    high, low = (held.get(f"{key}:{name}") for name in (_HIGH, _LOW))
    clusters = clusters or left
    if len(clusters) != 1 or high is None or low is None:
        return None
    commit = str(uuid.UUID(int=(high & _MASK) << _BITS | (low & _MASK)))
    return Checkpoint(
        commit,
        None,
        TopicIds(clusters.pop(), {topic: id_ for topic, id_ in topics.items() if id_}),
        partitions,
        history=commit,
        base=Counts(*(held.get(f"{key}:{name}", 0) for name in _TOTALS)),
    )


# -- marks, in the order of the log --


@dataclass(frozen=True)
class Walk:
    """What the log says of a job, read from its newest commit back."""

    found: Checkpoint | None = None
    newest: Checkpoint | None = None
    """The last mark that there was at all; another one, if somebody has restored an earlier version since."""
    bound: int | None = None
    """The version that the table was restored to, if no mark was found up to it."""

    @property
    def is_restored(self) -> bool:
        return self.bound is not None

    def as_found(self) -> FoundCheckpoint:
        is_last = self.newest is None or (self.found is not None and self.newest.commit == self.found.commit)
        if self.found is None:
            return FoundCheckpoint(None, rolled_back_from=self.newest)
        return FoundCheckpoint(self.found, lost=None if is_last else self.newest)


def walk(entries: Iterable[Mapping[str, Any]], key: str) -> tuple[Walk, int | None]:
    """Follow the log back to the mark that counts; and the oldest version that was looked at.

    A RESTORE takes rows away and leaves transactions: what counts is the mark of the version that it
    restored.
    """
    newest: Checkpoint | None = None
    bound: int | None = None
    before: float | None = None
    version: int | None = None
    for entry in entries:
        version = int(entry["version"])
        mark = checkpoint_of(entry, key)
        newest = newest or mark
        if before is not None and int(entry.get("timestamp", 0)) <= before:
            bound, before = version, None
        if before is not None or (bound is not None and version > bound):
            continue
        if entry.get("operation") == "RESTORE":
            bound, before = _restored(entry, bound)
            continue
        if mark is not None:
            return Walk(mark, newest, bound), version
    return Walk(None, newest, bound), version


def _restored(entry: Mapping[str, Any], bound: int | None) -> tuple[int | None, float | None]:
    """The version that a RESTORE went to, or the time of which it is the last."""
    parameters = entry.get("operationParameters") or {}
    version = parameters.get("version")
    if version is not None:
        return int(version), None
    given = parameters.get("timestamp") or parameters.get("datetime")
    if given is None:
        raise LostOffsets(
            f"the table was restored by commit {entry.get('version')}, which does not tell to which version; "
            "move the offsets by hand"
        )
    return bound, _milliseconds(str(given))


def _milliseconds(given: str) -> float:
    if given.isdigit():
        return float(given)
    moment = dt.datetime.fromisoformat(given)
    return (moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)).timestamp() * 1000
