"""Avro data of one schema, read and written value by value: the encoding of control-topic events (`events`).

Values are plain: records are dicts, maps with integer keys (Iceberg's arrays of key and value) stay lists of
dicts, logical types stay the numbers and bytes that they are made of. Names are looked up as Java's parser
does: in the namespace of the record around them, then in none.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from icestream.api.errors import IcestreamError

_MOST_DEPTH = 64
_FEW_VALUES = 100
"""Those that records without a byte may add to one for each byte and one for each record in it."""


class BadDatum(IcestreamError):
    """Bytes that are not of their schema, or a schema that is none."""


class Cursor:
    """A place in bytes that are being read."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self._data = data
        self.at = at
        self._values_left = 2 * len(data) + _FEW_VALUES
        self._levels = 0

    @property
    def left(self) -> int:
        return len(self._data) - self.at

    def take(self, count: int) -> bytes:
        if not 0 <= count <= self.left:
            raise BadDatum(f"{count} bytes are announced at {self.at}, and {self.left} are left")
        start, self.at = self.at, self.at + count
        return self._data[start : self.at]

    def count(self) -> None:
        """One value more. Of a hostile schema, values have no bytes, and few bytes make billions of them."""
        self._values_left -= 1
        if self._values_left < 0:
            raise BadDatum(f"{len(self._data)} bytes have more values than any event of that size")

    def enter(self) -> None:
        """A record. Of a schema that refers to itself, the bytes say how deeply records are nested."""
        self._levels += 1
        if self._levels > _MOST_DEPTH:
            raise BadDatum(f"its records are nested deeper than {_MOST_DEPTH} levels")

    def leave(self) -> None:
        self._levels -= 1

    def long(self) -> int:
        """Avro's zigzag, seven bits at a time."""
        shift = found = 0
        while True:
            if self.at >= len(self._data) or shift > 63:
                raise BadDatum(f"no number at {self.at}")
            byte = self._data[self.at]
            self.at += 1
            found |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (found >> 1) ^ -(found & 1)
            shift += 7


