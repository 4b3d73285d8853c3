"""Parquet, with the types that Confluent's ParquetFormat has by way of Avro. Values must be Structs."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from icestream.api.batch import Failure
from icestream.connectors.s3.formats.avro import avro_type
from icestream.connectors.s3.formats.format import Encoder, Rows
from icestream.connectors.s3.formats.required import missing_values
from icestream.converters.registry.avro_connect import PRECISION, AvroOptions
from icestream.converters.registry.avro_schema import BadSchema
from icestream.records.column import Column, filled_deep
from icestream.records.java_classes import java_class
from icestream.records.schema import DECIMAL, SCALE, ConnectSchema, Kind
from icestream.records.values import Typed
from icestream.tables.hidden_nulls import without_hidden_nulls

CODECS: Final[Mapping[str, tuple[str, str]]] = {
    "none": ("NONE", ".parquet"),
    "snappy": ("SNAPPY", ".snappy.parquet"),
    "gzip": ("GZIP", ".gz.parquet"),
    "brotli": ("BROTLI", ".br.parquet"),
    "zstd": ("ZSTD", ".zstd.parquet"),
    "lz4_raw": ("LZ4", ".lz4raw.parquet"),
    # Hadoop's framing of LZ4 has no writer here; the footer tells readers that it is the other one.
    "lz4": ("LZ4", ".lz4hadoop.parquet"),
}
"""`parquet.codec`: Arrow's name, and the extension. lzo is in no library that we have."""
_HELD_BYTES: Final = 32 * 2**20
"""Of a row group."""
_PAGE_BYTES: Final = 64 * 1024
_MOST_DIGITS: Final = 64
"""Of a decimal whose schema does not tell, in Avro."""
_NARROW_DIGITS: Final = 38


@dataclass(frozen=True)
class ParquetFiles:
    """`format.class=io.confluent.connect.s3.format.parquet.ParquetFormat`."""

    codec: str = "snappy"
    options: AvroOptions = field(default_factory=lambda: AvroOptions(enhanced=True))
    optional_keys: bool = False

    @property
    def extension(self) -> str:
        return CODECS[self.codec][1]

    def unfit(self, value: Typed) -> Mapping[int, Failure]:
        if not isinstance(value, Column) or value.schema is None or value.schema.kind is not Kind.STRUCT:
            why = Failure(f"Parquet takes Structs with a schema only, not {java_class(value)}")
            return dict.fromkeys(range(len(value)), why)
        if _has_empty_struct(value.schema.arrow_type):
            why = Failure("Parquet has no Structs without fields, and the schema has one; drop it")
            return dict.fromkeys(range(len(value)), why)
        try:
            avro_type(value.schema, self.options, self.optional_keys)
        except BadSchema as error:
            return dict.fromkeys(range(len(value)), Failure(str(error)))
        return {**_too_long(value), **missing_values(value)}

    def encoder(self, schema: ConnectSchema | None) -> Encoder:
        assert schema is not None
        text, _ = avro_type(schema, self.options, self.optional_keys)
        return _File(schema, text, CODECS[self.codec][0], self.optional_keys)


@dataclass
class _File:
    schema: ConnectSchema
    avro: str
    codec: str
    optional_keys: bool
    _held: list[pa.Table] = field(default_factory=list)
    _size: int = 0
    _out: _Out = field(default_factory=lambda: _Out())
    _writer: Any = None

    def write(self, rows: Rows) -> bytes:
        column = filled_deep(Column(rows.array(self.schema.arrow_type), self.schema))
        whole = shaped(column.values, self.schema, self.optional_keys)
        table = pa.Table.from_arrays(whole.flatten(), schema=self._arrow_schema())
        self._held.append(without_hidden_nulls(table))
        self._size += table.nbytes
        if self._size >= _HELD_BYTES:
            self._flush()
        return self._out.taken()

    def close(self) -> bytes:
        self._flush()
        self._opened().close()
        return self._out.taken()

    def _arrow_schema(self) -> pa.Schema:
        return pa.schema(list(_type(self.schema, self.optional_keys)))

    def _opened(self) -> Any:
        if self._writer is None:
            import pyarrow.parquet as pq

            self._writer = pq.ParquetWriter(
                self._out,
                self._arrow_schema(),
                compression=self.codec,
                data_page_size=_PAGE_BYTES,
                store_schema=False,
            )
            self._writer.add_key_value_metadata(
                {"parquet.avro.schema": self.avro, "writer.model.name": "avro"}
            )
        return self._writer

    def _flush(self) -> None:
        if self._held:
            self._opened().write_table(pa.concat_tables(self._held))
        self._held, self._size = [], 0


class _Out(io.RawIOBase):
    """What was written since it was last taken."""

    def __init__(self) -> None:
        self._written: list[bytes] = []
        self._position = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._written.append(bytes(data))
        self._position += len(data)
        return len(data)

    def tell(self) -> int:
        return self._position

    def taken(self) -> bytes:
        data = b"".join(self._written)
        self._written.clear()
        return data


