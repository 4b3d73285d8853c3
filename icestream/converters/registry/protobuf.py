"""`io.confluent.connect.protobuf.ProtobufConverter`: Protobuf messages under schemas of a registry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Self

import numpy as np
import pyarrow as pa

from icestream.api.config import trimmed
from icestream.converters.registry.byte_columns import varints
from icestream.converters.registry.client import RegisteredSchema, UnusableSchema
from icestream.converters.registry.converter import Read
from icestream.converters.registry.protobuf_compile import Compiled, compiled, require_protoc
from icestream.converters.registry.protobuf_plan import ProtobufOptions, ProtoMessage, is_wrapper, plan
from icestream.converters.registry.protobuf_read import decode
from icestream.converters.registry.subjects import Subjects
from icestream.converters.registry.wire import Bodies
from icestream.records.column import Column
from icestream.records.rows import Indexes
from icestream.records.schema import ConnectSchema
from icestream.records.values import Value

PROTOBUF: Final = "PROTOBUF"
Path = tuple[int, ...]
"""Which message of a file: positions from the outside in."""


@dataclass(frozen=True)
class ProtobufFormat:
    options: ProtobufOptions
    subjects: Subjects
    kind: str = PROTOBUF

    @classmethod
    def configured(cls, settings: Mapping[str, str], subjects: Subjects) -> Self:
        """Raises PreconditionError if protoc is missing."""
        require_protoc()

        def flag(key: str, default: bool) -> bool:
            return trimmed(settings.get(key, str(default))).lower() == "true"

        options = ProtobufOptions(
            enhanced=flag("enhanced.protobuf.schema.support", False),
            int_enums=flag("int.for.enums", False),
            optional_nullables=flag("optional.for.nullables", False),
            proto2_optional=flag("optional.for.proto2", True),
            wrapper_nullables=flag("wrapper.for.nullables", False),
            wrapper_primitives=flag("wrapper.for.raw.primitives", True),
            struct_for_nulls=flag("generate.struct.for.nulls", False),
            union_index=flag("generate.index.for.unions", True),
            flat_unions=flag("flatten.unions", False),
        )
        return cls(options, subjects)

    def failure(self, topic: str) -> str:
        return f"Failed to deserialize data for topic {topic} to Protobuf:"

    def unwritable(self, topic: str) -> str:
        return f"Failed to serialize Protobuf data from topic {topic}:"

    def retrieving(self, is_key: bool, schema_id: int) -> str:
        return f"Error retrieving Protobuf schema for id {schema_id}"

    def reader(self, schema: RegisteredSchema) -> ProtobufReader:
        return ProtobufReader(schema.id, compiled(schema.text, schema.references), self.options)

    def write(self, topic: str, value: Value, length: int) -> Sequence[bytes | None]:
        from icestream.converters.registry.protobuf_write import encoded

        return encoded(topic, value, length, self.options, self.subjects)


@dataclass
class ProtobufReader:
    schema_id: int
    compiled: Compiled
    options: ProtobufOptions
    _types: dict[Path, _Type | str] = field(default_factory=dict)
    """By path; a text says why the message cannot be read."""

    def read(self, bodies: Bodies) -> Read:
        columns: list[tuple[Indexes | None, Column]] = []
        failed: dict[int, str] = {}
        for path, rows, messages in _by_path(bodies, failed):
            kind = self._type(path)
            if isinstance(kind, str):
                failed.update(dict.fromkeys(rows.tolist(), kind))
                continue
            values, broken = decode(kind.message, messages)
            columns.append((rows, Column(kind.value(values), kind.schema)))
            failed.update({int(rows[row]): why for row, why in broken.items()})
        about = f"Error deserializing Protobuf message for id {self.schema_id}: "
        return Read(columns, {row: about + why for row, why in failed.items()})

    def _type(self, path: Path) -> _Type | str:
        if path not in self._types:
            try:
                descriptor = self.compiled.message(path)
                message = plan(descriptor, self.compiled, self.options)
                unwraps = self.options.wrapper_primitives and is_wrapper(descriptor)
                self._types[path] = _Type(message, unwraps)
            except UnusableSchema as error:
                self._types[path] = str(error)
        return self._types[path]


@dataclass(frozen=True)
class _Type:
    message: ProtoMessage
    unwraps: bool
    """A wrapper, whose value stands for it."""

    @property
    def schema(self) -> ConnectSchema:
        if not self.unwraps:
            return self.message.schema
        return ConnectSchema(self.message.fields[1].schema.kind)

    def value(self, column: pa.Array) -> pa.Array:
        return column.field(0) if self.unwraps else column


def _by_path(bodies: Bodies, failed: dict[int, str]) -> list[tuple[Path, Indexes, Bodies]]:
    """Messages by their type. All that begin alike are taken together."""
    begin = bodies.begin.copy()
    rows_by_path: dict[Path, Indexes] = {}
    left = np.arange(len(bodies))
    while len(left):
        first = int(left[0])
        path, behind = _path(bodies, first)
        if path is None:
            failed[first] = "the message indexes are broken"
            left = left[1:]
            continue
        size = behind - int(bodies.begin[first])
        alike = _alike(bodies, left, size)
        begin[alike] += size
        others = rows_by_path.get(path)
        rows_by_path[path] = alike if others is None else np.sort(np.concatenate((others, alike)))
        left = np.setdiff1d(left, alike, assume_unique=True)
    return [
        (path, rows, Bodies(bodies.text, begin[rows], bodies.end[rows]))
        for path, rows in rows_by_path.items()
    ]


def _alike(bodies: Bodies, rows: Indexes, size: int) -> Indexes:
    """Of some messages those that begin with the same bytes as the first of them."""
    begin = bodies.begin
    start = int(begin[rows[0]])
    rows = rows[begin[rows] + size <= bodies.end[rows]]
    for place in range(size):
        rows = rows[bodies.data[begin[rows] + place] == bodies.text[start + place]]
    return rows


def _path(bodies: Bodies, row: int) -> tuple[Path | None, int]:
    at, end = bodies.begin[row : row + 1].copy(), int(bodies.end[row])
    path: list[int] = []
    left = 1
    while left > 0:
        values, endless = varints(bodies.data, at)
        value = int(values[0])
        number = (value >> 1) ^ -(value & 1)
        if len(endless) or at[0] > end or not 0 <= number < 1 << 16:
            return None, end
        if not path and left == 1 and number == 0:
            return (0,), int(at[0])
        path.append(number)
        left = number if len(path) == 1 else left - 1
    return tuple(path[1:]), int(at[0])
