"""Reads Java's own key store format (JKS), so that no JVM is needed for it. Called by `keystores.py`."""

from __future__ import annotations

import hashlib
import hmac
import io
import struct
from dataclasses import dataclass
from itertools import count
from typing import Final

MAGIC: Final = b"\xfe\xed\xfe\xed"
_KEY, _CERTIFICATE = 1, 2
_DIGEST_BYTES: Final = 20
# Java mixes this phrase into the checksum of a store; it is part of the format.
_SALT: Final = b"Mighty Aphrodite"


class WrongPassword(ValueError):
    """The password does not open the store or the key."""


@dataclass(frozen=True)
class KeyEntry:
    """A private key as it lies in the store, encrypted, and its certificates from the leaf on, as DER."""

    protected: bytes
    chain: tuple[bytes, ...]


@dataclass(frozen=True)
class Store:
    keys: tuple[KeyEntry, ...]
    trusted: tuple[bytes, ...]
    """Certificates as DER."""


def read(data: bytes, password: str | None) -> Store:
    """The entries of a store; without a password its checksum is not compared, as in Java.

    ValueError (or WrongPassword, which is one) if it cannot be read.
    """
    content, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    if password is not None:
        expected = hashlib.sha1(_secret(password) + _SALT + content).digest()
        if not hmac.compare_digest(expected, digest):
            raise WrongPassword
    return _entries(io.BytesIO(content))


def _entries(stream: io.BytesIO) -> Store:
    magic, version, entries = struct.unpack(">4sII", _bytes(stream, 12))
    if magic != MAGIC or version not in (1, 2):
        raise ValueError("not a JKS store")
    keys: list[KeyEntry] = []
    trusted: list[bytes] = []
    for _ in range(entries):
        kind = _number(stream)
        _text(stream)  # the alias
        stream.read(8)  # the time it was made
        if kind == _KEY:
            protected = _bytes(stream, _number(stream))
            keys.append(
                KeyEntry(protected, tuple(_certificate(stream, version) for _ in range(_number(stream))))
            )
        elif kind == _CERTIFICATE:
            trusted.append(_certificate(stream, version))
        else:
            raise ValueError(f"an entry of unknown kind {kind}")
    return Store(tuple(keys), tuple(trusted))


def _certificate(stream: io.BytesIO, version: int) -> bytes:
    if version == 2:
        _text(stream)  # always X.509
    return _bytes(stream, _number(stream))


def _bytes(stream: io.BytesIO, size: int) -> bytes:
    found = stream.read(size)
    if len(found) < size:
        raise ValueError("it ends too early")
    return found


def _number(stream: io.BytesIO) -> int:
    return int(struct.unpack(">I", _bytes(stream, 4))[0])


def _text(stream: io.BytesIO) -> str:
    return _bytes(stream, int(struct.unpack(">H", _bytes(stream, 2))[0])).decode("utf-8", "replace")


def private_key(entry: KeyEntry, password: str) -> bytes:
    """The key of an entry as PKCS #8 DER. Java encrypts it with a key stream of chained SHA-1 digests."""
    sealed = _sealed(entry.protected)
    salt, body, check = (
        sealed[:_DIGEST_BYTES],
        sealed[_DIGEST_BYTES:-_DIGEST_BYTES],
        sealed[-_DIGEST_BYTES:],
    )
    secret, block, plain = _secret(password), salt, bytearray()
    for start in count(0, _DIGEST_BYTES):
        if start >= len(body):
            break
        block = hashlib.sha1(secret + block).digest()
        plain += bytes(a ^ b for a, b in zip(body[start : start + _DIGEST_BYTES], block, strict=False))
    if not hmac.compare_digest(hashlib.sha1(secret + bytes(plain)).digest(), check):
        raise WrongPassword
    return bytes(plain)


def _sealed(protected: bytes) -> bytes:
    """The octets of an EncryptedPrivateKeyInfo: SEQUENCE { SEQUENCE algorithm, OCTET STRING sealed }."""
    try:
        outer, _ = _element(protected)
        _, rest = _element(outer)
        sealed, _ = _element(rest)
    except IndexError:
        raise ValueError("a key of the store is damaged") from None
    return sealed


def _element(der: bytes) -> tuple[bytes, bytes]:
    """The content of the first DER element, and what follows it."""
    length, head = der[1], 2
    if length & 0x80:
        size = length & 0x7F
        length, head = int.from_bytes(der[2 : 2 + size], "big"), 2 + size
    return der[head : head + length], der[head + length :]


def _secret(password: str) -> bytes:
    return password.encode("utf-16-be")