# -- types --


def _type(schema: ConnectSchema, optional_keys: bool) -> pa.DataType:
    """The Arrow type whose Parquet type is that of Java's file."""
    if schema.name == DECIMAL:
        return _decimal_type(schema)
    if schema.kind is Kind.STRUCT:
        return pa.struct([_field(one.name, one.schema, optional_keys) for one in schema.fields])
    if schema.kind is Kind.ARRAY and schema.value is not None:
        return pa.list_(_field("array", schema.value, optional_keys))
    if schema.kind is Kind.MAP and schema.key is not None and schema.value is not None:
        if _is_map(schema.key, optional_keys):
            return pa.map_(pa.string(), _field("value", schema.value, optional_keys))
        pair = [
            _field(name, one, optional_keys) for name, one in (("key", schema.key), ("value", schema.value))
        ]
        return pa.list_(pa.field("array", pa.struct(pair), nullable=False))
    if schema.kind in (Kind.INT8, Kind.INT16):
        return pa.int32()
    return schema.arrow_type


def _field(name: str, schema: ConnectSchema, optional_keys: bool) -> pa.Field:
    return pa.field(name, _type(schema, optional_keys), nullable=schema.optional)


def _is_map(key: ConnectSchema, optional_keys: bool) -> bool:
    """Other maps are lists of their entries, in Avro."""
    return key.kind is Kind.STRING and (optional_keys or not key.optional)


def _decimal_type(schema: ConnectSchema) -> pa.DataType:
    digits, scale = int(schema.parameter(PRECISION) or _MOST_DIGITS), int(schema.parameter(SCALE) or 0)
    return pa.decimal128(digits, scale) if digits <= _NARROW_DIGITS else pa.decimal256(digits, scale)


def shaped(values: pa.Array, schema: ConnectSchema, optional_keys: bool) -> pa.Array:
    """Values in that type."""
    kind = _type(schema, optional_keys)
    if kind == values.type:
        return values
    null = values.is_null() if values.null_count else None
    if schema.kind is Kind.STRUCT:
        if not schema.fields:
            return values
        fields = [
            shaped(child, one.schema, optional_keys)
            for one, child in zip(schema.fields, values.flatten(), strict=True)
        ]
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=null)
    if schema.kind is Kind.ARRAY and schema.value is not None:
        items = shaped(values.flatten(), schema.value, optional_keys)
        return pa.ListArray.from_arrays(_offsets(values), items, type=kind, mask=null)
    if schema.kind is Kind.MAP and schema.key is not None and schema.value is not None:
        return _shaped_map(values, schema.key, schema.value, kind, optional_keys)
    return values.cast(kind)


def _shaped_map(
    values: pa.Array, key: ConnectSchema, value: ConnectSchema, kind: pa.DataType, optional_keys: bool
) -> pa.Array:
    bounds = values.offsets.to_numpy(zero_copy_only=False)
    low, length = int(bounds[0]), int(bounds[-1] - bounds[0])
    keys = shaped(values.keys.slice(low, length), key, optional_keys)
    items = shaped(values.items.slice(low, length), value, optional_keys)
    null = values.is_null() if values.null_count else None
    offsets = pa.array(bounds - low, pa.int32())
    if pt.is_map(kind):
        return pa.MapArray.from_arrays(offsets, keys, items, type=kind, mask=null)
    pairs = pa.StructArray.from_arrays([keys, items], fields=list(kind.value_type))
    return pa.ListArray.from_arrays(offsets, pairs, type=kind, mask=null)


def _offsets(values: pa.Array) -> pa.Array:
    """Of lists in what `flatten` leaves of their items, which is without those of nulls."""
    lengths = values.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))


def _has_empty_struct(kind: pa.DataType) -> bool:
    if pt.is_struct(kind) and not kind.num_fields:
        return True
    return any(_has_empty_struct(kind.field(at).type) for at in range(kind.num_fields))


def _too_long(column: Column) -> dict[int, Failure]:
    """Rows with a decimal of more digits than its schema says."""
    assert column.schema is not None
    if not _any_decimal(column.schema):
        return {}
    try:
        shaped(column.values, column.schema, optional_keys=False)
    except pa.ArrowInvalid:
        why = Failure("a decimal has more digits than its schema allows")
        alone: Callable[[int], pa.Array] = lambda at: column.values.slice(at, 1)  # noqa: E731
        return {at: why for at in range(len(column)) if not _can_be_shaped(alone(at), column.schema)}
    return {}


def _can_be_shaped(values: pa.Array, schema: ConnectSchema) -> bool:
    try:
        shaped(values, schema, optional_keys=False)
    except pa.ArrowInvalid:
        return False
    return True


def _any_decimal(schema: ConnectSchema) -> bool:
    inner = [one.schema for one in schema.fields] + [one for one in (schema.key, schema.value) if one]
    return schema.name == DECIMAL or any(map(_any_decimal, inner))
