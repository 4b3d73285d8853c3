"""JSON that carries its schema: `{"schema":…,"payload":…}`, a chunk at a time.

Nearly all records of a chunk have the same bytes around their payload. So the bytes around a payload that was
taken apart once are kept, and compared with the next records before anything is parsed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from icestream.api.nesting import too_deep_ones
from icestream.jsontext.one_value import (
    MISSING,
    NO_ENVELOPE,
    TOO_DEEP,
    NotConvertible,
    exact,
    failure_of,
    is_broken,
    plain_text,
)
from icestream.jsontext.schemaless import PlainReader
from icestream.jsontext.schemas import schema_from
from icestream.jsontext.with_schema import PayloadReader
from icestream.records.records import Converted, Failure
from icestream.records.rows import Indexes
from icestream.records.values import Value

_MOST_SHAPES: Final = 8
"""How many different surroundings are tried on all records of a chunk before they are taken apart singly."""


class _Envelope(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    schema: msgspec.Raw
    payload: msgspec.Raw


class _Around(NamedTuple):
    """The bytes before and after a payload, and the schema among them."""

    before: bytes
    after: bytes
    schema: bytes


_split: Final = msgspec.json.Decoder(_Envelope).decode


@dataclass
class EnvelopeReader:
    """Reads the values of one converter."""

    fills: bool
    cache_size: int = 1000
    plain: PlainReader = field(default_factory=PlainReader)
    _around: list[_Around] = field(default_factory=list)
    _readers: dict[bytes, PayloadReader | PlainReader | NotConvertible] = field(default_factory=dict)

    def read(self, values: Sequence[bytes | None]) -> Converted:
        sorted_out = _Sorted(values)
        for around in list(self._around):
            sorted_out.take(around)
        while sorted_out.left and len(sorted_out.tried) < _MOST_SHAPES:
            sorted_out.take_apart_first(self._around)
        sorted_out.take_apart_rest()
        del self._around[:-_MOST_SHAPES]
        return self._decoded(sorted_out)

    def _decoded(self, sorted_out: _Sorted) -> Converted:
        found = _Gathered(dict(sorted_out.failed))
        if sorted_out.null:
            found.groups.append((np.array(sorted_out.null, np.int64), None))
        for schema, (at, payloads) in sorted_out.by_schema.items():
            found.add(self._read_payloads(schema, payloads), at)
        for position in found.broken():
            found.add(self._read_whole(sorted_out.value(position)), [position])
        return Converted(found.groups, found.failed)

    def _read_payloads(self, schema: bytes, payloads: Sequence[bytes]) -> Converted:
        reader = self._reader(schema)
        if isinstance(reader, NotConvertible):
            return Converted([], dict.fromkeys(range(len(payloads)), failure_of(reader)))
        return _read(reader, payloads)

    def _read_whole(self, value: bytes) -> Converted:
        """A value that did not look like JSON between the bytes that are usually around a payload."""
        try:
            schema, payload = _parts(value)
        except ValueError as error:
            return Converted([], {0: failure_of(error)})
        return self._read_payloads(schema, [payload])

    def _reader(self, text: bytes) -> PayloadReader | PlainReader | NotConvertible:
        if text not in self._readers:
            if len(self._readers) >= self.cache_size:
                self._readers.clear()
            self._readers[text] = self._new_reader(text)
        return self._readers[text]

    def _new_reader(self, text: bytes) -> PayloadReader | PlainReader | NotConvertible:
        try:
            schema = schema_from(exact(text), self.fills)
        except ValueError as error:
            return error if isinstance(error, NotConvertible) else NotConvertible(str(error))
        return self.plain if schema is None else PayloadReader(schema, self.fills)


def read_payloads(reader: PayloadReader, values: Sequence[bytes | None]) -> Converted:
    """Values that are payloads of one schema and nothing else."""
    too_deep = dict.fromkeys(too_deep_ones(values), Failure(TOO_DEEP))
    found = _Gathered(dict(too_deep))
    null = [at for at, value in enumerate(values) if value is None]
    if null:
        found.groups.append((np.array(null, np.int64), None))
    present = [(at, value) for at, value in enumerate(values) if value is not None and at not in too_deep]
    found.add(_read(reader, [value for _, value in present]), [at for at, _ in present])
    for position in found.broken():
        found.add(_read_respelled(reader, values[position] or b""), [position])
    return Converted(found.groups, found.failed)


def _read_respelled(reader: PayloadReader, value: bytes) -> Converted:
    try:
        text = plain_text(value)
        if text:
            return _read(reader, [text])
        return Converted([(None, reader.of_nodes([MISSING]))])
    except ValueError as error:
        return Converted([], {0: failure_of(error)})


@dataclass(eq=False)
class _Gathered:
    """What was made of all parts of a chunk."""

    failed: dict[int, Failure]
    groups: list[tuple[Indexes | None, Value]] = field(default_factory=list)

    def add(self, found: Converted, at: Sequence[int]) -> None:
        rows = np.array(at, np.int64)
        self.groups += [(rows if some is None else rows[some], value) for some, value in found.groups]
        self.failed.update({at[position]: why for position, why in found.failed.items()})

    def broken(self) -> list[int]:
        """Those whose text was refused: they get a second chance, and are not failed yet."""
        broken = [position for position, why in self.failed.items() if is_broken(why)]
        for position in broken:
            del self.failed[position]
        return broken


def _read(reader: PayloadReader | PlainReader, payloads: Sequence[bytes]) -> Converted:
    if isinstance(reader, PlainReader):
        return reader.read(payloads)
    at, column, failed = reader.read(payloads)
    return Converted([(at, column)] if len(at) else [], failed)


class _Sorted:
    """The values of a chunk, by the text of their schema."""

    def __init__(self, values: Sequence[bytes | None]) -> None:
        self._values = values
        self.failed = dict.fromkeys(too_deep_ones(values), Failure(TOO_DEEP))
        self.null = [at for at, value in enumerate(values) if value is None]
        self.left = [at for at, value in enumerate(values) if value is not None and at not in self.failed]
        self.by_schema: dict[bytes, tuple[list[int], list[bytes]]] = {}
        self.tried: list[_Around] = []

    def value(self, position: int) -> bytes:
        value = self._values[position]
        assert value is not None
        return value

    def take(self, around: _Around) -> None:
        """All values with these bytes around their payload."""
        self.tried.append(around)
        before, after, schema = around
        values, start, end, least = self._values, len(before), -len(after), len(before) + len(after)
        at: list[int] = []
        left: list[int] = []
        payloads: list[bytes] = []
        for position in self.left:
            value: Any = values[position]
            if value.startswith(before) and value.endswith(after) and len(value) > least:
                at.append(position)
                payloads.append(value[start:end])
            else:
                left.append(position)
        self.left = left
        known = self.by_schema.setdefault(schema, ([], []))
        known[0].extend(at)
        known[1].extend(payloads)

    def take_apart_first(self, around: list[_Around]) -> None:
        """The first value that is left, and with it all that are like it."""
        value: Any = self._values[self.left[0]]
        found = _surroundings(value)
        if found is None or found in self.tried:
            self._take_apart(self.left.pop(0))
            return
        around.append(found)
        self.take(found)

    def take_apart_rest(self) -> None:
        for position in self.left:
            self._take_apart(position)
        self.left = []

    def _take_apart(self, position: int) -> None:
        value: Any = self._values[position]
        try:
            schema, payload = _parts(value)
        except ValueError as error:
            self.failed[position] = failure_of(error)
            return
        known = self.by_schema.setdefault(schema, ([], []))
        known[0].append(position)
        known[1].append(payload)


def _surroundings(value: bytes) -> _Around | None:
    try:
        envelope = _split(value)
    except ValueError:  # msgspec's errors are ValueErrors
        return None
    schema, payload = bytes(envelope.schema), bytes(envelope.payload)
    before, marker, after = value.rpartition(payload)
    # The payload must be the last of the two, or its bytes could be those of something in the schema.
    if not marker or after.strip() != b"}" or value.count(b'"schema"', 0, len(before)) == 0:
        return None
    return _Around(before, after, schema)


def _parts(value: bytes) -> tuple[bytes, bytes]:
    """Schema and payload of one value; raises ValueError with Java's words."""
    try:
        envelope = _split(value)
        value.decode()
    except ValueError:
        return _parts_alone(value)
    return bytes(envelope.schema), bytes(envelope.payload)


def _parts_alone(value: bytes) -> tuple[bytes, bytes]:
    text = plain_text(value)
    try:
        envelope = _split(text)
    except ValueError:
        raise NotConvertible(NO_ENVELOPE) from None
    return bytes(envelope.schema), bytes(envelope.payload)
