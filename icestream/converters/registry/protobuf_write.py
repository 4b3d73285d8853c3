"""Columns to Protobuf messages under a schema of the registry, by Google's runtime; the Protobuf
converter's way back to Kafka."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from icestream.converters.registry import wire
from icestream.converters.registry.avro_from_connect import unscaled
from icestream.converters.registry.client import UnusableSchema
from icestream.converters.registry.protobuf_compile import compiled
from icestream.converters.registry.protobuf_plan import ENUM, TAG, TYPE, UNION, ProtobufOptions
from icestream.converters.registry.subjects import Subjects
from icestream.records.column import Column
from icestream.records.records import ConversionError, Failure
from icestream.records.schema import DATE, DECIMAL, SCALE, TIME, TIMESTAMP, ConnectSchema, Kind
from icestream.records.values import Value

WRAPPERS: Final = ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
"""Messages of `google/protobuf/wrappers.proto`, in their order."""
_WRAPPED: Final[Mapping[Kind, str]] = {
    **dict.fromkeys((Kind.INT8, Kind.INT16, Kind.INT32), "Int32"),
    Kind.INT64: "Int64",
    Kind.FLOAT32: "Float",
    Kind.FLOAT64: "Double",
    Kind.BOOLEAN: "Bool",
    Kind.STRING: "String",
    Kind.BYTES: "Bytes",
}
_PLAIN: Final[Mapping[Kind, str]] = {
    **dict.fromkeys((Kind.INT8, Kind.INT16, Kind.INT32), "int32"),
    Kind.INT64: "int64",
    Kind.FLOAT32: "float",
    Kind.FLOAT64: "double",
    Kind.BOOLEAN: "bool",
    Kind.STRING: "string",
    Kind.BYTES: "bytes",
}
_MEANINGS: Final[Mapping[str, tuple[str, str]]] = {
    DATE: ("google.type.Date", "google/type/date.proto"),
    TIME: ("google.type.TimeOfDay", "google/type/timeofday.proto"),
    TIMESTAMP: ("google.protobuf.Timestamp", "google/protobuf/timestamp.proto"),
    DECIMAL: ("confluent.type.Decimal", "confluent/type/decimal.proto"),
}
_DEFINITION: Final = "\0"
"""Marks lines of types that a field needs: they go before all fields, also out of a oneof."""
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_REQUIRED: Final = Failure("Invalid value: null used for required field")


@dataclass(frozen=True)
class ProtoText:
    text: str
    index: int
    """Which message of the file."""
    name: str


def proto_text(schema: ConnectSchema, options: ProtobufOptions) -> ProtoText:
    """Raises UnusableSchema."""
    if schema.kind is Kind.STRUCT:
        return _message_file(schema, options)
    if schema.kind not in _WRAPPED or schema.name in _MEANINGS:
        raise UnusableSchema(f"Protobuf has no message for {schema.kind} alone; put it into a struct")
    wrapper = _WRAPPED[schema.kind]
    messages = (f"message {name}Value {{ {name.lower()} value = 1; }}" for name in WRAPPERS)
    text = "\n".join(['syntax = "proto3";', "package google.protobuf;", *messages, ""])
    return ProtoText(text, WRAPPERS.index(wrapper), f"google.protobuf.{wrapper}Value")


def _message_file(schema: ConnectSchema, options: ProtobufOptions) -> ProtoText:
    package, _, name = (schema.name or "ConnectDefault1").rpartition(".")
    writer = _Writer(options)
    body = writer.message(name, schema, "")
    imports = [f'import "{one}";' for one in sorted(writer.imports)]
    head = ['syntax = "proto3";', *([f"package {package};"] if package else []), *imports]
    return ProtoText("\n".join([*head, *body, ""]), 0, f"{package}.{name}" if package else name)


@dataclass
class _Writer:
    options: ProtobufOptions
    imports: set[str] = field(default_factory=set)
    unnamed: int = 1

    def message(self, name: str, schema: ConnectSchema, indent: str) -> list[str]:
        inside = indent + "  "
        lines, defined = [f"{indent}message {name} {{"], set[str]()
        taken = {int(tag) for tag in _tags(schema)}
        for one in schema.fields:
            if (one.schema.name or "").startswith(UNION):
                lines.append(f"{inside}oneof {(one.schema.name or '').removeprefix(UNION)} {{")
                for member in one.schema.fields:
                    tag = _tag(member.schema, taken)
                    lines += self._field(member.name, member.schema, tag, inside + "  ", defined, "")
                lines.append(f"{inside}}}")
                continue
            label = "optional " if self.options.optional_nullables and one.schema.optional else ""
            lines += self._field(one.name, one.schema, _tag(one.schema, taken), inside, defined, label)
        return [*_definitions_first(lines, inside), f"{indent}}}"]

    def _field(
        self, name: str, schema: ConnectSchema, tag: int, indent: str, defined: set[str], label: str
    ) -> list[str]:
        inner = schema
        if schema.kind is Kind.ARRAY:
            assert schema.value is not None
            inner, label = schema.value, "repeated "
        lines: list[str] = []
        if inner.kind is Kind.MAP:
            assert inner.key is not None and inner.value is not None
            label = ""
            sides = [self._type(one, indent, defined, lines) for one in (inner.key, inner.value)]
            kind = f"map<{', '.join(sides)}>"
        else:
            kind = self._type(inner, indent, defined, lines)
        return [*lines, f"{indent}{label}{kind} {name} = {tag}{self._notes(inner)};"]

    def _type(self, schema: ConnectSchema, indent: str, defined: set[str], lines: list[str]) -> str:
        if (meaning := _MEANINGS.get(schema.name or "")) is not None:
            name, file = meaning
            self.imports.add(file)
            return name
        if schema.parameter(ENUM) is not None:
            return self._defined(schema.parameter(ENUM) or "", schema, indent, defined, lines)
        if schema.kind is Kind.STRUCT:
            name = (schema.name or self._new_name()).rpartition(".")[2]
            return self._defined(name, schema, indent, defined, lines)
        if schema.kind not in _PLAIN:
            raise UnusableSchema(f"Protobuf has no {schema.kind} inside of another list or map")
        return schema.parameter(TYPE) or _PLAIN[schema.kind]

    def _new_name(self) -> str:
        self.unnamed += 1
        return f"ConnectDefault{self.unnamed}"

    def _defined(
        self, name: str, schema: ConnectSchema, indent: str, defined: set[str], lines: list[str]
    ) -> str:
        if name not in defined:
            defined.add(name)
            made = self.message(name, schema, "") if schema.kind is Kind.STRUCT else _enum(name, schema)
            lines += [f"{_DEFINITION}{line}" for line in made]
        return name

    def _notes(self, schema: ConnectSchema) -> str:
        notes = {}
        if schema.name == DECIMAL:
            notes["scale"] = schema.parameter(SCALE) or "0"
            if (precision := schema.parameter("connect.decimal.precision")) is not None:
                notes["precision"] = precision
        elif schema.kind in (Kind.INT8, Kind.INT16):
            notes["connect.type"] = schema.kind.lower()
        if not notes:
            return ""
        self.imports.add("confluent/meta.proto")
        pairs = ", ".join(f'{{key: "{key}", value: "{value}"}}' for key, value in notes.items())
        return f" [(confluent.field_meta) = {{params: [{pairs}]}}]"


def _definitions_first(lines: list[str], indent: str) -> list[str]:
    first, *rest = lines
    types = [indent + line.removeprefix(_DEFINITION) for line in rest if line.startswith(_DEFINITION)]
    return [first, *types, *(line for line in rest if not line.startswith(_DEFINITION))]


def _enum(name: str, schema: ConnectSchema) -> list[str]:
    prefix = f"{ENUM}."
    symbols = [(int(value), key[len(prefix) :]) for key, value in schema.parameters if key.startswith(prefix)]
    # proto3 wants the zero first.
    ordered = sorted(symbols, key=lambda one: one[0] != 0)
    return [f"enum {name} {{", *(f"  {symbol} = {number};" for number, symbol in ordered), "}"]


def _tags(schema: ConnectSchema) -> list[str]:
    found = []
    for one in schema.fields:
        members = one.schema.fields if (one.schema.name or "").startswith(UNION) else (one,)
        found += [tag for member in members if (tag := member.schema.parameter(TAG)) is not None]
    return found


def _tag(schema: ConnectSchema, taken: set[int]) -> int:
    if (given := schema.parameter(TAG)) is not None:
        return int(given)
    tag = next(number for number in range(1, 2**29) if number not in taken)
    taken.add(tag)
    return tag


class _Null(ValueError):
    """A null where the schema wants a value."""


def encoded(
    topic: str, value: Value, length: int, options: ProtobufOptions, subjects: Subjects
) -> Sequence[bytes | None]:
    if value is None:
        return [None] * length
    if not isinstance(value, Column) or value.schema is None:
        raise UnusableSchema("the value has no schema; give it one, or use the JSON converter")
    schema = value.schema
    described, kind = _message_class(schema, options)
    schema_id = subjects.schema_id(topic, described.name, "PROTOBUF", described.text)
    head = wire.head(schema_id) + (b"\0" if not described.index else bytes((2, 2 * described.index)))
    written: list[bytes | None] = []
    failed: dict[int, Failure] = {}
    for row, one in enumerate(value.values.to_pylist()):
        try:
            written.append(None if one is None else head + _serialized(kind, schema, one))
        except _Null:
            failed[row] = _REQUIRED
    if failed:
        raise ConversionError(failed)
    return written


@functools.lru_cache(maxsize=1000)
def _message_class(schema: ConnectSchema, options: ProtobufOptions) -> tuple[ProtoText, Any]:
    from google.protobuf.message_factory import GetMessageClass

    described = proto_text(schema, options)
    return described, GetMessageClass(compiled(described.text, ()).message((described.index,)))


def _serialized(kind: Any, schema: ConnectSchema, value: Any) -> bytes:
    message = kind()
    if schema.kind is Kind.STRUCT:
        _fill(message, schema, value)
    else:
        message.value = value
    found: bytes = message.SerializeToString()
    return found


def _fill(message: Any, schema: ConnectSchema, value: dict[str, Any]) -> None:
    for one in schema.fields:
        inner = value.get(one.name)
        if inner is None:
            if not one.schema.optional:
                raise _Null
        elif (one.schema.name or "").startswith(UNION):
            _fill(message, one.schema, {name: given for name, given in inner.items() if given is not None})
        else:
            _put(message, one.name, one.schema, inner)


def _put(message: Any, name: str, schema: ConnectSchema, value: Any) -> None:
    if schema.kind is Kind.ARRAY:
        assert schema.value is not None
        for item in value:
            if item is None:
                raise _Null
            if _is_message(schema.value):
                _fill_one(getattr(message, name).add(), schema.value, item)
            else:
                getattr(message, name).append(item)
    elif schema.kind is Kind.MAP:
        _put_map(getattr(message, name), schema, value)
    elif _is_message(schema):
        inner = getattr(message, name)
        inner.SetInParent()
        _fill_one(inner, schema, value)
    elif schema.parameter(ENUM) is not None and isinstance(value, str):
        setattr(message, name, int(schema.parameter(f"{ENUM}.{value}") or 0))
    else:
        setattr(message, name, value)


def _put_map(entries: Any, schema: ConnectSchema, pairs: Sequence[tuple[Any, Any]]) -> None:
    assert schema.value is not None
    for key, value in pairs:
        if value is None:
            raise _Null
        if _is_message(schema.value):
            _fill_one(entries[key], schema.value, value)
        else:
            entries[key] = value


def _is_message(schema: ConnectSchema) -> bool:
    return schema.kind is Kind.STRUCT or (schema.name or "").startswith("org.apache.kafka.connect.data.")


def _fill_one(message: Any, schema: ConnectSchema, value: Any) -> None:
    if schema.name == DECIMAL:
        scale = int(schema.parameter(SCALE) or 0)
        message.value, message.scale = unscaled(value, scale), scale
        message.precision = len(value.as_tuple().digits)
    elif isinstance(value, datetime.datetime):
        passed = value - _EPOCH
        message.seconds = passed // datetime.timedelta(seconds=1)
        message.nanos = passed.microseconds * 1000
    elif isinstance(value, datetime.date):
        message.year, message.month, message.day = value.year, value.month, value.day
    elif isinstance(value, datetime.time):
        message.hours, message.minutes, message.seconds = value.hour, value.minute, value.second
        message.nanos = value.microsecond * 1000
    else:
        _fill(message, schema, value)
