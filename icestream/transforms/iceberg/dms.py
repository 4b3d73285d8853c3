"""`DmsTransform`: records of AWS DMS flattened to their data, with `_cdc` beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from icestream.records.column import Column
from icestream.records.records import Applied, Failure, Records
from icestream.records.values import Fields
from icestream.transforms.failures import GroupFailed, has_schema, is_null, require_map
from icestream.transforms.groups import Checks, Side, all_failed, held, merged, parted
from icestream.transforms.iceberg import cdc

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
        except GroupFailed as refused:
            return all_failed(records, refused.failure)
        nodes = {name: fields.get(name) for name in ("data", "metadata")}
        return merged([_promoted(group) for group in parted(records, nodes)])


def _promoted(group: Records) -> Applied:
    data, metadata = held(group, "data"), held(group, "metadata")
    if not isinstance(data, Fields) or not isinstance(metadata, Fields):
        return Applied([], dropped=group.rows.tolist())
    nodes = {"data": data, "metadata": metadata, "timestamp": metadata.get("timestamp")}
    return merged([_with_cdc(one) for one in parted(group, nodes)])


def _with_cdc(group: Records) -> Applied:
    checks = Checks(group)
    metadata = held(group, "metadata")
    assert isinstance(metadata, Fields)
    checks.fail(cdc.nulls(cdc.field_texts(metadata, "operation")), cdc.NOTHING_TO_PRINT)
    data, metadata = held(checks.records, "data"), held(checks.records, "metadata")
    assert isinstance(data, Fields) and isinstance(metadata, Fields)
    operations = cdc.operations(cdc.field_texts(metadata, "operation"), "update", "delete")
    source = cdc.joined(cdc.field_texts(metadata, "schema-name"), cdc.field_texts(metadata, "table-name"))
    facts = {
        cdc.OP: Column(operations),
        cdc.TS: held(checks.records, "timestamp"),
        cdc.SOURCE: Column(source),
    }
    changed = data.put({cdc.CDC: Fields(facts, None, len(data))})
    return checks.done(replace(checks.records, value=changed))
