"""The manager of every sink: plans batches, has them staged, commits them to the targets, and publishes the
outcome to Kafka. Where it goes on is found by `resume_finder`.

`tick` is one turn; `cluster.reconciler` repeats it. docs/exactly-once.md tells why the order is what it is.
"""

from __future__ import annotations

import contextvars
import datetime as dt
import functools
import logging
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace

from icestream.api.batch import Batch, Counts, Rejected
from icestream.api.checkpoint import Checkpoint, FoundCheckpoint
from icestream.api.errors import (
    CommitConflict,
    CommitUnknown,
    FatalError,
    Fenced,
    RecordRejected,
    RowsRefused,
    SinkUnavailable,
    SourceUnavailable,
)
from icestream.api.history import NobodyLooks, Observer, Outcome
from icestream.api.maintenance import Maintainer
from icestream.api.offsets import Offsets
from icestream.api.sink import Commit, Message, Receipt, Sink, Target
from icestream.api.status import Progress
from icestream.jobs.publishing.fenced_publisher import FencedPublisher
from icestream.jobs.publishing.publisher import Publisher, log_rejected
from icestream.jobs.sinks.at_once import all_finished
from icestream.jobs.sinks.batches import creating, planning
from icestream.jobs.sinks.batches.lags import LagWatch
from icestream.jobs.sinks.batches.schedule import schedule_of
from icestream.jobs.sinks.batches.staging import BatchRunner, StagedBatch, stage
from icestream.jobs.sinks.batches.telling import BatchTelling
from icestream.jobs.sinks.batches.valid_through import AskedEnds, ReadTimes
from icestream.jobs.sinks.consumed_topics import ConsumedTopics, KafkaFacts
from icestream.jobs.sinks.idle import IdleSchedule, TopicWatch
from icestream.jobs.sinks.job import SinkJob
from icestream.jobs.sinks.maintenance import MaintenanceSchedule
from icestream.jobs.sinks.resuming.resume import ResumePoint
from icestream.jobs.sinks.resuming.resume_finder import ResumeFinder
from icestream.jobs.sinks.routing.commits import checkpoint_of, needs_commit, not_published_yet
from icestream.jobs.sinks.sweeping import SweepSchedule

_log = logging.getLogger(__name__)

_MOST_DISCOVERIES = 5
"""Runs of a batch in which its records may name targets that nobody has asked."""
_TOO_LARGE = "more than one batch may hold; a smaller one follows"
_LEADER_SECONDS = 5.0
"""How often a job asks for leaders while a partition has none."""


def _in_a_thread(work: Callable[[], None]) -> None:
    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=[work], name="sweep", daemon=True).start()


