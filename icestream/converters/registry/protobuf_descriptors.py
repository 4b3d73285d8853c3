"""What Protobuf's descriptors say only in a roundabout way; asked when messages are planned."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor, OneofDescriptor


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
