"""Compression of whole objects: `s3.compression.type` and `s3.compression.level`."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Final, Protocol

from icestream.connectors.s3.formats.format import Encoder, Rows

_GZIP: Final = 31
"""`wbits`: a window of 32 KiB, with the header and the trailer of gzip."""
_ISAL_LEVEL: Final = 2
"""Of 0 to 3."""


class Compressor(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


@dataclass(frozen=True)
class Compression:
    level: int = -1
    """0 to 9 as zlib knows them; -1: whatever is fast and good."""

    def compressor(self) -> Compressor:
        fast = _fast() if self.level < 0 else None
        return fast or zlib.compressobj(self.level, zlib.DEFLATED, _GZIP)


def _fast() -> Compressor | None:
    """Of ISA-L, which takes a seventh of zlib's time for objects that are 5 % larger; None without it."""
    try:
        from isal import isal_zlib
    except ImportError:
        return None
    made: Compressor = isal_zlib.compressobj(_ISAL_LEVEL, isal_zlib.DEFLATED, _GZIP)
    return made


@dataclass
class Gzipped:
    """An encoder whose bytes are compressed."""

    encoder: Encoder
    compressor: Compressor

    def write(self, rows: Rows) -> bytes:
        return self.compressor.compress(self.encoder.write(rows))

    def close(self) -> bytes:
        return self.compressor.compress(self.encoder.close()) + self.compressor.flush()
