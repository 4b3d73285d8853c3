"""An archive of images as a file that can be read at any place: a tar file, or one that gzip has packed. That
is unpacked into a spool file first, because its table of contents may be at the end. Used by `layouts` and
`push`."""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from icestream.api.errors import ImageArchiveError, PreconditionError
from icestream.image_archives.limits import GIB, Limits
from icestream.image_archives.tar_entries import Span, TarIndex, shown, tar_index

CHUNK: Final = 1024 * 1024
GZIP: Final = b"\x1f\x8b"
ZSTD: Final = b"\x28\xb5\x2f\xfd"


class Archive:
    """Open while its context lasts."""

    def __init__(self, file: BinaryIO, index: TarIndex, limits: Limits) -> None:
        self._file = file
        self.index = index
        self.limits = limits

    def has(self, name: str) -> bool:
        return self.index.find(name) is not None

    def span(self, name: str) -> Span:
        found = self.index.find(name)
        if found is None:
            raise ImageArchiveError(f"the archive lacks '{shown(name)}', which it names itself: make it anew")
        return found

    def document(self, name: str) -> bytes:
        """A whole small file."""
        span = self.span(name)
        if span.size > self.limits.document_bytes:
            raise ImageArchiveError(
                f"'{shown(name)}' in the archive has {span.size:,} bytes, more than the"
                f" {self.limits.document_bytes:,} that registries take"
            )
        return self.open(span).read()

    def open(self, span: Span) -> BinaryIO:
        return section(self._file, span)


@contextmanager
def opened(path: Path, spool: Path | None = None, limits: Limits | None = None) -> Iterator[Archive]:
    """`spool`: a folder for what has to be unpacked; the system's for temporary files if there is none."""
    limits = limits or Limits()
    with path.open("rb") as packed:
        if packed.read(2) != GZIP:
            yield _archive(packed, limits)
            return
        packed.seek(0)
        with tempfile.TemporaryFile(dir=spool) as unpacked:
            copied = 0
            for chunk in decompressed(packed, GZIP):
                copied += len(chunk)
                if copied > limits.archive_bytes:
                    raise ImageArchiveError(_too_large(limits))
                with disk_errors():
                    unpacked.write(chunk)
            yield _archive(cast(BinaryIO, unpacked), limits)


def _archive(file: BinaryIO, limits: Limits) -> Archive:
    size = file.seek(0, io.SEEK_END)
    if size > limits.archive_bytes:
        raise ImageArchiveError(_too_large(limits))
    return Archive(file, tar_index(file, size, limits), limits)


def _too_large(limits: Limits) -> str:
    return f"the archive has more than {limits.archive_bytes / GIB:,.2g} GiB when it is unpacked: not taken"


def compression(file: BinaryIO) -> bytes | None:
    """By the first bytes, which are read: media types and names of files are not to be trusted."""
    start = file.read(4)
    return next((magic for magic in (GZIP, ZSTD) if start.startswith(magic)), None)


def decompressed(file: BinaryIO, magic: bytes | None) -> Iterator[bytes]:
    """In pieces of bounded size, however well they were packed."""
    try:
        if magic == GZIP:
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield from iter(lambda: unpacked.read(CHUNK), b"")
        elif magic == ZSTD:
            yield from _from_zstd(file)
        else:
            yield from iter(lambda: file.read(CHUNK), b"")
    except EOFError as error:
        raise ImageArchiveError("the archive is cut off within packed bytes: upload it again") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise ImageArchiveError(
            f"the archive has packed bytes that are broken ({error}): upload it again"
        ) from error


def _from_zstd(file: BinaryIO) -> Iterator[bytes]:
    import pyarrow as pa

    try:
        with pa.CompressedInputStream(pa.PythonFile(file, mode="r"), "zstd") as unpacked:
            yield from iter(lambda: unpacked.read(CHUNK), b"")
    except OSError as error:
        raise ImageArchiveError("the archive has a zstd layer that is broken: upload it again") from error


def sha256_of(chunks: Iterator[bytes], most: int) -> tuple[str, int]:
    """Hexadecimal digits, and how many bytes there were: never more than `most`."""
    digest, size = hashlib.sha256(), 0
    for chunk in chunks:
        size += len(chunk)
        if size > most:
            raise ImageArchiveError(
                f"the layers of the image have more than {most:,} bytes when they are unpacked"
            )
        digest.update(chunk)
    return digest.hexdigest(), size


@contextmanager
def disk_errors() -> Iterator[None]:
    """A full disk is no fault of the archive."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise PreconditionError(
                "there is no space left to unpack the archive: give the spool folder (or TMPDIR) more"
            ) from error
        raise


class _Section(io.RawIOBase):
    """Some bytes of a file, as a file. The underlying one is moved: one reader at a time."""

    def __init__(self, file: BinaryIO, span: Span) -> None:
        self._file = file
        self._position = span.offset
        self._end = span.offset + span.size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        self._file.seek(self._position)
        content = self._file.read(min(len(view), self._end - self._position))
        view[: len(content)] = content
        self._position += len(content)
        return len(content)


def section(file: BinaryIO, span: Span) -> BinaryIO:
    return cast(BinaryIO, io.BufferedReader(_Section(file, span), CHUNK))
