"""What every object says of itself, in its metadata: whose it is, and which records it has.

Set by `writer`; read by `publish` and `audit`. Values are headers of HTTP, so they are ASCII, and S3 keeps
2 KB of them.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, unquote

import numpy as np
from pyroaring import BitMap64

from icestream.api.offsets import Partition
from icestream.records.rows import Indexes

BATCH: Final = "icestream-batch"
"""An object is known by its key and by this."""
CONNECTOR: Final = "icestream-connector"
PARTITION: Final = "icestream-partition"
FIRST: Final = "icestream-first-offset"
LAST: Final = "icestream-last-offset"
RECORDS: Final = "icestream-records"
OFFSETS: Final = "icestream-offsets"
_MOST_CHARACTERS: Final = 1000


def connector_name(name: str) -> str:
    return quote(name, safe="")[:200]


def about(
    connector: str, batch: str, partition: Partition, offsets: Indexes, *, is_value: bool
) -> dict[str, str]:
    """Of an object with the records of these offsets; objects of keys and headers count none."""
    first, last = int(offsets[0]), int(offsets[-1])
    found = {
        CONNECTOR: connector_name(connector),
        BATCH: batch,
        PARTITION: f"{quote(partition.topic, safe='')}:{partition.number}",
        FIRST: str(first),
        LAST: str(last),
        RECORDS: str(len(offsets) if is_value else 0),
    }
    if is_value and len(offsets) != last - first + 1:
        packed = base64.b64encode(BitMap64((offsets - first).astype(np.uint64)).serialize()).decode()
        if len(packed) <= _MOST_CHARACTERS:
            found[OFFSETS] = packed
    return found


def records_of(metadata: Mapping[str, str]) -> int:
    """How many records an object says it has."""
    return int(metadata.get(RECORDS, "0"))


def offsets_of(metadata: Mapping[str, str]) -> tuple[Partition, BitMap64 | None]:
    """Which records an object says it has; None: they are too many to be told one by one."""
    topic, _, number = metadata[PARTITION].rpartition(":")
    first, last = int(metadata[FIRST]), int(metadata[LAST])
    partition = Partition(unquote(topic), int(number))
    if last - first + 1 == records_of(metadata):
        return partition, BitMap64(range(first, last + 1))
    if OFFSETS not in metadata:
        return partition, None
    packed = BitMap64.deserialize(base64.b64decode(metadata[OFFSETS]))
    return partition, BitMap64(first + offset for offset in packed)
