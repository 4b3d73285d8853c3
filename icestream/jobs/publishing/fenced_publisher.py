"""Sees to it that one manager of a job is at work: its publisher, opened when it is needed, and whether
another manager has taken over. Used by the sink manager and by `resume_finder`.

Opening a publisher fences the managers before this one. A newer manager shows itself in two ways: Kafka
fences the publisher of this one, or the group's offsets carry notes of commits that this one does not know.

Kafka may also fence a manager that is alone. A broker that was away for long aborts the transaction that it
finds open, and may handle the requests of publishers that were abandoned meanwhile after those of the newest.
Such a manager opens a new publisher, a few times.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from icestream.api.batch import Rejected
from icestream.api.checkpoint import Checkpoint
from icestream.api.errors import Fenced
from icestream.api.offsets import Offsets, Partition
from icestream.api.sink import Message
from icestream.jobs.publishing.publisher import Publisher
from icestream.jobs.sinks.resuming.resume import NOTE_PREFIX
from icestream.kafka.topics import GroupOffset

_OUTAGE_REMEMBERED: Final = 300.0
"""Seconds after an outage in which Kafka may fence a manager because of it."""
_MOST_REPEATS: Final = 3
"""Two managers that are both alive would fence each other for ever."""


class FencedPublisher:
    """The publisher of one manager, and what it knows of others of the same job."""

    def __init__(self, job: str, open_publisher: Callable[[], Publisher], clock: Callable[[], float]) -> None:
        self._job = job
        self._open_publisher = open_publisher
        self._clock = clock
        self._publisher: Publisher | None = None
        self.last_used = -math.inf
        self._notes: set[str] = set()
        """What this manager has read or left beside the group's offsets."""
        self._asked: frozenset[Partition] = frozenset()
        """The partitions whose notes it has asked for."""
        self._commits: set[str] = set()
        """Commits of this manager, or from before it."""
        self._outage_at: float | None = None
        self._repeats = 0

    @property
    def is_open(self) -> bool:
        return self._publisher is not None

    def open(self) -> Publisher:
        """Ends the transaction that an earlier manager may have left open."""
        if self._publisher is None:
            self._publisher = self._open_publisher()
        return self._publisher

    def close(self) -> None:
        if self._publisher is not None:
            publisher, self._publisher = self._publisher, None
            publisher.close()

    def abandon(self) -> None:
        """For an outage: the next publisher ends or aborts what this one left open; this one may wait for
        answers that never come."""
        if self._publisher is not None:
            publisher, self._publisher = self._publisher, None
            publisher.abandon()

    def publish(
        self, commit: str, rejected: Sequence[Rejected], events: Sequence[Message], end: Offsets
    ) -> None:
        self.opened_for(commit).publish(commit, rejected, events, end)

    def opened_for(self, commit: str) -> Publisher:
        """The publisher; the commit is noted before it is published: whether it was may never be known."""
        self._notes = {*self._notes, f"{NOTE_PREFIX}{commit}"}
        self.last_used = self._clock()
        return self.open()

    def published_all(self, commit: str) -> None:
        """All of the group's offsets carry the note of this commit now, and no other."""
        self._notes = {f"{NOTE_PREFIX}{commit}"}

    # -- other managers of the job --

    def refuse_taken_over(
        self, group: Mapping[Partition, GroupOffset], partitions: Sequence[Partition]
    ) -> None:
        """Fenced, if another manager has published since this one last did.

        An older manager that has closed its publisher is not fenced when a newer one opens its own; it finds
        out here, before it touches anything.
        """
        notes = {p: at.note for p, at in group.items() if at.note.startswith(NOTE_PREFIX)}
        strange = {note for p, note in notes.items() if p in self._asked and note not in self._notes}
        if strange:
            commit = min(strange).removeprefix(NOTE_PREFIX)
            raise Fenced(f"another manager of '{self._job}' is alive: it has published batch {commit}")
        self._notes, self._asked = set(notes.values()), frozenset(partitions)

    def refuse_fenced(self, group: Mapping[Partition, GroupOffset]) -> None:
        """Publish the group's offsets again as they are: Fenced, if a newer manager opened its publisher."""
        ours = {p: offset for p, offset in group.items() if offset.note.startswith(NOTE_PREFIX)}
        note = next((offset.note for offset in ours.values()), NOTE_PREFIX)
        again = Offsets({partition: offset.next for partition, offset in ours.items()})
        self.publish(note.removeprefix(NOTE_PREFIX), [], [], again)

    def knows(self, commits: Iterable[str]) -> None:
        """Commits of this manager, or from before it."""
        self._commits.update(commits)

    def had_outage(self) -> None:
        if not self._had_outage_lately():
            self._repeats = 0
        self._outage_at = self._clock()

    def may_be_alone(self) -> bool:
        """Whether an outage is so near that it may be why Kafka fenced this manager."""
        return self._had_outage_lately() and self._repeats < _MOST_REPEATS

    def is_alone(self, commits: Iterable[str]) -> bool:
        """Whether targets and group have no commit but those it knows; counts how often that was so."""
        if not self._commits.issuperset(commits):
            return False
        self._repeats += 1
        return True

    def _had_outage_lately(self) -> bool:
        return self._outage_at is not None and self._clock() - self._outage_at <= _OUTAGE_REMEMBERED


def commits_in(checkpoints: Sequence[Checkpoint], group: Mapping[Partition, GroupOffset]) -> set[str]:
    """The last commits that the targets and the group's offsets carry."""
    notes = {offset.note for offset in group.values() if offset.note.startswith(NOTE_PREFIX)}
    return {checkpoint.commit for checkpoint in checkpoints} | {
        note.removeprefix(NOTE_PREFIX) for note in notes
    }
