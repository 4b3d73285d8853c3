"""InsertField: adds what is known of the record in Kafka, or a fixed text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

import pyarrow as pa

from icestream.records.records import Applied, Records
from icestream.records.schema import STRING, ConnectSchema, Kind, timestamp
from icestream.transforms.failures import (
    GroupFailed,
    invalid_setting,
    is_null,
    refused_setting,
)
from icestream.transforms.groups import Side, all_failed
from icestream.transforms.structs import Added, SchemaCache, add_fields

_PURPOSE: Final = "field insertion"
_SCHEMAS: Final[Mapping[str, ConnectSchema]] = {
    "topic.field": STRING,
    "partition.field": ConnectSchema(Kind.INT32),
    "offset.field": ConnectSchema(Kind.INT64),
    "timestamp.field": timestamp(),
    "static.field": STRING,
}
"""What can be inserted, in the order in which it is."""


@dataclass(frozen=True)
class Insertion:
    name: str
    optional: bool

    @classmethod
    def parsed(cls, text: str) -> Self:
        """`name!` is required, `name?` and `name` are optional."""
        if text.endswith(("?", "!")):
            return cls(text[:-1], text.endswith("?"))
        return cls(text, True)


@dataclass(frozen=True)
class InsertField:
    side: Side
    insertions: Mapping[str, Insertion]
    """Setting → field."""
    static_value: str | None = None
    replace_null_with_default: bool = True
    _schemas: SchemaCache[ConnectSchema] = field(default_factory=SchemaCache, compare=False)

    @classmethod
    def configured(cls, settings: Mapping[str, Any], side: Side) -> Self:
        insertions = {
            key: Insertion.parsed(settings[key]) for key in _SCHEMAS if settings.get(key) is not None
        }
        if not insertions:
            raise refused_setting("static.field", "No field insertion configured")
        static = settings.get("static.value")
        if static is None and "static.field" in insertions:
            name = settings["static.field"]
            raise invalid_setting("static.value", "null", f"No value specified for static field: {name}")
        return cls(side, insertions, static, settings["replace.null.with.default"])

    def apply(self, records: Records) -> Applied:
        if is_null(self.side.get(records)):
            return Applied([records])
        try:
            added = [self._added(key, one, records) for key, one in self.insertions.items()]
            return add_fields(
                records, self.side, added, _PURPOSE, self._schemas, defaults=self.replace_null_with_default
            )
        except GroupFailed as why:
            return all_failed(records, why.failure)

    def _added(self, key: str, one: Insertion, records: Records) -> Added:
        values = self._values(key, records)
        if values is None:
            values = pa.nulls(len(records), _SCHEMAS[key].arrow_type)
        return Added(one.name, replace(_SCHEMAS[key], optional=one.optional), values)

    def _values(self, key: str, records: Records) -> pa.Array | None:
        """None: the records do not have it."""
        match key:
            case "topic.field":
                return pa.repeat(records.topic, len(records))
            case "partition.field":
                return None if records.partitions is None else pa.array(records.partitions, pa.int32())
            case "offset.field":
                if records.offsets is None:
                    source = "org.apache.kafka.connect.source.SourceRecord"
                    raise GroupFailed(f"Only SinkRecord supported for [{_PURPOSE}], found: {source}")
                return pa.array(records.offsets, pa.int64())
            case "timestamp.field":
                return records.timestamps
        return pa.repeat(self.static_value, len(records))
