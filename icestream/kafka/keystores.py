"""Java's key and trust stores (JKS, PKCS #12, PEM) as the PEM texts that librdkafka and Python take.

Called when client settings are translated; the REST listener takes its certificate from here too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_private_key,
    load_pem_private_key,
    pkcs12,
)

from icestream.api.errors import ConfigError, Problem
from icestream.kafka import jks
from icestream.named_files import content

Named = Callable[[str], str]
"""From a client's key to the key that the user wrote, such as `consumer.override.ssl.truststore.location`."""

_TYPES: Final = ("JKS", "PKCS12", "PEM")
_JCEKS: Final = b"\xce\xce\xce\xce"
_DER_SEQUENCE: Final = b"\x30"
_PEM_BLOCK: Final = re.compile(
    r"-----BEGIN ([A-Z0-9 ]+)-----(?:(?!-----BEGIN ).)*?-----END \1-----", re.DOTALL
)


@dataclass(frozen=True)
class Identity:
    """Who a client or a server is: its certificates from the leaf on, and the key, which is not encrypted."""

    certificates_pem: str
    key_pem: str = field(repr=False)


@dataclass(frozen=True)
class _Content:
    """What is in a store, whatever its format."""

    certificates: tuple[x509.Certificate, ...] = ()
    identity: Identity | None = None


class _Unreadable(Exception):
    """Says why, as the end of a sentence."""


def trusted_certificates(settings: Mapping[str, str], named: Named = str) -> str | None:
    """The certificates of `ssl.truststore.*` as PEM, or None if none is named; raises ConfigError."""
    inline = settings.get("ssl.truststore.certificates", "").strip()
    store = _Store("ssl.truststore", settings, named)
    if inline:
        store.must_be_pem("ssl.truststore.certificates")
        with _blaming(named("ssl.truststore.certificates")):
            found = _certificates_in(inline)
    elif store.location:
        found = store.open(with_key=False).certificates
    else:
        return None
    if not found:
        where = "ssl.truststore.certificates" if inline else "ssl.truststore.location"
        raise _problem(named(where), f"'{named(where)}' holds no certificate; add the broker's or its CA's")
    return _pem(found)


def identity(settings: Mapping[str, str], named: Named = str) -> Identity | None:
    """The certificate and key of `ssl.keystore.*`, or None if none is named; raises ConfigError."""
    chain = settings.get("ssl.keystore.certificate.chain", "").strip()
    key = settings.get("ssl.keystore.key", "").strip()
    store = _Store("ssl.keystore", settings, named)
    if chain or key:
        return _inline_identity(chain, key, store)
    if not store.location:
        return None
    found = store.open(with_key=True).identity
    if found is None:
        where = named("ssl.keystore.location")
        raise _problem(
            where,
            f"'{where}={store.location}' holds no private key with its certificate; name one that does",
        )
    return found


def _inline_identity(chain: str, key: str, store: _Store) -> Identity:
    named = store.named
    for part, text in (("ssl.keystore.certificate.chain", chain), ("ssl.keystore.key", key)):
        if not text:
            raise _problem(
                named(part),
                f"'{named(part)}' is missing; a PEM key store needs both ssl.keystore.key and "
                "ssl.keystore.certificate.chain",
            )
    store.must_be_pem("ssl.keystore.key")
    with _blaming(named("ssl.keystore.certificate.chain")):
        certificates = _certificates_in(chain)
    with _blaming(named("ssl.keystore.key")):
        key_pem = _key_in(key, store.key_password, named("ssl.key.password"))
    return Identity(_pem(certificates), key_pem)


