"""`io.confluent.connect.avro.AvroConverter`: Avro datums under schemas of a registry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from icestream.api.config import trimmed
from icestream.converters.registry.avro_connect import AvroOptions, connect_schema
from icestream.converters.registry.avro_read import decode, decode_bare
from icestream.converters.registry.avro_schema import AvroType, BadSchema, parse
from icestream.converters.registry.client import RegisteredSchema, UnusableSchema
from icestream.converters.registry.converter import Read
from icestream.converters.registry.subjects import Subjects
from icestream.converters.registry.wire import Bodies
from icestream.records.column import Column
from icestream.records.schema import ConnectSchema
from icestream.records.values import Value

AVRO: Final = "AVRO"


@dataclass(frozen=True)
class AvroFormat:
    options: AvroOptions
    refuses_trailing: bool
    """`avro.fail.on.trailing.data`."""
    subjects: Subjects
    kind: str = AVRO

    @classmethod
    def configured(cls, settings: Mapping[str, str], subjects: Subjects) -> Self:
        def flag(key: str, default: bool) -> bool:
            return trimmed(settings.get(key, str(default))).lower() == "true"

        options = AvroOptions(
            enhanced=flag("enhanced.avro.schema.support", False),
            metadata=flag("connect.meta.data", True),
            flatten_singletons=flag("flatten.singleton.unions", True),
        )
        return cls(options, flag("avro.fail.on.trailing.data", False), subjects)

    def failure(self, topic: str) -> str:
        return f"Failed to deserialize data for topic {topic} to Avro:"

    def unwritable(self, topic: str) -> str:
        return f"Failed to serialize Avro data from topic {topic}:"

    def retrieving(self, is_key: bool, schema_id: int) -> str:
        return f"Error retrieving Avro {'key' if is_key else 'value'} schema for id {schema_id}"

    def reader(self, schema: RegisteredSchema) -> AvroReader:
        try:
            kind = parse(schema.text, [one.text for one in schema.references])
            return AvroReader(schema.id, kind, connect_schema(kind, self.options), self.refuses_trailing)
        except BadSchema as error:
            raise UnusableSchema(str(error)) from None

    def write(self, topic: str, value: Value, length: int) -> Sequence[bytes | None]:
        from icestream.converters.registry.avro_write import encoded

        return encoded(topic, value, length, self.options, self.subjects)


@dataclass(frozen=True)
class AvroReader:
    schema_id: int
    kind: AvroType
    schema: ConnectSchema
    refuses_trailing: bool

    def read(self, bodies: Bodies) -> Read:
        is_bare = self.kind.kind == "bytes"
        decoded = decode_bare(self.schema, bodies) if is_bare else decode(self.kind, self.schema, bodies)
        about = f"Error deserializing Avro message for id {self.schema_id}: "
        failed = {row: about + why for row, why in decoded.failed.items()}
        if self.refuses_trailing:
            for row in np.flatnonzero(decoded.trailing).tolist():
                failed.setdefault(row, about + "Trailing data found after deserializing Avro message")
        return Read([(None, Column(decoded.column, self.schema))], failed)
