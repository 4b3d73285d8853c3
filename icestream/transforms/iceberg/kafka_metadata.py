"""`KafkaMetadataTransform`: topic, partition, offset and timestamp of each record, put into its value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

import pyarrow as pa

from icestream.records.column import Column, struct_column
from icestream.records.records import Applied, Failure, Records
from icestream.records.schema import STRING, ConnectSchema, Kind, struct
from icestream.records.values import Fields, Node
from icestream.transforms.failures import (
    GroupFailed,
    has_schema,
    is_null,
    refused_setting,
    require_map,
    require_struct,
)
from icestream.transforms.groups import Side, all_failed
from icestream.transforms.structs import SchemaCache, field_arrays, rebuilt

_INT64_OPTIONAL: Final = ConnectSchema(Kind.INT64, optional=True)
_TOPIC, _PARTITION, _OFFSET, _TIMESTAMP = "topic", "partition", "offset", "timestamp"
_NO_SINK_RECORD: Final = Failure(
    "class org.apache.kafka.connect.source.SourceRecord cannot be cast to class "
    "org.apache.kafka.connect.sink.SinkRecord",
    "java.lang.ClassCastException",
)


@dataclass(frozen=True)
class KafkaMetadataTransform:
    name: str
    nested: bool
    external: tuple[str, str] | None
    _schemas: SchemaCache[ConnectSchema] = field(default_factory=SchemaCache, compare=False)

    @classmethod
    def configured(cls, settings: Mapping[str, Any], side: Side) -> Self:
        made = cls(settings["field_name"], settings["nested"], _pair(settings["external_field"]))
        try:
            rebuilt(struct(), made._facts())
        except GroupFailed as refused:
            raise refused_setting("external_field", str(refused)) from None
        return made

    def apply(self, records: Records) -> Applied:
        if is_null(records.value):
            return Applied([records])
        if records.offsets is None:
            return all_failed(records, _NO_SINK_RECORD)
        try:
            changed = self._with_schema(records) if has_schema(records.value) else self._schemaless(records)
        except GroupFailed as refused:
            return all_failed(records, refused.failure)
        return Applied([changed])

    def _schemaless(self, records: Records) -> Records:
        fields = require_map(records.value, "KafkaMetadata transform")
        columns: dict[str, Node | None] = {}
        for (name, _), array in zip(self._facts(), self._arrays(records), strict=True):
            absent = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
            columns[name] = Column(array, None, absent)
        added = {self.name: Fields(columns, None, len(records))} if self.nested else columns
        return replace(records, value=fields.put(added))

    def _with_schema(self, records: Records) -> Records:
        value, schema = require_struct(records.value, "KafkaMetadataTransform")
        changed = self._schemas.get(schema, self._changed)
        added = self._arrays(records)
        if self.nested:
            added = [struct_column(struct(*self._facts()), added).values]
        arrays = [*field_arrays(value, defaults=True), *added]
        return replace(records, value=struct_column(changed, arrays))

    def _changed(self, schema: ConnectSchema) -> ConnectSchema:
        facts = self._facts()
        added = [(self.name, struct(*facts))] if self.nested else facts
        return rebuilt(schema, [*((one.name, one.schema) for one in schema.fields), *added])

    def _facts(self) -> list[tuple[str, ConnectSchema]]:
        """What is added, under the names that it gets."""
        prefix = "" if self.nested else f"{self.name}_"
        facts = [
            (_TOPIC, STRING),
            (_PARTITION, ConnectSchema(Kind.INT32)),
            (_OFFSET, ConnectSchema(Kind.INT64)),
            (_TIMESTAMP, _INT64_OPTIONAL),
        ]
        if self.external is not None:
            facts.append((self.external[0], STRING))
        return [(prefix + name, schema) for name, schema in facts]

    def _arrays(self, records: Records) -> list[pa.Array]:
        length = len(records)
        arrays = [
            pa.repeat(pa.scalar(records.topic, pa.string()), length),
            pa.array(records.partitions, pa.int32()),
            pa.array(records.offsets, pa.int64()),
            records.timestamps,
        ]
        if self.external is not None:
            arrays.append(pa.repeat(pa.scalar(self.external[1], pa.string()), length))
        return arrays


def _pair(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    name, comma, value = text.partition(",")
    if not comma or "," in value:
        raise refused_setting("external_field", f"Could not parse {text} for external_field")
    return name, value
