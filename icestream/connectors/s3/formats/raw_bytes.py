"""Bytes as they came, as Confluent's ByteArrayFormat writes them: for values of ByteArrayConverter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.types as pt

from icestream.api.batch import Failure
from icestream.connectors.s3.formats.format import Encoder, Rows
from icestream.connectors.s3.formats.gzip import Compression, Gzipped
from icestream.records.column import Column
from icestream.records.java_classes import java_class
from icestream.records.schema import ConnectSchema
from icestream.records.values import Typed

LINE_END: Final = "\n"


@dataclass(frozen=True)
class RawBytes:
    """`format.class=io.confluent.connect.s3.format.bytearray.ByteArrayFormat`."""

    separator: str = LINE_END
    """`format.bytearray.separator`, after every record."""
    ending: str = ".bin"
    """`format.bytearray.extension`."""
    compression: Compression | None = None

    @property
    def extension(self) -> str:
        return self.ending if self.compression is None else f"{self.ending}.gz"

    def unfit(self, value: Typed) -> Mapping[int, Failure]:
        if isinstance(value, Column) and pt.is_binary(value.values.type):
            return {}
        why = Failure(f"ByteArrayFormat takes bytes only, not {java_class(value)}; use ByteArrayConverter")
        return dict.fromkeys(range(len(value)), why)

    def encoder(self, schema: ConnectSchema | None) -> Encoder:
        bare = _Separated(self.separator.encode())
        return bare if self.compression is None else Gzipped(bare, self.compression)


@dataclass(frozen=True)
class _Separated:
    separator: bytes

    def write(self, rows: Rows) -> bytes:
        return self.separator.join((*rows.array(pa.binary()).to_pylist(), b""))

    def close(self) -> bytes:
        return b""
