"""Avro's container files, as Confluent's AvroFormat writes them: the schema as its converter has it, and
blocks of records under a codec. Values must have a schema."""

from __future__ import annotations

import bz2
import functools
import json
import os
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa

from icestream.api.batch import Failure
from icestream.connectors.s3.formats.format import Encoder, Rows
from icestream.connectors.s3.formats.required import missing_values
from icestream.converters.registry.avro_connect import AvroOptions
from icestream.converters.registry.avro_from_connect import avro_schema
from icestream.converters.registry.avro_schema import AvroType, BadSchema, parse
from icestream.converters.registry.avro_write import datums_of, long_datum
from icestream.records.column import Column, filled_deep
from icestream.records.schema import ConnectSchema, Field, Kind
from icestream.records.values import Typed

_MAGIC: Final = b"Obj\x01"
_BLOCK_BYTES: Final = 64_000
"""Before the codec, as Java's writer has them."""
_WITHOUT_SCHEMA: Final = Failure("Avro needs a schema, and the value has none; use a converter with schemas")


def _snappy(data: bytes) -> bytes:
    packed: bytes = pa.compress(data, "snappy", asbytes=True)
    return packed + zlib.crc32(data).to_bytes(4, "big")


def _deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(-1, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


_CODECS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "null": lambda data: data,
    "deflate": _deflate,
    "snappy": _snappy,
    "bzip2": bz2.compress,
}


@dataclass(frozen=True)
class AvroFiles:
    """`format.class=io.confluent.connect.s3.format.avro.AvroFormat`."""

    codec: str = "null"
    """`avro.codec`."""
    options: AvroOptions = field(default_factory=lambda: AvroOptions(enhanced=True))
    """`enhanced.avro.schema.support`, `connect.meta.data`."""
    optional_keys: bool = False
    """`allow.optional.map.keys`: a map whose keys may be null by its schema is a map all the same."""

    @property
    def extension(self) -> str:
        return ".avro"

    def unfit(self, value: Typed) -> Mapping[int, Failure]:
        if not isinstance(value, Column) or value.schema is None:
            return dict.fromkeys(range(len(value)), _WITHOUT_SCHEMA)
        try:
            avro_type(value.schema, self.options, self.optional_keys)
        except BadSchema as error:
            return dict.fromkeys(range(len(value)), Failure(str(error)))
        return missing_values(value)

    def encoder(self, schema: ConnectSchema | None) -> Encoder:
        assert schema is not None
        text, kind = avro_type(schema, self.options, self.optional_keys)
        return _Container(schema, text, kind, self.codec)


@functools.lru_cache(maxsize=1000)
def avro_type(schema: ConnectSchema, options: AvroOptions, optional_keys: bool) -> tuple[str, AvroType]:
    """The schema of the records of a file: its text, and parsed. BadSchema."""
    # At the top nothing is optional: there is a record, or none.
    bare = replace(_plain_keys(schema) if optional_keys else schema, optional=False, default=None)
    text = json.dumps(avro_schema(bare, options), separators=(",", ":"), ensure_ascii=False)
    return text, parse(text)


def _plain_keys(schema: ConnectSchema) -> ConnectSchema:
    key, value = schema.key, schema.value
    if key is not None and key.kind is Kind.STRING:
        key = replace(key, optional=False)
    return replace(
        schema,
        key=key,
        value=None if value is None else _plain_keys(value),
        fields=tuple(Field(one.name, _plain_keys(one.schema)) for one in schema.fields),
    )


@dataclass
class _Container:
    schema: ConnectSchema
    text: str
    kind: AvroType
    codec: str
    sync: bytes = field(default_factory=lambda: os.urandom(16))
    _held: list[bytes] = field(default_factory=list)
    _size: int = 0
    _begun: bool = False

    def write(self, rows: Rows) -> bytes:
        column = filled_deep(Column(rows.array(self.schema.arrow_type), self.schema))
        found = datums_of(self.kind, self.schema, column.values)
        # `unfit` found those that cannot be written.
        self._held += [one for one in found if one is not None]
        self._size = sum(map(len, self._held))
        return self._head() + (self._blocks() if self._size >= _BLOCK_BYTES else b"")

    def close(self) -> bytes:
        return self._head() + self._blocks()

    def _head(self) -> bytes:
        if self._begun:
            return b""
        self._begun = True
        facts = {"avro.schema": self.text.encode(), "avro.codec": self.codec.encode()}
        entries = b"".join(_bytes(name.encode()) + _bytes(value) for name, value in facts.items())
        return _MAGIC + long_datum(len(facts)) + entries + b"\0" + self.sync

    def _blocks(self) -> bytes:
        """All that is held, in blocks of about the same size."""
        sizes = np.cumsum(np.fromiter(map(len, self._held), np.int64, len(self._held)))
        cuts = np.unique(np.searchsorted(sizes, np.arange(_BLOCK_BYTES, self._size, _BLOCK_BYTES))) + 1
        bounds = sorted({0, *cuts.tolist(), len(self._held)})
        made = [self._block(self._held[low:high]) for low, high in pairwise(bounds)]
        self._held, self._size = [], 0
        return b"".join(made)

    def _block(self, held: list[bytes]) -> bytes:
        packed = _CODECS[self.codec](b"".join(held))
        return long_datum(len(held)) + _bytes(packed) + self.sync


def _bytes(value: bytes) -> bytes:
    return long_datum(len(value)) + value
