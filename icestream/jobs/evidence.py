"""Gathers what `verify` judges: from the topic, the table and the dead letter queue. Reads only."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
from pyiceberg.table import Table
from pyroaring import BitMap64

from icestream.api.batch import Slice
from icestream.api.config import Config, subset
from icestream.api.errors import NotFoundError
from icestream.api.offsets import Offsets, Partition
from icestream.jobs.accounts import Deep, Evidence, Letters, layered
from icestream.jobs.job import Job, job_from
from icestream.jobs.letters import LetterBox
from icestream.kafka.clients import client_settings
from icestream.kafka.reader import SliceReader
from icestream.kafka.topics import Topics
from icestream.sinks.iceberg import marks
from icestream.sinks.iceberg.catalogs import open_catalog, sink_errors
from icestream.sinks.iceberg.marks import JobMark
from icestream.sinks.iceberg.origins import Origins

_CHUNK = 10_000


def gather(name: str, config: Config, worker: Mapping[str, str], *, deep: bool) -> list[tuple[str, Evidence]]:
    """Evidence for each table of a connector."""
    job = job_from(name, config)
    topics = Topics(client_settings(worker, "admin", subset(config, "admin.override.")))
    catalog = open_catalog(config)
    reader = SliceReader(client_settings(worker, "consumer", subset(config, "consumer.override.")))
    try:
        letters = _letters(job, topics, reader)
        found = []
        for table_name in job.tables:
            table = _loaded(catalog, table_name)
            found.append((table_name, _of_table(job, table, topics, reader, letters, deep)))
        return found
    finally:
        reader.close()


def _loaded(catalog: Catalog, name: str) -> Table:
    with sink_errors(f"loading table {name}"):
        try:
            return catalog.load_table(name)
        except (NoSuchTableError, NoSuchNamespaceError):
            raise NotFoundError(
                f"table '{name}' is not in catalog '{catalog.name}'; check iceberg.tables"
            ) from None


def _of_table(
    job: Job, table: Table, topics: Topics, reader: SliceReader, letters: Letters | None, deep: bool
) -> Evidence:
    mark = marks.find(table.metadata, job.name, "main").mark
    if mark is None:
        raise NotFoundError(f"table '{'.'.join(table.name())}' has no commit of connector '{job.name}' yet")
    known = mark.spans()
    existing = topics.describe(sorted({partition.topic for partition in known}))
    ids = mark.source.topics
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
        mark=mark,
        ends=topics.ends(partitions),
        in_topic=_recount(mark, beginnings, reader),
        table_rows=int(summary.get("total-records", 0)) - int(summary.get("total-position-deletes", 0)),
        other_writers=_has_other_writers(table, job.name),
        letters=letters,
        deep=_deep(table) if deep else None,
        beginnings=beginnings,
        anew=anew,
    )


def _recount(mark: JobMark, beginnings: Offsets, reader: SliceReader) -> dict[Slice, int]:
    """Count records where fewer were read than there are offsets: some offsets hold no record."""
    counted: dict[Slice, int] = {}
    for partition, spans in mark.spans().items():
        for span in spans:
            piece = Slice(partition, span.first, span.next)
            begins = beginnings.get(partition)
            still_there = begins is not None and begins <= span.first and not span.is_gone
            if span.counts.read < piece.span and still_there and piece not in counted:
                counted[piece] = sum(len(chunk) for chunk in reader.read(piece, _CHUNK))
    return counted


def _has_other_writers(table: Table, job: str) -> bool:
    """Whether any other job or engine has changed the rows of this table, as far as its history tells."""
    key = marks.key_of(job)
    return any(
        snapshot.summary is not None
        and key not in snapshot.summary.additional_properties
        and snapshot.summary.operation.value != "replace"
        for snapshot in table.metadata.snapshots
    )


def _letters(job: Job, topics: Topics, reader: SliceReader) -> Letters | None:
    if job.dead_letters is None:
        return None
    box = LetterBox(job.dead_letters.topic, job.name, topics, reader)
    if not box.exists:
        return Letters(0, None)
    count = 0
    offsets: dict[Partition, BitMap64] = {}
    for letter in box.letters():
        count += 1
        if letter.origin is not None and letter.origin_offset is not None:
            offsets.setdefault(letter.origin, BitMap64()).add(letter.origin_offset)
    return Letters(count, offsets if job.dead_letters.with_context else None)


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
