"""The coordinator of Java workers: asks them to finish their files, collects what they have written, commits
it to the tables, and tells the control topic. `tick` is one turn; `job_manager` makes it, the reconciler of
the process repeats it.

Whatever happens, nothing is kept in memory that the control topic does not have: after an error everything is
closed, and the next turn reads again from the offsets of `<group>-coord`. The tables tell what they have.
"""

from __future__ import annotations

import datetime as dt
import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from icestream.api.errors import FatalError, SourceUnavailable
from icestream.api.history import NobodyLooks, Observer
from icestream.api.offsets import Offsets, Partition
from icestream.api.status import Progress
from icestream.connectors.iceberg.coordinator import table_commits
from icestream.connectors.iceberg.coordinator.avro_datum import BadDatum
from icestream.connectors.iceberg.coordinator.events import (
    CommitComplete,
    CommitToTable,
    Event,
    Payload,
    StartCommit,
    decoded,
    encoded,
)
from icestream.connectors.iceberg.coordinator.rounds import JobCommitState, Round, SourceState
from icestream.connectors.iceberg.coordinator.table_commits import JavaJob, Outcome, TableCommits
from icestream.connectors.iceberg.coordinator.telling import RoundTelling
from icestream.kafka.topic_follower import TopicRecord

_log = logging.getLogger(__name__)

ASK_AGAIN_SECONDS = 5.0
LOOK_SECONDS = 2.0
"""How often the group is looked at while it has no members."""
_POLL_SECONDS = 1.0
_PATIENCE_SECONDS = 30.0
_NOTE = "icestream:"


class ControlTopic(Protocol):
    """The control topic, opened by one coordinator. Opening it shuts out every older one of the job."""

    @property
    def positions(self) -> Mapping[int, int]:
        """The next offset of each partition."""

    def read(self, seconds: float) -> Sequence[TopicRecord]: ...

    def ends(self) -> Mapping[int, int]:
        """Where its partitions end for a reader of committed records."""

    def has_grown(self) -> bool:
        """Whether it has more partitions than are read."""

    def write(self, values: Sequence[bytes], offsets: Offsets, note: str) -> None:
        """All at once: events, and the offsets of `<group>-coord`."""

    def prove(self) -> None:
        """Fenced, if a newer coordinator has opened it."""

    def close(self) -> None: ...


@dataclass(frozen=True)
class Pace:
    """Seconds."""

    interval: float
    timeout: float


