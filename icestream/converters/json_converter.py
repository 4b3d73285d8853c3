"""Kafka Connect's JsonConverter, with schemas and without, from bytes and to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

from icestream.api.config import ConfigDef, Setting, Type
from icestream.api.errors import ConfigError, Problem
from icestream.jsontext.encode import JsonWriter
from icestream.jsontext.envelope import EnvelopeReader, read_payloads
from icestream.jsontext.one_value import BROKEN, NotConvertible, exact
from icestream.jsontext.schemaless import PlainReader
from icestream.jsontext.schemas import schema_from
from icestream.jsontext.with_schema import PayloadReader
from icestream.records.records import Converted
from icestream.records.schema import ConnectSchema
from icestream.records.values import Value

SETTINGS: Final = ConfigDef(
    (
        Setting(
            "schemas.enable",
            Type.BOOLEAN,
            True,
            "Whether each JSON value carries its schema beside the payload.",
            importance="HIGH",
            group="Schemas",
            order=0,
            width="MEDIUM",
            display_name="Enable Schemas",
        ),
        Setting(
            "schemas.cache.size",
            Type.INT,
            1000,
            "How many schemas the JSON converter remembers.",
            importance="HIGH",
            group="Schemas",
            order=1,
            width="MEDIUM",
            display_name="Schema Cache Size",
        ),
        Setting(
            "schema.content",
            Type.STRING,
            None,
            "The schema of all values, when they do not carry it themselves.",
            importance="HIGH",
            group="Schemas",
            order=2,
            width="MEDIUM",
            display_name="Schema Content",
        ),
        Setting(
            "decimal.format",
            Type.STRING,
            "BASE64",
            "How decimals are written as JSON: BASE64 or NUMERIC.",
            choices=("NUMERIC", "BASE64"),
            ignores_case=True,
            importance="LOW",
            group="Serialization",
            order=0,
            width="MEDIUM",
            display_name="Decimal Format",
        ),
        Setting(
            "replace.null.with.default",
            Type.BOOLEAN,
            True,
            "Whether a null becomes the default of its field.",
            importance="LOW",
            group="Serialization",
            order=1,
            width="MEDIUM",
            display_name="Replace null with default",
        ),
    )
)


@dataclass(frozen=True)
class JsonConverter:
    reader: PlainReader | EnvelopeReader | PayloadReader
    writer: JsonWriter = field(default_factory=JsonWriter)

    @classmethod
    def configured(cls, settings: Mapping[str, str], is_key: bool) -> Self:
        parsed = SETTINGS.parse(settings)
        fills, has_schemas = parsed["replace.null.with.default"], parsed["schemas.enable"]
        writer = JsonWriter(
            has_schemas=has_schemas, numeric=parsed["decimal.format"].upper() == "NUMERIC", fills=fills
        )
        return cls(_reader(parsed), writer)

    def to_connect(self, topic: str, values: Sequence[bytes | None]) -> Converted:
        if isinstance(self.reader, PayloadReader):
            return read_payloads(self.reader, values)
        return self.reader.read(values)

    def from_connect(self, topic: str, value: Value, length: int) -> Sequence[bytes | None]:
        return self.writer.written(value, length)


def _reader(parsed: Mapping[str, Any]) -> PlainReader | EnvelopeReader | PayloadReader:
    fills, content = parsed["replace.null.with.default"], parsed["schema.content"]
    if not parsed["schemas.enable"]:
        return PlainReader()
    schema = _given_schema(content, fills) if content else None
    if schema is not None:
        return PayloadReader(schema, fills)
    return EnvelopeReader(fills, parsed["schemas.cache.size"])


def _given_schema(content: str, fills: bool) -> ConnectSchema | None:
    try:
        return schema_from(exact(content.encode()), fills)
    except NotConvertible as error:
        reason = str(error)
    except ValueError as error:
        cause = str(error).removeprefix(BROKEN)
        reason = f"Failed to parse schema in converter config due to serialization error: {cause}"
    raise ConfigError([Problem("schema.content", reason)])
