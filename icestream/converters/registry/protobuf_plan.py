"""Protobuf messages as Kafka Connect's schemas, as Confluent's converter has them, with what the reader of
messages must know."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from icestream.converters.registry.client import UnusableSchema
from icestream.converters.registry.protobuf_compile import Compiled, field_parameters
from icestream.records.schema import DATE, DECIMAL, SCALE, TIME, TIMESTAMP, ConnectSchema, Field, Kind

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor, OneofDescriptor

_NAMESPACE: Final = "io.confluent.connect.protobuf"
TAG: Final = f"{_NAMESPACE}.Tag"
TYPE: Final = f"{_NAMESPACE}.Type"
ENUM: Final = f"{_NAMESPACE}.Enum"
UNION: Final = f"{_NAMESPACE}.Union."
TYPES: Final = (
    *("", "double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string", "group"),
    *("message", "bytes", "uint32", "enum", "sfixed32", "sfixed64", "sint32", "sint64"),
)
"""Protobuf's names by the numbers of its descriptors."""
_KINDS: Final[Mapping[str, Kind]] = {
    **dict.fromkeys(("int32", "sint32", "sfixed32"), Kind.INT32),
    **dict.fromkeys(("uint32", "fixed32", "int64", "uint64", "sint64", "fixed64", "sfixed64"), Kind.INT64),
    "float": Kind.FLOAT32,
    "double": Kind.FLOAT64,
    "bool": Kind.BOOLEAN,
    "string": Kind.STRING,
    "bytes": Kind.BYTES,
}
_SMALL: Final[Mapping[str | None, Kind]] = {"int8": Kind.INT8, "int16": Kind.INT16}
_LOGICAL: Final[Mapping[str, tuple[Kind, str]]] = {
    "google.type.Date": (Kind.INT32, DATE),
    "google.type.TimeOfDay": (Kind.INT32, TIME),
    "google.protobuf.Timestamp": (Kind.INT64, TIMESTAMP),
}
_WRAPPERS: Final = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)


def default(descriptor: FieldDescriptor) -> Any:
    return None if descriptor.is_repeated else descriptor.default_value


def map_name(entry: str) -> str:
    """`CallInfoEntry` is of the field `call_info`."""
    space, _, name = entry.rpartition(".")
    field_name = re.sub(r"(?<!^)(?=[A-Z])", "_", name.removesuffix("Entry")).lower()
    return f"{space}.{field_name}" if space else field_name


def is_map_entry(descriptor: Descriptor) -> bool:
    """Of a map, or of a list of messages that look like entries, which Java takes for one."""
    fields = descriptor.fields
    is_pair = [one.name for one in fields] == ["key", "value"] and not any(one.is_repeated for one in fields)
    return bool(descriptor.name.endswith("Entry") and is_pair)


def is_proto3(descriptor: Any) -> bool:
    return _syntax(descriptor.file) == "proto3"


@functools.lru_cache(maxsize=100)
def _syntax(file: Any) -> str:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    proto = FileDescriptorProto()
    file.CopyToProto(proto)
    return str(proto.syntax or "proto2")


@functools.lru_cache(maxsize=100)
def _optional_numbers(message: Any) -> frozenset[int]:
    """Fields that say `optional`."""
    from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto

    proto = DescriptorProto()
    message.CopyToProto(proto)
    if is_proto3(message):
        return frozenset(one.number for one in proto.field if one.proto3_optional)
    optional = FieldDescriptorProto.LABEL_OPTIONAL
    return frozenset(
        one.number for one in proto.field if one.label == optional and not one.HasField("oneof_index")
    )


def says_optional(descriptor: FieldDescriptor) -> bool:
    return descriptor.number in _optional_numbers(descriptor.containing_type)


def is_in_oneof(descriptor: FieldDescriptor) -> bool:
    return descriptor.containing_oneof is not None and not says_optional(descriptor)


def real_oneofs(descriptor: Descriptor) -> list[OneofDescriptor]:
    """Without those that protoc makes for `optional` fields."""
    return [one for one in descriptor.oneofs if not says_optional(one.fields[0])]


@dataclass(frozen=True)
class ProtobufOptions:
    """Settings of the converter that change schemas."""

    enhanced: bool = False
    """`enhanced.protobuf.schema.support`: full names."""
    int_enums: bool = False
    """`int.for.enums`."""
    optional_nullables: bool = False
    """`optional.for.nullables`: only what says `optional` is optional."""
    proto2_optional: bool = True
    """`optional.for.proto2`."""
    wrapper_nullables: bool = False
    """`wrapper.for.nullables`: wrappers are the values in them."""
    wrapper_primitives: bool = True
    """`wrapper.for.raw.primitives`: the same, also for a wrapper alone."""
    struct_for_nulls: bool = False
    """`generate.struct.for.nulls`: a message that is not there is one of defaults."""
    union_index: bool = True
    """`generate.index.for.unions`."""
    flat_unions: bool = False
    """`flatten.unions`."""


