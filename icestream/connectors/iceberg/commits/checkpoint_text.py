"""How a checkpoint is written down: short in each snapshot's summary, whole in the table property.

All summaries are in the metadata file that every commit writes again, so a summary has only what a rollback
needs: the next offsets, and what tells counts from them. The property, once per metadata file, has the rest.
Format: `2`, then base85 of zlib of a JSON header, a newline, and columns of integers, whose bytes of the same
rank stand side by side: that compresses better than varints. Figures: docs/decisions/009-checkpoint.md.
"""

from __future__ import annotations

import base64
import functools
import itertools
import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from icestream.api.batch import Counts
from icestream.api.checkpoint import Checkpoint, PartitionCheckpoint, ReadSpan, TopicIds
from icestream.api.errors import FatalError
from icestream.api.offsets import Partition

if TYPE_CHECKING:
    # For their names alone: PyIceberg is slow to import.
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot

_VERSION: Final = "2"
_CACHED: Final = 64

_COLUMNS: Final[Mapping[str, Callable[[PartitionCheckpoint], int]]] = {
    "next": lambda at: at.next,
    # What follows is zero for most partitions, and then takes next to nothing.
    "holes": lambda at: at.next - at.first - at.counts.read,
    "rejected": lambda at: at.counts.rejected,
    "filtered": lambda at: at.counts.filtered,
    "unaccounted": lambda at: at.counts.read - at.counts.written - at.counts.rejected - at.counts.filtered,
    "first": lambda at: at.first,
    "step": lambda at: at.next - at.start,
}
_SHORT: Final = ("next", "holes", "rejected", "filtered", "unaccounted")


@dataclass(frozen=True)
class Age:
    """How far a table's history went at some moment: every snapshot of then has no more than this."""

    sequence: int
    ms: int

    @classmethod
    def of(cls, metadata: TableMetadata) -> Age:
        sequence = 0 if metadata.format_version == 1 else metadata.last_sequence_number
        return cls(sequence, metadata.last_updated_ms)

    def covers(self, snapshot: Snapshot) -> bool:
        # Snapshots of format 1 have no sequence number.
        if snapshot.sequence_number:
            return snapshot.sequence_number <= self.sequence
        return snapshot.timestamp_ms <= self.ms


@dataclass(frozen=True)
class TableCheckpoint(Checkpoint):
    """A checkpoint as an Iceberg table has it."""

    began: Age | None = None
    """The table's age before the first commit of the job."""

    @classmethod
    def of(cls, checkpoint: Checkpoint, metadata: TableMetadata) -> TableCheckpoint:
        """The checkpoint for a commit to a table; a job's first commit notes the age of the table."""
        if isinstance(checkpoint, TableCheckpoint) and checkpoint.began is not None:
            return checkpoint
        return cls(**{**vars(checkpoint), "began": Age.of(metadata)})


def summary_text(checkpoint: TableCheckpoint) -> str:
    """The checkpoint for a snapshot's summary: positions of the topics that exist, and sums."""
    pruned = checkpoint.pruned
    live = {p: at for p, at in checkpoint.partitions.items() if p.topic not in pruned}
    # A table that misses its first batch begins where that batch began; of a job that routes, it is where
    # the group was, which is asked for when Kafka has lost it.
    needs_start = checkpoint.previous is None or checkpoint.joining or checkpoint.is_routed
    columns = (*_SHORT, "step") if needs_start else _SHORT
    header = {**_header(checkpoint), "totals": _numbers(checkpoint.totals)}
    header["topics"] = {name: id_ for name, id_ in checkpoint.source.topics.items() if name not in pruned}
    if checkpoint.is_routed:
        # There may be hundreds, and only the newest commit is asked for them.
        header |= {"tables": {}, "joining": []}
    return _text(header, live, columns)


def property_text(checkpoint: TableCheckpoint) -> str:
    """The whole checkpoint."""
    header = {
        **_header(checkpoint),
        "gone": dict(checkpoint.gone),
        "base": _numbers(checkpoint.base) if checkpoint.base is not None else None,
        "earlier": [[*partition, _listed(spans)] for partition, spans in sorted(checkpoint.earlier.items())],
    }
    return _text(header, checkpoint.partitions, tuple(_COLUMNS))


def checkpoint_from_property(text: str) -> TableCheckpoint:
    return _whole(text)


