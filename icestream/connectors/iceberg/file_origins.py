"""Which source offsets the rows of a data file are from, kept in its own footer; read by `verify --deep`.

A compressed bitmap per source partition: about one byte per record, and no column of ours in the user's
table. docs/decisions/002-origins.md has the reasons.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Final

import numpy as np
import pyarrow.parquet as pq
from pyroaring import BitMap64

from icestream.api.offsets import Partition
from icestream.records.origins import RowOrigins

_KEY: Final = b"icestream.origins"
"""Key of the Parquet footer."""


class Origins:
    """Offsets per source partition, growing while a file is written."""

    def __init__(self, offsets: Mapping[Partition, BitMap64] | None = None) -> None:
        self.offsets: dict[Partition, BitMap64] = dict(offsets or {})

    def add(self, rows: RowOrigins) -> None:
        for partition, offsets in rows.by_partition():
            found = BitMap64(offsets.astype(np.uint64))
            if partition in self.offsets:
                self.offsets[partition] |= found
            else:
                self.offsets[partition] = found

    def to_footer(self) -> dict[str, str]:
        body: dict[str, dict[str, str]] = {}
        for (topic, number), bitmap in sorted(self.offsets.items()):
            bitmap.run_optimize()
            body.setdefault(topic, {})[str(number)] = base64.b64encode(bitmap.serialize()).decode()
        return {_KEY.decode(): json.dumps(body, separators=(",", ":"))}

    @classmethod
    def from_footer(cls, metadata: pq.FileMetaData) -> Origins | None:
        """The origins of a file, or None if another engine wrote it."""
        text = (metadata.metadata or {}).get(_KEY)
        if text is None:
            return None
        return cls(
            {
                Partition(topic, int(number)): BitMap64.deserialize(base64.b64decode(encoded))
                for topic, partitions in json.loads(text).items()
                for number, encoded in partitions.items()
            }
        )