class SinkManager:
    """One per connector. Owns its batches and commits; holds no partitions."""

    def __init__(
        self,
        job: SinkJob,
        kafka: KafkaFacts,
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
        maintainer: Callable[[str], Maintainer | None] = lambda target: None,
        observer: Observer | None = None,
    ) -> None:
        self._job = job
        self._kafka = kafka
        self._sink = sink
        self._runner = runner
        self._clock = clock
        self._wall = wall
        self._reached = reached
        """Told of each point between two steps; the crash tests end the process there."""
        self._gate = gate or nullcontext()
        self._idle_schedule = IdleSchedule(job, watch, wake)
        self._topics = ConsumedTopics(job, kafka, clock, self._warn)
        self._publisher = FencedPublisher(job.name, open_publisher, clock)
        self._finder = ResumeFinder(job, kafka, self._topics, sink, runner, self._publisher)
        self._resume: ResumePoint | None = None
        """None: it has to be found before anything else."""
        self._failed_commits = 0
        """In a row."""
        self._sweeps = SweepSchedule(job.name, clock, wall, aside)
        self._telling = BatchTelling(job.name, observer or NobodyLooks(), clock, wall)
        self._maintenance = MaintenanceSchedule(
            job.maintenance,
            maintainer,
            clock,
            wall,
            aside,
            wake,
            {"connector": job.name},
            self._telling.maintained,
        )
        self._schedule = schedule_of(job)
        self._read_times = ReadTimes()
        self._asked = AskedEnds()
        self._lags = LagWatch()
        # What fills no file may wait for days: there is no time to hold it to.
        self.progress = Progress(interval_ms=int(job.limits.interval * 1000) if job.filling is None else None)
        """How far the job is; replaced as a whole, so other threads may read it."""

    def tick(self) -> float:
        """One turn. Returns how many seconds may pass before the next."""
        try:
            pause = self._attempt()
            self._maintenance.go_on()
            if self.progress.maintenance is not self._maintenance.shown:
                self.progress = replace(self.progress, maintenance=self._maintenance.shown)
            return min(pause, self._maintenance.pause())
        except SourceUnavailable:
            self._resume = None
            self._publisher.had_outage()
            self._publisher.abandon()
            raise
        except Fenced as fenced:
            self._resume = None
            self._publisher.abandon()
            if not self._finder.was_fenced_alone():
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
                    self._resume = self._finder.find()
                if self._finder.routed is None:
                    self._note_totals(self._resume.checkpoints)
                self._telling.found(self._resume.found)
                self._idle_schedule.found_resume_point(self._clock())
            try:
                return self._turn(self._resume)
            except BaseException as error:
                self._telling.ended_by(error)
                raise
        except RowsRefused as refused:
            self._resume = None
            _log.info("the batch runs again: %s", refused, extra=self._context())
            return 0.0
        except CommitConflict as conflict:
            self._resume = None
            _log.warning("nothing was committed: %s", conflict, extra=self._context())
            # If that was a newer manager, this one ends.
            self._finder.refuse_fenced()
            self._refuse_more_failures(conflict)
            raise
        except (CommitUnknown, SinkUnavailable) as error:
            self._refuse_more_failures(error)
            raise

    def _refuse_more_failures(self, error: Exception) -> None:
        most = self._job.most_failed_commits
        if most is not None and self._failed_commits >= most:
            raise FatalError(
                f"{self._failed_commits} commits in a row failed, the most that its config allows: {error}"
            ) from error

    def cancel(self) -> None:
        """Give up the batch under way, and every later one until `allow`. From another thread."""
        self._runner.cancel()

    def allow(self) -> None:
        self._runner.allow()

    def close(self) -> None:
        with ExitStack() as last_to_first:
            for close in (self._sink.close, self._runner.close, self._publisher.close):
                last_to_first.callback(close)
            self._idle_schedule.close()

    # -- one turn --

    def _turn(self, resume: ResumePoint) -> float:
        now = self._clock()
        asked_at = self._wall()
        ends = self._kafka.ends(list(resume.start))
        self._asked = AskedEnds(ends, asked_at)
        rows = planning.waiting(resume.start, ends)
        due = self._schedule.next(resume.start, ends, now, asked_at)
        wait = self._schedule.seconds(now, asked_at)
        self._note_lags(resume)
        self.progress = replace(
            self.progress,
            lag=rows,
            next_commit_in_ms=int(wait * 1000) if rows and wait is not None else None,
            waits_for=self._schedule.waits_for(resume.start, ends) if due is None else "",
        )
        if due is None:
            if self._topics.leaderless and now - self._topics.refreshed_at > _LEADER_SECONDS:
                self._resume = None
                return 0.0
            pause = self._idle(resume, ends, rows, now)
            if rows and wait is not None:
                pause = min(pause, wait)
            return min(pause, _LEADER_SECONDS) if self._topics.leaderless else pause
        if not self._publisher.is_open:
            # It was closed while nothing came. Whoever opens it asks targets and group, as at the start.
            self._resume = None
            return 0.0
        has_new = any(partition not in resume.start for partition in self._topics.refresh())
        if has_new or any(partition in resume.start for partition in self._topics.leaderless):
            self._resume = None
            return 0.0
        self._topics.refuse_others(resume.checkpoints)
        beginnings = self._kafka.beginnings(list(ends))
        if any(planning.has_gaps(start, beginnings, ends) for start in (resume.start, *resume.starts)):
            # Decided anew by what the targets say: where a job begins that has committed nothing may move.
            self._resume = None
            return 0.0
        batch = Batch(str(uuid.uuid4()), resume.start, due.ends)
        self._schedule.began(batch, due, asked_at)
        _log.info("planned %s records", batch.span, extra=self._context(batch))
        self._telling.begins(batch, now)
        self._reached("planned")
        self._run(batch, resume, started=now, behind=batch.span < rows, may_leave=due.may_leave)
        return 0.0

    def _idle(self, resume: ResumePoint, ends: Offsets, rows: int, now: float) -> float:
        if self._idle_schedule.is_check_due(now, rows):
            if self._finder.has_changed(resume, ends):
                self._resume = None
                return 0.0
            self._idle_schedule.found_unchanged(now)
        looked_after = 0 if self._schedule.holds_back else rows
        if looked_after == 0 and self._idle_schedule.may_close_publisher(now, self._publisher.last_used):
            self._publisher.close()
        return self._idle_schedule.pause(now, looked_after, ends)

    def _run(
        self, batch: Batch, resume: ResumePoint, *, started: float, behind: bool, may_leave: bool = False
    ) -> None:
        if self._finder.routed is None and (
            missing := creating.missing_targets(self._finder.targets, resume)
        ):
            self._create(missing, batch, resume, started)
            return
        with self._telling.stage("stage"):
            staged, resume = self._staged(batch, resume, may_leave)
        if self._finder.missing:
            self._create(self._finder.missing, batch, resume, started)
            return
        self._reached("staged")
        if staged.result.overflow:
            staged.discard()
            self._schedule.was_too_large(batch, staged.result)
            self._telling.ends(Outcome.CUT, _TOO_LARGE)
            return
        if staged.result.unknown_targets:
            # One of them needs an earlier start: it was rolled back.
            self._telling.ends(Outcome.RUN_AGAIN, "a target was rolled back and needs records from before")
            return
        if staged.result.rejected and not self._job.tolerates_all:
            staged.discard()
            self._run_before(staged.batch, resume, staged.result.rejected, started, may_leave=may_leave)
            return
        if may_leave:
            self._schedule.left(batch, staged.left)
            batch = staged.batch
            if not batch.span:
                staged.discard()
                self._telling.ends(Outcome.EMPTY, "nothing fills a file yet")
                return
        self._refuse_topics_recreated(staged)
        has_queue = self._job.dead_letters is not None
        self._telling.staged(staged, self._valid_through(staged), has_queue=has_queue)
        with self._maintenance.turn, self._telling.stage("commit"):
            receipts = self._commit(staged, resume)
        self._telling.landed(staged)
        with self._telling.stage("publish"):
            self._publisher.publish(
                batch.id,
                staged.result.rejected,
                self._events(staged, receipts),
                resume.published_after(batch),
            )
        self._reached("published")
        self._note(staged, receipts, resume, started, behind)
        self._telling.ends_well(self.progress.lag)
        self._sweeps.committed(batch.id, self._finder.targets, receipts)
        self._maintenance.committed(name for name, receipt in receipts.items() if receipt.id is not None)

    def _create(self, missing: Sequence[Target], batch: Batch, resume: ResumePoint, started: float) -> None:
        """Create targets for the records of the batch, which is then planned anew: they have ids by then."""
        routed = self._finder.routed
        absent = routed.absent(self._clock()) if routed is not None else {}
        others = self._finder.targets if routed is not None else ()
        seen = creating.look_at(batch, self._sink, [*missing, *others], self._runner, absent)
        if seen.overflow:
            self._schedule.was_too_large(batch, seen)
            self._telling.ends(Outcome.CUT, _TOO_LARGE)
            return
        if seen.rejected and not self._job.tolerates_all:
            self._run_before(batch, resume, seen.rejected, started)
            return
        if routed is not None:
            wanted = [target for target in missing if creating.has_fields(target, seen)]
            if not wanted and routed.has_nothing_for(missing, self._clock()):
                # The records of all others shall not wait for theirs.
                self._telling.ends(
                    Outcome.RUN_AGAIN, "no record tells the columns of a table that is missing"
                )
                return
            routed.creates(wanted)
        creating.create(missing, seen, batch, self._reached)
        self._resume = None
        self._telling.ends(
            Outcome.RUN_AGAIN, f"created first: {', '.join(target.name for target in missing[:5])}"
        )

    def _staged(
        self, batch: Batch, resume: ResumePoint, may_leave: bool = False
    ) -> tuple[StagedBatch, ResumePoint]:
        """The batch staged, and the resume point with the targets that its records name."""
        self._finder.missing = ()
        # What was absent at the first run of the batch is so at the last, however long they take.
        now = self._clock()
        for _ in range(_MOST_DISCOVERIES):
            routed = self._finder.routed
            absent = routed.absent(now) if routed is not None else {}
            targets = self._finder.targets
            staged = stage(
                batch, self._sink, targets, resume.starts, self._runner, absent, may_leave=may_leave
            )
            if staged.result.overflow or not staged.result.unknown_targets:
                left = not_published_yet(staged, resume)
                if known := len(staged.result.rejected) - len(left.result.rejected):
                    _log.warning(
                        "%s records that were read again for a table that was rolled back fail: their "
                        "dead letters were published the first time, unless the table took them then",
                        known,
                        extra=self._context(batch),
                    )
                return left, resume
            self._reached("discovering")
            resume = self._finder.discover(resume, staged.result.unknown_targets, now)
            self._resume = resume
            if self._finder.missing or any(resume.start[p] < batch.start[p] for p in batch.start):
                return staged, resume
        raise FatalError(
            f"batch {batch.id} still named new tables after {_MOST_DISCOVERIES} runs: "
            f"{', '.join(sorted(staged.result.unknown_targets)[:5])}"
        )

    def _refuse_topics_recreated(self, staged: StagedBatch) -> None:
        try:
            self._topics.refuse_recreated_since(
                sorted({piece.partition.topic for piece in staged.batch.slices()})
            )
        except SourceUnavailable:
            staged.discard()
            raise

    def _run_before(
        self,
        batch: Batch,
        resume: ResumePoint,
        rejected: Sequence[Rejected],
        started: float,
        *,
        may_leave: bool = False,
    ) -> None:
        """Land what precedes the first bad record of each partition, then fail with the first of them."""
        part = Batch(str(uuid.uuid4()), batch.start, planning.before_rejected(batch.end, rejected))
        if part.span:
            self._telling.ends(
                Outcome.CUT, f"a record is bad, only what precedes it is landed: {rejected[0]}"
            )
            self._telling.begins(part, self._clock())
            self._run(part, resume, started=started, behind=True, may_leave=may_leave)
        first = min(rejected, key=lambda record: (record.partition, record.offset))
        raise RecordRejected(
            f"{first}; fix the producer, or set errors.tolerance=all and "
            "errors.deadletterqueue.topic.name to go on without it"
        )

    def _commit(self, staged: StagedBatch, resume: ResumePoint) -> dict[str, Receipt]:
        receipts: dict[str, Receipt] = {}
        lacking: list[tuple[Target, FoundCheckpoint, Offsets]] = []
        for target, found, start in zip(self._finder.targets, resume.found, resume.starts, strict=True):
            if not needs_commit(staged, found, start, resume):
                receipts[target.name] = Receipt(found.checkpoint)
            else:
                lacking.append((target, found, start))
        self._telling.commits_to([target.name for target, *_ in lacking])
        commits = [functools.partial(self._commit_to, *one, staged, resume) for one in lacking]
        try:
            done = all_finished(commits, self._job.commit_threads, f"commits to {len(commits)} targets")
        except RowsRefused:
            raise
        except (CommitConflict, CommitUnknown, SinkUnavailable):
            self._failed_commits += 1
            raise
        self._failed_commits = 0
        return receipts | {target.name: receipt for (target, *_), receipt in zip(lacking, done, strict=True)}

    def _commit_to(
        self,
        target: Target,
        found: FoundCheckpoint,
        start: Offsets,
        staged: StagedBatch,
        resume: ResumePoint,
    ) -> Receipt:
        mine = staged.staged(target.name)
        checkpoint = checkpoint_of(
            found, start, staged, resume, self._topics.ids, self._sink.routing, self._topics.leaderless
        )
        commit = Commit(
            checkpoint,
            found.checkpoint,
            staged.plans[target.name],
            mine,
            staged.result,
            self._valid_through(staged),
            found.lost_commit,
        )
        began = self._clock()
        try:
            receipt = target.commit(commit)
        except BaseException as error:
            self._telling.refused_by(target.name, mine.rows, began, error)
            if isinstance(error, CommitConflict) and error.certain:
                target.discard(mine)
            raise
        self._telling.committed_to(target.name, mine.rows, began, receipt)
        _log.info("committed %s rows to %s", mine.rows, target.name, extra=self._context(staged.batch))
        self._publisher.knows([staged.batch.id])
        self._reached(f"committed {target.name}")
        return receipt

    def _valid_through(self, staged: StagedBatch) -> dt.datetime | None:
        return self._read_times.after(staged.batch, staged.result, self._asked, self._topics.leaderless)

    def _events(self, staged: StagedBatch, receipts: Mapping[str, Receipt]) -> Sequence[Message]:
        return self._sink.events(staged.batch.id, receipts, self._valid_through(staged))

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
        self._read_times.committed(batch, result, self._asked, self._topics.leaderless)
        seconds = max(self._clock() - started, 0.001)
        self._schedule.ended(batch, result, started, seconds, behind)
        if not self._topics.leaderless:
            self._publisher.published_all(batch.id)
        if self._finder.routed is not None:
            self._finder.routed.had_rows(name for name, one in result.staged.items() if one.rows)
        after = resume.after(batch, [receipts[one.name].checkpoint for one in self._finder.targets])
        self._resume = self._finder.settled(resume, after)
        self._idle_schedule.had_batch(self._clock())
        self._lags.committed(result.newest_ms)
        self._note_lags(self._resume)
        valid = self._read_times.valid_through
        self.progress = replace(
            self.progress,
            lag=max(0, (self.progress.lag or 0) - batch.span),
            valid_through_ms=int(valid.timestamp() * 1000) if valid is not None else None,
            batches=self.progress.batches + 1,
            last_commit_ms=int(self._wall().timestamp() * 1000),
            topics=self._topics_read(staged),
        )
        if self._finder.routed is None:
            self._note_totals(self._resume.checkpoints)
        else:
            self._note_routed(sum(result.counts.values(), Counts()))

    def _note_lags(self, resume: ResumePoint) -> None:
        watched = self._idle_schedule.watched_seconds
        found = self._lags.at(resume.start, self._asked.ends, self._asked.at, watched)
        self.progress = replace(
            self.progress,
            source_end=found.end,
            oldest_unread_ms=found.oldest_unread_ms,
            partitions=found.partitions,
        )

    def _note_routed(self, batch: Counts) -> None:
        """Of a job that routes, since this manager began: no target has the sums of all."""
        now = self.progress
        self.progress = replace(
            now,
            rows=(now.rows or 0) + batch.written,
            rejected=(now.rejected or 0) + batch.rejected,
            filtered=(now.filtered or 0) + batch.filtered,
        )

    def _warn(self, warnings: tuple[str, ...]) -> None:
        self.progress = replace(self.progress, warnings=warnings)

    def _topics_read(self, staged: StagedBatch) -> tuple[str, ...]:
        """The topics that this manager has had records of, the batch included."""
        parts = [staged.result.counts, *(one.counts for one in staged.result.staged.values())]
        read = {p.topic for part in parts for p, counts in part.items() if counts.read}
        return tuple(sorted(read.union(self.progress.topics)))

    def _note_totals(self, checkpoints: Sequence[Checkpoint]) -> None:
        if checkpoints:
            totals = checkpoints[0].totals
            self.progress = replace(
                self.progress, rows=totals.written, rejected=totals.rejected, filtered=totals.filtered
            )

    def _context(self, batch: Batch | None = None) -> dict[str, str]:
        return {"connector": self._job.name, "batch": batch.id if batch else ""}
