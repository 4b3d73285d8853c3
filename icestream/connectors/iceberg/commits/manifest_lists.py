"""Appends that copy the list of manifests, where PyIceberg reads and encodes it all. For `guarded_append.py`.

A manifest list is an Avro file of blocks, and a fast append only adds to it. The list that this process wrote
with its last commit is kept, and its blocks go into the next one as they are. A list that somebody else wrote
is read and written by PyIceberg.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from pyiceberg.avro.codecs import AVRO_CODEC_KEY, KNOWN_CODECS
from pyiceberg.io import FileIO, InputFile, OutputFile
from pyiceberg.manifest import ManifestFile
from pyiceberg.table.update.snapshot import _FastAppendFiles

_MAGIC: Final = b"Obj\x01"
_SYNC_SIZE: Final = 16


@dataclass(frozen=True)
class Block:
    count: int
    content: bytes
    """Records as they are in the file, compressed."""


@dataclass(frozen=True)
class AvroContainer:
    """An Avro file, taken apart into its header and its blocks."""

    header: bytes
    codec: str
    sync: bytes
    blocks: tuple[Block, ...]

    @classmethod
    def of(cls, data: bytes) -> AvroContainer:
        if not data.startswith(_MAGIC):
            raise ValueError("this is no Avro file")
        meta, at = _map_at(data, len(_MAGIC))
        sync = data[at : at + _SYNC_SIZE]
        at += _SYNC_SIZE
        codec = meta.get(AVRO_CODEC_KEY, b"null").decode()
        return cls(data[:at], codec, sync, tuple(_blocks_at(data, at)))

    def followed_by(self, older: AvroContainer) -> AvroContainer:
        """The same file, with the blocks of an older one behind its own.

        Blocks are joined by twos, as in a binary counter: so there are few, and most are never touched again.
        """
        blocks = list(older.blocks)
        for block in reversed(self.blocks):
            blocks.insert(0, block)
            while len(blocks) > 1 and blocks[0].count >= blocks[1].count:
                blocks[:2] = [self._joined(*blocks[:2])]
        # Without records a block says to some readers that the file ends.
        return AvroContainer(
            self.header, self.codec, self.sync, tuple(block for block in blocks if block.count)
        )

    def to_bytes(self) -> bytes:
        parts = [self.header]
        for block in self.blocks:
            parts += (_long(block.count), _long(len(block.content)), block.content, self.sync)
        return b"".join(parts)

    def _joined(self, first: Block, second: Block) -> Block:
        codec = KNOWN_CODECS[self.codec]  # type: ignore[index]
        if codec is None:
            return Block(first.count + second.count, first.content + second.content)
        content, _ = codec.compress(codec.decompress(first.content) + codec.decompress(second.content))
        return Block(first.count + second.count, content)


class KeptManifestList:
    """The list of manifests of a job's last commit to one table."""

    def __init__(self) -> None:
        self._key: object = None
        self._content: AvroContainer | None = None

    def at(self, path: str, encoding: object) -> AvroContainer | None:
        return self._content if (path, encoding) == self._key else None

    def keep(self, path: str, encoding: object, content: AvroContainer) -> None:
        self._key, self._content = (path, encoding), content


class CopyingAppend(_FastAppendFiles):
    """PyIceberg's fast append; it writes the manifests that are new, and the kept list follows them."""

    kept: KeptManifestList
    """Set by whoever makes it."""
    _copied: AvroContainer | None = None

    def _existing_manifests(self) -> list[ManifestFile]:
        parent = None
        if self._parent_snapshot_id is not None:
            parent = self._transaction.table_metadata.snapshot_by_id(self._parent_snapshot_id)
        self._copied = self.kept.at(parent.manifest_list, self._encoding) if parent else None
        return super()._existing_manifests() if self._copied is None else []

    def _commit(self) -> Any:
        files = self._io
        self._io = _ListFiles(files, self._is_list, self._whole_list)
        try:
            return super()._commit()
        finally:
            self._io = files

    @property
    def _encoding(self) -> tuple[int, str]:
        """The format version decides the schema of the records; both are properties of the table."""
        return self._transaction.table_metadata.format_version, self._compression

    def _is_list(self, path: str) -> bool:
        return path in self._written_manifest_lists

    def _whole_list(self, path: str, written: bytes) -> bytes:
        content = AvroContainer.of(written)
        if self._copied is not None:
            content = content.followed_by(self._copied)
        self.kept.keep(path, self._encoding, content)
        return content.to_bytes()


class _ListFiles(FileIO):
    """Files as ever, but a manifest list is completed before it is written."""

    def __init__(
        self, files: FileIO, is_list: Callable[[str], bool], complete: Callable[[str, bytes], bytes]
    ) -> None:
        super().__init__(files.properties)
        self._files = files
        self._is_list = is_list
        self._complete = complete

    def new_input(self, location: str) -> InputFile:
        return self._files.new_input(location)

    def new_output(self, location: str) -> OutputFile:
        output = self._files.new_output(location)
        return _ListOutput(output, self._complete) if self._is_list(location) else output

    def delete(self, location: str | InputFile | OutputFile) -> None:
        self._files.delete(location)


class _ListOutput(OutputFile):
    def __init__(self, output: OutputFile, complete: Callable[[str, bytes], bytes]) -> None:
        super().__init__(output.location)
        self._output = output
        self._complete = complete

    def __len__(self) -> int:
        return len(self._output)

    def exists(self) -> bool:
        return self._output.exists()

    def to_input_file(self) -> InputFile:
        return self._output.to_input_file()

    def create(self, overwrite: bool = False) -> Any:
        return _Whole(lambda written: self._store(written, overwrite=overwrite))

    def _store(self, written: bytes, *, overwrite: bool) -> None:
        whole = self._complete(self.location, written)
        with self._output.create(overwrite=overwrite) as stream:
            stream.write(whole)


class _Whole(io.BytesIO):
    """Hands over all that was written when it is closed."""

    def __init__(self, store: Callable[[bytes], None]) -> None:
        super().__init__()
        self._store = store

    def close(self) -> None:
        if not self.closed:
            written = self.getvalue()
            super().close()
            self._store(written)


def _map_at(data: bytes, at: int) -> tuple[dict[str, bytes], int]:
    found = {}
    count, at = _long_at(data, at)
    while count:
        if count < 0:
            count = -count
            _, at = _long_at(data, at)
        for _ in range(count):
            key, at = _bytes_at(data, at)
            found[key.decode()], at = _bytes_at(data, at)
        count, at = _long_at(data, at)
    return found, at


def _blocks_at(data: bytes, at: int) -> Iterator[Block]:
    while at < len(data):
        count, at = _long_at(data, at)
        content, at = _bytes_at(data, at)
        at += _SYNC_SIZE
        yield Block(count, content)


def _bytes_at(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = _long_at(data, at)
    return data[at : at + size], at + size


def _long_at(data: bytes, at: int) -> tuple[int, int]:
    """Avro's numbers: seven bits a byte, the lowest first; the sign is in the lowest bit."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7


def _long(value: int) -> bytes:
    encoded = bytearray()
    rest = (value << 1) ^ (value >> 63)
    while rest > 0x7F:
        encoded.append((rest & 0x7F) | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)
