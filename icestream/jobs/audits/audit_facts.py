"""Gathers what `verify` checks: from the topic, the table and the dead letter queue. Reads only.

The job may run meanwhile: the tables are read first, then the group, then the dead letters, then the tables
again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from pyroaring import BitMap64

from icestream.api.batch import Counts, Slice
from icestream.api.checkpoint import Checkpoint, PartitionCheckpoint
from icestream.api.config import Config, subset
from icestream.api.errors import ConfigError, IcestreamError, NotFoundError
from icestream.api.offsets import Offsets, Partition
from icestream.api.sink import Sink, Target, TargetAudit
from icestream.jobs.audits.audit import AuditFacts, Counted, DeadLetterFacts, WholeFacts
from icestream.jobs.publishing.dead_letters import DeadLetterReader
from icestream.jobs.sinks.job import DeadLetterSettings, SinkJob, sink_job
from icestream.kafka.clients import client_settings
from icestream.kafka.reader import SliceReader
from icestream.kafka.topics import Topics
from icestream.plugins import sink_plugin

_log = logging.getLogger(__name__)

_CHUNK = 10_000
_LOOKS = 5
_BETWEEN_LOOKS = 1.0
"""Seconds: a batch that is under way may be over by then."""


def gather(
    name: str,
    config: Config,
    worker: Mapping[str, str],
    *,
    deep: bool,
    sleep: Callable[[float], None] = time.sleep,
) -> list[tuple[str, AuditFacts]]:
    """The facts of each target of a connector."""
    plugin = sink_plugin(config.get("connector.class", ""))
    job = sink_job(name, config, plugin.options(config))
    topics = Topics(client_settings(worker, "admin", subset(config, "admin.override.")))
    reader = SliceReader(client_settings(worker, "consumer", subset(config, "consumer.override.")))
    sink = plugin.open(name, config)
    try:
        # First, so that a login that Kafka refuses is told as such, whatever is wrong with the targets.
        topics.cluster_id()
        seen = _seen(job, sink, topics, reader)
        for _ in range(_LOOKS - 1):
            if all(one.is_settled for one in seen):
                break
            sleep(_BETWEEN_LOOKS)
            seen = _seen(job, sink, topics, reader)
        facts = [(one.name, _facts(one, topics, reader, deep)) for one in seen]
        # Where a table cannot tell which records its rows are of, all of them would seem to be nowhere.
        if sink.routing is not None and facts and all(one.deep is not None for _, one in facts):
            facts.append(("all its tables", _whole(job, [one for _, one in facts], topics, reader)))
        return facts
    finally:
        reader.close()
        sink.close()


@dataclass(frozen=True)
class _Seen:
    """A target at one moment, and the dead letters of what its checkpoint covers."""

    name: str
    audit: TargetAudit
    checkpoint: Checkpoint
    letters: DeadLetterFacts | None
    is_settled: bool


def _seen(job: SinkJob, sink: Sink, topics: Topics, reader: SliceReader) -> list[_Seen]:
    targets = sink.targets()
    if sink.routing is not None:
        # Those that have had no record yet have nothing to tell.
        targets = [one for one in sink.known_targets() if one.found().checkpoint is not None]
    audits = [_audit(target) for target in targets]
    found = [_checkpoint(job, one) for one in audits]
    names = [target.name for target in targets]
    if job.dead_letters is None:
        return [_Seen(*one, None, True) for one in zip(names, audits, found, strict=True)]
    published = _published(job, topics, found)
    box = _Box(job.dead_letters, job.name, topics, reader)
    again = [_checkpoint(job, _audit(target)) for target in targets]
    return [
        _Seen(name, audit, one, box.letters_of(one), is_published and one.commit == later.commit)
        for name, audit, one, is_published, later in zip(names, audits, found, published, again, strict=True)
    ]


def _audit(target: Target) -> TargetAudit:
    try:
        return target.audit()
    except ConfigError as error:
        raise NotFoundError(str(error)) from error


def _checkpoint(job: SinkJob, audit: TargetAudit) -> Checkpoint:
    if audit.found.checkpoint is None:
        raise NotFoundError(
            f"'{audit.found.target}' has no commit of connector '{job.name}' yet; see what it waits for with "
            f"'icestream connector status {job.name}'"
        )
    return audit.found.checkpoint


def _published(job: SinkJob, topics: Topics, found: Sequence[Checkpoint]) -> list[bool]:
    """Whether the group, which follows the tables, is as far as each of them."""
    partitions = {partition for checkpoint in found for partition in checkpoint.partitions}
    existing = topics.describe(sorted({partition.topic for partition in partitions}))
    asked = [p for p in partitions if p.topic in existing and p.number < existing[p.topic].partitions]
    group = topics.group_offsets(job.group, asked)
    return [
        all(
            (group[p].next if p in group else at.first) >= at.next
            for p, at in checkpoint.partitions.items()
            if p in asked
        )
        for checkpoint in found
    ]


def _facts(seen: _Seen, topics: Topics, reader: SliceReader, deep: bool) -> AuditFacts:
    checkpoint = seen.checkpoint
    known = checkpoint.spans()
    existing = topics.describe(sorted({partition.topic for partition in known}))
    ids = checkpoint.source.topics
    anew = sorted(name for name in existing if ids.get(name, existing[name].id) != existing[name].id)
    partitions = [
        p
        for p in known
        if p.topic in existing and p.topic not in anew and p.number < existing[p.topic].partitions
    ]
    beginnings = topics.beginnings(partitions)
    return AuditFacts(
        checkpoint=checkpoint,
        ends=topics.ends(partitions),
        in_topic={}
        if checkpoint.is_routed
        else _recount(checkpoint, beginnings, _compacted(topics, partitions), reader),
        table_rows=seen.audit.rows,
        other_writers=seen.audit.other_writers,
        deep=seen.audit.row_offsets() if deep and seen.audit.row_offsets else None,
        letters=seen.letters,
        beginnings=beginnings,
        anew=anew,
        is_settled=seen.is_settled,
    )


def _whole(job: SinkJob, tables: Sequence[AuditFacts], topics: Topics, reader: SliceReader) -> AuditFacts:
    """Of a job that routes: what the topic has from where its first table began up to where the group is."""
    first: dict[Partition, int] = {}
    for one in tables:
        for partition, spans in one.checkpoint.spans().items():
            low = min((span.first for span in spans if not span.is_gone), default=0)
            first[partition] = min(low, first.get(partition, low))
    asked = [p for p in first if any(p in one.ends for one in tables)]
    group, beginnings = topics.group_offsets(job.group, asked), topics.beginnings(asked)
    bounds = {p: (max(first[p], beginnings[p]), group[p].next) for p in asked if p in group}
    letters: dict[Partition, BitMap64] = {}
    if job.dead_letters is not None:
        read = {p: PartitionCheckpoint(low, low, high, Counts()) for p, (low, high) in bounds.items()}
        box = _Box(job.dead_letters, job.name, topics, reader)
        letters = dict(
            box.letters_of(replace(tables[0].checkpoint, partitions=read, earlier={})).offsets or {}
        )
    count = in_tables = in_letters = 0
    left: dict[Partition, BitMap64] = {}
    for partition, (low, high) in bounds.items():
        there = BitMap64()
        for chunk in reader.read(Slice(partition, low, high), _CHUNK) if high > low else ():
            there |= BitMap64(chunk.offsets().tolist())
        layers = (one.deep.layers.get(partition, ()) for one in tables if one.deep is not None)
        written = BitMap64().union(*(found[0] for found in layers if found))
        dead = letters.get(partition, BitMap64())
        count, in_tables, in_letters = (
            count + len(there),
            in_tables + len(there & written),
            in_letters + len(there & dead),
        )
        left[partition] = there - written - dead
    facts = tables[0]
    return AuditFacts(
        facts.checkpoint,
        facts.ends,
        {},
        None,
        False,
        None,
        whole=WholeFacts(count, in_tables, in_letters, left),
    )


def _recount(
    checkpoint: Checkpoint, beginnings: Offsets, compacted: Collection[str], reader: SliceReader
) -> dict[Slice, Counted]:
    """Count records where fewer were read than there are offsets: some offsets hold no record."""
    counted: dict[Slice, Counted] = {}
    for partition, spans in checkpoint.spans().items():
        for span in spans:
            piece = Slice(partition, span.first, span.next)
            if span.counts.read >= piece.span or span.is_gone or piece in counted:
                continue
            begins = beginnings.get(partition)
            if begins is None:
                counted[piece] = Counted(0, gone=piece.span)
                continue
            left = Slice(partition, min(max(begins, span.first), span.next), span.next)
            there = sum(len(chunk) for chunk in reader.read(left, _CHUNK)) if left.span else 0
            removed = piece.span - there if partition.topic in compacted else piece.span - left.span
            counted[piece] = Counted(there, removed)
    return counted


def _compacted(topics: Topics, partitions: Sequence[Partition]) -> set[str]:
    """Topics whose records may be taken away between others; those that nobody tells us about, too."""
    return {topic for topic in {partition.topic for partition in partitions} if _may_compact(topics, topic)}


def _may_compact(topics: Topics, topic: str) -> bool:
    try:
        return "compact" in topics.config(topic).get("cleanup.policy", "compact")
    except IcestreamError as error:
        _log.info("the settings of topic '%s' are not to be had: %s", topic, error)
        return True


class _Box:
    """The dead letters that may be of a job."""

    def __init__(
        self, target: DeadLetterSettings, connector: str, topics: Topics, reader: SliceReader
    ) -> None:
        box = DeadLetterReader(target.topic, connector, topics, reader)
        self._tells_offsets = target.with_context
        self._offsets: dict[Partition, list[int]] = {}
        self._placeless = self._unnamed = 0
        self._is_cut = box.exists and (box.has_lost_some or _may_compact(topics, target.topic))
        for letter in box.dead_letters() if box.exists else ():
            if "connector.name" not in letter.context:
                self._unnamed += 1
            elif letter.origin is not None and letter.origin_offset is not None:
                self._offsets.setdefault(letter.origin, []).append(letter.origin_offset)
            else:
                self._placeless += 1

    def letters_of(self, checkpoint: Checkpoint) -> DeadLetterFacts:
        """Those of records that the table of this checkpoint has read: other tables may have read more."""
        count = self._placeless
        offsets: dict[Partition, BitMap64] = {}
        for partition, spans in checkpoint.spans().items():
            read = BitMap64()
            for span in spans:
                if span.next > span.first:
                    read.add_range(span.first, span.next)
            inside = [offset for offset in self._offsets.get(partition, ()) if offset in read]
            count += len(inside)
            offsets[partition] = BitMap64(inside)
        known = offsets if self._tells_offsets else None
        return DeadLetterFacts(count + self._unnamed, known, self._unnamed, self._is_cut)
