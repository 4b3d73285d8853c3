"""How a mark is written down: short in each snapshot's summary, whole in the table property. For `marks`.

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
from typing import Any, Final

import numpy as np

from icestream.api.batch import Counts
from icestream.api.errors import FatalError
from icestream.api.offsets import Partition
from icestream.connectors.iceberg.job_mark import Age, JobMark, Source, Span, Standing

_VERSION: Final = "2"
_CACHED: Final = 64

_COLUMNS: Final[Mapping[str, Callable[[Standing], int]]] = {
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


def summary_text(mark: JobMark) -> str:
    """The mark for a snapshot's summary: positions of the topics that exist, and sums."""
    pruned = mark.pruned
    live = {p: at for p, at in mark.standings.items() if p.topic not in pruned}
    # A table that misses its first batch begins where that batch began.
    columns = (*_SHORT, "step") if mark.previous is None or mark.joining else _SHORT
    header = {**_header(mark), "totals": _numbers(mark.totals)}
    header["topics"] = {name: id_ for name, id_ in mark.source.topics.items() if name not in pruned}
    return _text(header, live, columns)


def property_text(mark: JobMark) -> str:
    """The whole mark."""
    header = {
        **_header(mark),
        "gone": dict(mark.gone),
        "base": _numbers(mark.base) if mark.base is not None else None,
        "earlier": [[*partition, _listed(spans)] for partition, spans in sorted(mark.earlier.items())],
    }
    return _text(header, mark.standings, tuple(_COLUMNS))


def mark_from_property(text: str) -> JobMark:
    return _whole(text)


def mark_from_summary(text: str, remembered: JobMark | None) -> JobMark:
    """The mark of a snapshot, with what `remembered`, the table property, still knows of it."""
    if text.startswith("{"):
        return _whole(text)
    short = _parsed(text)
    if remembered is not None and remembered.commit == short.header["commit"]:
        return remembered
    # The property is that of another commit: somebody rolled the table back.
    if remembered is not None and remembered.history == short.header["history"]:
        for pruned in (remembered.pruned - short.topics, frozenset[str]()):
            mark = _completed(short, remembered, pruned)
            if mark is not None and mark.totals == short.totals:
                return mark
    return _by_itself(short)


# -- reading --


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

    def mark(self, standings: Mapping[Partition, Standing]) -> JobMark:
        header = self.header
        return JobMark(
            header["commit"],
            header["previous"],
            Source(header["cluster"], header["topics"]),
            standings,
            Age(*header["began"]) if header["began"] else None,
            tables=header["tables"],
            joining=frozenset(header["joining"]),
            history=header["history"],
        )

    def standings(self, firsts: Iterable[int]) -> dict[Partition, Standing]:
        columns = self.columns
        steps = columns.get("step", itertools.repeat(0))
        rows = zip(*(columns[name] for name in _SHORT), firsts, steps, strict=False)
        found = {}
        for partition, row in zip(self.partitions, rows, strict=True):
            next_, holes, rejected, filtered, unaccounted, first, step = row
            read = next_ - first - holes
            written = read - rejected - filtered - unaccounted
            counts = Counts(read, written, rejected, filtered)
            found[partition] = Standing(first, next_ - step, next_, counts)
        return found


def _completed(short: _Parsed, remembered: JobMark, pruned: frozenset[str]) -> JobMark | None:
    """A summary with where its partitions began; None if that is not known of each."""
    known = remembered.standings
    if any(partition not in known for partition in short.partitions):
        return None
    standings = short.standings(known[partition].first for partition in short.partitions)
    standings |= {partition: at for partition, at in known.items() if partition.topic in pruned}
    mark = short.mark(standings)
    ids = {name: id_ for name, id_ in remembered.source.topics.items() if name in pruned}
    return replace(
        mark,
        source=Source(mark.source.cluster, {**ids, **mark.source.topics}),
        earlier=remembered.earlier,
        gone={topic: commits for topic, commits in remembered.gone.items() if topic in pruned},
        base=remembered.base,
    )


def _by_itself(short: _Parsed) -> JobMark:
    """A summary of which nobody knows where its partitions began: from here on they are counted anew."""
    nexts, steps = short.columns["next"], short.columns.get("step", itertools.repeat(0))
    standings = {
        partition: Standing(at, at - step, at, Counts())
        for partition, at, step in zip(short.partitions, nexts, steps, strict=False)
    }
    return replace(short.mark(standings), history=short.header["commit"], base=short.totals)


@functools.lru_cache(maxsize=_CACHED)
def _whole(text: str) -> JobMark:
    if text.startswith("{"):
        return _from_json(text)
    parsed = _parsed(text)
    header = parsed.header
    earlier = {
        Partition(topic, number): tuple(
            Span(first, next_, Counts(*counts), bool(gone)) for first, next_, gone, *counts in spans
        )
        for topic, number, spans in header["earlier"]
    }
    mark = parsed.mark(parsed.standings(parsed.columns["first"]))
    base = Counts(*header["base"]) if header["base"] is not None else None
    return replace(mark, earlier=earlier, gone=header["gone"], base=base)


def _from_json(text: str) -> JobMark:
    """A mark of a build before 16 November 2026: plain JSON in both places."""
    body = json.loads(text)
    standings = {
        Partition(topic, int(number)): Standing(values[0], values[1], values[2], Counts(*values[3:]))
        for topic, partitions in body["partitions"].items()
        for number, values in partitions.items()
    }
    source = Source(body["cluster"], body["topics"])
    began = Age(*body["began"]) if body.get("began") else None
    earlier = {
        Partition(topic, int(number)): tuple(
            Span(first, next_, Counts(*counts), bool(gone)) for first, next_, gone, *counts in spans
        )
        for topic, partitions in body.get("earlier", {}).items()
        for number, spans in partitions.items()
    }
    return JobMark(body["commit"], body["previous"], source, standings, began, earlier)


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


def _header(mark: JobMark) -> dict[str, Any]:
    return {
        "commit": mark.commit,
        "previous": mark.previous,
        "cluster": mark.source.cluster,
        "topics": dict(mark.source.topics),
        "began": [mark.began.sequence, mark.began.ms] if mark.began else None,
        "tables": dict(mark.tables),
        "joining": sorted(mark.joining),
        "history": mark.history,
    }


def _text(header: dict[str, Any], standings: Mapping[Partition, Standing], names: Sequence[str]) -> str:
    ordered = sorted(standings.items())
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


def _listed(spans: Iterable[Span]) -> list[list[int]]:
    return [[span.first, span.next, int(span.is_gone), *_numbers(span.counts)] for span in spans]


def _numbers(counts: Counts) -> list[int]:
    return [counts.read, counts.written, counts.rejected, counts.filtered]
