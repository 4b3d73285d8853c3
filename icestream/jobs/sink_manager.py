"""The manager of every sink: plans batches, has them staged, commits the targets, closes the Kafka
transaction.

`tick` is one turn; `cluster.reconciler` repeats it. docs/exactly-once.md tells why the order is what it is.
"""

from __future__ import annotations

import datetime as dt
import functools
import logging
import math
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Protocol

from icestream.api.batch import Batch, Rejected
from icestream.api.checkpoint import (
    Checkpoint,
    FoundCheckpoint,
    SourceIds,
    checkpoint_after,
    checkpoint_moved,
)
from icestream.api.errors import (
    CommitConflict,
    FatalError,
    Fenced,
    RecordRejected,
    SourceRecreated,
    SourceUnavailable,
)
from icestream.api.offsets import NOTHING, Offsets, Partition, named
from icestream.api.sink import Commit, Message, Receipt, Sink, Target
from icestream.api.status import Progress
from icestream.jobs import planning
from icestream.jobs.fences import Fences
from icestream.jobs.idle import IdleSchedule, TopicWatch
from icestream.jobs.planning import Pace
from icestream.jobs.publisher import Publisher, log_rejected, publish_missing
from icestream.jobs.resume import (
    NOTE_PREFIX,
    ResumePoint,
    has_all,
    moved_by_others,
    places_told_by_others,
    refuse_other_source,
    resume_point,
    unpublished_batch,
)
from icestream.jobs.sink_job import SinkJob
from icestream.jobs.staging import BatchRunner, StagedBatch, stage
from icestream.kafka.topics import GroupOffset, TopicFacts

_log = logging.getLogger(__name__)


_SWEEP_SECONDS = 6 * 3600.0
_LEADER_SECONDS = 5.0
"""How often a job looks for leaders while a partition has none."""


class KafkaFacts(Protocol):
    """What a job asks Kafka about its topics. `icestream.kafka.topics.Topics` is the real one."""

    def cluster_id(self) -> str: ...

    def matching(self, pattern: str) -> list[str]: ...

    def describe(self, names: Iterable[str]) -> dict[str, TopicFacts]: ...

    def ends(self, partitions: Iterable[Partition]) -> Offsets: ...

    def beginnings(self, partitions: Iterable[Partition]) -> Offsets: ...

    def group_offsets(self, group: str, partitions: Iterable[Partition]) -> dict[Partition, GroupOffset]: ...


def _in_a_thread(work: Callable[[], None]) -> None:
    threading.Thread(target=work, name="sweep", daemon=True).start()


