"""What change data capture puts into `_cdc`: names, operations, and the names of tables as texts. Shared by
DebeziumTransform and DmsTransform."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestream.records.column import Column
from icestream.records.java_text import java_text
from icestream.records.json_source import ABSENT
from icestream.records.plain import plain
from icestream.records.records import Failure
from icestream.records.rows import Flags
from icestream.records.values import Fields, Node, typed
from icestream.transforms.cast import printed

CDC, OP, TS, OFFSET, SOURCE, TARGET, KEY = "_cdc", "op", "ts", "offset", "source", "target", "key"
INSERT, UPDATE, DELETE, TRUNCATE = "I", "U", "D", "T"
_LACKS: Final = "The change event has no"


def lacking(missing: Flags, name: str) -> dict[int, Failure]:
    """The positions of events that lack something, each with the failure."""
    if not missing.any():
        return {}
    return dict.fromkeys(np.flatnonzero(missing).tolist(), Failure(f"{_LACKS} {name}"))


def operations(texts: pa.Array, update: str, delete: str) -> pa.Array:
    """The operation of each record; what is neither an update nor a deletion inserts."""
    updates, deletes = pc.equal(texts, update), pc.equal(texts, delete)
    return pc.if_else(updates, UPDATE, pc.if_else(deletes, DELETE, INSERT))


def field_texts(fields: Fields, name: str) -> pa.Array:
    """What Java's toString makes of a key of each map; null where it is null or absent."""
    return texts(fields.get(name), len(fields))


def texts(node: Node | None, length: int) -> pa.Array:
    parts = typed(node, length)
    first = parts[0].value
    if len(parts) == 1 and isinstance(first, Column):
        return printed(first.values)
    rows = plain(node, length)
    return pa.array([None if row is None or row is ABSENT else java_text(row) for row in rows], pa.string())


def has_key(fields: Fields, name: str) -> Flags:
    """Which maps have the key, be it with a null."""
    node, length = fields.get(name), len(fields)
    has = np.zeros(length, np.bool_)
    for part in typed(node, length):
        absent = part.value.absent if isinstance(part.value, Column) else None
        there = np.ones(len(part.value), np.bool_) if absent is None else ~absent
        has[slice(None) if part.rows is None else part.rows] = there
    return has


def nulls(values: pa.Array) -> Flags:
    found: Flags = values.is_null().to_numpy(zero_copy_only=False)
    return found


def joined(databases: pa.Array, tables: pa.Array) -> pa.Array:
    """`database.table`, where Java prints a null as null."""
    return pc.binary_join_element_wise(databases.fill_null("null"), tables.fill_null("null"), ".")
