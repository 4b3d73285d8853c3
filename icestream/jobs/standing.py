"""Where a job stands, from what its tables and its consumer group say. Pure. Called by the job manager.

The tables decide. The group follows, and may lag behind by the last batch: then that batch's dead letters and
events are still owed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from icestream.api.batch import Batch
from icestream.api.errors import LostOffsets, SourceRecreated
from icestream.api.offsets import Offsets, Partition
from icestream.kafka.topics import GroupOffset
from icestream.sinks.iceberg.marks import Found, JobMark, Source

NOTE_PREFIX = "icestream:"


@dataclass(frozen=True)
class Standing:
    """`floors[i]` is where table i goes on."""

    found: Sequence[Found]
    floors: Sequence[Offsets]

    @property
    def floor(self) -> Offsets:
        """Where the next batch starts: the earliest that any table needs."""
        partitions = {partition for floor in self.floors for partition in floor}
        return Offsets(
            {partition: min(floor[partition] for floor in self.floors) for partition in partitions}
        )

    def after(self, batch: Batch, marks: Sequence[JobMark | None]) -> Standing:
        """Where the job stands once every table has the batch."""
        found = [Found(mark) for mark in marks]
        floors = [
            Offsets({p: max(floor[p], batch.end[p]) if p in batch.end else floor[p] for p in floor})
            for floor in self.floors
        ]
        return Standing(found, floors)

    @property
    def marks(self) -> list[JobMark]:
        return [found.mark for found in self.found if found.mark]


def standing(
    job: str, found: Sequence[Found], group: Mapping[Partition, GroupOffset], fresh: Offsets
) -> Standing:
    """`fresh` is where a job begins that nobody knows anything of."""
    known = [item.mark for item in found if item.mark]
    rolled_back = [item.rolled_back_from for item in found if item.rolled_back_from]
    if not known and not rolled_back and any(_is_ours(offset) for offset in group.values()):
        raise LostOffsets(
            f"group '{job}' has committed offsets of this job, but no table says how far it is: was the "
            "table dropped and created again? To read everything again, reset the connector's offsets; "
            "to go on, restore the table."
        )
    begin = _begin(known, group, fresh)
    floors = [_floor(item, begin, fresh) for item in found]
    return Standing(found, floors)


def _is_ours(offset: GroupOffset) -> bool:
    return offset.note.startswith(NOTE_PREFIX)


def _begin(known: Sequence[JobMark], group: Mapping[Partition, GroupOffset], fresh: Offsets) -> Offsets:
    """Where a table without a mark begins."""
    if known and all(mark.previous is None for mark in known):
        # The first batch of the job did not reach all tables.
        return _lowest([mark.start for mark in known], fresh)
    if known:
        return _lowest([mark.offsets for mark in known], fresh)
    return Offsets(
        {partition: group[partition].next if partition in group else fresh[partition] for partition in fresh}
    )


def _lowest(candidates: Sequence[Offsets], fresh: Offsets) -> Offsets:
    return Offsets(
        {
            partition: min(
                (one[partition] for one in candidates if partition in one), default=fresh[partition]
            )
            for partition in fresh
        }
    )


def _floor(found: Found, begin: Offsets, fresh: Offsets) -> Offsets:
    if found.mark:
        stands = found.mark.offsets
        return Offsets({p: stands[p] if p in stands else fresh[p] for p in fresh})
    if found.rolled_back_from:
        first = {partition: at.first for partition, at in found.rolled_back_from.standings.items()}
        return Offsets({partition: first.get(partition, fresh[partition]) for partition in fresh})
    return begin


def owed(
    marks: Sequence[JobMark], group: Mapping[Partition, GroupOffset], current: Iterable[Partition]
) -> Batch | None:
    """The batch that is in all tables and whose Kafka transaction is missing, if any."""
    if not marks:
        return None
    # Partitions of a topic that the connector no longer reads owe nothing.
    partitions = set(current).intersection(*(set(mark.standings) for mark in marks))
    reached = {partition: min(mark.standings[partition].next for mark in marks) for partition in partitions}
    began = {partition: min(mark.standings[partition].start for mark in marks) for partition in partitions}
    if not group:
        if any(mark.previous is not None for mark in marks):
            return None
        start = began
    else:
        start = {
            partition: group[partition].next if partition in group else began[partition]
            for partition in reached
        }
    if any(start[partition] < began[partition] for partition in reached):
        # Somebody moved the group's offsets by hand. The tables decide; nothing is repeated.
        return None
    start = {partition: min(start[partition], reached[partition]) for partition in reached}
    batch = Batch(marks[0].commit, Offsets(start), Offsets(reached))
    return batch if batch.span else None


def refuse_other_source(marks: Sequence[JobMark], source: Source) -> None:
    """Stop when the cluster or a topic is not the one whose offsets the tables hold."""
    for mark in marks:
        if mark.source.cluster != source.cluster:
            raise SourceRecreated(
                f"the table has offsets of Kafka cluster {mark.source.cluster}, and this is cluster "
                f"{source.cluster}. To read from this cluster, reset the connector's offsets; "
                "to go on, point bootstrap.servers at the old one."
            )
        for topic, topic_id in mark.source.topics.items():
            if source.topics.get(topic, topic_id) != topic_id:
                raise SourceRecreated(
                    f"topic '{topic}' was deleted and created again (its id was {topic_id} and is "
                    f"{source.topics[topic]}): its offsets mean other records. To read the new topic, reset "
                    "the connector's offsets; to go on, restore the old topic."
                )
