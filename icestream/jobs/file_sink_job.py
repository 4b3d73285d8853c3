"""One turn of a FileStreamSink job: plan a batch with fixed ends, append its lines, then move the group.

The file and its journal decide, the consumer group follows. Repeated by `cluster.reconciler`.
"""

from __future__ import annotations

import datetime as dt
import logging
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from icestream.api.batch import Batch, Rejected, Slice
from icestream.api.errors import RecordRejected, SourceUnavailable
from icestream.api.offsets import Offsets, Partition
from icestream.api.status import Progress
from icestream.connectors.file.line_file import Landed, LineSink
from icestream.jobs import planning
from icestream.jobs.borders import SourceFacts
from icestream.jobs.channel import Channel
from icestream.jobs.file_sink_lines import ChunkLines
from icestream.jobs.job import Job
from icestream.jobs.reject_log import log_rejected
from icestream.jobs.resume import NOTE_PREFIX
from icestream.kafka.chunk import Chunk

_log = logging.getLogger(__name__)

_ROWS: Final = 50_000
_BYTES: Final = 32 * 1024 * 1024
"""A batch is held in memory: it ends after the chunk of records that makes it as long as this."""
_CHUNK_ROWS: Final = 10_000
_POLL_SECONDS: Final = 0.1
_NO_TOPIC_SECONDS: Final = 0.5
_FACTS_SECONDS: Final = 5.0


class Reader(Protocol):
    """`icestream.kafka.reader.SliceReader` is the real one."""

    def read(self, piece: Slice, chunk_rows: int) -> Iterable[Chunk]: ...

    def close(self) -> None: ...


@dataclass
class _Lines:
    text: list[bytes] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    size: int = 0


