"""Groups of alike records for unit tests, and what became of them in plain values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from icestream.records.column import Column
from icestream.records.json_source import JsonSource
from icestream.records.plain import plain
from icestream.records.records import Applied, Records
from icestream.records.schema import ConnectSchema
from icestream.records.values import Value, object_fields


def group(value: Value, length: int, topic: str = "orders") -> Records:
    rows = np.arange(length)
    return Records(rows, topic, np.zeros(length, np.int64), pa.array([0] * length, pa.int64()), None, value)


def maps(*objects: dict[str, Any]) -> Records:
    """Schemaless maps, still in their text."""
    texts = [json.dumps(one).encode() for one in objects]
    return group(object_fields(JsonSource(texts)), len(texts))


def structs(schema: ConnectSchema, values: Sequence[Any]) -> Records:
    return group(Column(pa.array(values, schema.arrow_type), schema), len(values))


def values(applied: Applied) -> dict[int, Any]:
    """By row of the chunk."""
    found: dict[int, Any] = {}
    for records in applied.records:
        nothing = [None] * len(records)
        rows = nothing if records.value is None else plain(records.value, len(records))
        found.update(zip(records.rows.tolist(), rows, strict=True))
    return dict(sorted(found.items()))
