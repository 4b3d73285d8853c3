"""Which source offsets the rows of a data file are from, kept in its own footer; read by `verify --deep`.

A compressed bitmap per source partition: about one byte per record, and no column of ours in the user's
table. docs/decisions/002-origins.md has the reasons.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow.parquet as pq
from pyroaring import BitMap64

from icestream.api.offsets import Partition
from icestream.api.sink import layered
from icestream.records.origins import RowOrigins

_KEY: Final = b"icestream.origins"
"""Key of the Parquet footer: the offsets that the file has rows of."""
_AGAIN: Final = b"icestream.origins.again"
"""Of a compacted file: offsets that it has at least twice, at least three times, and so on."""
_UNKNOWN: Final = b"icestream.origins.unknown-rows"
"""Of a compacted file: how many rows are from files that did not tell, or of which some were deleted."""


class Origins:
    """Offsets per source partition, growing while a file is written."""

    def __init__(
        self, layers: Mapping[Partition, Sequence[BitMap64]] | None = None, unknown_rows: int = 0
    ) -> None:
        self.layers: dict[Partition, list[BitMap64]] = {p: list(sets) for p, sets in (layers or {}).items()}
        """First the offsets that are there at least once, then those that are there at least twice, ..."""
        self.unknown_rows = unknown_rows

    @classmethod
    def merged(cls, parts: Iterable[Origins], unknown_rows: int = 0) -> Origins:
        """Of a file that has the rows of several."""
        found: dict[Partition, list[BitMap64]] = {}
        for part in parts:
            unknown_rows += part.unknown_rows
            for partition, layers in part.layers.items():
                found.setdefault(partition, []).extend(layers)
        return cls({partition: layered(layers) for partition, layers in found.items()}, unknown_rows)

    @property
    def rows(self) -> int:
        """How many rows these are."""
        return self.unknown_rows + sum(len(layer) for layers in self.layers.values() for layer in layers)

    def add(self, rows: RowOrigins) -> None:
        for partition, offsets in rows.by_partition():
            found = BitMap64(offsets.astype(np.uint64))
            if partition in self.layers:
                self.layers[partition][0] |= found
            else:
                self.layers[partition] = [found]

    def to_footer(self) -> dict[str, str]:
        deepest = max(map(len, self.layers.values()), default=0)
        footer = {_KEY.decode(): json.dumps(self._layer(0), separators=(",", ":"))}
        if deepest > 1:
            again = [self._layer(depth) for depth in range(1, deepest)]
            footer[_AGAIN.decode()] = json.dumps(again, separators=(",", ":"))
        if self.unknown_rows:
            footer[_UNKNOWN.decode()] = str(self.unknown_rows)
        return footer

    def _layer(self, depth: int) -> dict[str, dict[str, str]]:
        body: dict[str, dict[str, str]] = {}
        for (topic, number), layers in sorted(self.layers.items()):
            if depth < len(layers):
                bitmap = layers[depth]
                bitmap.run_optimize()
                body.setdefault(topic, {})[str(number)] = base64.b64encode(bitmap.serialize()).decode()
        return body

    @classmethod
    def from_footer(cls, metadata: pq.FileMetaData) -> Origins | None:
        """The origins of a file, or None if another engine wrote it."""
        footer = metadata.metadata or {}
        text = footer.get(_KEY)
        if text is None:
            return None
        layers: dict[Partition, list[BitMap64]] = {}
        for body in [json.loads(text), *json.loads(footer.get(_AGAIN, b"[]"))]:
            for topic, partitions in body.items():
                for number, encoded in partitions.items():
                    bitmap = BitMap64.deserialize(base64.b64decode(encoded))
                    layers.setdefault(Partition(topic, int(number)), []).append(bitmap)
        return cls(layers, int(footer.get(_UNKNOWN, b"0")))
