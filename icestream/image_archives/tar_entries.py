"""Where the files of a tar archive are: names, offsets and sizes. Nothing is ever unpacked to disk.

Why not `tarfile`: it reads extended headers of any size into memory, and takes what is half broken. Used by
`archive`.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO, Final

from icestream.api.errors import ImageArchiveError
from icestream.image_archives.limits import Limits

_BLOCK: Final = 512
_FILES: Final = frozenset(b"07\0")
_HARD_LINK: Final = ord("1")
_SYMBOLIC_LINK: Final = ord("2")
_LONG_LINK: Final = ord("K")
_LONG_NAME: Final = ord("L")
_PAX: Final = ord("x")
_PAX_OF_ALL: Final = ord("g")
_EXTENDED: Final = frozenset((_LONG_LINK, _LONG_NAME, _PAX, _PAX_OF_ALL))
_NO_CONTENT: Final = frozenset(b"123456")
_LONGEST_NAME: Final = 4096
_MOST_LINKS: Final = 8
_MOST_HEADERS: Final = 4
"""For each entry that is allowed: its own, and those with long names. Folders are no entries of ours, but a
header of each has to be read, and gigabytes of them are a small file when they are packed."""
_MOST_EXTENDED: Final = 64
"""All extended headers together, in largest ones: each is taken apart."""


@dataclass(frozen=True)
class Span:
    """Bytes of the archive."""

    offset: int
    size: int


@dataclass(frozen=True)
class TarIndex:
    """Names are relative to the archive's root, without `./`."""

    files: Mapping[str, Span]
    links: Mapping[str, str]
    """Name → name."""
    repeated: frozenset[str]
    """Names that occur more than once: readers do not agree which one counts."""

    def find(self, name: str) -> Span | None:
        """The file of this name, or the one that links lead to."""
        for _ in range(_MOST_LINKS):
            if name in self.repeated:
                raise ImageArchiveError(f"the archive has more than one entry '{shown(name)}': make it anew")
            if name in self.files:
                return self.files[name]
            if name not in self.links:
                return None
            name = self.links[name]
        raise ImageArchiveError(f"links lead from '{shown(name)}' in the archive to no file: make it anew")


def shown(name: str) -> str:
    """A name of the archive as a message may have it."""
    printable = "".join(sign if sign.isprintable() else "?" for sign in name[:100])
    return printable + ("…" if len(name) > 100 else "")


def tar_index(file: BinaryIO, size: int, limits: Limits) -> TarIndex:
    files: dict[str, Span] = {}
    links: dict[str, str] = {}
    repeated: set[str] = set()
    for entry in _entries(file, size, limits):
        if len(files) + len(links) >= limits.entries:
            raise ImageArchiveError(f"the archive has more than {limits.entries:,} entries: no image has")
        name = inside(entry.name)
        if entry.kind not in _FILES and entry.kind not in (_HARD_LINK, _SYMBOLIC_LINK):
            continue
        if name in files or name in links:
            repeated.add(name)
        if entry.kind in _FILES:
            files[name] = entry.span
        else:
            folder = posixpath.dirname(name) if entry.kind == _SYMBOLIC_LINK else ""
            links[name] = inside(posixpath.join(folder, entry.link))
    return TarIndex(files, links, frozenset(repeated))


def inside(path: str) -> str:
    """A path relative to the archive's root; one that leads out of it is refused."""
    clean = posixpath.normpath(path)
    if clean == ".." or clean.startswith(("/", "../")):
        raise ImageArchiveError(f"the archive has a path that leads out of it, '{shown(path)}': not taken")
    return clean


@dataclass(frozen=True)
class _Entry:
    name: str
    kind: int
    span: Span
    link: str