def checkpoint_from_summary(text: str, remembered: TableCheckpoint | None) -> TableCheckpoint:
    """The checkpoint of a snapshot, with what `remembered`, the table property, still knows of it."""
    if text.startswith("{"):
        return _whole(text)
    short = _parsed(text)
    if remembered is not None and remembered.commit == short.header["commit"]:
        return remembered
    # The property is that of another commit: somebody rolled the table back.
    if remembered is not None and remembered.history == short.header["history"]:
        for pruned in (remembered.pruned - short.topics, frozenset[str]()):
            checkpoint = _completed(short, remembered, pruned)
            if checkpoint is not None and checkpoint.totals == short.totals:
                return checkpoint
    return _by_itself(short)


# -- reading --


def totals_in(text: str) -> tuple[Counts, bool]:
    """The sums in the checkpoint of a snapshot's summary, and whether it is the first of its job."""
    if text.startswith("{"):
        checkpoint = _from_json(text)
        return checkpoint.totals, checkpoint.previous is None
    parsed = _parsed(text)
    return parsed.totals, parsed.header["previous"] is None


@dataclass(frozen=True)
class _Parsed:
    header: Mapping[str, Any]
    partitions: Sequence[Partition]
    columns: Mapping[str, Sequence[int]]

    @property
    def topics(self) -> frozenset[str]:
        return frozenset(partition.topic for partition in self.partitions)

    @property
    def totals(self) -> Counts:
        return Counts(*self.header["totals"])

    def checkpoint(self, partitions: Mapping[Partition, PartitionCheckpoint]) -> TableCheckpoint:
        header = self.header
        return TableCheckpoint(
            header["commit"],
            header["previous"],
            TopicIds(header["cluster"], header["topics"]),
            partitions,
            targets=header["tables"],
            joining=frozenset(header["joining"]),
            history=header["history"],
            is_routed="routed" in header,
            behind={Partition(topic, number): until for topic, number, until in header.get("routed", ())},
            began=Age(*header["began"]) if header["began"] else None,
        )

    def positions(self, firsts: Iterable[int]) -> dict[Partition, PartitionCheckpoint]:
        columns = self.columns
        steps = columns.get("step", itertools.repeat(0))
        rows = zip(*(columns[name] for name in _SHORT), firsts, steps, strict=False)
        found = {}
        for partition, row in zip(self.partitions, rows, strict=True):
            next_, holes, rejected, filtered, unaccounted, first, step = row
            read = next_ - first - holes
            written = read - rejected - filtered - unaccounted
            counts = Counts(read, written, rejected, filtered)
            found[partition] = PartitionCheckpoint(first, next_ - step, next_, counts)
        return found


def _completed(short: _Parsed, remembered: TableCheckpoint, pruned: frozenset[str]) -> TableCheckpoint | None:
    """A summary with where its partitions began; None if that is not known of each."""
    known = remembered.partitions
    if any(partition not in known for partition in short.partitions):
        return None
    partitions = short.positions(known[partition].first for partition in short.partitions)
    partitions |= {partition: at for partition, at in known.items() if partition.topic in pruned}
    checkpoint = short.checkpoint(partitions)
    ids = {name: id_ for name, id_ in remembered.source.topics.items() if name in pruned}
    return replace(
        checkpoint,
        source=TopicIds(checkpoint.source.cluster, {**ids, **checkpoint.source.topics}),
        earlier=remembered.earlier,
        gone={topic: commits for topic, commits in remembered.gone.items() if topic in pruned},
        base=remembered.base,
    )


def _by_itself(short: _Parsed) -> TableCheckpoint:
    """A summary of which nobody knows where its partitions began: from here on they are counted anew."""
    nexts, steps = short.columns["next"], short.columns.get("step", itertools.repeat(0))
    partitions = {
        partition: PartitionCheckpoint(at, at - step, at, Counts())
        for partition, at, step in zip(short.partitions, nexts, steps, strict=False)
    }
    return replace(short.checkpoint(partitions), history=short.header["commit"], base=short.totals)


@functools.lru_cache(maxsize=_CACHED)
def _whole(text: str) -> TableCheckpoint:
    if text.startswith("{"):
        return _from_json(text)
    parsed = _parsed(text)
    header = parsed.header
    earlier = {
        Partition(topic, number): tuple(
            ReadSpan(first, next_, Counts(*counts), bool(gone)) for first, next_, gone, *counts in spans
        )
        for topic, number, spans in header["earlier"]
    }
    checkpoint = parsed.checkpoint(parsed.positions(parsed.columns["first"]))
    base = Counts(*header["base"]) if header["base"] is not None else None
    return replace(checkpoint, earlier=earlier, gone=header["gone"], base=base)


