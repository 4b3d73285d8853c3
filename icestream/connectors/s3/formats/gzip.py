"""Compression of whole objects: `s3.compression.type` and `s3.compression.level`."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Final, Protocol

from icestream.connectors.s3.formats.format import Encoder, Rows

_GZIP: Final = 31
"""`wbits`: a window of 32 KiB, with the header and the trailer of gzip."""


class Compressor(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


@dataclass(frozen=True)
class Compression:
    level: int = -1
    """0 to 9 as zlib knows them; -1: as zlib likes it."""

    def compressor(self) -> Compressor:
        return zlib.compressobj(self.level, zlib.DEFLATED, _GZIP)


@dataclass
class Gzipped:
    """An encoder whose bytes are compressed."""

    encoder: Encoder
    compressor: Compressor

    def write(self, rows: Rows) -> bytes:
        return self.compressor.compress(self.encoder.write(rows))

    def close(self) -> bytes:
        return self.compressor.compress(self.encoder.close()) + self.compressor.flush()