def _entries(file: BinaryIO, size: int, limits: Limits) -> Iterator[_Entry]:
    position = headers = extended = 0
    pax: dict[str, str] = {}
    while position + _BLOCK <= size:
        header = _read(file, position, _BLOCK)
        if not any(header):
            return
        _check_sum(header, position)
        position += _BLOCK
        headers += 1
        if headers > _MOST_HEADERS * limits.entries:
            raise ImageArchiveError(f"the archive has more than {limits.entries:,} entries: no image has")
        kind = header[156]
        length = _number(header[124:136], position)
        if kind not in _EXTENDED and "size" in pax:
            length = _decimal(pax["size"])
        if kind in _NO_CONTENT:
            length = 0
        if position + length > size:
            raise ImageArchiveError(
                f"the archive is cut off: an entry ends at byte {position + length:,}, the file at {size:,};"
                " upload it again"
            )
        if kind in _EXTENDED:
            extended += length
            if length > limits.header_bytes or extended > _MOST_EXTENDED * limits.header_bytes:
                raise ImageArchiveError(f"a header of the archive has {length:,} bytes: no image needs that")
            content = _read(file, position, length)
            if kind == _PAX:
                pax |= _pax_records(content)
            elif kind != _PAX_OF_ALL:
                pax["path" if kind == _LONG_NAME else "linkpath"] = _text(content)
        else:
            if kind == ord("S") or any(key.startswith("GNU.sparse") for key in pax):
                raise ImageArchiveError("the archive has sparse files, which images have not: make it anew")
            yield _entry(header, pax, kind, Span(position, length))
            pax = {}
        position += -(-length // _BLOCK) * _BLOCK
    if position < size and position + _BLOCK > size:
        raise ImageArchiveError("the archive is cut off in the middle of a header: upload it again")


def _entry(header: bytes, pax: Mapping[str, str], kind: int, span: Span) -> _Entry:
    name = _text(header[:100])
    # POSIX archives split long names; old GNU ones keep times in these bytes.
    if header[257:263] == b"ustar\0" and (prefix := _text(header[345:500])):
        name = f"{prefix}/{name}"
    name, link = pax.get("path", name), pax.get("linkpath", _text(header[157:257]))
    if not name or len(name) > _LONGEST_NAME or len(link) > _LONGEST_NAME:
        raise ImageArchiveError("the archive has an entry without a name, or one that is too long")
    return _Entry(name, kind, span, link)


def _read(file: BinaryIO, position: int, length: int) -> bytes:
    file.seek(position)
    content = file.read(length)
    if len(content) != length:
        raise ImageArchiveError("the archive is cut off: upload it again")
    return content


def _check_sum(header: bytes, position: int) -> None:
    blank = header[:148] + b" " * 8 + header[156:]
    if _number(header[148:156], position) != sum(blank):
        raise ImageArchiveError(
            f"the archive is no tar file, or broken at byte {position:,}: `docker save` and `skopeo copy"
            " … docker-archive:` make one"
        )


def _number(digits: bytes, position: int) -> int:
    if digits[0] == 0x80:  # GNU's form of large numbers
        return int.from_bytes(digits[1:], "big")
    text = digits.strip(b"\0 ")
    try:
        number = int(text, 8) if text else 0
    except ValueError:
        number = -1
    if number < 0:
        raise ImageArchiveError(
            f"the archive is no tar file, or broken at byte {position:,}: upload it again"
        )
    return number


def _decimal(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise ImageArchiveError("a header of the archive has a size that is no number: make it anew")
    return int(text)


def _text(content: bytes) -> str:
    return content.partition(b"\0")[0].decode("utf-8", "replace")


def _pax_records(content: bytes) -> dict[str, str]:
    records: dict[str, str] = {}
    end, at = len(content.rstrip(b"\0")), 0
    while at < end:
        # By position: to cut each record off would copy the rest of a megabyte for every one of them.
        digits, space, _ = content[at : at + 20].partition(b" ")
        length = int(digits) if space and digits.isdigit() else 0
        key, equals, value = content[at + len(digits) + 1 : at + length].partition(b"=")
        if not equals or at + length > len(content) or not value.endswith(b"\n"):
            raise ImageArchiveError("a header of the archive is broken: make it anew")
        records[key.decode("utf-8", "replace")] = value[:-1].decode("utf-8", "replace")
        at += length
    return records