def _from_json(text: str) -> TableCheckpoint:
    """A checkpoint of a build before 16 November 2026: plain JSON in both places."""
    body = json.loads(text)
    partitions = {
        Partition(topic, int(number)): PartitionCheckpoint(
            values[0], values[1], values[2], Counts(*values[3:])
        )
        for topic, partitions in body["partitions"].items()
        for number, values in partitions.items()
    }
    source = TopicIds(body["cluster"], body["topics"])
    began = Age(*body["began"]) if body.get("began") else None
    earlier = {
        Partition(topic, int(number)): tuple(
            ReadSpan(first, next_, Counts(*counts), bool(gone)) for first, next_, gone, *counts in spans
        )
        for topic, partitions in body.get("earlier", {}).items()
        for number, spans in partitions.items()
    }
    return TableCheckpoint(body["commit"], body["previous"], source, partitions, earlier, began=began)


@functools.lru_cache(maxsize=_CACHED)
def _parsed(text: str) -> _Parsed:
    if not text.startswith(_VERSION):
        raise FatalError(
            f"the table has a checkpoint of format '{text[:1]}', and this version reads formats up to "
            f"{_VERSION}; run the newer version that wrote it"
        )
    head, _, body = zlib.decompress(base64.b85decode(text[1:])).partition(b"\n")
    header = json.loads(head)
    partitions = [
        Partition(topic, number)
        for topic, runs in header["partitions"].items()
        for first, last in runs
        for number in range(first, last + 1)
    ]
    columns, at = {}, 0
    for name, least, width in header["columns"]:
        size = width * len(partitions)
        columns[name] = _unpacked(body[at : at + size], len(partitions), least, width)
        at += size
    return _Parsed(header, partitions, columns)


# -- writing --


def _header(checkpoint: TableCheckpoint) -> dict[str, Any]:
    return {
        "commit": checkpoint.commit,
        "previous": checkpoint.previous,
        "cluster": checkpoint.source.cluster,
        "topics": dict(checkpoint.source.topics),
        "began": [checkpoint.began.sequence, checkpoint.began.ms] if checkpoint.began else None,
        "tables": dict(checkpoint.targets),
        "joining": sorted(checkpoint.joining),
        "history": checkpoint.history,
        **({"routed": _behind(checkpoint)} if checkpoint.is_routed else {}),
    }


def _text(
    header: dict[str, Any], partitions: Mapping[Partition, PartitionCheckpoint], names: Sequence[str]
) -> str:
    ordered = sorted(partitions.items())
    header["partitions"] = {
        topic: _runs([partition.number for partition in group])
        for topic, group in itertools.groupby((p for p, _ in ordered), key=lambda p: p.topic)
    }
    header["columns"], body = [], b""
    for name in names:
        least, width, packed = _packed([_COLUMNS[name](at) for _, at in ordered])
        header["columns"].append([name, least, width])
        body += packed
    head = json.dumps(header, separators=(",", ":")).encode()
    return _VERSION + base64.b85encode(zlib.compress(head + b"\n" + body, 9)).decode()


def _runs(numbers: Sequence[int]) -> list[list[int]]:
    """Numbers in order as [first, last] of each stretch without a gap."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return runs


def _packed(values: Sequence[int]) -> tuple[int, int, bytes]:
    """Distances to the least value, all lowest bytes first, then all second bytes, and so on."""
    least = min(values, default=0)
    width = (max(values, default=0) - least).bit_length() + 7 >> 3
    distances = np.array([value - least for value in values], dtype="<u8")
    planes = distances.view(np.uint8).reshape(len(values), 8).T[:width]
    return least, width, planes.tobytes()


def _unpacked(data: bytes, count: int, least: int, width: int) -> list[int]:
    planes = np.zeros((8, count), dtype=np.uint8)
    planes[:width] = np.frombuffer(data, dtype=np.uint8).reshape(width, count)
    distances = np.ascontiguousarray(planes.T).view("<u8").ravel()
    return [least + int(distance) for distance in distances]


def _behind(checkpoint: Checkpoint) -> list[list[str | int]]:
    return [[*partition, until] for partition, until in sorted(checkpoint.behind.items())]


def _listed(spans: Iterable[ReadSpan]) -> list[list[int]]:
    return [[span.first, span.next, int(span.is_gone), *_numbers(span.counts)] for span in spans]


def _numbers(counts: Counts) -> list[int]:
    return [counts.read, counts.written, counts.rejected, counts.filtered]