class _Store:
    """One store that the settings name: `ssl.truststore` or `ssl.keystore`."""

    def __init__(self, prefix: str, settings: Mapping[str, str], named: Named) -> None:
        self.named = named
        self._type_key = named(f"{prefix}.type")
        self._location_key = named(f"{prefix}.location")
        self._password_key = named(f"{prefix}.password")
        self._key_password_key = named("ssl.key.password")
        self.location = settings.get(f"{prefix}.location", "").strip()
        self.type = settings.get(f"{prefix}.type", "").strip().upper() or "JKS"
        self.password = settings.get(f"{prefix}.password")
        self.key_password = settings.get("ssl.key.password")
        if self.type not in _TYPES:
            raise _problem(
                self._type_key,
                f"'{self._type_key}={self.type}' is not a store that can be read; use {', '.join(_TYPES)}",
            )

    def must_be_pem(self, key: str) -> None:
        if self.type != "PEM":
            raise _problem(
                self._type_key,
                f"'{self.named(key)}' is given, but '{self._type_key}' is {self.type}; set it to PEM",
            )

    def open(self, *, with_key: bool) -> _Content:
        try:
            data = content(Path(self.location))
        except OSError as error:
            raise self._unreadable(f"cannot be read ({error.strerror}); check the path") from None
        if with_key and self.type != "PEM" and not self.password:
            raise _problem(
                self._password_key,
                f"'{self._location_key}={self.location}' needs a password; set {self._password_key}",
            )
        try:
            return self._content(data, with_key)
        except jks.WrongPassword:
            raise self._locked(self._password_key) from None
        except _Unreadable as error:
            raise self._unreadable(str(error)) from None

    def _unreadable(self, reason: str) -> ConfigError:
        return _problem(self._location_key, f"'{self._location_key}={self.location}' {reason}")

    def _locked(self, password_key: str) -> ConfigError:
        return _problem(
            password_key, f"the password in '{password_key}' does not open {self.location}; check it"
        )

    def _content(self, data: bytes, with_key: bool) -> _Content:
        looks_like_pem = b"-----BEGIN " in data
        if self.type == "PEM":
            if not looks_like_pem:
                raise _Unreadable(f"is not a PEM file; set {self._type_key}=PKCS12 or =JKS, or name another")
            return self._pem_content(data, with_key)
        if looks_like_pem:
            raise _Unreadable(f"is a PEM file, but {self._type_key} is {self.type}; set {self._type_key}=PEM")
        # Java opens both formats under either name: the file tells which one it is.
        if data.startswith(jks.MAGIC):
            return self._jks_content(data, with_key)
        if data.startswith(_DER_SEQUENCE):
            return self._pkcs12_content(data)
        if data.startswith(_JCEKS):
            raise _Unreadable(
                "is a JCEKS store, which cannot be read here; convert it with "
                "`keytool -importkeystore -deststoretype PKCS12`"
            )
        raise _Unreadable("is neither a JKS nor a PKCS12 store; name one that is")

    def _pem_content(self, data: bytes, with_key: bool) -> _Content:
        text = data.decode("utf-8", "replace")
        certificates = _certificates_in(text)
        keys = [block.group(0) for block in _PEM_BLOCK.finditer(text) if "PRIVATE KEY" in block.group(1)]
        if not (with_key and keys):
            return _Content(certificates)
        key_pem = _key_in(keys[0], self.key_password, self._key_password_key)
        return _Content(certificates, Identity(_pem(certificates), key_pem) if certificates else None)

    def _jks_content(self, data: bytes, with_key: bool) -> _Content:
        try:
            store = jks.read(data, self.password)
        except jks.WrongPassword:
            raise
        except ValueError as error:
            raise _Unreadable(f"cannot be read as JKS ({error}); make it anew") from None
        leaves = [key.chain[0] for key in store.keys if key.chain]
        certificates = tuple(map(_from_der, (*store.trusted, *leaves)))
        entry = next((key for key in store.keys if key.chain), None)
        if not with_key or entry is None:
            return _Content(certificates)
        try:
            opened = jks.private_key(entry, self.key_password or self.password or "")
        except jks.WrongPassword:
            raise self._locked(self._key_password_key if self.key_password else self._password_key) from None
        chain = tuple(map(_from_der, entry.chain))
        return _Content(certificates, Identity(_pem(chain), _key_pem(load_der_private_key(opened, None))))

    def _pkcs12_content(self, data: bytes) -> _Content:
        password = self.password.encode() if self.password is not None else None
        try:
            store = pkcs12.load_pkcs12(data, password)
        except (ValueError, TypeError):
            # The library cannot tell a wrong password from a damaged file; the password is the usual reason.
            raise jks.WrongPassword from None
        except UnsupportedAlgorithm as error:
            raise _Unreadable(f"uses an encryption that is not supported ({error}); make it anew") from None
        others = tuple(entry.certificate for entry in store.additional_certs)
        own = (store.cert.certificate,) if store.cert else ()
        certificates = (*own, *others)
        if store.key is None or not own:
            return _Content(certificates)
        return _Content(certificates, Identity(_pem(_chain(own[0], others)), _key_pem(store.key)))


class _blaming:
    """Turns what is wrong with an inline PEM text into a problem of its key; the text itself is not shown."""

    def __init__(self, key: str) -> None:
        self._key = key

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, _Unreadable):
            raise _problem(self._key, f"'{self._key}' {error}") from None


def _chain(leaf: x509.Certificate, others: Iterable[x509.Certificate]) -> list[x509.Certificate]:
    """The leaf and its issuers in order; a server sends them so."""
    by_subject = {certificate.subject: certificate for certificate in others}
    chain = [leaf]
    while (issuer := by_subject.pop(chain[-1].issuer, None)) is not None:
        chain.append(issuer)
    return chain


def _from_der(der: bytes) -> x509.Certificate:
    try:
        return x509.load_der_x509_certificate(der)
    except ValueError:
        raise _Unreadable("has a certificate that is damaged; import it again") from None


def _certificates_in(text: str) -> tuple[x509.Certificate, ...]:
    blocks = [block.group(0) for block in _PEM_BLOCK.finditer(text) if block.group(1) == "CERTIFICATE"]
    try:
        return tuple(x509.load_pem_x509_certificate(block.encode()) for block in blocks)
    except ValueError:
        raise _Unreadable("has a certificate that is damaged; paste or export it again") from None


def _key_in(pem: str, password: str | None, password_key: str) -> str:
    try:
        # An empty password means none; one that is given for a plain key is ignored, as Java does.
        is_encrypted = "ENCRYPTED" in pem
        key = load_pem_private_key(pem.encode(), password.encode() if password and is_encrypted else None)
    except TypeError:
        raise _Unreadable(f"has a private key that is encrypted; set {password_key}") from None
    except (ValueError, UnsupportedAlgorithm):
        hint = f"or the password in {password_key} is wrong" if password else "or damaged"
        raise _Unreadable(f"has a private key that is not PEM {hint}; check both") from None
    return _key_pem(key)


def _key_pem(key: PrivateKeyTypes) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _pem(certificates: Iterable[x509.Certificate]) -> str:
    return "".join(certificate.public_bytes(Encoding.PEM).decode() for certificate in certificates)


def lacks_a_root(pem: str) -> bool:
    """Whether no certificate is its own issuer: Java trusts such stores, OpenSSL wants the root."""
    try:
        certificates = _certificates_in(pem)
    except _Unreadable:
        return False
    return not any(certificate.subject == certificate.issuer for certificate in certificates)


def _problem(key: str, message: str) -> ConfigError:
    return ConfigError([Problem(key, message)])
