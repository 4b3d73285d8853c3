"""`KafkaMetadataTransform`: topic, partition, offset and timestamp of each record, put into its value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

import pyarrow as pa

from icestream.records.column import Column, struct_column
from icestream.records.records import Applied, Failure, Records
from icestream.records.schema import STRING, ConnectSchema, Kind, struct
from icestream.records.values import Fields
from icestream.transforms.failures import (
    GroupFailed,
    has_schema,
    is_null,
    refused_setting,
    require_map,
)
from icestream.transforms.groups import Side, all_failed
from icestream.transforms.structs import Added, SchemaCache, add_fields, with_fields

_INT64_OPTIONAL: Final = ConnectSchema(Kind.INT64, optional=True)
_TOPIC, _PARTITION, _OFFSET, _TIMESTAMP = "topic", "partition", "offset", "timestamp"
_MAPS, _STRUCTS = "KafkaMetadata transform", "KafkaMetadataTransform"
_NO_SINK_RECORD: Final = Failure("KafkaMetadataTransform is for sinks: records of a source have no offset")


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
            with_fields(struct(), made._facts())
        except GroupFailed as refused:
            raise refused_setting("external_field", str(refused)) from None
        return made

    def apply(self, records: Records) -> Applied:
        if is_null(records.value):
            return Applied([records])
        if records.offsets is None:
            return all_failed(records, _NO_SINK_RECORD)
        try:
            return self._with_facts(records)
        except GroupFailed as failed:
            return all_failed(records, failed.failure)

    def _with_facts(self, records: Records) -> Applied:
        added = [
            Added(name, schema, values)
            for (name, schema), values in zip(self._facts(), self._arrays(records), strict=True)
        ]
        with_schema = has_schema(records.value)
        if self.nested and not with_schema:
            fields = require_map(records.value, _MAPS)
            columns = {one.name: Column(one.values, None, Column(one.values).nulls) for one in added}
            nested = fields.put({self.name: Fields(columns, None, len(records))})
            return Applied([replace(records, value=nested)])
        if self.nested:
            schema = struct(*self._facts())
            added = [Added(self.name, schema, struct_column(schema, [one.values for one in added]).values)]
        purpose = _STRUCTS if with_schema else _MAPS
        return add_fields(records, Side.VALUE, added, purpose, self._schemas, defaults=True)

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