class FileSinkManager:
    def __init__(
        self,
        job: Job,
        source: SourceFacts,
        reader: Reader,
        lines_of: Callable[[Chunk], ChunkLines],
        open_file: Callable[[], LineSink],
        open_channel: Callable[[], Channel],
        clock: Callable[[], float],
        wall: Callable[[], dt.datetime],
        reached: Callable[[str], None] = lambda point: None,
    ) -> None:
        self._job = job
        self._source = source
        self._reader = reader
        self._lines_of = lines_of
        self._open_file = open_file
        self._open_channel = open_channel
        self._clock = clock
        self._wall = wall
        self._reached = reached
        """Told of each point between two steps; the crash tests end the process there."""
        self._file: LineSink | None = None
        self._channel: Channel | None = None
        self._floor: Offsets | None = None
        self._is_anchored = False
        self._facts_at = 0.0
        self._latest: Offsets | None = None
        self.progress = Progress()

    def tick(self) -> float:
        """One turn. Returns how many seconds may pass before the next."""
        try:
            if self._floor is None:
                self._floor = self._find_floor()
            return self._turn(self._floor)
        except SourceUnavailable:
            self._abandon_channel()
            # Whoever opens a channel shuts out others, and has to ask how far they came.
            self._floor = None
            raise
        finally:
            if self._clock() - self._facts_at > _FACTS_SECONDS:
                # Look again for new topics and partitions, and at what the group says.
                self._floor = None

    def close(self) -> None:
        if self._channel is not None:
            channel, self._channel = self._channel, None
            channel.close()
        if self._file is not None:
            file, self._file = self._file, None
            file.close()
        self._reader.close()

    def cancel(self) -> None:
        """Turns are short: there is nothing to give up."""

    def allow(self) -> None:
        """There was nothing to give up."""

    # -- where the job stands --

    def _find_floor(self) -> Offsets:
        # Before Kafka is asked for anything, because a file that cannot be written is told at once.
        self._opened_file()
        # Before the group is read, because it ends the transaction that an earlier manager left open.
        self._opened_channel()
        partitions = self._partitions()
        group = self._source.group_offsets(self._job.group, partitions)
        ours = {p: at.next for p, at in group.items() if at.note.startswith(NOTE_PREFIX)}
        landed = self._opened_file().pending()
        if landed is not None:
            noted = {p for p, at in group.items() if at.note == f"{NOTE_PREFIX}{landed.commit}"}
            ours |= self._pay(landed, ours, noted)
            self._opened_file().settle()
        fresh = self._fresh(partitions)
        known = {p: at.next for p, at in group.items()} | ours
        floor = self._within_topic(Offsets({p: known.get(p, fresh[p]) for p in partitions}))
        self._is_anchored = all(ours.get(p) == floor[p] for p in floor)
        return floor

    def _partitions(self) -> list[Partition]:
        job = self._job
        names = self._source.matching(job.topics_pattern) if job.topics_pattern else list(job.topics)
        facts = self._source.describe(names)
        self._facts_at = self._clock()
        return [Partition(name, number) for name, fact in facts.items() for number in range(fact.partitions)]

    def _fresh(self, partitions: Sequence[Partition]) -> Offsets:
        """Where partitions begin that the group does not know. Where `latest` was is decided once."""
        beginnings = self._source.beginnings(partitions)
        if self._job.begins_at != "latest":
            return beginnings
        if self._latest is None:
            self._latest = self._source.ends(partitions)
        return Offsets({**beginnings.positions, **self._latest.positions})

    def _within_topic(self, floor: Offsets) -> Offsets:
        """An offset that the topic no longer has, or not yet, is moved as Kafka's consumers do."""
        beginnings, ends = self._source.beginnings(floor), self._source.ends(floor)
        moved = {}
        for partition in floor:
            at = floor[partition]
            moved[partition] = at
            if not beginnings[partition] <= at <= ends[partition]:
                anew = ends if self._job.begins_at == "latest" else beginnings
                moved[partition] = anew[partition]
                _log.warning(
                    "%s does not have offset %s; going on at %s",
                    partition,
                    at,
                    anew[partition],
                    extra=self._context(),
                )
        return Offsets(moved)

    def _pay(
        self, landed: Landed, ours: Mapping[Partition, int], noted: Collection[Partition]
    ) -> Mapping[Partition, int]:
        """Tell Kafka of a batch that only the file has: its dead letters and offsets. Returns the offsets.

        Partitions that stand neither where we left them before the batch nor where a part of its letters
        took them (`noted`), because somebody has moved them, owe nothing: there the group decides.
        """
        start, end = landed.start, landed.end
        known = {p: ours[p] for p in end if p in ours}
        from_here = {p: at for p, at in known.items() if at == start[p] or (p in noted and at <= end[p])}
        owed = {p: end[p] for p in from_here}
        if not Batch(landed.commit, Offsets(from_here), Offsets(owed)).span:
            return owed
        # The dead letters of records that retention has removed meanwhile cannot be had any more.
        kept = self._source.beginnings(owed)
        left = Offsets({p: min(max(from_here[p], kept[p]), owed[p]) for p in owed})
        rejected = self._read(Batch(landed.commit, left, Offsets(owed))).rejected
        self._publish(landed.commit, rejected, Offsets(owed))
        return owed

    def _anchor(self, floor: Offsets) -> None:
        """Leave our own offsets in the group before the file gets more: by them `_pay` tells a batch that
        Kafka has missed from offsets that were reset or set by hand."""
        if not self._is_anchored:
            self._publish(str(uuid.uuid4()), [], floor)
            self._is_anchored = True
            self._reached("anchored")

    # -- one turn --

    def _turn(self, floor: Offsets) -> float:
        if not floor:
            self._floor = None
            return _NO_TOPIC_SECONDS
        ends = self._source.ends(floor)
        rows = planning.waiting(floor, ends)
        self.progress = replace(self.progress, lag=rows)
        if rows == 0:
            return _POLL_SECONDS
        self._anchor(floor)
        batch, found = self._read_some(Batch(str(uuid.uuid4()), floor, planning.cut(floor, ends, _ROWS)))
        if found.rejected and not self._job.tolerates_all:
            self._land_before(batch, found.rejected)
        self._land(batch, found)
        return 0.0

    def _read_some(self, batch: Batch) -> tuple[Batch, _Lines]:
        """As much of a batch as may be held in memory, and the batch that it is."""
        found = _Lines()
        reached = {partition: batch.start[partition] for partition in batch.end}
        for piece in batch.slices():
            for chunk in self._reader.read(piece, _CHUNK_ROWS):
                self._take(found, chunk)
                reached[piece.partition] = int(chunk.offsets()[-1]) + 1
                if found.size >= _BYTES:
                    return replace(batch, end=Offsets(reached)), found
            reached[piece.partition] = piece.until
        return batch, found

    def _read(self, batch: Batch) -> _Lines:
        found = _Lines()
        for piece in batch.slices():
            for chunk in self._reader.read(piece, _CHUNK_ROWS):
                self._take(found, chunk)
        return found

    def _take(self, found: _Lines, chunk: Chunk) -> None:
        lines = self._lines_of(chunk)
        found.text += lines.text
        found.rejected += lines.rejected
        found.size += chunk.total_bytes()

    def _land_before(self, batch: Batch, rejected: Sequence[Rejected]) -> None:
        """Land what precedes the first bad record of each partition, then fail with the first of them."""
        part = Batch(str(uuid.uuid4()), batch.start, planning.before_rejected(batch.end, rejected))
        if part.span:
            self._land(part, self._read(part))
        first = min(rejected, key=lambda record: (record.partition, record.offset))
        raise RecordRejected(
            f"{first}; fix the producer, or set errors.tolerance=all and "
            "errors.deadletterqueue.topic.name to go on without it"
        )

    def _land(self, batch: Batch, found: _Lines) -> None:
        self._reached("read")
        text = b"".join(line + b"\n" for line in found.text)
        self._floor = None
        self._opened_file().append(Landed(batch.id, batch.start, batch.end), text)
        self._reached("appended")
        self._publish(batch.id, found.rejected, batch.end)
        self._reached("published")
        self._opened_file().settle()
        self._floor = Offsets({**batch.start.positions, **batch.end.positions})
        self._note(batch, found)

    def _publish(self, commit: str, rejected: Sequence[Rejected], end: Offsets) -> None:
        self._opened_channel().publish(commit, rejected, [], end)

    def _opened_channel(self) -> Channel:
        if self._channel is None:
            self._channel = self._open_channel()
        return self._channel

    def _abandon_channel(self) -> None:
        if self._channel is not None:
            channel, self._channel = self._channel, None
            channel.abandon()

    def _opened_file(self) -> LineSink:
        if self._file is None:
            self._file = self._open_file()
        return self._file

    def _note(self, batch: Batch, found: _Lines) -> None:
        log_rejected(self._job, found.rejected)
        topics = {piece.partition.topic for piece in batch.slices()}
        self.progress = replace(
            self.progress,
            rows=self.progress.rows + len(found.text),
            rejected=self.progress.rejected + len(found.rejected),
            lag=max(0, (self.progress.lag or 0) - batch.span),
            batches=self.progress.batches + 1,
            last_commit_ms=int(self._wall().timestamp() * 1000),
            topics=tuple(sorted({*self.progress.topics, *topics})),
        )

    def _context(self) -> dict[str, str]:
        return {"connector": self._job.name}
