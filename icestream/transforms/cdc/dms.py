"""`DmsTransform`: records of AWS DMS flattened to their data, with `_cdc` beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from icestream.records.column import Column
from icestream.records.records import Applied, Failure, Records
from icestream.records.values import Fields
from icestream.transforms.cdc import events
from icestream.transforms.failures import GroupFailed, has_schema, is_null, require_map
from icestream.transforms.groups import Side, all_failed, merged, node_named, split_by_types, without_failed

_NO_SCHEMAS: Final = Failure("Schema not support for DMS records", "java.lang.UnsupportedOperationException")


@dataclass(frozen=True)
class DmsTransform:
    @classmethod
    def configured(cls, settings: Mapping[str, Any], side: Side) -> Self:
        return cls()

    def apply(self, records: Records) -> Applied:
        if is_null(records.value):
            return Applied([records])
        if has_schema(records.value):
            return all_failed(records, _NO_SCHEMAS)
        try:
            fields = require_map(records.value, "DMS transform")
        except GroupFailed as failed:
            return all_failed(records, failed.failure)
        nodes = {name: fields.get(name) for name in ("data", "metadata")}
        return merged([_promoted(group) for group in split_by_types(records, nodes)])


def _promoted(group: Records) -> Applied:
    data, metadata = node_named(group, "data"), node_named(group, "metadata")
    if not isinstance(data, Fields) or not isinstance(metadata, Fields):
        return Applied([], dropped=group.rows.tolist())
    nodes = {"data": data, "metadata": metadata, "timestamp": metadata.get("timestamp")}
    return merged([_with_cdc(one) for one in split_by_types(group, nodes)])


def _with_cdc(group: Records) -> Applied:
    data, metadata = node_named(group, "data"), node_named(group, "metadata")
    assert isinstance(data, Fields) and isinstance(metadata, Fields)
    operations = events.field_texts(metadata, "operation")
    databases, tables = (events.field_texts(metadata, name) for name in ("schema-name", "table-name"))
    facts = {
        events.OP: Column(events.operations(operations, "update", "delete")),
        events.TS: node_named(group, "timestamp"),
        events.SOURCE: Column(events.joined(databases, tables)),
    }
    changed = replace(group, value=data.put({events.CDC: Fields(facts, None, len(data))}))
    return without_failed(changed, events.lacking(events.nulls(operations), "operation"))
