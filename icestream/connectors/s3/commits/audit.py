"""What a bucket can prove for `verify`: how many records its objects say they have, and which. For
`target`."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from pyroaring import BitMap64

from icestream.api.checkpoint import Checkpoint, FoundCheckpoint
from icestream.api.offsets import Partition
from icestream.api.sink import RowOffsets, TargetAudit, layered
from icestream.connectors.s3.commits.counting import records_in
from icestream.connectors.s3.commits.metadata import CONNECTOR, connector_name, offsets_of, records_of
from icestream.connectors.s3.formats.raw_bytes import RawBytes
from icestream.connectors.s3.layout import Layout
from icestream.connectors.s3.stores.store import ObjectFacts, ObjectStore

_AT_ONCE: Final = 16
_MOST_OBJECTS: Final = 200_000
"""Each is asked for its metadata; of more than these only the ledger is compared."""


def audit_of(store: ObjectStore, layout: Layout, job: str, found: FoundCheckpoint) -> TargetAudit:
    checkpoint = found.checkpoint
    if checkpoint is None or _was_moved_back(checkpoint):
        # Objects of the same names were replaced, others stayed: how many records that makes nobody knows.
        return TargetAudit(found)
    topics = sorted({partition.topic for partition in checkpoint.partitions})
    keys = [one.key for topic in topics for one in store.list(layout.names.folder(topic, ""))]
    if len(keys) > _MOST_OBJECTS:
        return TargetAudit(found)
    with ThreadPoolExecutor(_AT_ONCE, "s3-audit") as pool:
        asked = pool.map(store.facts, keys)
        mine = [
            one for one in asked if one is not None and one.metadata.get(CONNECTOR) == connector_name(job)
        ]
    rows = sum(records_of(one.metadata) for one in mine)
    return TargetAudit(found, rows, row_offsets=lambda: _row_offsets(store, mine, layout))


def _was_moved_back(checkpoint: Checkpoint) -> bool:
    return any(
        partition in checkpoint.earlier
        and any(span.next > at.first for span in checkpoint.earlier[partition])
        for partition, at in checkpoint.partitions.items()
    ) or any(partition not in checkpoint.partitions for partition in checkpoint.earlier)


def _row_offsets(store: ObjectStore, objects: Sequence[ObjectFacts], layout: Layout) -> RowOffsets:
    """Reads every object: one that does not have as many records as it says has none that are known."""

    def counting(one: ObjectFacts) -> int | None:
        # Where bare bytes end only their writer knows, whatever the names of their objects end with.
        bare = isinstance(layout.values, RawBytes) and one.key.endswith(layout.values.extension)
        return None if bare else records_in(one.key, store.read(one.key))

    with ThreadPoolExecutor(_AT_ONCE, "s3-audit") as pool:
        counted = list(pool.map(counting, objects))
    parts: dict[Partition, list[BitMap64]] = {}
    foreign = 0
    for one, count in zip(objects, counted, strict=True):
        if not records_of(one.metadata):
            continue
        partition, offsets = offsets_of(one.metadata)
        if count is not None and count != records_of(one.metadata):
            continue
        if offsets is None:
            foreign += records_of(one.metadata)
            continue
        parts.setdefault(partition, []).append(offsets)
    return RowOffsets({partition: layered(sets) for partition, sets in parts.items()}, foreign)
