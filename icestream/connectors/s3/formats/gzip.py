"""Compression of whole objects: `s3.compression.type` and `s3.compression.level`."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import Final, Protocol

from icestream.connectors.s3.formats.format import Encoder, Rows

_GZIP: Final = 31
"""`wbits`: a window of 32 KiB, with the header and the trailer of gzip."""
_HELD_BYTES: Final = 256 * 1024
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
    """An encoder whose bytes are compressed.

    A compressor has some hundred kilobytes, and there may be thousands of small objects under way: one is
    made only for an object that is larger than that.
    """

    encoder: Encoder
    compression: Compression
    _held: list[bytes] = field(default_factory=list)
    _size: int = 0
    _compressor: Compressor | None = None

    def write(self, rows: Rows) -> bytes:
        data = self.encoder.write(rows)
        self._held.append(data)
        self._size += len(data)
        return self._packed() if self._size >= _HELD_BYTES else b""

    def close(self) -> bytes:
        self._held.append(self.encoder.close())
        packed = self._packed()
        assert self._compressor is not None
        return packed + self._compressor.flush()

    def _packed(self) -> bytes:
        if self._compressor is None:
            self._compressor = self.compression.compressor()
        data, self._held, self._size = b"".join(self._held), [], 0
        return self._compressor.compress(data)