@dataclass(frozen=True)
class ProtoField:
    number: int
    type: str
    schema: ConnectSchema
    """Of the field; of a repeated one: of the list or map."""
    is_repeated: bool = False
    has_presence: bool = False
    """Whether it is null where it is not written; else it is the default."""
    is_required: bool = False
    default: Any = None
    message: ProtoMessage | None = None
    symbols: tuple[tuple[int, str], ...] = ()
    enum_name: str = ""
    is_strict: bool = True
    """proto3: text must be UTF-8, an unknown symbol has a name of its own."""
    unwraps: bool = False
    """A wrapper whose value stands for it."""
    name: str = ""


@dataclass(frozen=True)
class ProtoUnion:
    """A oneof: a struct of its members, of which at most one is there."""

    schema: ConnectSchema
    members: tuple[ProtoField, ...]


@dataclass(frozen=True)
class ProtoMessage:
    schema: ConnectSchema
    parts: tuple[ProtoField | ProtoUnion, ...]
    """In the order of the schema's fields."""
    flat: tuple[tuple[ProtoField, ...], ...] = ()
    """Oneofs whose members are parts themselves."""
    fields: Mapping[int, ProtoField] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        schema: ConnectSchema,
        parts: tuple[ProtoField | ProtoUnion, ...],
        flat: tuple[tuple[ProtoField, ...], ...] = (),
    ) -> ProtoMessage:
        fields = {}
        for part in parts:
            for one in part.members if isinstance(part, ProtoUnion) else (part,):
                fields[one.number] = one
        return cls(schema, parts, flat, fields)


def plan(descriptor: Descriptor, compiled: Compiled, options: ProtobufOptions) -> ProtoMessage:
    """Raises UnusableSchema."""
    return _Planner(options, compiled).message(descriptor, ())


def is_wrapper(descriptor: Descriptor) -> bool:
    return descriptor.full_name in _WRAPPERS


