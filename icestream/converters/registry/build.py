"""Makes a converter of a Schema Registry from its Java name; called by `converters.build`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from icestream.converters.registry.access import access
from icestream.converters.registry.client import RegistryClient
from icestream.converters.registry.converter import Format, RegistryConverter
from icestream.converters.registry.settings import AVRO, JSON_SCHEMA, PROTOBUF
from icestream.converters.registry.writing import Writing
from icestream.records.records import Converter

_FORMATS: Final[Mapping[str, str]] = {
    AVRO: "icestream.converters.registry.avro:AvroFormat",
    PROTOBUF: "icestream.converters.registry.protobuf:ProtobufFormat",
    JSON_SCHEMA: "icestream.converters.registry.json_schema:JsonSchemaFormat",
}


def registry_converter(class_name: str, settings: Mapping[str, str], is_key: bool) -> Converter:
    """Raises ConfigError, or PreconditionError if a package is missing."""
    module, _, name = _FORMATS[class_name].partition(":")
    factory: Any = getattr(import_module(module), name)
    registry = RegistryClient(access(settings))
    writing = Writing.configured(settings, registry, is_key)
    made: Format = factory.configured(settings, writing)
    return RegistryConverter(made, registry, is_key)
