"""Gathers what `verify` judges: from the topic, the table and the dead letter queue. Reads only.

The job may run meanwhile: the tables are read first, then the group, then the letters, then the tables again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
from pyiceberg.table import Table
from pyroaring import BitMap64

from icestream.api.batch import Slice
from icestream.api.checkpoint import Checkpoint
from icestream.api.config import Config, subset
from icestream.api.errors import IcestreamError, NotFoundError
from icestream.api.offsets import Offsets, Partition
from icestream.connectors.iceberg import checkpoints
from icestream.connectors.iceberg.catalogs import open_catalog, sink_errors
from icestream.connectors.iceberg.origins import Origins
from icestream.jobs.accounts import Counted, Deep, Evidence, Letters, layered
from icestream.jobs.dead_letters import DeadLetterReader
from icestream.jobs.job import DeadLetters, Job, job_from
from icestream.kafka.clients import client_settings
from icestream.kafka.reader import SliceReader
from icestream.kafka.topics import Topics

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
) -> list[tuple[str, Evidence]]:
    """Evidence for each table of a connector."""
    job = job_from(name, config)
    topics = Topics(client_settings(worker, "admin", subset(config, "admin.override.")))
    catalog = open_catalog(config)
    reader = SliceReader(client_settings(worker, "consumer", subset(config, "consumer.override.")))
    try:
        # First, so that a login that Kafka refuses is told as such, whatever is wrong with the tables.
        topics.cluster_id()
        seen = _seen(job, catalog, topics, reader)
        for _ in range(_LOOKS - 1):
            if all(table.is_settled for table in seen):
                break
            sleep(_BETWEEN_LOOKS)
            seen = _seen(job, catalog, topics, reader)
        return [(one.name, _of_table(job, one, topics, reader, deep)) for one in seen]
    finally:
        reader.close()


@dataclass(frozen=True)
class _Seen:
    """A table, what it says of the job, and the letters of what it says."""

    name: str
    table: Table
    checkpoint: Checkpoint
    letters: Letters | None
    is_settled: bool


def _seen(job: Job, catalog: Catalog, topics: Topics, reader: SliceReader) -> list[_Seen]:
    tables = [(name, _loaded(catalog, name)) for name in job.tables]
    found = [_checkpoint(job, table) for _, table in tables]
    if job.dead_letters is None:
        return [_Seen(*one, checkpoint, None, True) for one, checkpoint in zip(tables, found, strict=True)]
    published = _published(job, topics, found)
    box = _Box(job.dead_letters, job.name, topics, reader)
    again = [_checkpoint(job, _loaded(catalog, name)) for name in job.tables]
    return [
        _Seen(
            *one, checkpoint, box.letters_of(checkpoint), is_published and checkpoint.commit == later.commit
        )
        for one, checkpoint, is_published, later in zip(tables, found, published, again, strict=True)
    ]


def _checkpoint(job: Job, table: Table) -> Checkpoint:
    checkpoint = checkpoints.find(table.metadata, job.name, "main").checkpoint
    if checkpoint is None:
        raise NotFoundError(
            f"table '{'.'.join(table.name())}' has no commit of connector '{job.name}' yet; see what it "
            f"waits for with 'icestream connector status {job.name}'"
        )
    return checkpoint


def _published(job: Job, topics: Topics, found: Sequence[Checkpoint]) -> list[bool]:
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


def _loaded(catalog: Catalog, name: str) -> Table:
    with sink_errors(f"loading table {name}"):
        try:
            return catalog.load_table(name)
        except (NoSuchTableError, NoSuchNamespaceError):
            raise NotFoundError(
                f"table '{name}' is not in catalog '{catalog.name}'; check iceberg.tables"
            ) from None


def _of_table(job: Job, seen: _Seen, topics: Topics, reader: SliceReader, deep: bool) -> Evidence:
    table, checkpoint = seen.table, seen.checkpoint
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
    snapshot = table.current_snapshot()
    summary = snapshot.summary.additional_properties if snapshot and snapshot.summary else {}
    return Evidence(
        checkpoint=checkpoint,
        ends=topics.ends(partitions),
        in_topic=_recount(checkpoint, beginnings, _compacted(topics, partitions), reader),
        table_rows=int(summary.get("total-records", 0)) - int(summary.get("total-position-deletes", 0)),
        other_writers=_has_other_writers(table, job.name),
        letters=seen.letters,
        deep=_deep(table) if deep else None,
        beginnings=beginnings,
        anew=anew,
        is_settled=seen.is_settled,
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


def _has_other_writers(table: Table, job: str) -> bool:
    """Whether any other job or engine has changed the rows of this table, as far as its history tells."""
    key = checkpoints.key_of(job)
    return any(
        snapshot.summary is not None
        and key not in snapshot.summary.additional_properties
        and snapshot.summary.operation.value != "replace"
        for snapshot in table.metadata.snapshots
    )


class _Box:
    """The dead letters that may be of a job."""

    def __init__(self, target: DeadLetters, connector: str, topics: Topics, reader: SliceReader) -> None:
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

    def letters_of(self, checkpoint: Checkpoint) -> Letters:
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
        return Letters(count + self._unnamed, known, self._unnamed, self._is_cut)


def _deep(table: Table) -> Deep:
    """Read the footer of every live data file."""
    found: dict[Partition, list[BitMap64]] = {}
    foreign = 0
    for task in table.scan().plan_files():
        with table.io.new_input(task.file.file_path).open() as stream:
            origins = Origins.from_footer(pq.read_metadata(stream))
        if origins is None:
            foreign += task.file.record_count
            continue
        for partition, offsets in origins.offsets.items():
            found[partition] = layered([*found.get(partition, []), offsets])
    return Deep(found, foreign)
