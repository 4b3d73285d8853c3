"""`DebeziumTransform`: change events of Debezium flattened to the row after (or, deleted, before) the change,
with `_cdc` beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa

from icestream.records.column import Column
from icestream.records.records import Applied, Records
from icestream.records.schema import Kind
from icestream.records.values import Fields, Node
from icestream.transforms.failures import (
    GroupFailed,
    has_schema,
    is_null,
    not_a_map,
    require_map,
    require_struct,
)
from icestream.transforms.groups import Checks, Side, all_failed, held, merged, parted
from icestream.transforms.iceberg import cdc
from icestream.transforms.iceberg.debezium_structs import flattened_structs
from icestream.transforms.iceberg.targets import Targets

_PURPOSE: Final = "Debezium transform"


@dataclass(frozen=True)
class DebeziumTransform:
    targets: Targets

    @classmethod
    def configured(cls, settings: Mapping[str, Any], side: Side) -> Self:
        return cls(Targets(settings["cdc.target.pattern"]))

    def apply(self, records: Records) -> Applied:
        if is_null(records.value):
            return Applied([records])
        try:
            if has_schema(records.value):
                require_struct(records.value, _PURPOSE)
                return flattened_structs(records, self.targets)
            return self._schemaless(records, require_map(records.value, _PURPOSE))
        except GroupFailed as refused:
            return all_failed(records, refused.failure)

    def _schemaless(self, records: Records, fields: Fields) -> Applied:
        checks = Checks(records)
        texts = cdc.field_texts(fields, "op")
        unknown = cdc.nulls(texts)
        checks.fail(unknown, cdc.NOTHING_TO_PRINT)
        operations = cdc.operations(texts.filter(pa.array(~unknown)), "u", "d")
        deleted = operations.to_numpy(zero_copy_only=False) == cdc.DELETE
        outcomes = [Applied([], checks.failed)]
        for payload, mine in (("before", deleted), ("after", ~deleted)):
            rows = np.flatnonzero(mine)
            if len(rows):
                group = checks.records.take(rows)
                outcomes += self._of_operation(group, operations.take(pa.array(rows)), payload)
        return merged(outcomes)

    def _of_operation(self, records: Records, operations: pa.Array, payload: str) -> list[Applied]:
        fields = require_map(records.value, _PURPOSE)
        nodes: dict[str, Node | None] = {
            "payload": fields.get(payload),
            cdc.SOURCE: fields.get("source"),
            cdc.TS: fields.get("ts_ms"),
            cdc.OP: Column(operations),
        }
        return [self._flattened(group) for group in parted(records, nodes)]

    def _flattened(self, group: Records) -> Applied:
        if not isinstance(held(group, "payload"), Fields):
            return Applied([], dropped=group.rows.tolist())
        source = held(group, cdc.SOURCE)
        if not isinstance(source, Fields):
            return _no_source(group)
        checks = Checks(group)
        databases, tables = _names(source)
        unnamed = cdc.nulls(databases) | cdc.nulls(tables)
        checks.fail(unnamed, cdc.NOTHING_TO_PRINT)
        named = pa.array(~unnamed)
        facts = self._facts(checks.records, databases.filter(named), tables.filter(named))
        payload = held(checks.records, "payload")
        assert isinstance(payload, Fields)
        changed = payload.put({cdc.CDC: Fields(facts, None, len(payload))})
        return checks.done(replace(checks.records, value=changed))

    def _facts(self, group: Records, databases: pa.Array, tables: pa.Array) -> dict[str, Node | None]:
        facts: dict[str, Node | None] = {cdc.OP: held(group, cdc.OP), cdc.TS: held(group, cdc.TS)}
        if group.offsets is not None:
            facts[cdc.OFFSET] = Column(pa.array(group.offsets, pa.int64()))
        facts[cdc.SOURCE] = Column(cdc.joined(databases, tables))
        facts[cdc.TARGET] = Column(self.targets.of(databases, tables))
        if _is_map(group):
            facts[cdc.KEY] = group.key
        return facts


def _names(source: Fields) -> tuple[pa.Array, pa.Array]:
    """Of the database (or its schema, if the source has one) and the table."""
    databases = cdc.field_texts(source, "db")
    by_schema = cdc.has_key(source, "schema")
    if by_schema.any():
        databases = pa.array(np.where(by_schema, cdc.field_texts(source, "schema"), databases), pa.string())
    return databases, cdc.field_texts(source, "table")


def _no_source(group: Records) -> Applied:
    checks = Checks(group)
    source = held(group, cdc.SOURCE)
    nulls = source.nulls if isinstance(source, Column) else np.zeros(len(group), np.bool_)
    if not checks.fail(nulls, not_a_map(None, _PURPOSE)):
        return Applied([], checks.failed)
    return checks.fail_all(not_a_map(held(checks.records, cdc.SOURCE), _PURPOSE))


def _is_map(records: Records) -> bool:
    key = records.key
    if isinstance(key, Column) and key.schema is not None:
        return key.schema.kind is Kind.MAP and not is_null(key)
    return isinstance(key, Fields)
