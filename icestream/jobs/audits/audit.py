"""Whether anything of a job is missing or twice: what the topic has against what target and dead letter queue
have. Pure; `audit_facts` gathers what it compares, `icestream verify` prints what it finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from pyroaring import BitMap64

from icestream.api.batch import Counts, Slice
from icestream.api.checkpoint import Checkpoint, ReadSpan
from icestream.api.offsets import NOTHING, Offsets, Partition
from icestream.api.sink import RowOffsets, layered

_SHOWN = 10


@dataclass(frozen=True)
class DeadLetterFacts:
    """What the dead letter queue holds that may be of this job; offsets only if the letters tell them."""

    count: int
    offsets: Mapping[Partition, BitMap64] | None
    unnamed: int = 0
    """How many of them do not say whose they are: other connectors may use the queue."""
    is_cut: bool = False
    """The queue has had letters that it no longer has."""


@dataclass(frozen=True)
class Counted:
    """What can be counted of a span today: records that are there, and offsets that may have had one."""

    there: int
    gone: int = 0
    """Offsets that retention or compaction has taken the record of, or that never had one."""


@dataclass(frozen=True)
class WholeFacts:
    """Of a job that routes, all its targets together: what the topic has before the group's offsets."""

    read: int
    in_targets: int
    in_letters: int
    in_neither: Mapping[Partition, BitMap64]


@dataclass(frozen=True)
class AuditFacts:
    checkpoint: Checkpoint
    ends: Offsets
    in_topic: Mapping[Slice, Counted]
    """Records that the topic really has, for spans where offsets alone do not tell (markers, compaction)."""
    table_rows: int | None
    """None: nobody can count them."""
    other_writers: bool
    letters: DeadLetterFacts | None
    deep: RowOffsets | None = None
    beginnings: Offsets = NOTHING
    anew: Sequence[str] = ()
    """Topics that were deleted and created again since they were read."""

    is_settled: bool = True
    """False: a batch was being published while all this was gathered; letters may be too few or too many."""
    whole: WholeFacts | None = None
    """Only this, and nothing else: these facts are of all targets of a job that routes."""

    def counted(self, partition: Partition, span: ReadSpan) -> Counted:
        """How many records a span had to read."""
        piece = Slice(partition, span.first, span.next)
        return self.in_topic.get(piece, Counted(piece.span))


@dataclass(frozen=True)
class AuditFindings:
    line: str
    problems: Sequence[str] = ()
    unknown: Sequence[str] = ()
    """What nobody can tell any more, or not yet: no problem, but no proof either."""
    partitions: Mapping[Partition, Counts] = field(default_factory=dict)
    lag: int = 0

    @property
    def holds(self) -> bool:
        return not self.problems


def findings(facts: AuditFacts) -> AuditFindings:
    """One line that a person believes, and each thing that is wrong with its offsets."""
    if facts.whole is not None:
        return _of_all_targets(facts.whole)
    if facts.checkpoint.is_routed:
        return _of_routed_target(facts)
    checkpoint, totals = facts.checkpoint, facts.checkpoint.totals
    problems = [
        *(
            f"topic '{topic}' was deleted and created again: what it has now was not read"
            for topic in facts.anew
        ),
        *_per_partition(facts),
        *_table(facts),
        *_wrong_letters(facts),
        *(_deep(facts, facts.deep) if facts.deep else []),
    ]
    unknown = [*_uncountable(facts), *_unsure_letters(facts)]
    said = [f"{totals.read:,} read" if checkpoint.earlier else f"{totals.read:,} in the topic"]
    if again := _read_again(checkpoint):
        said.append(f"{again:,} of them again by hand")
    if skipped := _skipped(checkpoint):
        said.append(f"{skipped:,} skipped by hand")
    if facts.table_rows is not None:
        said.append(f"{facts.table_rows:,} in the table")
    else:
        said.append(f"{totals.written:,} written")
        unknown.append("what the target has cannot be counted: only the checkpoint was compared")
    if totals.rejected:
        is_known = facts.letters is not None and not _unsure_letters(facts)
        place = "in the dead letter queue" if is_known else "rejected"
        said.append(f"{totals.rejected:,} {place}")
    if totals.filtered:
        said.append(f"{totals.filtered:,} filtered (without a value, or dropped by a transform)")
    good = "None missing, none too many." if checkpoint.earlier else "None missing, none twice."
    summary = good if not unknown else "Nothing is known to be missing or too many."
    if problems:
        summary = f"{len(problems)} problem(s)."
    lag = _lag(facts)
    waiting = f" {lag:,} not read yet." if lag else ""
    counts = {partition: _sum(spans) for partition, spans in checkpoint.spans().items()}
    return AuditFindings(f"{', '.join(said)}. {summary}{waiting}", problems, unknown, counts, lag)


