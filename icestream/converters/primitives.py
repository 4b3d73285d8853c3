"""Kafka Connect's converters of single values: bytes as they are, booleans, numbers of a fixed width."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa

from icestream.records.column import Column
from icestream.records.java_classes import java_class
from icestream.records.records import ConversionError, Converted, Failure
from icestream.records.rows import Flags
from icestream.records.schema import OPTIONAL_BYTES, ConnectSchema, Kind
from icestream.records.values import Typed, Value

PACKAGE: Final = "org.apache.kafka.connect.converters."
_NULL: Final = "null"


@dataclass(frozen=True)
class ByteArrayConverter:
    @classmethod
    def configured(cls, settings: Mapping[str, str], is_key: bool) -> Self:
        return cls()

    def to_connect(self, topic: str, values: Sequence[bytes | None]) -> Converted:
        return Converted([(None, Column(pa.array(values, pa.binary()), OPTIONAL_BYTES))])

    def from_connect(self, topic: str, value: Value, length: int) -> Sequence[bytes | None]:
        if value is None:
            return [None] * length
        _refuse_schema(value, Kind.BYTES, "ByteArrayConverter")
        if java_class(value) not in ("[B", _NULL):
            raise _failed(
                f"ByteArrayConverter is not compatible with objects of type class {java_class(value)}", value
            )
        assert isinstance(value, Column)
        found: Sequence[bytes | None] = value.values.to_pylist()
        return found


@dataclass(frozen=True)
class BooleanConverter:
    @classmethod
    def configured(cls, settings: Mapping[str, str], is_key: bool) -> Self:
        return cls()

    def to_connect(self, topic: str, values: Sequence[bytes | None]) -> Converted:
        schema = ConnectSchema(Kind.BOOLEAN, optional=True)
        bad = {row for row, value in enumerate(values) if value not in (None, b"\0", b"\1")}
        why = Failure("Failed to deserialize boolean: ")
        return _without(bad, why, schema, values, lambda kept: [v if v is None else v == b"\1" for v in kept])

    def from_connect(self, topic: str, value: Value, length: int) -> Sequence[bytes | None]:
        if value is None:
            return [None] * length
        _refuse_schema(value, Kind.BOOLEAN, "BooleanConverter")
        if java_class(value) not in ("java.lang.Boolean", _NULL):
            raise _failed(
                f"BooleanConverter is not compatible with objects of type class {java_class(value)}", value
            )
        assert isinstance(value, Column)
        return [None if one is None else bytes([one]) for one in value.values.to_pylist()]


@dataclass(frozen=True)
class NumberConverter:
    """Numbers as Kafka's own serializers write them: big-endian, of a fixed width."""

    kind: Kind
    spoken: str
    wire: np.dtype[Any]
    java: str

    def to_connect(self, topic: str, values: Sequence[bytes | None]) -> Converted:
        width = self.wire.itemsize
        bad = {row for row, value in enumerate(values) if value is not None and len(value) != width}
        why = Failure(f"Failed to deserialize {self.spoken}: ")
        return _without(bad, why, ConnectSchema(self.kind, optional=True), values, self._numbers)

    def _numbers(self, values: Sequence[bytes | None]) -> pa.Array:
        nothing = bytes(self.wire.itemsize)
        data = np.frombuffer(b"".join(nothing if v is None else v for v in values), self.wire)
        null: Flags = np.fromiter((v is None for v in values), np.bool_, len(values))
        return pa.array(data.astype(self.wire.newbyteorder("=")), mask=null if null.any() else None)

    def from_connect(self, topic: str, value: Value, length: int) -> Sequence[bytes | None]:
        if value is None:
            return [None] * length
        if java_class(value) not in (self.java, _NULL):
            raise _failed(f"Failed to serialize to {self.spoken} (was class {java_class(value)}): ", value)
        assert isinstance(value, Column)
        if java_class(value) == _NULL:
            return [None] * length
        numbers = value.values.fill_null(0).to_numpy(zero_copy_only=False).astype(self.wire)
        width = self.wire.itemsize
        text = numbers.tobytes()
        null = value.nulls.tolist()
        return [None if null[row] else text[row * width : (row + 1) * width] for row in range(length)]


_NUMBERS: Final[Mapping[str, NumberConverter]] = {
    "ShortConverter": NumberConverter(Kind.INT16, "short", np.dtype(">i2"), "java.lang.Short"),
    "IntegerConverter": NumberConverter(Kind.INT32, "integer", np.dtype(">i4"), "java.lang.Integer"),
    "LongConverter": NumberConverter(Kind.INT64, "long", np.dtype(">i8"), "java.lang.Long"),
    "FloatConverter": NumberConverter(Kind.FLOAT32, "float", np.dtype(">f4"), "java.lang.Float"),
    "DoubleConverter": NumberConverter(Kind.FLOAT64, "double", np.dtype(">f8"), "java.lang.Double"),
}

NUMBER_NAMES: Final = tuple(_NUMBERS)


def number_converter(simple_name: str) -> NumberConverter:
    return _NUMBERS[simple_name]


def _failed(reason: str, value: Typed) -> ConversionError:
    """All that are not null: those any converter writes."""
    null = value.nulls if isinstance(value, Column) else np.zeros(len(value), np.bool_)
    return ConversionError(dict.fromkeys(np.flatnonzero(~null).tolist(), Failure(reason)))


def _refuse_schema(value: Value, kind: Kind, converter: str) -> None:
    schema = value.schema if isinstance(value, Column) else None
    if schema is not None and schema.kind is not kind:
        assert value is not None
        why = Failure(f"Invalid schema type for {converter}: {schema.kind}")
        raise ConversionError(dict.fromkeys(range(len(value)), why))


def _without(
    bad: set[int],
    why: Failure,
    schema: ConnectSchema,
    values: Sequence[bytes | None],
    decode: Callable[[Sequence[bytes | None]], Any],
) -> Converted:
    """The values that are of the right size, and a failure for each that is not."""
    if not bad:
        return Converted([(None, Column(pa.array(decode(values), schema.arrow_type), schema))])
    keep = [row for row in range(len(values)) if row not in bad]
    kept = [values[row] for row in keep]
    column = Column(pa.array(decode(kept), schema.arrow_type), schema)
    return Converted([(np.array(keep, np.int64), column)] if keep else [], dict.fromkeys(sorted(bad), why))
