"""`DebeziumTransform`: change events of Debezium flattened to the row after (or, deleted, before) the change,
with `_cdc` beside it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icestream.records.column import Column, children, filled, struct_column
from icestream.records.records import Applied, Records
from icestream.records.rows import Flags
from icestream.records.schema import MOMENT, STRING, ConnectSchema, Kind, struct, timestamp
from icestream.records.values import Fields, Node
from icestream.transforms.cdc import events
from icestream.transforms.failures import (
    GroupFailed,
    has_schema,
    is_null,
    not_a_map,
    require_map,
    require_struct,
)
from icestream.transforms.groups import Side, all_failed, merged, node_named, split_by_types, without_failed
from icestream.transforms.structs import field_arrays, null_failures, with_fields

_PURPOSE: Final = "Debezium transform"
_NAMES: Final = "name of the database or table"
Flatten = Callable[[Records, pa.Array, str | None], Applied]
"""With the name of the field that has the row; None: there is no row."""


@dataclass(frozen=True)
class DebeziumTransform:
    target_pattern: str | None
    """What `_cdc.target` is to be, with {db} and {table}; empty or None: the source."""

    @classmethod
    def configured(cls, settings: Mapping[str, Any], side: Side) -> Self:
        return cls(settings["cdc.target.pattern"])

    def apply(self, records: Records) -> Applied:
        value = records.value
        if is_null(value):
            return Applied([records])
        try:
            if has_schema(value):
                require_struct(value, _PURPOSE)
                return _by_operation(records, filled(_field(value, "op")).values, self._structs)
            fields = require_map(value, _PURPOSE)
            return _by_operation(records, events.field_texts(fields, "op"), self._maps)
        except GroupFailed as failed:
            return all_failed(records, failed.failure)

    def _maps(self, records: Records, operations: pa.Array, payload: str | None) -> Applied:
        fields = require_map(records.value, _PURPOSE)
        nodes: dict[str, Node | None] = {
            "payload": Fields({}, None, len(records)) if payload is None else fields.get(payload),
            events.SOURCE: fields.get("source"),
            events.TS: fields.get("ts_ms"),
            events.OP: Column(operations),
        }
        return merged([self._map(group) for group in split_by_types(records, nodes)])

    def _map(self, group: Records) -> Applied:
        payload, source = node_named(group, "payload"), node_named(group, events.SOURCE)
        if not isinstance(payload, Fields):
            return Applied([], dropped=group.rows.tolist())
        if not isinstance(source, Fields):
            return all_failed(group, not_a_map(source, _PURPOSE))
        databases, tables = _names(source)
        facts: dict[str, Node | None] = {
            events.OP: node_named(group, events.OP),
            events.TS: node_named(group, events.TS),
            events.SOURCE: Column(events.joined(databases, tables)),
            events.TARGET: Column(self._targets(databases, tables)),
        }
        if group.offsets is not None:
            facts[events.OFFSET] = Column(pa.array(group.offsets, pa.int64()))
        if _is_map(group):
            facts[events.KEY] = group.key
        changed = replace(group, value=payload.put({events.CDC: Fields(facts, None, len(payload))}))
        return without_failed(changed, events.lacking(events.nulls(databases) | events.nulls(tables), _NAMES))

    def _structs(self, records: Records, operations: pa.Array, payload: str | None) -> Applied:
        row = None if payload is None else _field(records.value, payload, Kind.STRUCT)
        times = _field(records.value, "ts_ms", Kind.INT64)
        source = _field(records.value, "source", Kind.STRUCT)
        assert source.schema is not None
        named = "schema" if "schema" in source.schema else "db"
        databases, tables = _field(source, named, Kind.STRING), _field(source, "table", Kind.STRING)
        key = records.key if isinstance(records.key, Column) and records.key.schema is not None else None
        failed = events.lacking(times.nulls, "ts_ms") | events.lacking(source.nulls, "source")
        if self.target_pattern:
            failed |= events.lacking(databases.nulls | tables.nulls, _NAMES)
        held = row.schema.fields if row is not None and row.schema is not None else ()
        if row is not None and held:
            failed |= events.lacking(row.nulls, str(payload))
        if key is not None:
            failed |= null_failures(events.KEY, key)
        cdc = _cdc_schema(key)
        columns = [
            operations,
            times.values.cast(MOMENT),
            pa.nulls(len(records), pa.int64()) if records.offsets is None else pa.array(records.offsets),
            events.joined(databases.values, tables.values),
            self._targets(databases.values, tables.values),
            *(() if key is None else (key.values,)),
        ]
        fields = [(one.name, one.schema) for one in held]
        of_row = struct() if row is None or row.schema is None else row.schema
        changed = with_fields(of_row, [*fields, (events.CDC, cdc)])
        arrays = [] if row is None else field_arrays(row, defaults=True)
        arrays = [*arrays, struct_column(cdc, columns).values]
        return without_failed(replace(records, value=struct_column(changed, arrays)), failed)

    def _targets(self, databases: pa.Array, tables: pa.Array) -> pa.Array:
        if not self.target_pattern:
            return events.joined(databases, tables)
        names = {"{db}": databases.fill_null("null"), "{table}": tables.fill_null("null")}
        pieces = re.split(r"(\{db\}|\{table\})", self.target_pattern)
        parts = [names.get(piece, piece) for piece in pieces]
        if len(parts) == 1:
            return pa.repeat(self.target_pattern, len(tables))
        return pc.binary_join_element_wise(*parts, "")


def _by_operation(records: Records, texts: pa.Array, flatten: Flatten) -> Applied:
    """Deletions tell of the row before, a truncate of no row, all others of the row after. An operation that
    is no string is none that we know."""
    known = (
        texts if pa.types.is_string(texts.type) else pa.array(["r"] * len(texts), mask=events.nulls(texts))
    )
    operations = pc.if_else(pc.equal(known, "t"), events.TRUNCATE, events.operations(known, "u", "d"))
    codes = operations.fill_null("").to_numpy(zero_copy_only=False)
    failed = events.lacking(events.nulls(known), "op")
    outcomes = [Applied([], {int(records.rows[at]): why for at, why in failed.items()})]
    parts: dict[str | None, Flags] = {
        "before": codes == events.DELETE,
        None: codes == events.TRUNCATE,
        "after": np.isin(codes, (events.INSERT, events.UPDATE)),
    }
    for payload, mine in parts.items():
        rows = np.flatnonzero(mine)
        if len(rows):
            group = records.take(rows)
            try:
                outcomes.append(flatten(group, operations.take(pa.array(rows)), payload))
            except GroupFailed as why:
                outcomes.append(all_failed(group, why.failure))
    return merged(outcomes)


def _cdc_schema(key: Column | None) -> ConnectSchema:
    of_key = None if key is None else key.schema
    return struct(
        (events.OP, STRING),
        (events.TS, timestamp()),
        (events.OFFSET, ConnectSchema(Kind.INT64, optional=True)),
        (events.SOURCE, STRING),
        (events.TARGET, STRING),
        *(() if of_key is None else ((events.KEY, of_key),)),
    )


def _field(value: object, name: str, kind: Kind | None = None) -> Column:
    """A field of a struct, without its default; as Java finds it if it has to be of a type."""
    assert isinstance(value, Column)
    found = children(value)
    if name not in found:
        raise GroupFailed(f"{name} is not a valid field name")
    schema = found[name].schema
    if kind is not None and (schema is None or schema.kind is not kind):
        raise GroupFailed(f"Field '{name}' is not of type {kind}")
    return found[name]


def _names(source: Fields) -> tuple[pa.Array, pa.Array]:
    """Of the database (or its schema, if the source has one) and the table."""
    databases = events.field_texts(source, "db")
    by_schema = events.has_key(source, "schema")
    if by_schema.any():
        schemas = events.field_texts(source, "schema")
        databases = pa.array(np.where(by_schema, schemas, databases), pa.string())
    return databases, events.field_texts(source, "table")


def _is_map(records: Records) -> bool:
    key = records.key
    if isinstance(key, Column) and key.schema is not None:
        return key.schema.kind is Kind.MAP and not is_null(key)
    return isinstance(key, Fields)
