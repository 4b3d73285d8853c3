"""The tables that `cdc.target.pattern` names for databases and tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from icestream.transforms.iceberg.cdc import joined


@dataclass(frozen=True)
class Targets:
    pattern: str | None

    @property
    def has_pattern(self) -> bool:
        return bool(self.pattern)

    def of(self, databases: pa.Array, tables: pa.Array) -> pa.Array:
        if not self.pattern:
            return joined(databases, tables)
        known, codes = databases.dictionary_encode(), tables.dictionary_encode()
        width = max(len(codes.dictionary), 1)
        pairs = known.indices.to_numpy().astype(np.int64) * width + codes.indices.to_numpy()
        distinct, which = np.unique(pairs, return_inverse=True)
        targets = [
            self._target(known.dictionary[pair // width].as_py(), codes.dictionary[pair % width].as_py())
            for pair in distinct.tolist()
        ]
        return pa.array(targets, pa.string()).take(pa.array(which))

    def _target(self, database: str, table: str) -> str:
        assert self.pattern is not None
        return self.pattern.replace("{db}", database).replace("{table}", table)