def _of_routed_target(facts: AuditFacts) -> AuditFindings:
    """A target that gets a part of the records: which, the topic alone does not tell, so only what it has is
    compared with what was written to it."""
    written = facts.checkpoint.totals.written
    problems = [
        *(f"topic '{topic}' was deleted and created again" for topic in facts.anew),
        *_table(facts),
        *(_twice(facts, facts.deep) if facts.deep else []),
    ]
    rows = "" if facts.table_rows is None else f", {facts.table_rows:,} in the table"
    summary = f"{len(problems)} problem(s)." if problems else "None missing, none twice."
    unknown = [] if facts.table_rows is not None else ["what the target has cannot be counted"]
    counts = {partition: _sum(spans) for partition, spans in facts.checkpoint.spans().items()}
    return AuditFindings(f"{written:,} for this table{rows}. {summary}", problems, unknown, counts)


def _of_all_targets(whole: WholeFacts) -> AuditFindings:
    said = f"{whole.read:,} in the topic, {whole.in_targets:,} in a table"
    if whole.in_letters:
        said += f", {whole.in_letters:,} in the dead letter queue"
    left = sum(map(len, whole.in_neither.values()))
    if not left:
        return AuditFindings(f"{said}. None missing.")
    shown_of = (f"{p}: {shown(offsets)}" for p, offsets in sorted(whole.in_neither.items()) if offsets)
    return AuditFindings(
        f"{said}, {left:,} in neither.",
        unknown=[
            "what is in no table and no dead letter was filtered, if a pattern, a transform or a missing "
            f"value says so: {'; '.join(shown_of)}"
        ],
    )


def _sum(spans: Sequence[ReadSpan]) -> Counts:
    return sum((span.counts for span in spans), Counts())


def _lag(facts: AuditFacts) -> int:
    """Records between where the job is, or begins after a reset, and the end."""
    standings = facts.checkpoint.partitions
    return sum(
        max(0, facts.ends[p] - (standings[p].next if p in standings else facts.beginnings.get(p) or 0))
        for p in facts.ends
    )


def _offsets(span: ReadSpan) -> BitMap64:
    return BitMap64(range(span.first, span.next)) if span.next > span.first else BitMap64()


def _countable(spans: Sequence[ReadSpan]) -> list[ReadSpan]:
    return [span for span in spans if not span.is_gone]


def _read_again(checkpoint: Checkpoint) -> int:
    """Offsets that were read once more because somebody moved the job back."""
    expected = (layered(map(_offsets, _countable(spans))) for spans in checkpoint.spans().values())
    return sum(len(layer) for layers in expected for layer in layers[1:])


def _skipped(checkpoint: Checkpoint) -> int:
    """Offsets that were never read because somebody moved the job over them."""
    found = 0
    for partition, standing in checkpoint.partitions.items():
        spans = _countable(checkpoint.spans()[partition])
        first, until = min(span.first for span in spans), standing.next
        covered = BitMap64.union(*map(_offsets, spans))
        found += len(BitMap64(range(first, until)) - covered) if until > first else 0
    return found


def _per_partition(facts: AuditFacts) -> list[str]:
    problems = []
    for partition, spans in sorted(facts.checkpoint.spans().items()):
        for span in spans:
            counts = span.counts
            if not counts.reconcile:
                problems.append(
                    f"{partition}: {counts.read} read, but {counts.written} written, {counts.rejected} "
                    f"rejected and {counts.filtered} filtered"
                )
            counted = facts.counted(partition, span)
            lacking, surplus = counted.there - counts.read, counts.read - counted.there - counted.gone
            if max(lacking, surplus) > 0 and not span.is_gone:
                what = "missing" if lacking > 0 else "read twice"
                problems.append(
                    f"{partition}: {max(lacking, surplus)} records {what} among offsets "
                    f"{span.first}..{span.next - 1}"
                )
    return problems