@dataclass(frozen=True)
class _Planner:
    options: ProtobufOptions
    compiled: Compiled

    def message(self, descriptor: Descriptor, above: tuple[str, ...]) -> ProtoMessage:
        if descriptor.full_name in above:
            raise UnusableSchema(
                f"the Protobuf message {descriptor.full_name} contains itself, which no column can hold"
            )
        inside = (*above, descriptor.full_name)
        parts: list[ProtoField | ProtoUnion] = []
        fields: list[Field] = []
        flat = []
        for oneof in real_oneofs(descriptor):
            members = tuple(self.field(one, inside, in_oneof=True) for one in oneof.fields)
            if self.options.flat_unions:
                flat.append(members)
                parts.extend(members)
                fields.extend(Field(one.name, one.schema) for one in members)
            else:
                union = self._union(oneof, members)
                parts.append(union)
                fields.append(Field(self._union_name(oneof), union.schema))
        for one in descriptor.fields:
            if not is_in_oneof(one):
                made = self.field(one, inside)
                parts.append(made)
                fields.append(Field(one.name, made.schema))
        schema = ConnectSchema(Kind.STRUCT, name=self._name(descriptor), fields=tuple(fields))
        return ProtoMessage.of(schema, tuple(parts), tuple(flat))

    @property
    def _unwraps(self) -> bool:
        # In Java both keys do it, though the names say otherwise.
        return self.options.wrapper_nullables or self.options.wrapper_primitives

    def _name(self, descriptor: Any) -> str:
        return str(descriptor.full_name if self.options.enhanced else descriptor.name)

    def _union(self, oneof: OneofDescriptor, members: tuple[ProtoField, ...]) -> ProtoUnion:
        schema = ConnectSchema(
            Kind.STRUCT,
            optional=True,
            name=UNION + self._name(oneof),
            fields=tuple(Field(one.name, one.schema) for one in members),
        )
        return ProtoUnion(schema, members)

    def _union_name(self, oneof: OneofDescriptor) -> str:
        return f"{oneof.name}_{oneof.index}" if self.options.union_index else str(oneof.name)

    def field(
        self, descriptor: FieldDescriptor, above: tuple[str, ...], in_oneof: bool = False
    ) -> ProtoField:
        made = self._bare(descriptor, above)
        schema = made.schema
        if made.is_repeated and schema.kind is not Kind.MAP:
            schema = ConnectSchema(Kind.ARRAY, value=schema.as_optional(), optional=True)
        if in_oneof or self._is_nullable(descriptor):
            schema = schema.as_optional()
        tagged = (*schema.parameters, (TAG, str(descriptor.number)))
        return replace(
            made,
            name=descriptor.name,
            schema=replace(schema, parameters=tagged),
            has_presence=in_oneof or self._has_presence(descriptor),
            is_required=bool(getattr(descriptor, "is_required", False)),
            is_strict=is_proto3(descriptor.containing_type),
        )

    def _is_nullable(self, descriptor: FieldDescriptor) -> bool:
        if self.options.optional_nullables:
            return says_optional(descriptor)
        return not self.options.wrapper_nullables

    def _has_presence(self, descriptor: FieldDescriptor) -> bool:
        """Whether the field is null where it is not written."""
        if descriptor.is_repeated or self.options.struct_for_nulls:
            return False
        if TYPES[descriptor.type] == "message":
            return True
        if is_proto3(descriptor.containing_type):
            return says_optional(descriptor)
        return self.options.proto2_optional and says_optional(descriptor)

    def _bare(self, descriptor: FieldDescriptor, above: tuple[str, ...]) -> ProtoField:
        kind = TYPES[descriptor.type]
        if kind == "group":
            raise UnusableSchema(f"the Protobuf group {descriptor.full_name} is not supported; use a message")
        made = ProtoField(descriptor.number, kind, ConnectSchema(Kind.STRING), descriptor.is_repeated)
        if kind == "message":
            return self._nested(made, descriptor, above)
        if kind == "enum":
            return self._enum(made, descriptor)
        small = _SMALL.get(self._parameters(descriptor).get("connect.type"))
        notes = () if kind in ("int32", "int64") or _KINDS[kind] not in (Kind.INT32, Kind.INT64) else (kind,)
        schema = ConnectSchema(_KINDS[kind], parameters=tuple((TYPE, note) for note in notes))
        if small is not None and schema.kind is Kind.INT32:
            schema = ConnectSchema(small)
        return replace(made, schema=schema, default=default(descriptor))

    def _parameters(self, descriptor: FieldDescriptor) -> dict[str, str]:
        return field_parameters(self.compiled, descriptor.GetOptions()) if descriptor.has_options else {}

    def _enum(self, made: ProtoField, descriptor: FieldDescriptor) -> ProtoField:
        enum = descriptor.enum_type
        assert enum is not None
        parameters = [(ENUM, str(enum.name))]
        parameters += [(f"{ENUM}.{one.name}", str(one.number)) for one in enum.values]
        kind = Kind.INT32 if self.options.int_enums else Kind.STRING
        schema = ConnectSchema(kind, name=self._name(enum), optional=True, parameters=tuple(parameters))
        # Of names for one number, the first is what Java prints.
        symbols = {one.number: one.name for one in reversed(enum.values)}
        return replace(
            made,
            schema=schema,
            default=default(descriptor),
            symbols=tuple(sorted(symbols.items())),
            enum_name=enum.name,
        )

    def _nested(self, made: ProtoField, descriptor: FieldDescriptor, above: tuple[str, ...]) -> ProtoField:
        inner = descriptor.message_type
        assert inner is not None
        name = inner.full_name
        if descriptor.is_repeated and is_map_entry(inner):
            return self._map(made, inner, above)
        message = self.message(inner, above)
        if name in _LOGICAL:
            kind, logical = _LOGICAL[name]
            schema = ConnectSchema(kind, name=logical, version=1, optional=True)
        elif name == "confluent.type.Decimal":
            schema = self._decimal(descriptor)
        elif self._unwraps and is_wrapper(inner):
            value = message.fields[1].schema
            unwrapped = ConnectSchema(value.kind, optional=True)
            return replace(made, schema=unwrapped, message=message, unwraps=True)
        else:
            schema = message.schema.as_optional()
        return replace(made, schema=schema, message=message)

    def _map(self, made: ProtoField, entry: Descriptor, above: tuple[str, ...]) -> ProtoField:
        # Both are there in every entry, as defaults if need be.
        key, value = (replace(self.field(one, above), has_presence=False) for one in entry.fields)
        schema = ConnectSchema(
            Kind.MAP, name=map_name(self._name(entry)), key=key.schema, value=value.schema, optional=True
        )
        pair = ConnectSchema(Kind.STRUCT, fields=(Field("key", key.schema), Field("value", value.schema)))
        return replace(made, schema=schema, message=ProtoMessage.of(pair, (key, value)))

    def _decimal(self, descriptor: FieldDescriptor) -> ConnectSchema:
        given = self._parameters(descriptor)
        scale = given.get("scale", "0")
        parameters = [(SCALE, scale if scale.lstrip("-").isdigit() else "0")]
        if given.get("precision", "").isdigit():
            parameters.append(("connect.decimal.precision", given["precision"]))
        return ConnectSchema(Kind.BYTES, name=DECIMAL, version=1, optional=True, parameters=tuple(parameters))
