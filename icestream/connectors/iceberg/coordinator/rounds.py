"""What the control topic has told and the tables do not have yet, and the round under way. Pure: events and
times come in as arguments. The coordinator asks it when a round is over and what there is to commit.

A round begins with StartCommit; each worker answers with a DataWritten per table and a DataComplete for all
of its partitions. Whatever has come by then is committed, also of rounds before: a late answer loses nothing.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from icestream.api.offsets import Partition
from icestream.connectors.iceberg.coordinator.events import DataComplete, DataWritten, Event

SETTLE_SECONDS = 5.0
"""Without knowing who will answer: a round is over when nobody has for so long."""


@dataclass(frozen=True)
class Envelope:
    """A DataWritten with its place in the control topic, by which a table tells whether it has it."""

    partition: int
    offset: int
    written: DataWritten


@dataclass(frozen=True)
class SourceState:
    """The partitions that workers read, and those with records that no worker has told of."""

    assigned: frozenset[Partition] = frozenset()
    behind: Mapping[Partition, tuple[int, int]] = field(default_factory=dict)
    """From where to where."""


@dataclass
class Round:
    """One commit under way. Times are seconds of the coordinator's clock."""

    commit_id: uuid.UUID
    began: dt.datetime
    started: float
    source: SourceState = field(default_factory=SourceState)
    expected: frozenset[Partition] = frozenset()
    """The partitions whose workers should answer; empty: nobody knows."""
    sent: float = 0.0
    """When StartCommit was sent last."""
    looked: float = 0.0
    """When the group was looked at last."""
    control_ends: Mapping[int, int] = field(default_factory=dict)
    """Where the control topic ended when the round began."""
    answers: dict[Partition, dt.datetime | None] = field(default_factory=dict)
    heard: float | None = None
    """When somebody answered last."""

    @property
    def stirred(self) -> float:
        """When something was last said by anybody."""
        return max(self.sent, self.heard or self.sent)


class JobCommitState:
    """The commit state of one job: files that wait for their table, and who has answered."""

    def __init__(self, group: str) -> None:
        self._group = group
        self.waiting: list[Envelope] = []
        """In the order of each control partition."""
        self.round: Round | None = None

    def receive(self, partition: int, offset: int, event: Event, now: float) -> None:
        """An event of the control topic; those of other groups are not ours."""
        if event.group != self._group:
            return
        payload = event.payload
        if isinstance(payload, DataWritten):
            self.waiting.append(Envelope(partition, offset, payload))
            if self.round is not None:
                self.round.heard = now
        elif isinstance(payload, DataComplete) and self.round is not None:
            if payload.commit_id != self.round.commit_id:
                return
            self.round.heard = now
            for one in payload.assignments or ():
                at = Partition(one.topic, one.partition)
                # A worker that is asked twice may have nothing new the second time.
                known = self.round.answers.get(at)
                self.round.answers[at] = known if one.offset is None else one.timestamp

    def is_complete(self, now: float) -> bool:
        """Whether everybody who was expected has answered."""
        if self.round is None:
            return False
        if self.round.expected:
            return self.round.expected <= self.round.answers.keys()
        return self.round.heard is not None and now - self.round.heard >= SETTLE_SECONDS

    def valid_through(self) -> dt.datetime | None:
        """The time up to which the records of all partitions are in the tables after a full round; None if
        nobody can know. A partition in which nothing waited when the round began does not hold it back."""
        if self.round is None or not self.round.source.assigned:
            return None
        source, answers = self.round.source, self.round.answers
        moments: list[dt.datetime] = []
        for partition in source.assigned.union(answers):
            told = answers.get(partition)
            if told is not None:
                moments.append(told)
            elif partition in source.behind or partition not in source.assigned:
                return None
            else:
                moments.append(self.round.began)
        return min(moments, default=None)

    def drop(self, done: Iterable[Envelope]) -> None:
        """These are in their tables."""
        gone = {(one.partition, one.offset) for one in done}
        self.waiting = [one for one in self.waiting if (one.partition, one.offset) not in gone]

    def low_watermark(self, positions: Mapping[int, int]) -> dict[int, int]:
        """From where the control topic has to be read to find all that is not in the tables."""
        lowest = dict(positions)
        for one in self.waiting:
            lowest[one.partition] = min(lowest[one.partition], one.offset)
        return lowest