class SinkManager:
    """One per connector. Owns its batches and commits; holds no partitions."""

    def __init__(
        self,
        job: SinkJob,
        source: KafkaFacts,
        sink: Sink,
        runner: BatchRunner,
        open_publisher: Callable[[], Publisher],
        clock: Callable[[], float],
        wall: Callable[[], dt.datetime],
        reached: Callable[[str], None] = lambda point: None,
        watch: TopicWatch | None = None,
        wake: Callable[[], None] = lambda: None,
        gate: AbstractContextManager[None] | None = None,
        aside: Callable[[Callable[[], None]], None] = _in_a_thread,
    ) -> None:
        self._job = job
        self._source = source
        self._sink = sink
        self._targets = sink.targets()
        """As they were when the job last asked where to resume."""
        self._runner = runner
        self._open_publisher = open_publisher
        self._clock = clock
        self._wall = wall
        self._reached = reached
        """Told of each point between two steps; the crash tests end the process there."""
        self._idle_schedule = IdleSchedule(job, watch, wake)
        self._gate = gate or nullcontext()
        self._publisher: Publisher | None = None
        self._publisher_used = -math.inf
        self._notes: set[str] = set()
        """What this manager has read or left beside the group's offsets."""
        self._asked: frozenset[Partition] = frozenset()
        """The partitions whose notes it has asked for."""
        self._resume: ResumePoint | None = None
        self._fences = Fences(clock)
        self._facts_at = 0.0
        self._aside = aside
        self._swept_at: float | None = None
        self._leaderless: frozenset[Partition] = frozenset()
        self._identity = SourceIds("", {})
        """Ids of the topics that exist, of those that are read and those whose positions a table has."""
        self._reads: Sequence[str] = ()
        self._known: frozenset[str] = frozenset()
        self._latest: Offsets | None = None
        self._pace = Pace()
        self._last_turn: Partition | None = None
        """The last partition of the batch before, if not all had their turn."""
        self._newest: dict[Partition, int] = {}
        self.progress = Progress()
        """How far the job is; replaced as a whole, so other threads may read it."""

    def tick(self) -> float:
        """One turn. Returns how many seconds may pass before the next."""
        try:
            return self._attempt()
        except SourceUnavailable:
            self._resume = None
            self._fences.had_outage()
            self._abandon_publisher()
            raise
        except Fenced as fenced:
            self._resume = None
            self._abandon_publisher()
            if not self._is_echo():
                raise
            raise SourceUnavailable(
                f"{fenced}; nobody else committed since the outage, trying again"
            ) from fenced
        except BaseException:
            # Whatever happened, targets and group are asked again before anything else is done.
            self._resume = None
            raise

    def _attempt(self) -> float:
        try:
            if self._resume is None:
                with self._gate:
                    self._resume = self._find_resume_point()
            return self._turn(self._resume)
        except CommitConflict as conflict:
            self._resume = None
            _log.warning("nothing was committed: %s", conflict, extra=self._context())
            self._prove_alone()
            raise

    def cancel(self) -> None:
        """Give up the batch under way, and every later one until `allow`. From another thread."""
        self._runner.cancel()

    def allow(self) -> None:
        self._runner.allow()

    def close(self) -> None:
        self._idle_schedule.close()
        self._close_publisher()
        self._runner.close()
        self._sink.close()

    # -- where the job resumes --

    def _find_resume_point(self) -> ResumePoint:
        """Ask targets and group; publish what Kafka has missed of the last batch; remember where to go on."""
        # First, because it ends the transaction that an earlier manager may have left open.
        self._opened_publisher()
        self._targets = self._sink.targets()
        found: Sequence[FoundCheckpoint] = [target.found() for target in self._targets]
        for target in self._targets:
            # What cannot be written is told now, and not with the first record.
            target.plan({})
        self._known = frozenset[str]().union(*(item.checkpoint.topics for item in found if item.checkpoint))
        partitions = self._refresh_facts()
        # A group's offsets are there whether a partition has a leader or not.
        group = self._source.group_offsets(self._job.group, [*partitions, *self._leaderless])
        self._give_way(group, [*partitions, *self._leaderless])
        self._refuse_owed_without_leader([item.checkpoint for item in found if item.checkpoint], group)
        if moved := moved_by_others(found, group):
            self._follow(found, group, moved, partitions)
            found = [target.found() for target in self._targets]
            group = self._source.group_offsets(self._job.group, [*partitions, *self._leaderless])
        self._refuse_start_without_leader(found, group)
        beginnings = self._source.beginnings(partitions)
        is_new = all(item.checkpoint is None for item in found)
        resume = resume_point(self._job.group, found, group, self._fresh_offsets(beginnings, is_new=is_new))
        checkpoints = resume.checkpoints
        self._fences.knows(_commits(checkpoints, group))
        self._refuse_other_source(checkpoints)
        ends = self._source.ends(partitions)
        by_group = is_new and not any(item.rolled_back_from for item in found)
        given_by = dict.fromkeys(group, f"consumer group '{self._job.group}'") if by_group else {}
        for floor in resume.floors:
            planning.refuse_gaps(self._job.name, floor, beginnings, ends, given_by)
        if has_all(found):
            if (batch := unpublished_batch(checkpoints, group, partitions)) is not None:
                self._publish_missing(batch, found, beginnings)
            elif any(group[p].next != resume.floor[p] for p in partitions if p in group):
                self._publish(checkpoints[0].commit, [], [], resume.floor)
        self._note_totals(checkpoints)
        self._idle_schedule.found_resume_point(self._clock())
        return resume

    def _follow(
        self,
        found: Sequence[FoundCheckpoint],
        group: Mapping[Partition, GroupOffset],
        moved: Mapping[Partition, int],
        partitions: Sequence[Partition],
    ) -> None:
        """Targets that follow the group go where somebody else has moved it, such as Kafka Connect itself.

        The group's offsets are ours from then on: by that, a batch that Kafka has missed is told from offsets
        that were moved.
        """
        self._publish_missing_of_unmoved(found, group, [p for p in partitions if p not in moved])
        for target, item in zip(self._targets, found, strict=True):
            moves = {p: to for p, to in moved.items() if item.offsets.get(p) != to}
            if item.follows_group and item.checkpoint is not None and moves:
                floor = Offsets({**moved, **item.offsets.positions})
                commit = str(uuid.uuid4())
                checkpoint = checkpoint_moved(item.checkpoint, commit, moves, self._identity, floor)
                target.commit(Commit(checkpoint, item.checkpoint, target.plan({})))
        note = str(uuid.uuid4())
        self._fences.knows([note])
        self._publish(note, [], [], Offsets(moved))

    def _publish_missing_of_unmoved(
        self,
        found: Sequence[FoundCheckpoint],
        group: Mapping[Partition, GroupOffset],
        unmoved: Sequence[Partition],
    ) -> None:
        """The commit that moves other partitions hides what the last batch still owes Kafka of these."""
        checkpoints = [item.checkpoint for item in found if item.checkpoint]
        batch = unpublished_batch(checkpoints, group, unmoved) if has_all(found) else None
        if batch is None:
            return
        try:
            self._refuse_other_source(checkpoints)
        except SourceRecreated as error:
            _log.warning("dead letters are lost: %s", error, extra=self._context())
            return
        self._publish_missing(batch, found, self._source.beginnings(unmoved))

    def _publish_missing(self, batch: Batch, found: Sequence[FoundCheckpoint], beginnings: Offsets) -> None:
        targets = [one for one, item in zip(self._targets, found, strict=True) if item.checkpoint]
        is_whole = not any(piece.start < beginnings[piece.partition] for piece in batch.slices())
        if is_whole or self._job.dead_letters:
            planning.refuse_lost_letters(self._job.name, batch, beginnings)
            self._note_publishing(batch.id)
            publisher = self._opened_publisher()
            publish_missing(batch, targets, self._sink, self._runner, publisher, self._job.name)
        else:
            # Its records cannot be read again, and nobody wants its letters.
            self._publish(batch.id, [], self._sink.events(batch.id, None, None), batch.end)

    def _give_way(self, group: Mapping[Partition, GroupOffset], partitions: Sequence[Partition]) -> None:
        """End if another manager has published since this one last did.

        An older manager that has closed its publisher is not fenced when a newer one opens its own; it finds
        out here, before it touches anything.
        """
        notes = {p: at.note for p, at in group.items() if at.note.startswith(NOTE_PREFIX)}
        strange = {note for p, note in notes.items() if p in self._asked and note not in self._notes}
        if strange:
            commit = min(strange).removeprefix(NOTE_PREFIX)
            raise Fenced(f"another manager of '{self._job.name}' is alive: it has published batch {commit}")
        self._notes, self._asked = set(notes.values()), frozenset(partitions)

    def _is_echo(self) -> bool:
        """Whether Kafka shut us out because of our own outage: nobody else has left a trace."""
        if not self._fences.may_be_echo():
            return False
        checkpoints = [
            found.checkpoint for found in (one.found() for one in self._targets) if found.checkpoint
        ]
        group = self._source.group_offsets(self._job.group, self._refresh_facts())
        return self._fences.is_echo(_commits(checkpoints, group))

    def _prove_alone(self) -> None:
        """Another writer moved our offsets. If it was a newer manager, Kafka says so, and this one ends."""
        partitions = self._refresh_facts()
        group = self._source.group_offsets(self._job.group, partitions)
        ours = {p: offset for p, offset in group.items() if offset.note.startswith(NOTE_PREFIX)}
        note = next((offset.note for offset in ours.values()), NOTE_PREFIX)
        again = Offsets({partition: offset.next for partition, offset in ours.items()})
        self._publish(note.removeprefix(NOTE_PREFIX), [], [], again)

    def _opened_publisher(self) -> Publisher:
        if self._publisher is None:
            self._publisher = self._open_publisher()
        return self._publisher

    def _close_publisher(self) -> None:
        if self._publisher is not None:
            publisher, self._publisher = self._publisher, None
            publisher.close()

    def _publish(
        self, commit: str, rejected: Sequence[Rejected], events: Sequence[Message], end: Offsets
    ) -> None:
        self._note_publishing(commit)
        self._opened_publisher().publish(commit, rejected, events, end)

    def _note_publishing(self, commit: str) -> None:
        """Before it happens: whether it did may never be known."""
        self._notes = {*self._notes, f"{NOTE_PREFIX}{commit}"}
        self._publisher_used = self._clock()

    def _abandon_publisher(self) -> None:
        """A new publisher after an outage: it ends or aborts what the old one left open.

        The old one may wait for answers that never come.
        """
        if self._publisher is not None:
            publisher, self._publisher = self._publisher, None
            publisher.abandon()

    def _refresh_facts(self) -> list[Partition]:
        job = self._job
        names = self._source.matching(job.topics_pattern) if job.topics_pattern else list(job.topics)
        facts = self._source.describe(names)
        if missing := [name for name in names if name not in facts]:
            raise SourceUnavailable(f"topic '{missing[0]}' does not exist; create it or change 'topics'")
        ids = {**self._ids_of_unread(names), **{name: fact.id for name, fact in facts.items()}}
        self._identity = SourceIds(self._source.cluster_id(), ids)
        self._reads, self._facts_at = names, self._clock()
        all_of_them = [Partition(name, number) for name in names for number in range(facts[name].partitions)]
        self._note_leaderless([p for p in all_of_them if p.number in facts[p.topic].leaderless])
        return [partition for partition in all_of_them if partition not in self._leaderless]

    def _note_leaderless(self, partitions: Sequence[Partition]) -> None:
        """These wait; all others go on."""
        said: tuple[str, ...] = ()
        if partitions:
            said = (f"{named(partitions)} waits for a leader, which Kafka has to elect; all others go on",)
        if said != self.progress.warnings:
            self.progress = replace(self.progress, warnings=said)
            for line in said:
                _log.warning(line, extra=self._context())
        self._leaderless = frozenset(partitions)

    def _refuse_owed_without_leader(
        self, checkpoints: Sequence[Checkpoint], group: Mapping[Partition, GroupOffset]
    ) -> None:
        """A later batch would hide what the last one still owes Kafka."""
        batch = unpublished_batch(checkpoints, group, self._leaderless) if self._leaderless else None
        if batch is not None:
            raise SourceUnavailable(
                f"the last batch has dead letters to publish of {named(batch.end)}, which has no leader"
            )

    def _refuse_start_without_leader(
        self, found: Sequence[FoundCheckpoint], group: Mapping[Partition, GroupOffset]
    ) -> None:
        """The first commit to a table says where it began; nobody else is asked for that again."""
        if waits := places_told_by_others(found, group, self._leaderless):
            raise SourceUnavailable(
                f"{named(waits)} has no leader, and a table without a commit of this job begins there where "
                "others are: its first batch needs every partition"
            )

    def _ids_of_unread(self, reads: Sequence[str]) -> dict[str, str]:
        """Of topics that a table has positions of and that are not read any more, those that exist."""
        unread = sorted(self._known.difference(reads))
        try:
            return {name: fact.id for name, fact in self._source.describe(unread).items()} if unread else {}
        except (SourceUnavailable, FatalError) as error:
            _log.debug("topics that are not read any more cannot be looked at: %s", error)
            return dict.fromkeys(unread, "")

    def _fresh_offsets(self, beginnings: Offsets, *, is_new: bool) -> Offsets:
        """Where partitions begin that no table knows. Where `latest` was is decided once: it moves."""
        if self._latest is None:
            begins_late = is_new and self._job.begins_at == "latest"
            if begins_late and self._leaderless:
                raise SourceUnavailable(
                    f"where {named(self._leaderless)} ends is not known before it has a leader, and the job "
                    "is to begin at the end"
                )
            self._latest = self._source.ends(list(beginnings)) if begins_late else NOTHING
        return Offsets({**beginnings.positions, **self._latest.positions})

    # -- one turn --

    def _turn(self, resume: ResumePoint) -> float:
        now = self._clock()
        limits = self._job.limits
        ends = self._source.ends(list(resume.floor))
        rows = planning.waiting(resume.floor, ends)
        wait = planning.until_due(now, self._pace, limits)
        self.progress = replace(self.progress, lag=rows, next_commit_in_ms=int(wait * 1000) if rows else None)
        if not planning.is_due(now, rows, self._pace, limits):
            if self._leaderless and now - self._facts_at > _LEADER_SECONDS:
                self._resume = None
                return 0.0
            pause = self._idle(resume, ends, rows, now)
            return min(pause, _LEADER_SECONDS) if self._leaderless else pause
        if self._publisher is None:
            # It was closed while nothing came. Whoever opens it asks targets and group, as at the start.
            self._resume = None
            return 0.0
        has_new = any(partition not in resume.floor for partition in self._refresh_facts())
        if has_new or any(partition in resume.floor for partition in self._leaderless):
            self._resume = None
            return 0.0
        self._refuse_other_source(resume.checkpoints)
        beginnings = self._source.beginnings(list(ends))
        if any(planning.has_gaps(floor, beginnings, ends) for floor in resume.floors):
            # Judged anew by what the targets say: where a job begins that has committed nothing may move.
            self._resume = None
            return 0.0
        allowed = planning.rows_allowed(self._pace, limits)
        end = planning.cut(resume.floor, ends, allowed, self._last_turn)
        batch = Batch(str(uuid.uuid4()), resume.floor, end)
        self._last_turn = planning.last_of(batch, self._last_turn)
        _log.info("planned %s records", batch.span, extra=self._context(batch))
        self._reached("planned")
        self._run(batch, resume, started=now, behind=batch.span < rows)
        return 0.0

    def _idle(self, resume: ResumePoint, ends: Offsets, rows: int, now: float) -> float:
        if self._idle_schedule.is_check_due(now, rows):
            if self._has_changed(resume, ends):
                self._resume = None
                return 0.0
            self._idle_schedule.found_unchanged(now)
        if rows == 0 and self._idle_schedule.may_close_publisher(now, self._publisher_used):
            self._close_publisher()
        return self._idle_schedule.pause(now, rows, ends)

    def _has_changed(self, resume: ResumePoint, ends: Offsets) -> bool:
        """Whether there are new partitions, or somebody else wrote the job's targets, such as a rollback, or
        moved the group that they follow."""
        partitions = self._refresh_facts()
        self._refuse_other_source(resume.checkpoints)
        beginnings = self._source.beginnings(list(ends))
        if any(planning.has_gaps(floor, beginnings, ends) for floor in resume.floors):
            return True
        found = [target.found() for target in self._targets]
        before, after = (
            [item.checkpoint and item.checkpoint.commit for item in items] for items in (resume.found, found)
        )
        if before != after or any(partition not in resume.floor for partition in partitions):
            return True
        if not any(item.follows_group for item in found):
            return False
        return bool(moved_by_others(found, self._source.group_offsets(self._job.group, partitions)))

    def _refuse_other_source(self, checkpoints: Sequence[Checkpoint]) -> None:
        refuse_other_source(self._job.name, checkpoints, self._identity, self._reads)

    def _refuse_topics_created_meanwhile(self, staged: StagedBatch) -> None:
        """The ids were right before the batch was read; if they still are, it was read of these topics."""
        names = sorted({piece.partition.topic for piece in staged.batch.slices()})
        try:
            facts = self._source.describe(names)
            now = {name: facts[name].id for name in names if name in facts}
            if any(now.get(name) != self._identity.topics[name] for name in names):
                raise SourceUnavailable(
                    f"a topic of {', '.join(names)} was deleted or created again while a batch was read; "
                    "nothing of it is committed"
                )
        except SourceUnavailable:
            staged.discard()
            raise

    def _run(self, batch: Batch, resume: ResumePoint, *, started: float, behind: bool) -> None:
        staged = stage(batch, self._sink, self._targets, resume.floors, self._runner)
        self._reached("staged")
        if staged.result.overflow:
            staged.discard()
            self._pace = planning.shrunk(self._pace, batch.span, staged.result)
            return
        if staged.result.rejected and not self._job.tolerates_all:
            staged.discard()
            self._run_before(batch, resume, staged.result.rejected, started)
            return
        self._refuse_topics_created_meanwhile(staged)
        receipts = self._commit(staged, resume)
        self._publish(batch.id, staged.result.rejected, self._events(staged, receipts), batch.end)
        self._reached("published")
        self._note(staged, receipts, resume, started, behind)
        self._sweep_now_and_then(batch, receipts)

    def _run_before(
        self, batch: Batch, resume: ResumePoint, rejected: Sequence[Rejected], started: float
    ) -> None:
        """Land what precedes the first bad record of each partition, then fail with the first of them."""
        part = Batch(str(uuid.uuid4()), batch.start, planning.before_rejected(batch.end, rejected))
        if part.span:
            self._run(part, resume, started=started, behind=True)
        first = min(rejected, key=lambda record: (record.partition, record.offset))
        raise RecordRejected(
            f"{first}; fix the producer, or set errors.tolerance=all and "
            "errors.deadletterqueue.topic.name to go on without it"
        )

    def _commit(self, staged: StagedBatch, resume: ResumePoint) -> dict[str, Receipt]:
        receipts: dict[str, Receipt] = {}
        for target, found, floor in zip(self._targets, resume.found, resume.floors, strict=True):
            if all(staged.batch.end[p] <= floor[p] for p in staged.batch.end):
                # This target was ahead of the others and has all of it.
                receipts[target.name] = Receipt(found.checkpoint)
                continue
            receipts[target.name] = self._commit_to(target, found, staged, resume)
            self._fences.knows([staged.batch.id])
            self._reached(f"committed {target.name}")
        return receipts

    def _commit_to(
        self, target: Target, found: FoundCheckpoint, staged: StagedBatch, resume: ResumePoint
    ) -> Receipt:
        mine = staged.staged(target.name)
        checkpoint = checkpoint_after(
            found.checkpoint, staged.batch, mine.counts, self._identity, resume.targets, resume.joining
        )
        commit = Commit(
            checkpoint,
            found.checkpoint,
            staged.plans[target.name],
            mine,
            staged.result,
            self._valid_through(staged),
        )
        try:
            receipt = target.commit(commit)
        except CommitConflict as conflict:
            if conflict.certain:
                target.discard(mine)
            raise
        _log.info("committed %s rows to %s", mine.rows, target.name, extra=self._context(staged.batch))
        return receipt

    def _valid_through(self, staged: StagedBatch) -> dt.datetime | None:
        """The time up to which every partition has been read; unknown until each has had a record."""
        newest = {**self._newest, **staged.result.newest_ms}
        if any(partition not in newest for partition in staged.batch.end):
            return None
        oldest_ms = min(newest[partition] for partition in staged.batch.end)
        return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=oldest_ms)

    def _events(self, staged: StagedBatch, receipts: Mapping[str, Receipt]) -> Sequence[Message]:
        return self._sink.events(staged.batch.id, receipts, self._valid_through(staged))

    def _sweep_now_and_then(self, batch: Batch, receipts: Mapping[str, Receipt]) -> None:
        """Only after a commit: whatever was under way before it, the catalog refuses from now on."""
        now = self._clock()
        if self._swept_at is not None and now - self._swept_at < _SWEEP_SECONDS:
            return
        self._swept_at = now
        for target in self._targets:
            if receipts[target.name].id is not None:
                self._aside(functools.partial(self._sweep, target, batch.id, self._wall()))

    def _sweep(self, target: Target, landed: str, now: dt.datetime) -> None:
        try:
            target.sweep(landed, now)
        except Exception as error:  # the edge of its thread; it is tried again, and nothing depends on it
            _log.warning("%s was not swept: %s", target.name, error, extra=self._context())

    # -- what is remembered --

    def _note(
        self,
        staged: StagedBatch,
        receipts: Mapping[str, Receipt],
        resume: ResumePoint,
        started: float,
        behind: bool,
    ) -> None:
        batch, result = staged.batch, staged.result
        log_rejected(self._job, result.rejected)
        self._newest.update(result.newest_ms)
        seconds = max(self._clock() - started, 0.001)
        self._pace = Pace(
            last_start=started,
            behind=behind,
            rows_a_second=batch.span / seconds,
            bytes_a_row=result.bytes_read / batch.span if result.bytes_read else self._pace.bytes_a_row,
            rows_limit=planning.eased(self._pace, self._job.limits),
        )
        # Beside every offset of the group by now, but those of partitions that had to wait.
        self._notes = {*(self._notes if self._leaderless else ()), f"{NOTE_PREFIX}{batch.id}"}
        self._resume = resume.after(batch, [receipts[one.name].checkpoint for one in self._targets])
        self._idle_schedule.had_batch(self._clock())
        self.progress = replace(
            self.progress,
            lag=max(0, (self.progress.lag or 0) - batch.span),
            batches=self.progress.batches + 1,
            last_commit_ms=int(self._wall().timestamp() * 1000),
            topics=self._topics_read(staged),
        )
        self._note_totals(self._resume.checkpoints)

    def _topics_read(self, staged: StagedBatch) -> tuple[str, ...]:
        """The topics that this manager has had records of, the batch included."""
        parts = staged.result.staged.values()
        read = {p.topic for part in parts for p, counts in part.counts.items() if counts.read}
        return tuple(sorted(read.union(self.progress.topics)))

    def _note_totals(self, checkpoints: Sequence[Checkpoint]) -> None:
        if checkpoints:
            totals = checkpoints[0].totals
            self.progress = replace(
                self.progress, rows=totals.written, rejected=totals.rejected, filtered=totals.filtered
            )

    def _context(self, batch: Batch | None = None) -> dict[str, str]:
        return {"connector": self._job.name, "batch": batch.id if batch else ""}


def _commits(checkpoints: Sequence[Checkpoint], group: Mapping[Partition, GroupOffset]) -> set[str]:
    """Whose work targets and group show."""
    notes = {offset.note for offset in group.values() if offset.note.startswith(NOTE_PREFIX)}
    return {checkpoint.commit for checkpoint in checkpoints} | {
        note.removeprefix(NOTE_PREFIX) for note in notes
    }
