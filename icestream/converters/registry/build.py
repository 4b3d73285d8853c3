"""Makes a converter of a Schema Registry from its Java name; called by `converters.build`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from icestream.api.config import Setting
from icestream.converters.registry.client import RegistryClient, access
from icestream.converters.registry.converter import Format, RegistryConverter
from icestream.converters.registry.settings import AVRO_SETTINGS, JSON_SCHEMA_SETTINGS, PROTOBUF_SETTINGS
from icestream.converters.registry.writing import Writing
from icestream.records.records import Converter

AVRO: Final = "io.confluent.connect.avro.AvroConverter"
PROTOBUF: Final = "io.confluent.connect.protobuf.ProtobufConverter"
JSON_SCHEMA: Final = "io.confluent.connect.json.JsonSchemaConverter"

_FORMATS: Final[Mapping[str, str]] = {
    AVRO: "icestream.converters.registry.avro:AvroFormat",
    PROTOBUF: "icestream.converters.registry.protobuf:ProtobufFormat",
    JSON_SCHEMA: "icestream.converters.registry.json_schema:JsonSchemaFormat",
}
SETTINGS: Final[Mapping[str, tuple[Setting, ...]]] = {
    AVRO: AVRO_SETTINGS,
    PROTOBUF: PROTOBUF_SETTINGS,
    JSON_SCHEMA: JSON_SCHEMA_SETTINGS,
}


def registry_converter(class_name: str, settings: Mapping[str, str], is_key: bool) -> Converter:
    """Raises ConfigError."""
    module, _, name = _FORMATS[class_name].partition(":")
    factory: Any = getattr(import_module(module), name)
    registry = RegistryClient(access(settings))
    writing = Writing.configured(settings, registry, is_key)
    made: Format = factory.configured(settings, writing)
    return RegistryConverter(made, registry, is_key)
