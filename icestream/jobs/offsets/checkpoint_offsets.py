"""The offsets of a sink by its checkpoints, which the consumer group follows. Used by `sink_offsets`.

A change is a commit without rows to each target. It may be repeated: it ends in the same state. Each step
asks Kafka first whether a newer change or a manager has begun, and each commit lands only on the checkpoint
that was settled: whatever came in between is seen.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from icestream.api.checkpoint import (
    Checkpoint,
    FoundCheckpoint,
    TopicIds,
    behind_until,
    checkpoint_moved,
)
from icestream.api.config import Config
from icestream.api.errors import BadOffsets, CommitConflict, FatalError, NotReadyError, SourceRecreated
from icestream.api.offset_admin import PartitionPosition
from icestream.api.offsets import NOTHING, Offsets, Partition
from icestream.api.sink import Commit, Sink, Target
from icestream.jobs.offsets.entries import Moves
from icestream.jobs.offsets.group_offsets import (
    ALTERED,
    RESET,
    ConnectorKafka,
    GroupOffsetStore,
    partitions_of,
    taken_over,
)
from icestream.jobs.publishing.publisher import KafkaPublisher, create_missing_topics, publish_missing
from icestream.jobs.sinks.batches import planning
from icestream.jobs.sinks.job import SinkJob
from icestream.jobs.sinks.resuming.resume import (
    has_all,
    moved_by_others,
    refuse_other_cluster,
    refuse_other_source,
    resume_point,
    strange_topic,
    unpublished_batch,
)
from icestream.jobs.sinks.routing.resume import routed_resume_point
from icestream.kafka.topics import GroupOffset
from icestream.pipeline.in_worker import InWorkerRunner
from icestream.pipeline.record_path import RecordSettings

_log = logging.getLogger(__name__)

_COMMIT_ATTEMPTS = 5
_MOST_UNPUBLISHED = 500_000
"""More records than this are not decoded while somebody waits for an answer."""
_READER = {"client.id": "icestream-offsets"}


@dataclass(frozen=True)
class _Now:
    """What tables, group and topics say before a change."""

    found: Sequence[FoundCheckpoint]
    group: Mapping[Partition, GroupOffset]
    source: TopicIds
    partitions: Sequence[Partition]
    beginnings: Offsets
    ends: Offsets
    settles: Sequence[FoundCheckpoint]
    """As `found`, but of tables that this change has moved already as they were before."""

    @property
    def checkpoints(self) -> list[Checkpoint]:
        return [item.checkpoint for item in self.found if item.checkpoint]


class CheckpointOffsetStore:
    """Of a sink whose targets have a checkpoint, which the consumer group follows."""

    def __init__(
        self,
        kafka: ConnectorKafka,
        job: SinkJob,
        config: Config,
        sink: Sink,
        targets: Sequence[Target],
        reached: Callable[[str], None] = lambda point: None,
        still_awaited: Callable[[], None] = lambda: None,
    ) -> None:
        self._kafka = kafka
        self._job = job
        self._config = config
        self._sink = sink
        self._targets = targets
        self._reached = reached
        """Told of each point between two steps; the crash tests end the process there."""
        self._still_awaited = still_awaited
        """Overdue, once whoever asked for a change has been told that it failed."""
        self._commit = str(uuid.uuid4())
        self._before: dict[str, FoundCheckpoint] = {}

    def read(self) -> Offsets:
        """The lowest offset over the tables; a partition that was reset in any of them has none. Of a job
        that routes, where the group is: a table without rows stays behind."""
        if self._sink.routing is not None:
            return self._of_group.read()
        starts = [_told(found) for found in (target.found() for target in self._targets)]
        known = [start for start in starts if start is not None]
        if not known:
            return self._of_group.read()
        shared = set(known[0]).intersection(*known[1:])
        return Offsets({partition: min(start[partition] for start in known) for partition in shared})

    def positions(self, moves: Moves) -> list[PartitionPosition]:
        """Where targets and group are in each partition; `moves` are refused as `alter` would."""
        if self._has_no_target():
            return self._of_group.positions(moves)
        now = self._now([partition.topic for partition in moves])
        if moves:
            self._refuse_impossible(moves, now)
        starts = self._resumes(now)
        told = [start for start in map(_told, now.found) if start is not None]
        found = []
        for p in now.partitions:
            places = [start[p] for start in told if p in start]
            spans = {
                (span.first, span.next): None
                for one in now.checkpoints
                for span in one.spans().get(p, ())
                if not span.is_gone and span.next > span.first
            }
            at = now.group[p].next if p in now.group else None
            begins, ends = now.beginnings[p], now.ends[p]
            lowest = min(places) if places else None
            found.append(
                PartitionPosition(p.topic, p.number, begins, ends, starts[p], lowest, at, tuple(spans))
            )
        return found

    def _resumes(self, now: _Now) -> Mapping[Partition, int]:
        """Where the job goes on, or would if nothing kept it from that."""
        try:
            starts = self._starts(now)
        except BadOffsets:
            starts = []
        return {
            p: min((one[p] for one in starts if p in one), default=now.beginnings[p]) for p in now.partitions
        }

    def alter(self, moves: Moves) -> str:
        if self._has_no_target():
            return self._of_group.alter(moves)
        topics = [partition.topic for partition in moves]
        self._refuse_impossible(moves, self._now(topics))
        self._change(lambda now, publisher: self._alter(moves, now, publisher), topics)
        return ALTERED

    def reset(self) -> str:
        if self._has_no_target():
            return self._of_group.reset()
        self._change(self._reset)
        return RESET

    def close(self) -> None:
        self._sink.close()

    # -- how --

    def _has_no_target(self) -> bool:
        """Whether all targets are yet to be created: then the group alone says where the job begins."""
        return all(target.found().is_missing for target in self._targets)

    @property
    def _of_group(self) -> GroupOffsetStore:
        return GroupOffsetStore(self._kafka, self._job, self._still_awaited)

    def _change(
        self, act: Callable[[_Now, KafkaPublisher], Offsets | None], also: Sequence[str] = ()
    ) -> None:
        """Shut out any manager that may still live, change the tables, then let the group follow."""
        self._reached("opening")
        self._still_awaited()
        publisher = KafkaPublisher(self._job, self._kafka.writes)
        try:
            with taken_over(self._job.name):
                group = self._acted(act, also, publisher)
                if group is not None:
                    publisher.publish(self._commit, [], [], group)
                    self._reached("published")
        finally:
            publisher.close()

    def _acted(
        self,
        act: Callable[[_Now, KafkaPublisher], Offsets | None],
        also: Sequence[str],
        publisher: KafkaPublisher,
    ) -> Offsets | None:
        """What is settled is what moves: if a table gets another checkpoint, all is looked at again."""
        for _ in range(_COMMIT_ATTEMPTS):
            now = self._now(also)
            self._settle(now, publisher)
            self._reached("settled")
            try:
                return act(now, publisher)
            except CommitConflict as conflict:
                _log.info("trying again: %s", conflict, extra={"connector": self._job.name})
        raise NotReadyError(
            f"the tables of connector '{self._job.name}' keep changing; ask again when fewer others write to "
            "them"
        )

    def _alter(self, moves: Moves, now: _Now, publisher: KafkaPublisher) -> Offsets:
        for target, found, start in zip(self._targets, now.found, self._starts(now), strict=True):
            self._move(target, found, moves, now, start, publisher)
        return Offsets({p: now.beginnings[p] if target is None else target for p, target in moves.items()})

    def _reset(self, now: _Now, publisher: KafkaPublisher) -> Offsets | None:
        if not now.group and not any(item.checkpoint or item.rolled_back_from for item in now.found):
            return None
        for target, found in zip(self._targets, now.found, strict=True):
            self._move(target, found, _all_to_the_beginning(found), now, NOTHING, publisher)
        return Offsets({p: now.beginnings[p] for p in now.partitions})

    def _now(self, also: Sequence[str] = ()) -> _Now:
        found = [target.found() for target in self._targets]
        known = {topic for item in found if item.checkpoint for topic in item.checkpoint.topics}
        facts = self._kafka.facts([*also, *known])
        partitions = partitions_of(facts)
        return _Now(
            found,
            self._kafka.topics.group_offsets(self._job.group, partitions),
            TopicIds(self._kafka.topics.cluster_id(), {name: fact.id for name, fact in facts.items()}),
            partitions,
            self._kafka.topics.beginnings(partitions),
            self._kafka.topics.ends(partitions),
            [self._before.get(target.name, item) for target, item in zip(self._targets, found, strict=True)],
        )

    def _refuse_impossible(self, moves: Moves, now: _Now) -> None:
        self._kafka.refuse_absent(moves, self._kafka.facts([topic for topic, _ in moves]))
        self._starts(now)
        try:
            refuse_other_cluster(now.checkpoints, now.source)
        except SourceRecreated as error:
            raise BadOffsets(str(error)) from error
        self._refuse_half_a_topic(moves, now)
        for partition, target in moves.items():
            low, high = now.beginnings[partition], now.ends[partition]
            if target is not None and not low <= target <= high:
                raise BadOffsets(
                    f"offset {target} of topic '{partition.topic}', partition {partition.number} is not in "
                    f"the topic, which has {low}..{high}; choose one of these"
                )

    def _refuse_half_a_topic(self, moves: Moves, now: _Now) -> None:
        """Of a topic that was created anew all partitions are moved at once: it has one id."""
        for topic in sorted({partition.topic for partition in moves}):
            left = [p.number for p in now.partitions if p.topic == topic and p not in moves]
            if left and (why := strange_topic(now.checkpoints, now.source, topic)) is not None:
                raise BadOffsets(
                    f"{why} Name all its partitions at once ({left[0]} is missing), "
                    "or reset the connector's offsets"
                )

    def _starts(self, now: _Now) -> Sequence[Offsets]:
        """Where each table would go on: a table that gets its first checkpoint must not forget that."""
        begins_late = self._job.begins_at == "latest" and not now.checkpoints
        fresh = now.ends if begins_late else now.beginnings
        try:
            if self._sink.routing is not None:
                return routed_resume_point(self._job.name, now.found, now.group, fresh).starts
            return resume_point(self._job.group, now.found, now.group, fresh).starts
        except FatalError as error:
            raise BadOffsets(str(error)) from error

    def _move(
        self,
        target: Target,
        found: FoundCheckpoint,
        moves: Moves,
        now: _Now,
        start: Offsets,
        publisher: KafkaPublisher,
    ) -> None:
        """One commit without rows, on top of the checkpoint that was found.

        Also where it changes no offset: only another checkpoint refuses an older change that is under way.
        """
        if found.is_missing or (found.checkpoint and found.checkpoint.commit == self._commit):
            return
        if now.partitions:
            publisher.prove(now.partitions[0])
        self._still_awaited()
        self._reached(f"moving {target.name}")
        checkpoint = checkpoint_moved(found.checkpoint, self._commit, moves, now.source, start)
        if self._sink.routing is not None or checkpoint.is_routed:
            checkpoint = routed_moved(checkpoint, found, moves)
        plan, lost = target.plan({}), found.lost_commit
        target.commit(Commit(checkpoint, found.checkpoint, plan, expect_lost=lost))
        self._before[target.name] = found
        self._reached(f"moved {target.name}")

    def _settle(self, now: _Now, publisher: KafkaPublisher) -> None:
        """Publish the dead letters of a last batch whose transaction is missing: later nobody could tell."""
        checkpoints = [item.checkpoint for item in now.settles if item.checkpoint]
        if self._job.dead_letters is None:
            return
        if self._sink.routing is not None:
            self._warn_unpublished(checkpoints, now)
            return
        if not has_all(now.settles):
            return
        moved = moved_by_others(now.settles, now.group)
        batch = unpublished_batch(checkpoints, now.group, [p for p in now.partitions if p not in moved])
        if batch is None:
            return
        try:
            refuse_other_source(self._job.name, checkpoints, now.source, {p.topic for p in batch.end})
        except SourceRecreated as error:
            _log.warning("dead letters are lost: %s", error, extra={"connector": self._job.name})
            return
        unpublished, batch = batch.span, planning.readable(batch, now.beginnings, now.ends)
        if batch.span < unpublished:
            _log.warning(
                "dead letters of %s records of batch %s are lost: the topic no longer has them",
                unpublished - batch.span,
                batch.id,
                extra={"connector": self._job.name},
            )
        if not batch.span:
            return
        if batch.span > _MOST_UNPUBLISHED:
            raise NotReadyError(
                f"the last batch of connector '{self._job.name}' still owes Kafka the dead letters of "
                f"{batch.span} records; resume the connector, stop it when it has caught up, and ask again"
            )
        create_missing_topics(self._job, self._sink.event_topics(), self._kafka.topics)
        runner = InWorkerRunner({**self._kafka.reads, **_READER}, RecordSettings.of(self._config))
        theirs = [one for one, item in zip(self._targets, now.found, strict=True) if item.checkpoint]
        try:
            publish_missing(batch, theirs, self._sink, runner, publisher, self._job.name)
        finally:
            runner.close()

    def _warn_unpublished(self, checkpoints: Sequence[Checkpoint], now: _Now) -> None:
        """A job that routes publishes dead letters of a batch that died when it runs it again; whoever moves
        its offsets first may never run it."""
        ahead = any(
            at.next > now.group[p].next
            for one in checkpoints
            for p, at in one.partitions.items()
            if p in now.group
        )
        if ahead:
            _log.warning(
                "the last batch is in some tables and was not published: its dead letters follow the new "
                "offsets. To have them all, resume the connector and stop it before you move offsets",
                extra={"connector": self._job.name},
            )


def routed_moved(checkpoint: Checkpoint, found: FoundCheckpoint, moves: Moves) -> Checkpoint:
    """The checkpoint of a table of a job that routes, after some partitions were moved: what it lacks of the
    others after a rollback is not forgotten."""
    behind = {p: until for p, until in behind_until(found).items() if p in checkpoint.partitions}
    return replace(
        checkpoint,
        is_routed=True,
        joining=frozenset(),
        behind={p: until for p, until in behind.items() if p not in moves},
    )


def _told(found: FoundCheckpoint) -> Offsets | None:
    """Where a table goes on by its own word; None if it has never heard of the job."""
    if found.rolled_back_from:
        return Offsets({p: at.first for p, at in found.rolled_back_from.partitions.items()})
    return found.checkpoint.offsets if found.checkpoint else None


def _all_to_the_beginning(found: FoundCheckpoint) -> Moves:
    return dict.fromkeys(found.offsets)
