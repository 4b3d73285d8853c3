"""Finds out where a sink job resumes: asks the targets for their checkpoints and Kafka for the group's
offsets, and publishes what Kafka has missed of the last batch. Called by the sink manager at the start, after
every failure, and whenever something else has changed targets or topics.

What follows from the answers is decided by `resume`, which is pure.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from icestream.api.batch import Batch
from icestream.api.checkpoint import Checkpoint, FoundCheckpoint, behind_until, checkpoint_moved
from icestream.api.errors import SourceRecreated, SourceUnavailable
from icestream.api.offsets import Offsets, Partition, named
from icestream.api.sink import Commit, Sink, SinkPlan, Target, TargetTask
from icestream.jobs.publishing.fenced_publisher import FencedPublisher, commits_in
from icestream.jobs.publishing.publisher import publish_missing
from icestream.jobs.sinks.batches import planning
from icestream.jobs.sinks.batches.staging import BatchRunner
from icestream.jobs.sinks.consumed_topics import ConsumedTopics, KafkaFacts
from icestream.jobs.sinks.job import SinkJob
from icestream.jobs.sinks.resuming import inheritance
from icestream.jobs.sinks.resuming.resume import (
    ResumePoint,
    has_all,
    moved_by_others,
    places_told_by_others,
    resume_point,
    unpublished_batch,
)
from icestream.jobs.sinks.routing.resume import floor_of, routed_resume_point, waits_for_leader
from icestream.jobs.sinks.routing.targets import RoutedTargets
from icestream.kafka.topics import GroupOffset

_log = logging.getLogger(__name__)


class ResumeFinder:
    """Of one sink manager, which shares its topics and its publisher with it."""

    def __init__(
        self,
        job: SinkJob,
        kafka: KafkaFacts,
        topics: ConsumedTopics,
        sink: Sink,
        runner: BatchRunner,
        publisher: FencedPublisher,
    ) -> None:
        self._job = job
        self._kafka = kafka
        self._topics = topics
        self._sink = sink
        self._runner = runner
        self._publisher = publisher
        self.targets = sink.targets()
        """As they were when the resume point was last asked for, and those that records have named since."""
        self.routed = RoutedTargets(sink) if sink.routing is not None else None
        self.missing: Sequence[Target] = ()
        """Of a job that routes: targets that records name, and that have to be created for them."""

    def find(self) -> ResumePoint:
        # First, because it ends the transaction that an earlier manager may have left open.
        self._publisher.open()
        self.targets = self._sink.targets()
        if self.routed is not None:
            return self._find_routed(self.routed)
        found: Sequence[FoundCheckpoint] = [target.found() for target in self.targets]
        if self._finish_commits(found):
            found = [target.found() for target in self.targets]
        for target in self.targets:
            # What cannot be written is told now, and not with the first record.
            target.plan({})
        self._topics.note_targets(found)
        partitions = self._topics.refresh()
        # A group's offsets are there whether a partition has a leader or not.
        all_partitions = [*partitions, *self._topics.leaderless]
        group = self._kafka.group_offsets(self._job.group, all_partitions)
        if inheritance.takes_over(group) and inheritance.settle(self._job, self._kafka, self._sink):
            found = [target.found() for target in self.targets]
            group = self._kafka.group_offsets(self._job.group, all_partitions)
        self._publisher.refuse_taken_over(group, all_partitions)
        self._refuse_unpublished_without_leader([item.checkpoint for item in found if item.checkpoint], group)
        if moved := moved_by_others(found, group):
            self._follow(found, group, moved, partitions)
            found = [target.found() for target in self.targets]
            group = self._kafka.group_offsets(self._job.group, all_partitions)
        self._refuse_start_without_leader(found, group)
        beginnings = self._kafka.beginnings(partitions)
        is_new = all(item.checkpoint is None for item in found)
        fresh = self._topics.fresh_offsets(beginnings, is_new=is_new)
        resume = resume_point(self._job.group, found, group, fresh)
        checkpoints = resume.checkpoints
        self._publisher.knows(commits_in(checkpoints, group))
        self._topics.refuse_others(checkpoints)
        ends = self._kafka.ends(partitions)
        by_group = is_new and not any(item.rolled_back_from for item in found)
        given_by = dict.fromkeys(group, f"consumer group '{self._job.group}'") if by_group else {}
        for start in resume.starts:
            planning.refuse_gaps(self._job.name, start, beginnings, ends, given_by)
        if has_all(found):
            if (batch := unpublished_batch(checkpoints, group, partitions)) is not None:
                self._publish_missing(batch, found, beginnings)
            elif any(group[p].next != resume.start[p] for p in partitions if p in group):
                self._publisher.publish(checkpoints[0].commit, [], [], resume.start)
        return resume

    def _finish_commits(self, found: Sequence[FoundCheckpoint]) -> bool:
        """Whether something that a target had lost of its last commit was written again."""
        left = [(target, one) for target in self.targets if (one := target.unfinished()) is not None]
        if left:
            # What another topic of the name has at these offsets are other records.
            self._topics.note_targets(found)
            self._topics.refresh()
            self._topics.refuse_others([item.checkpoint for item in found if item.checkpoint])
        for target, one in left:
            pieces = one.batch.slices()
            beginnings = self._kafka.beginnings([piece.partition for piece in pieces])
            gone = [piece for piece in pieces if piece.start < beginnings[piece.partition]]
            if gone:
                raise SourceRecreated(
                    f"{one.lost}, and retention removed records of its batch: topic "
                    f"'{gone[0].partition.topic}', partition {gone[0].partition.number} begins at offset "
                    f"{beginnings[gone[0].partition]}, and the batch at {gone[0].start}. Restore the topic."
                )
            _log.warning("%s; it is written again", one.lost, extra={"connector": self._job.name})
            task = TargetTask(target.name, one.plan, one.batch.start)
            plan = SinkPlan(self._sink.writer, [task], whole_partitions=self._sink.whole_partitions)
            staged = self._runner.run(one.batch, plan).staged[target.name]
            try:
                self._topics.refuse_recreated_since(sorted({piece.partition.topic for piece in pieces}))
            except SourceUnavailable:
                target.discard(staged)
                raise
            target.finish(staged)
        return bool(left)

    def _find_routed(self, routed: RoutedTargets) -> ResumePoint:
        routed.forget()
        self.missing = ()
        asked_first = [(target, target.found()) for target in self.targets]
        # One that is missing is created when the first record names it.
        self.targets = [target for target, item in asked_first if not item.is_missing]
        found: Sequence[FoundCheckpoint] = [item for _, item in asked_first if not item.is_missing]
        for target in self.targets:
            target.plan({})
        partitions = self._topics.refresh()
        all_partitions = [*partitions, *self._topics.leaderless]
        group = self._kafka.group_offsets(self._job.group, all_partitions)
        if inheritance.takes_over(group) and inheritance.settle(self._job, self._kafka, self._sink):
            found = [target.found() for target in self.targets]
            group = self._kafka.group_offsets(self._job.group, all_partitions)
        self._publisher.refuse_taken_over(group, all_partitions)
        asked = found if any(p in group for p in partitions) else routed.all_found(self.targets, found)
        self._topics.note_targets(asked)
        partitions = self._topics.refresh()
        if waits := waits_for_leader(asked, self._topics.leaderless):
            raise SourceUnavailable(f"{named(waits)} has no leader, and a table was rolled back over it")
        beginnings = self._kafka.beginnings(partitions)
        is_new = not group and all(item.checkpoint is None for item in asked)
        fresh = self._topics.fresh_offsets(beginnings, is_new=is_new)
        known = routed_resume_point(self._job.name, asked, group, fresh)
        self._publisher.knows(commits_in(known.checkpoints, group))
        self._topics.refuse_others(known.checkpoints)
        resume = replace(known, found=known.found[: len(found)], starts=known.starts[: len(found)])
        given_by = dict.fromkeys(group, f"consumer group '{self._job.group}'")
        ends = self._kafka.ends(partitions)
        assert resume.published is not None
        for start in (resume.published, *resume.starts):
            planning.refuse_gaps(self._job.name, start, beginnings, ends, given_by)
        if any(p not in group for p in partitions) and resume.published != beginnings:
            # From now on the group tells it, and not what the tables remember of it.
            self._note_position(resume.published)
        return resume

    def _note_position(self, position: Offsets) -> None:
        note = str(uuid.uuid4())
        self._publisher.knows([note])
        self._publisher.publish(note, [], [], position)

    def discover(self, resume: ResumePoint, names: Collection[str], now: float) -> ResumePoint:
        """The resume point of a job that routes, with targets that records name: what each has is asked
        before its first rows are staged. Targets that do not exist are noted as absent."""
        assert self.routed is not None and resume.published is not None
        opened = self.routed.opened(names, len(self.targets), now)
        self.missing = [target for target, item in opened if item.is_missing]
        opened = [(target, item) for target, item in opened if not item.is_missing]
        found = [item for _, item in opened]
        if waits := waits_for_leader(found, self._topics.leaderless):
            raise SourceUnavailable(f"{named(waits)} has no leader, and a table was rolled back over it")
        checkpoints = [item.checkpoint for item in found if item.checkpoint]
        self._topics.refuse_others(checkpoints)
        self._publisher.knows(checkpoint.commit for checkpoint in checkpoints)
        self.targets = [*self.targets, *(target for target, _ in opened)]
        starts = [floor_of(self._job.name, item, resume.published) for item in found]
        self._refuse_gaps(resume.published, starts)
        return replace(resume, found=[*resume.found, *found], starts=[*resume.starts, *starts])

    def _refuse_gaps(self, published: Offsets, starts: Sequence[Offsets]) -> None:
        """Tables that were rolled back may need records that the topic no longer has."""
        others = [start for start in starts if start != published]
        if others:
            beginnings, ends = (ask(list(published)) for ask in (self._kafka.beginnings, self._kafka.ends))
            for start in others:
                planning.refuse_gaps(self._job.name, start, beginnings, ends)

    def settled(self, before: ResumePoint, after: ResumePoint) -> ResumePoint:
        """The resume point after a batch of a job that routes, without the targets that records have not
        named for longest, if there are many."""
        if self.routed is None or after.published is None:
            return after
        starts = [
            floor_of(self._job.name, now, after.published) if behind_until(then) else start
            for then, now, start in zip(before.found, after.found, after.starts, strict=True)
        ]
        resume = replace(after, starts=starts)
        if not self.routed.too_many(len(self.targets)):
            return resume
        keep = [
            at
            for at, item in enumerate(resume.found)
            if self.routed.is_kept(item.target) or (item.checkpoint and item.checkpoint.is_behind)
        ]
        self.targets = [self.targets[at] for at in keep]
        return replace(
            resume, found=[resume.found[at] for at in keep], starts=[resume.starts[at] for at in keep]
        )

    def was_fenced_alone(self) -> bool:
        """Whether Kafka fenced this manager because of an outage, and nobody else has committed since."""
        if not self._publisher.may_be_alone():
            return False
        answers = [target.found() for target in self.targets]
        checkpoints = [found.checkpoint for found in answers if found.checkpoint]
        group = self._kafka.group_offsets(self._job.group, self._topics.refresh())
        return self._publisher.is_alone(commits_in(checkpoints, group))

    def refuse_fenced(self) -> None:
        """For a target that somebody else has committed to: Fenced, if that was a newer manager."""
        group = self._kafka.group_offsets(self._job.group, self._topics.refresh())
        self._publisher.refuse_fenced(group)

    def has_changed(self, resume: ResumePoint, ends: Offsets) -> bool:
        """Whether there are new partitions, or somebody else wrote the job's targets, such as a rollback, or
        moved the group that they follow."""
        partitions = self._topics.refresh()
        self._topics.refuse_others(resume.checkpoints)
        beginnings = self._kafka.beginnings(list(ends))
        if any(planning.has_gaps(start, beginnings, ends) for start in resume.starts):
            return True
        asked = range(len(self.targets)) if self.routed is None else self.routed.next_to_check(self.targets)
        found = [self.targets[at].found() for at in asked]
        before, after = (
            [item.checkpoint and item.checkpoint.commit for item in items]
            for items in ([resume.found[at] for at in asked], found)
        )
        if before != after or any(partition not in resume.start for partition in partitions):
            return True
        if not any(item.follows_group for item in found):
            return False
        return bool(moved_by_others(found, self._kafka.group_offsets(self._job.group, partitions)))

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
        for target, item in zip(self.targets, found, strict=True):
            moves = {p: to for p, to in moved.items() if item.offsets.get(p) != to}
            if item.follows_group and item.checkpoint is not None and moves:
                start = Offsets({**moved, **item.offsets.positions})
                commit = str(uuid.uuid4())
                checkpoint = checkpoint_moved(item.checkpoint, commit, moves, self._topics.ids, start)
                plan, lost = target.plan({}), item.lost_commit
                target.commit(Commit(checkpoint, item.checkpoint, plan, expect_lost=lost))
        note = str(uuid.uuid4())
        self._publisher.knows([note])
        self._publisher.publish(note, [], [], Offsets(moved))

    def _publish_missing_of_unmoved(
        self,
        found: Sequence[FoundCheckpoint],
        group: Mapping[Partition, GroupOffset],
        unmoved: Sequence[Partition],
    ) -> None:
        """After the commit that moves other partitions nobody could tell what Kafka has missed of these."""
        checkpoints = [item.checkpoint for item in found if item.checkpoint]
        batch = unpublished_batch(checkpoints, group, unmoved) if has_all(found) else None
        if batch is None:
            return
        try:
            self._topics.refuse_others(checkpoints)
        except SourceRecreated as error:
            _log.warning("dead letters are lost: %s", error, extra={"connector": self._job.name})
            return
        self._publish_missing(batch, found, self._kafka.beginnings(unmoved))

    def _publish_missing(self, batch: Batch, found: Sequence[FoundCheckpoint], beginnings: Offsets) -> None:
        targets = [one for one, item in zip(self.targets, found, strict=True) if item.checkpoint]
        is_whole = not any(piece.start < beginnings[piece.partition] for piece in batch.slices())
        if is_whole or self._job.dead_letters:
            planning.refuse_lost_dead_letters(self._job.name, batch, beginnings)
            publisher = self._publisher.opened_for(batch.id)
            publish_missing(batch, targets, self._sink, self._runner, publisher, self._job.name)
        else:
            # Its records cannot be read again, and nobody wants its dead letters.
            self._publisher.publish(batch.id, [], self._sink.events(batch.id, None, None), batch.end)

    def _refuse_unpublished_without_leader(
        self, checkpoints: Sequence[Checkpoint], group: Mapping[Partition, GroupOffset]
    ) -> None:
        """After a later batch nobody could tell what Kafka has missed of the last one."""
        leaderless = self._topics.leaderless
        batch = unpublished_batch(checkpoints, group, leaderless) if leaderless else None
        if batch is not None:
            raise SourceUnavailable(
                f"the last batch has dead letters to publish of {named(batch.end)}, which has no leader"
            )

    def _refuse_start_without_leader(
        self, found: Sequence[FoundCheckpoint], group: Mapping[Partition, GroupOffset]
    ) -> None:
        """The first commit to a target says where it began; nobody else is asked for that again."""
        if waits := places_told_by_others(found, group, self._topics.leaderless):
            raise SourceUnavailable(
                f"{named(waits)} has no leader, and a table without a commit of this job begins there where "
                "others are: its first batch needs every partition"
            )
