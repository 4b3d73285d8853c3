"""Do the books of a job balance? What the topic has against what table and dead letter queue have. For
`verify`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from pyroaring import BitMap64

from icestream.api.batch import Counts, Slice
from icestream.api.offsets import NOTHING, Offsets, Partition
from icestream.sinks.iceberg.marks import JobMark, Span

_SHOWN = 10


@dataclass(frozen=True)
class Deep:
    """What the data files themselves say: how often each offset is in the table."""

    layers: Mapping[Partition, Sequence[BitMap64]]
    """First the offsets that are there at least once, then those that are there at least twice, and so on."""
    foreign_rows: int = 0
    """Rows in files that another engine wrote or rewrote: their origin is not known."""


def layered(parts: Iterable[BitMap64]) -> list[BitMap64]:
    """Layers of sets that may overlap."""
    layers: list[BitMap64] = []
    for part in parts:
        again = part
        for number, layer in enumerate(layers):
            layers[number], again = layer | again, layer & again
        if again:
            layers.append(again)
    return layers


@dataclass(frozen=True)
class Letters:
    """What the dead letter queue holds of this job; offsets only if the letters tell them."""

    count: int
    offsets: Mapping[Partition, BitMap64] | None


@dataclass(frozen=True)
class Evidence:
    mark: JobMark
    ends: Offsets
    in_topic: Mapping[Slice, int]
    """Records that the topic really has, for spans where offsets alone do not tell (markers, compaction)."""
    table_rows: int
    other_writers: bool
    letters: Letters | None
    deep: Deep | None = None
    beginnings: Offsets = NOTHING
    anew: Sequence[str] = ()
    """Topics that were deleted and created again since they were read."""

    def records(self, partition: Partition, span: Span) -> int:
        """How many records a span had to read."""
        return self.in_topic.get(Slice(partition, span.first, span.next), span.next - span.first)


@dataclass(frozen=True)
class Verdict:
    line: str
    problems: Sequence[str] = ()
    partitions: Mapping[Partition, Counts] = field(default_factory=dict)
    lag: int = 0

    @property
    def holds(self) -> bool:
        return not self.problems


def judge(evidence: Evidence) -> Verdict:
    """One line that a person believes, and each thing that is wrong with its offsets."""
    mark, totals = evidence.mark, evidence.mark.totals
    problems = [
        *(
            f"topic '{topic}' was deleted and created again: what it has now was not read"
            for topic in evidence.anew
        ),
        *_per_partition(evidence),
        *_table(evidence),
        *_letters(evidence),
        *(_deep(evidence, evidence.deep) if evidence.deep else []),
    ]
    said = [f"{totals.read:,} read" if mark.earlier else f"{totals.read:,} in the topic"]
    if again := _read_again(mark):
        said.append(f"{again:,} of them again by hand")
    if skipped := _skipped(mark):
        said.append(f"{skipped:,} skipped by hand")
    said.append(f"{evidence.table_rows:,} in the table")
    if totals.rejected:
        place = "in the dead letter queue" if evidence.letters else "rejected"
        said.append(f"{totals.rejected:,} {place}")
    if totals.filtered:
        said.append(f"{totals.filtered:,} filtered (without a value, or dropped by a transform)")
    good = "None missing, none too many." if mark.earlier else "None missing, none twice."
    verdict = good if not problems else f"{len(problems)} problem(s)."
    lag = _lag(evidence)
    waiting = f" {lag:,} not read yet." if lag else ""
    counts = {partition: _sum(spans) for partition, spans in mark.spans().items()}
    return Verdict(f"{', '.join(said)}. {verdict}{waiting}", problems, counts, lag)


def _sum(spans: Sequence[Span]) -> Counts:
    return sum((span.counts for span in spans), Counts())


def _lag(evidence: Evidence) -> int:
    """Records between where the job stands, or begins after a reset, and the end."""
    standings = evidence.mark.standings
    return sum(
        max(0, evidence.ends[p] - (standings[p].next if p in standings else evidence.beginnings.get(p) or 0))
        for p in evidence.ends
    )


def _offsets(span: Span) -> BitMap64:
    return BitMap64(range(span.first, span.next)) if span.next > span.first else BitMap64()


def _countable(spans: Sequence[Span]) -> list[Span]:
    return [span for span in spans if not span.is_gone]


def _read_again(mark: JobMark) -> int:
    """Offsets that were read once more because somebody moved the job back."""
    expected = (layered(map(_offsets, _countable(spans))) for spans in mark.spans().values())
    return sum(len(layer) for layers in expected for layer in layers[1:])


def _skipped(mark: JobMark) -> int:
    """Offsets that were never read because somebody moved the job over them."""
    found = 0
    for partition, standing in mark.standings.items():
        spans = _countable(mark.spans()[partition])
        first, until = min(span.first for span in spans), standing.next
        covered = BitMap64.union(*map(_offsets, spans))
        found += len(BitMap64(range(first, until)) - covered) if until > first else 0
    return found


def _per_partition(evidence: Evidence) -> list[str]:
    problems = []
    for partition, spans in sorted(evidence.mark.spans().items()):
        for span in spans:
            counts = span.counts
            if not counts.reconcile:
                problems.append(
                    f"{partition}: {counts.read} read, but {counts.written} written, {counts.rejected} "
                    f"rejected and {counts.filtered} filtered"
                )
            there = evidence.records(partition, span)
            if counts.read != there and not span.is_gone:
                what = "missing" if counts.read < there else "read twice"
                problems.append(
                    f"{partition}: {abs(there - counts.read)} records {what} among offsets "
                    f"{span.first}..{span.next - 1}"
                )
    return problems


def _table(evidence: Evidence) -> list[str]:
    written = evidence.mark.totals.written
    if evidence.table_rows == written or evidence.other_writers:
        return []
    what = "missing from" if evidence.table_rows < written else "too many in"
    return [f"{abs(evidence.table_rows - written)} rows {what} the table: {written} were written"]


def _letters(evidence: Evidence) -> list[str]:
    if evidence.letters is None or evidence.letters.count == evidence.mark.totals.rejected:
        return []
    return [
        f"{evidence.letters.count} dead letters in the queue, "
        f"but {evidence.mark.totals.rejected} records were rejected"
    ]


def _deep(evidence: Evidence, deep: Deep) -> list[str]:
    spans_of = evidence.mark.spans()
    expected = {partition: layered(map(_offsets, spans)) for partition, spans in spans_of.items()}
    problems = []
    for partition, layers in sorted(deep.layers.items()):
        surplus = BitMap64.union(BitMap64(), *_beyond(layers, expected.get(partition, []))[1:])
        if surplus:
            how = "too often" if partition in evidence.mark.earlier else "twice"
            problems.append(f"{partition}: offsets {how} in the table: {shown(surplus)}")
    if deep.foreign_rows:
        return problems
    for partition, wanted in sorted(expected.items()):
        problems += _absent(evidence, partition, wanted, deep.layers.get(partition, ()))
    return problems


def _absent(
    evidence: Evidence, partition: Partition, wanted: Sequence[BitMap64], layers: Sequence[BitMap64]
) -> list[str]:
    letters = evidence.letters.offsets if evidence.letters else None
    explained = 0
    for span in evidence.mark.spans()[partition]:
        records = span.counts.read if span.is_gone else evidence.records(partition, span)
        holes = span.next - span.first - records
        explained += holes + span.counts.filtered + (0 if letters is not None else span.counts.rejected)
    dead = letters.get(partition, BitMap64()) if letters is not None else BitMap64()
    lacking = [absent - dead for absent in _beyond(wanted, layers)]
    if sum(map(len, lacking)) <= explained:
        return []
    return [f"{partition}: offsets missing from the table: {shown(BitMap64.union(*lacking))}"]


def _beyond(layers: Sequence[BitMap64], others: Sequence[BitMap64]) -> list[BitMap64]:
    """What each layer has that its counterpart lacks."""
    return [layer - other for layer, other in zip_longest(layers, others, fillvalue=BitMap64())][
        : len(layers)
    ]


def shown(offsets: BitMap64) -> str:
    """Offsets as ranges, the first few."""
    ranges: list[list[int]] = []
    for offset in offsets:
        if ranges and offset == ranges[-1][1] + 1:
            ranges[-1][1] = offset
        elif len(ranges) == _SHOWN:
            return ", ".join(_range(low, high) for low, high in ranges) + f", … ({len(offsets)} in all)"
        else:
            ranges.append([offset, offset])
    return ", ".join(_range(low, high) for low, high in ranges)


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}..{high}"
