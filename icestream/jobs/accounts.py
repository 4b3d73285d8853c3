"""Do the books of a job balance? What the topic has against what table and dead letter queue have. For
`verify`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyroaring import BitMap64

from icestream.api.batch import Counts
from icestream.api.offsets import Offsets, Partition
from icestream.sinks.iceberg.marks import JobMark

_SHOWN = 10


@dataclass(frozen=True)
class Deep:
    """What the data files themselves say: which offsets are in the table, and which more than once."""

    offsets: Mapping[Partition, BitMap64]
    twice: Mapping[Partition, BitMap64]
    foreign_rows: int = 0
    """Rows in files that another engine wrote or rewrote: their origin is not known."""


@dataclass(frozen=True)
class Letters:
    """What the dead letter queue holds of this job; offsets only if the letters tell them."""

    count: int
    offsets: Mapping[Partition, BitMap64] | None


@dataclass(frozen=True)
class Evidence:
    mark: JobMark
    ends: Offsets
    in_topic: Mapping[Partition, int]
    """Records that the topic really has, for partitions where offsets alone do not tell (markers,
    compaction)."""
    table_rows: int
    other_writers: bool
    letters: Letters | None
    deep: Deep | None = None


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
        *_per_partition(evidence),
        *_table(evidence),
        *_letters(evidence),
        *(_deep(evidence, evidence.deep) if evidence.deep else []),
    ]
    lag = sum(max(0, evidence.ends[p] - s.next) for p, s in mark.standings.items() if p in evidence.ends)
    said = [f"{totals.read:,} in the topic", f"{evidence.table_rows:,} in the table"]
    if totals.rejected:
        place = "in the dead letter queue" if evidence.letters else "rejected"
        said.append(f"{totals.rejected:,} {place}")
    if totals.filtered:
        said.append(f"{totals.filtered:,} without a value")
    verdict = "None missing, none twice." if not problems else f"{len(problems)} problem(s)."
    waiting = f" {lag:,} not read yet." if lag else ""
    counts = {partition: standing.counts for partition, standing in mark.standings.items()}
    return Verdict(f"{', '.join(said)}. {verdict}{waiting}", problems, counts, lag)


def _per_partition(evidence: Evidence) -> list[str]:
    problems = []
    for partition, standing in sorted(evidence.mark.standings.items()):
        counts = standing.counts
        if not counts.reconcile:
            problems.append(
                f"{partition}: {counts.read} read, but {counts.written} written, {counts.rejected} rejected "
                f"and {counts.filtered} filtered"
            )
        there = evidence.in_topic.get(partition, standing.next - standing.first)
        if counts.read != there:
            what = "missing" if counts.read < there else "read twice"
            problems.append(
                f"{partition}: {abs(there - counts.read)} records {what} among offsets "
                f"{standing.first}..{standing.next - 1}"
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
    problems = [
        f"{partition}: offsets twice in the table: {shown(offsets)}"
        for partition, offsets in sorted(deep.twice.items())
        if offsets
    ]
    if deep.foreign_rows:
        return problems
    letters = evidence.letters.offsets if evidence.letters else None
    for partition, standing in sorted(evidence.mark.standings.items()):
        span = (
            BitMap64(range(standing.first, standing.next)) if standing.next > standing.first else BitMap64()
        )
        absent = span - deep.offsets.get(partition, BitMap64())
        if letters is not None:
            absent = absent - letters.get(partition, BitMap64())
        holes = (standing.next - standing.first) - evidence.in_topic.get(
            partition, standing.next - standing.first
        )
        explained = (
            holes + standing.counts.filtered + (0 if letters is not None else standing.counts.rejected)
        )
        if len(absent) > explained:
            problems.append(f"{partition}: offsets missing from the table: {shown(absent)}")
    return problems


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
