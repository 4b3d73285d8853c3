"""InsertField: adds what is known of the record in Kafka, or a fixed text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa

from icestream.records.column import Column
from icestream.records.records import Applied, Records
from icestream.records.schema import MOMENT, STRING, ConnectSchema, Kind, timestamp
from icestream.transforms.failures import (
    GroupFailed,
    has_schema,
    invalid_setting,
    is_null,
    refused_setting,
    require_map,
    require_struct,
)
from icestream.transforms.groups import Side, all_failed, kept
from icestream.transforms.structs import SchemaCache, field_arrays, nulls_in_required, rebuilt, rebuilt_column

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
        value = self.side.get(records)
        if is_null(value):
            return Applied([records])
        try:
            if has_schema(value):
                return self._with_schema(records)
            return self._schemaless(records)
        except GroupFailed as why:
            return all_failed(records, why.failure)

    def _values(self, records: Records) -> dict[str, pa.Array | None]:
        """By setting; None: the record does not have it."""
        found: dict[str, pa.Array | None] = {}
        for key in self.insertions:
            match key:
                case "topic.field":
                    found[key] = pa.repeat(records.topic, len(records))
                case "partition.field":
                    found[key] = _numbers(records)
                case "offset.field":
                    if records.offsets is None:
                        source = "org.apache.kafka.connect.source.SourceRecord"
                        raise GroupFailed(f"Only SinkRecord supported for [{_PURPOSE}], found: {source}")
                    found[key] = pa.array(records.offsets, pa.int64())
                case "timestamp.field":
                    found[key] = records.timestamps
                case _:
                    found[key] = pa.repeat(self.static_value, len(records))
        return found

    def _schemaless(self, records: Records) -> Applied:
        require_map(self.side.get(records), _PURPOSE)
        groups = [records]
        if "timestamp.field" in self.insertions and records.timestamps.null_count:
            missing = records.timestamps.is_null().to_numpy(zero_copy_only=False)
            groups = [records.take(np.flatnonzero(flags)) for flags in (missing, ~missing) if flags.any()]
        return Applied([self._inserted(group) for group in groups])

    def _inserted(self, records: Records) -> Records:
        """Into groups whose records have all a timestamp, or none of them has."""
        fields = require_map(self.side.get(records), _PURPOSE)
        named = {
            self.insertions[key].name: Column(values)
            for key, values in self._values(records).items()
            if values is not None and not values.null_count
        }
        return self.side.put(records, fields.put(named))

    def _with_schema(self, records: Records) -> Applied:
        column, schema = require_struct(self.side.get(records), _PURPOSE)
        changed = self._schemas.get(schema, self._changed)
        arrays = field_arrays(column, self.replace_null_with_default)
        failed = nulls_in_required(schema, arrays)
        for key, values in self._values(records).items():
            kind = _SCHEMAS[key].arrow_type
            if values is None:
                arrays.append(pa.nulls(len(records), kind))
            else:
                arrays.append(values.cast(MOMENT) if key == "timestamp.field" else values)
        return kept(self.side.put(records, rebuilt_column(changed, arrays, len(records))), failed)

    def _changed(self, schema: ConnectSchema) -> ConnectSchema:
        added = [
            (one.name, replace(_SCHEMAS[key], optional=one.optional)) for key, one in self.insertions.items()
        ]
        return rebuilt(schema, [*((one.name, one.schema) for one in schema.fields), *added])


def _numbers(records: Records) -> pa.Array | None:
    return None if records.partitions is None else pa.array(records.partitions, pa.int32())