class Coordinator:
    """Of one job. Called from one thread; others may read `progress`."""

    def __init__(
        self,
        job: JavaJob,
        pace: Pace,
        open_control: Callable[[], ControlTopic],
        source: Callable[[], SourceState],
        tables: TableCommits,
        clock: Callable[[], float],
        wall: Callable[[], dt.datetime],
        reached: Callable[[str], None] = lambda point: None,
        observer: Observer | None = None,
        name: str = "",
    ) -> None:
        """`name`: under which the observer is told."""
        self._telling = RoundTelling(name or job.group, observer or NobodyLooks(), clock, wall)
        self._job = job
        self._pace = pace
        self._open_control = open_control
        self._source = source
        self._tables = tables
        self._clock = clock
        self._wall = wall
        self._reached = reached
        """Told of each point between two steps; the crash tests end the process there."""
        self._control: ControlTopic | None = None
        self._state = JobCommitState(job.group)
        self._next_start = clock()
        """At start-up at once."""
        self._alone_since = clock()
        """When the group had members last, or workers were asked without it."""
        self._silent: Mapping[Partition, tuple[int, int]] = {}
        """Where workers did not answer in time, and how far they were behind: while that stays the same
        nobody waits for them again."""
        self._told: Offsets | None = None
        """The offsets of `<group>-coord` as they were last written."""
        self.progress = Progress()

    def tick(self) -> float:
        """One turn. Returns how many seconds may pass before the next."""
        try:
            return self._turn()
        except BaseException as error:
            self._telling.gave_up(error)
            self._reset()
            raise

    def close(self) -> None:
        self._reset()
        self._tables.close()

    def _reset(self) -> None:
        control, self._control = self._control, None
        self._state = JobCommitState(self._job.group)
        if control is not None:
            control.close()

    # -- one turn --

    def _turn(self) -> float:
        if self._control is None:
            self._open()
        control = self._control
        assert control is not None
        self._read(control, _POLL_SECONDS)
        now, state = self._clock(), self._state
        if state.round is None:
            if now >= self._next_start:
                self._begin(control, now)
        elif state.is_complete(now):
            self._commit(control, state.round, is_full=True)
        elif now - state.round.started > self._pace.timeout:
            self._give_up_waiting(state.round)
            self._commit(control, state.round, is_full=False)
        elif not state.round.expected and now - state.round.looked >= LOOK_SECONDS:
            self._look_for_workers(control, state.round, now)
        elif now - state.round.stirred >= max(self._pace.interval, ASK_AGAIN_SECONDS):
            self._ask_again(control, state.round, now)
        self._note_pace()
        return 0.0

    def _open(self) -> None:
        self._control = control = self._open_control()
        self._reached("opened")
        self._read_to(control, control.ends())
        if self._state.waiting:
            _log.info("%s events wait for their tables", len(self._state.waiting), extra=self._context())
            # Left behind by whoever coordinated before; nobody has to be asked for these.
            self._commit(control, None, is_full=False)
        self._next_start = self._clock()

    def _read_to(self, control: ControlTopic, ends: Mapping[int, int]) -> None:
        before, moved = dict(control.positions), self._clock()
        while not _has_reached(control, ends):
            self._read(control, _POLL_SECONDS)
            if before != control.positions:
                before, moved = dict(control.positions), self._clock()
            elif self._clock() - moved > _PATIENCE_SECONDS:
                raise SourceUnavailable(
                    f"topic '{self._job.control_topic}' was not read to its end, nothing came for "
                    f"{_PATIENCE_SECONDS:.0f} s; is Kafka well?"
                )

    def _read(self, control: ControlTopic, seconds: float) -> None:
        for record in control.read(seconds):
            if record.value is None:
                continue
            try:
                event = decoded(record.value)
            except BadDatum as bad:
                raise FatalError(
                    f"record {record.offset} of partition {record.partition} of topic "
                    f"'{self._job.control_topic}' is no event: {bad}. Whose it is cannot be told; to go on "
                    f"without it, set the offset of group '{self._job.group}-coord' behind it"
                ) from bad
            if event is not None:
                self._state.receive(record.partition, record.offset, event, self._clock())

    def _begin(self, control: ControlTopic, now: float) -> None:
        """Ask the workers for what they have, if they can have something."""
        self._next_start = now + self._pace.interval
        if control.has_grown():
            self._reset()
            return
        began = self._wall()
        source = self._source()
        waiting = sum(end - start for start, end in source.behind.values())
        self.progress = replace(self.progress, lag=waiting if source.assigned else None)
        if not source.assigned and now - self._alone_since < self._pace.interval:
            # Whom nobody hears has to be asked again: workers that have just started, for one.
            self._next_start = now + min(self._pace.interval, LOOK_SECONDS)
            return
        self._alone_since = now
        if source.assigned and not source.behind:
            self._rest(control)
            return
        expected = self._heard_lately(source)
        began = began.replace(microsecond=began.microsecond // 1000 * 1000)
        self._state.round = Round(
            uuid.uuid4(), began, now, source, expected, sent=now, looked=now, control_ends=control.ends()
        )
        self._write(control, [StartCommit(self._state.round.commit_id)], Offsets({}))
        self._telling.begins(str(self._state.round.commit_id), waiting)
        self._reached("started")

    def _rest(self, control: ControlTopic) -> None:
        """No worker has anything. Late files are committed, and the group's offsets go to where the topic
        was read: events that are done with may go when their time is over."""
        if self._state.waiting:
            self._commit(control, None, is_full=False)
        elif (watermark := self._watermark(control.positions)) != self._told:
            control.write([], watermark, _NOTE)
            self._told = watermark

    def _ask_again(self, control: ControlTopic, round_: Round, now: float) -> None:
        """A worker that joined after StartCommit has not heard it; one that has answered answers again."""
        if not self._is_answered(control, round_, now):
            round_.sent = now
            self._write(control, [StartCommit(round_.commit_id)], Offsets({}))

    def _look_for_workers(self, control: ControlTopic, round_: Round, now: float) -> None:
        """Nobody was in the group when the round began."""
        if not self._is_answered(control, round_, now) and round_.expected:
            round_.sent = now
            self._write(control, [StartCommit(round_.commit_id)], Offsets({}))

    def _is_answered(self, control: ControlTopic, round_: Round, now: float) -> bool:
        """Look at the group again; whether the round is over because nobody else has anything to tell."""
        round_.looked = now
        source = self._source()
        if not source.assigned:
            return False
        round_.expected = self._heard_lately(source).union(round_.answers)
        if not round_.expected <= round_.answers.keys():
            return False
        self._commit(control, round_, is_full=False)
        return True

    def _heard_lately(self, source: SourceState) -> frozenset[Partition]:
        """The partitions that workers should have something of."""
        return frozenset(p for p, span in source.behind.items() if self._silent.get(p) != span)

    def _give_up_waiting(self, round_: Round) -> None:
        missing = round_.expected - round_.answers.keys()
        if not missing:
            return
        self._silent = {p: span for p, span in round_.source.behind.items() if p in missing}
        _log.warning(
            "no answer of the workers of %s partitions after %.0f s; what they write lands in a later commit",
            len(missing),
            self._pace.timeout,
            extra=self._context(round_),
        )

    # -- a commit --

    def _commit(self, control: ControlTopic, round_: Round | None, *, is_full: bool) -> None:
        state = self._state
        # What workers told before the round may be in another partition of the topic than their answers.
        is_full = is_full and round_ is not None and _has_reached(control, round_.control_ends)
        through = state.valid_through() if is_full else None
        commit_id = round_.commit_id if round_ else uuid.uuid4()
        positions = dict(control.positions)
        facts = table_commits.Round(commit_id, positions, through)
        self._telling.commits(str(commit_id))
        outcomes = self._tables.commit(facts, state.waiting, control.prove, self._reached)
        self._reached("committed")
        landed = [one for one in outcomes if one.failure is None]
        state.drop(envelope for one in landed for envelope in one.envelopes)
        state.round = None
        told: list[Payload] = [
            CommitToTable(commit_id, one.table, one.snapshot_id, through)
            for one in landed
            if one.snapshot_id is not None
        ]
        self._told = self._watermark(positions)
        self._write(control, [*told, CommitComplete(commit_id, through)], self._told)
        self._reached("told")
        self._note(outcomes)
        self._telling.committed(outcomes, through, self.progress.lag)

    def _watermark(self, positions: Mapping[int, int]) -> Offsets:
        lowest = self._state.low_watermark(positions)
        return Offsets({Partition(self._job.control_topic, number): at for number, at in lowest.items()})

    def _write(self, control: ControlTopic, payloads: Sequence[Payload], offsets: Offsets) -> None:
        now = self._wall()
        events = [encoded(Event(uuid.uuid4(), now, self._job.group, payload)) for payload in payloads]
        control.write(events, offsets, f"{_NOTE}{payloads[-1].commit_id}")

    # -- what is remembered --

    def _note(self, outcomes: Sequence[Outcome]) -> None:
        failures = table_commits.failures(outcomes)
        for failure in failures:
            _log.error("files are not committed, and wait: %s", failure, extra=self._context())
        rows = sum(one.rows for one in outcomes)
        self.progress = replace(
            self.progress,
            rows=self.progress.rows + rows,
            batches=self.progress.batches + bool(rows),
            last_commit_ms=int(self._wall().timestamp() * 1000) if rows else self.progress.last_commit_ms,
            warnings=tuple(map(str, failures)),
        )

    def _note_pace(self) -> None:
        wait = max(0.0, self._next_start - self._clock())
        self.progress = replace(self.progress, next_commit_in_ms=int(wait * 1000))

    def _context(self, round_: Round | None = None) -> dict[str, str]:
        return {"connector": self._job.group, **({"commit": str(round_.commit_id)} if round_ else {})}


def _has_reached(control: ControlTopic, ends: Mapping[int, int]) -> bool:
    return all(control.positions.get(number, 0) >= end for number, end in ends.items())