def _uncountable(facts: AuditFacts) -> list[str]:
    unknown = []
    for partition, spans in sorted(facts.checkpoint.spans().items()):
        for span in spans:
            if (gone := facts.counted(partition, span).gone) and not span.is_gone:
                unknown.append(
                    f"{partition}: {gone:,} of the offsets {span.first}..{span.next - 1} have no record in "
                    f"the topic any more, or never had: whether {span.counts.read:,} records were there "
                    "cannot be counted again"
                )
    return unknown


def _table(facts: AuditFacts) -> list[str]:
    written = facts.checkpoint.totals.written
    if facts.table_rows in (None, written) or facts.other_writers:
        return []
    more = (facts.table_rows or 0) - written
    what = "missing from" if more < 0 else "too many in"
    return [f"{abs(more)} rows {what} the table: {written} were written"]


def _wrong_letters(facts: AuditFacts) -> list[str]:
    """More letters than rejected records, or fewer, where nothing else explains it."""
    letters, rejected = facts.letters, facts.checkpoint.totals.rejected
    if letters is None or not facts.is_settled:
        return []
    too_few = letters.count < rejected and not letters.is_cut
    if not too_few and letters.count - letters.unnamed <= rejected:
        return []
    return [f"{letters.count} dead letters in the queue, but {rejected} records were rejected"]


def _unsure_letters(facts: AuditFacts) -> list[str]:
    letters, rejected = facts.letters, facts.checkpoint.totals.rejected
    if letters is None or _wrong_letters(facts) or letters.count == rejected:
        return []
    if letters.count - letters.unnamed == rejected:
        # The others are of other connectors.
        return []
    if not facts.is_settled:
        return [
            f"the last batch is not published yet: {letters.count:,} of {rejected:,} dead letters are in the "
            "queue. Ask again when the job has gone on, or waits"
        ]
    if letters.count < rejected:
        return [
            f"the dead letter queue no longer has all that it had (retention, compaction): {letters.count:,} "
            f"of {rejected:,} dead letters are there, and nobody can tell about the others"
        ]
    return [
        f"{letters.unnamed:,} letters of the queue do not say whose they are, so {rejected:,} of "
        f"{letters.count:,} may be of this connector; errors.deadletterqueue.context.headers.enable=true "
        "has them say it"
    ]


def _deep(facts: AuditFacts, deep: RowOffsets) -> list[str]:
    problems = _twice(facts, deep)
    if deep.foreign_rows:
        return problems
    expected = _expected(facts)
    for partition, wanted in sorted(expected.items()):
        problems += _absent(facts, partition, wanted, deep.layers.get(partition, ()))
    return problems


def _expected(facts: AuditFacts) -> dict[Partition, list[BitMap64]]:
    return {p: layered(map(_offsets, spans)) for p, spans in facts.checkpoint.spans().items()}


def _twice(facts: AuditFacts, deep: RowOffsets) -> list[str]:
    expected = _expected(facts)
    problems = []
    for partition, layers in sorted(deep.layers.items()):
        surplus = BitMap64.union(BitMap64(), *_beyond(layers, expected.get(partition, []))[1:])
        if surplus:
            how = "too often" if partition in facts.checkpoint.earlier else "twice"
            problems.append(f"{partition}: offsets {how} in the table: {shown(surplus)}")
    return problems


def _absent(
    facts: AuditFacts, partition: Partition, wanted: Sequence[BitMap64], layers: Sequence[BitMap64]
) -> list[str]:
    letters = facts.letters.offsets if facts.letters else None
    dead = letters.get(partition, BitMap64()) if letters is not None else BitMap64()
    is_sure = facts.letters is not None and not facts.letters.unnamed and not _unsure_letters(facts)
    explained = rejected = 0
    for span in facts.checkpoint.spans()[partition]:
        counted = facts.counted(partition, span)
        records = span.counts.read if span.is_gone or counted.gone else counted.there
        explained += span.next - span.first - records + span.counts.filtered
        rejected += span.counts.rejected
    if letters is None or not is_sure:
        explained += max(0, rejected - len(dead))
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