def long(value: int) -> bytes:
    rest = (value << 1) ^ (value >> 63)
    out = bytearray()
    while rest > 0x7F:
        out.append((rest & 0x7F) | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _sized(data: bytes) -> bytes:
    return long(len(data)) + data


def _text(cursor: Cursor) -> str:
    try:
        return cursor.take(cursor.long()).decode()
    except UnicodeDecodeError as error:
        raise BadDatum(f"no text before {cursor.at}") from error


@dataclass(frozen=True)
class AvroType:
    """How values of a schema are read and written."""

    read: Callable[[Cursor], Any]
    write: Callable[[Any], bytes]


_PRIMITIVES: Mapping[str, AvroType] = {
    "null": AvroType(lambda cursor: None, lambda value: b""),
    "boolean": AvroType(
        lambda cursor: cursor.take(1) == b"\x01", lambda value: b"\x01" if value else b"\x00"
    ),
    "int": AvroType(Cursor.long, long),
    "long": AvroType(Cursor.long, long),
    "float": AvroType(lambda cursor: struct.unpack("<f", cursor.take(4))[0], lambda v: struct.pack("<f", v)),
    "double": AvroType(lambda cursor: struct.unpack("<d", cursor.take(8))[0], lambda v: struct.pack("<d", v)),
    "bytes": AvroType(lambda cursor: cursor.take(cursor.long()), lambda value: _sized(bytes(value))),
    "string": AvroType(_text, lambda value: _sized(value.encode())),
}


@dataclass
class _Names:
    """The named types of a schema that were met so far."""

    known: dict[str, AvroType] = field(default_factory=dict)

    def find(self, name: str, namespace: str) -> AvroType:
        for full in (f"{namespace}.{name}" if namespace else name, name):
            if full in self.known:
                return self.known[full]
        raise BadDatum(f"the schema uses type '{name}' and does not say what it is")


def avro_type(schema: Any) -> AvroType:
    """The type that a schema, parsed from its JSON, describes. Raises BadDatum."""
    return _type(schema, "", _Names(), 0)


def _type(schema: Any, namespace: str, names: _Names, depth: int) -> AvroType:
    if depth > _MOST_DEPTH:
        raise BadDatum(f"the schema is deeper than {_MOST_DEPTH} levels")
    if isinstance(schema, str):
        return _PRIMITIVES.get(schema) or names.find(schema, namespace)
    if isinstance(schema, list):
        return _union([_type(one, namespace, names, depth + 1) for one in schema], schema)
    if not isinstance(schema, dict):
        raise BadDatum(f"the schema has {type(schema).__name__} where a type should be")
    kind = schema.get("type")
    if kind == "record":
        return _record(schema, namespace, names, depth)
    if kind == "array":
        return _array(_type(schema.get("items"), namespace, names, depth + 1))
    if kind == "fixed":
        return _fixed(schema, namespace, names)
    return _type(kind, namespace, names, depth + 1)


def _union(branches: list[AvroType], schema: list[Any]) -> AvroType:
    nulls = [number for number, one in enumerate(schema) if one == "null"]
    others = [number for number, one in enumerate(schema) if one != "null"]

    def read(cursor: Cursor) -> Any:
        number = cursor.long()
        if not 0 <= number < len(branches):
            raise BadDatum(f"a union has {len(branches)} branches, and number {number} is used")
        return branches[number].read(cursor)

    def write(value: Any) -> bytes:
        # Iceberg's schemas have no other unions than those of a type and null.
        number = (nulls if value is None else others)[0]
        return long(number) + branches[number].write(value)

    return AvroType(read, write)


def _record(schema: Mapping[str, Any], around: str, names: _Names, depth: int) -> AvroType:
    namespace = str(schema.get("namespace", around))
    fields: list[tuple[str, AvroType]] = []

    def read(cursor: Cursor) -> dict[str, Any]:
        found = {}
        cursor.enter()
        for name, kind in fields:
            cursor.count()
            found[name] = kind.read(cursor)
        cursor.leave()
        return found

    def write(value: Mapping[str, Any]) -> bytes:
        return b"".join(kind.write(value[name]) for name, kind in fields)

    made = AvroType(read, write)
    _note(schema, namespace, names, made)
    described = schema.get("fields")
    if not isinstance(described, list) or not all(isinstance(one, dict) for one in described):
        raise BadDatum(f"record '{schema.get('name')}' has no fields")
    for one in described:
        fields.append((str(one.get("name")), _type(one.get("type"), namespace, names, depth + 1)))
    return made


def _array(items: AvroType) -> AvroType:
    def read(cursor: Cursor) -> list[Any]:
        found: list[Any] = []
        while count := cursor.long():
            if count < 0:
                count = -count
                cursor.long()  # the size of the block in bytes
            if count > cursor.left:
                # Every item of an event's own schema takes a byte at least.
                raise BadDatum(f"{count} items are announced, and {cursor.left} bytes are left")
            for _ in range(count):
                cursor.count()
                found.append(items.read(cursor))
        return found

    def write(value: Any) -> bytes:
        if not value:
            return b"\x00"
        return long(len(value)) + b"".join(map(items.write, value)) + b"\x00"

    return AvroType(read, write)


def _fixed(schema: Mapping[str, Any], around: str, names: _Names) -> AvroType:
    size = schema.get("size")
    if not isinstance(size, int) or size < 0:
        raise BadDatum(f"fixed type '{schema.get('name')}' has no size")

    def write(value: bytes) -> bytes:
        if len(value) != size:
            raise BadDatum(f"{len(value)} bytes for '{schema.get('name')}', which has {size}")
        return bytes(value)

    made = AvroType(lambda cursor: cursor.take(size), write)
    _note(schema, str(schema.get("namespace", around)), names, made)
    return made


def _note(schema: Mapping[str, Any], namespace: str, names: _Names, made: AvroType) -> None:
    name = str(schema.get("name"))
    names.known[f"{namespace}.{name}" if namespace and "." not in name else name] = made
