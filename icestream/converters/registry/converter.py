"""What the three converters of a Schema Registry share: messages by schema, schemas by id, failures in
Java's words. `converters.catalog` asks for one by its Java name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final, Protocol

import numpy as np

from icestream.converters.registry import wire
from icestream.converters.registry.access import access
from icestream.converters.registry.client import (
    RegisteredSchema,
    Registry,
    RegistryClient,
    UnknownSchema,
    UnusableSchema,
)
from icestream.converters.registry.settings import AVRO, JSON_SCHEMA, PROTOBUF
from icestream.converters.registry.subjects import Subjects
from icestream.converters.registry.wire import Bodies
from icestream.records.column import Column
from icestream.records.records import ConversionError, Converted, Converter, Failure
from icestream.records.rows import Indexes
from icestream.records.values import Value

_FORMATS: Final[Mapping[str, str]] = {
    AVRO: "icestream.converters.registry.avro:AvroFormat",
    PROTOBUF: "icestream.converters.registry.protobuf:ProtobufFormat",
    JSON_SCHEMA: "icestream.converters.registry.json_schema:JsonSchemaFormat",
}


def registry_converter(class_name: str, settings: Mapping[str, str], is_key: bool) -> Converter:
    """The converter with this Java name. Raises ConfigError, or PreconditionError if a package is missing."""
    module, _, name = _FORMATS[class_name].partition(":")
    factory: Any = getattr(import_module(module), name)
    registry = RegistryClient(access(settings))
    subjects = Subjects.configured(settings, registry, is_key)
    made: Format = factory.configured(settings, subjects)
    return RegistryConverter(made, registry, is_key)


@dataclass(frozen=True, eq=False)
class Read:
    """Messages of one schema: columns of some rows each, and why rows failed."""

    columns: Sequence[tuple[Indexes | None, Column]]
    failed: Mapping[int, str] = field(default_factory=dict)


class Reader(Protocol):
    """Reads messages of one schema."""

    def read(self, bodies: Bodies) -> Read: ...


class Format(Protocol):
    """Avro, Protobuf or JSON Schema."""

    kind: str
    """The registry's name for it."""

    def failure(self, topic: str) -> str:
        """How Java's message begins when a message cannot be read."""

    def unwritable(self, topic: str) -> str:
        """The same when a value cannot be written."""

    def retrieving(self, is_key: bool, schema_id: int) -> str:
        """What Java says when the registry does not have a schema."""

    def reader(self, schema: RegisteredSchema) -> Reader:
        """Raises UnusableSchema."""

    def write(self, topic: str, value: Value, length: int) -> Sequence[bytes | None]:
        """Raises UnusableSchema for all values, or ConversionError for some."""


@dataclass
class RegistryConverter:
    """A converter, whatever the format."""

    format: Format
    registry: Registry
    is_key: bool
    _readers: dict[int, Reader | str] = field(default_factory=dict)
    """By schema id; a text says why the schema cannot be used."""

    def to_connect(self, topic: str, values: Sequence[bytes | None]) -> Converted:
        parts = wire.split(values)
        prefix = self.format.failure(topic)
        groups: list[tuple[Indexes | None, Value]] = []
        if len(parts.nulls):
            groups.append((parts.nulls, None))
        failed = {row: Failure(f"{prefix} {wire.UNKNOWN_MAGIC}") for row in parts.broken.tolist()}
        for schema_id, rows, bodies in parts.by_id:
            reader = self._reader(schema_id)
            if isinstance(reader, str):
                failed.update(dict.fromkeys(rows.tolist(), Failure(f"{prefix} {reader}")))
                continue
            read = reader.read(bodies)
            groups.extend(_placed(rows, read, len(values)))
            failed.update({int(rows[row]): Failure(f"{prefix} {why}") for row, why in read.failed.items()})
        return Converted(groups, failed)

    def _reader(self, schema_id: int) -> Reader | str:
        if schema_id not in self._readers:
            try:
                schema = self.registry.by_id(schema_id)
            except UnknownSchema as error:  # may be registered later, so it is asked for again
                return f"{self.format.retrieving(self.is_key, schema_id)}: {error}"
            self._readers[schema_id] = self._made(schema)
        return self._readers[schema_id]

    def _made(self, schema: RegisteredSchema) -> Reader | str:
        if schema.kind != self.format.kind:
            return f"schema {schema.id} of the registry is of type {schema.kind}, not {self.format.kind}"
        try:
            return self.format.reader(schema)
        except UnusableSchema as error:
            return str(error)

    def from_connect(self, topic: str, value: Value, length: int) -> Sequence[bytes | None]:
        try:
            return self.format.write(topic, value, length)
        except (UnusableSchema, UnknownSchema) as error:
            why = Failure(f"{self.format.unwritable(topic)} {error}")
            raise ConversionError(dict.fromkeys(range(length), why)) from None


def _placed(rows: Indexes, read: Read, length: int) -> list[tuple[Indexes | None, Value]]:
    """The columns of a schema at their places in the chunk, without the rows that failed."""
    placed: list[tuple[Indexes | None, Value]] = []
    for positions, column in read.columns:
        mine = np.arange(len(rows)) if positions is None else positions
        if read.failed:
            good = np.flatnonzero(~np.isin(mine, np.fromiter(read.failed, np.int64)))
            mine, column = mine[good], column.take(good)
        if len(mine) == length:
            placed.append((None, column))
        elif len(mine):
            placed.append((rows[mine], column))
    return placed
