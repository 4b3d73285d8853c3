"""TLS of the REST API: Kafka's `ssl.*` keys, under a prefix such as `listeners.https.` or plain.

Called by `cluster/settings/rest_settings.py`; `rest/security.py` makes contexts of it.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from icestream.api.config import Config, subset
from icestream.api.errors import ConfigError, Problem
from icestream.kafka.keystores import Identity, identity, trusted_certificates

_CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_TOO_OLD: Final = ("SSLv2Hello", "SSLv3", "TLSv1", "TLSv1.1")
_SUITES_OF_1_3: Final = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
_OF_JAVA: Final = (
    "ssl.provider",
    "ssl.keymanager.algorithm",
    "ssl.trustmanager.algorithm",
    "ssl.secure.random.implementation",
    "ssl.engine.factory.class",
)
_Found = TypeVar("_Found")


@dataclass(frozen=True)
class Tls:
    """Certificates and rules, of us as a server and as a client of other workers."""

    identity: Identity | None = None
    trusted_pem: str | None = None
    """None: what the machine trusts."""
    client_auth: ssl.VerifyMode = ssl.CERT_NONE
    oldest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
    newest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3
    ciphers: tuple[str, ...] = ()
    """OpenSSL's names of suites for TLS 1.2; empty: the usual ones."""
    check_hostname: bool = True


def read_tls(
    raw: Config, prefix: str, problems: list[Problem], warnings: list[str], *, serves: bool = True
) -> Tls:
    """What the keys under `prefix` say, or the plain `ssl.*` keys if none is under it, as in Kafka."""
    under = subset(raw, prefix)
    keys = _Keys(under or raw, prefix if under else "", problems, warnings)
    client_auth = keys.client_auth()
    own = keys.read(identity)
    trusted = keys.read(trusted_certificates)
    oldest, newest, ciphers = keys.versions_and_ciphers()
    keys.warn_of_java()
    if serves and own is None and not keys.unreadable:
        keys.blame("ssl.keystore.location", "https needs a certificate; set {key} and its password")
    return Tls(own, trusted, client_auth, oldest, newest, ciphers, keys.check_hostname())


class _Keys:
    """The `ssl.*` keys of one listener; what is wrong is noted under the name that the user wrote."""

    def __init__(
        self, settings: Mapping[str, str], prefix: str, problems: list[Problem], warnings: list[str]
    ) -> None:
        self._settings = settings
        self._prefix = prefix
        self._problems = problems
        self._warnings = warnings
        self.unreadable = False

    def named(self, key: str) -> str:
        return self._prefix + key

    def blame(self, key: str, message: str) -> None:
        self._problems.append(Problem(self.named(key), message.format(key=f"'{self.named(key)}'")))

    def read(
        self, reader: Callable[[Mapping[str, str], Callable[[str], str]], _Found | None]
    ) -> _Found | None:
        try:
            return reader(self._settings, self.named)
        except ConfigError as error:
            self.unreadable = True
            self._problems += [problem for problem in error.problems if problem not in self._problems]
            return None

    def client_auth(self) -> ssl.VerifyMode:
        text = self._settings.get("ssl.client.auth", "none").strip().lower()
        if text not in _CLIENT_AUTH:
            self.blame("ssl.client.auth", f"{{key}} is '{text}'; write one of {', '.join(_CLIENT_AUTH)}")
        return _CLIENT_AUTH.get(text, ssl.CERT_NONE)

    def check_hostname(self) -> bool:
        return bool(self._settings.get("ssl.endpoint.identification.algorithm", "https").strip())

    def versions_and_ciphers(self) -> tuple[ssl.TLSVersion, ssl.TLSVersion, tuple[str, ...]]:
        versions = self._versions()
        suites = self._list("ssl.cipher.suites")
        newer = set(suites) & set(_SUITES_OF_1_3)
        ciphers = [self._cipher(suite) for suite in suites if suite not in newer]
        if suites:
            # A version none of whose suites is named cannot be spoken.
            spoken = [ssl.TLSVersion.TLSv1_2] * bool(ciphers) + [ssl.TLSVersion.TLSv1_3] * bool(newer)
            versions = [version for version in versions if version in spoken]
        if not versions:
            self.blame(
                "ssl.cipher.suites", "{key} has no suite for the versions in ssl.enabled.protocols; add one"
            )
            versions = list(_VERSIONS.values())
        if 0 < len(newer) < len(_SUITES_OF_1_3):
            self._warnings.append(
                f"'{self.named('ssl.cipher.suites')}' leaves out suites of TLS 1.3, which are all offered"
            )
        return min(versions), max(versions), tuple(filter(None, ciphers))

    def _versions(self) -> list[ssl.TLSVersion]:
        key = "ssl.enabled.protocols"
        named = self._list(key)
        strange = [name for name in named if name not in _VERSIONS and name not in _TOO_OLD]
        found = [_VERSIONS[name] for name in named if name in _VERSIONS]
        if strange or (named and not found):
            self.blame(key, f"{{key}} is '{','.join(named)}'; write TLSv1.2, TLSv1.3 or both")
        elif len(found) < len(named):
            self._warnings.append(f"'{self.named(key)}' names versions before TLSv1.2, which are not offered")
        return found or list(_VERSIONS.values())

    def _cipher(self, suite: str) -> str:
        cipher = openssl_name(suite)
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).set_ciphers(cipher)
        except ssl.SSLError:
            self.blame(
                "ssl.cipher.suites", f"{{key}} has '{suite}', which OpenSSL here does not know; remove it"
            )
            return ""
        return cipher

    def warn_of_java(self) -> None:
        self._warnings += [
            f"'{self.named(key)}' has no effect on REST: it is about Java's TLS"
            for key in _OF_JAVA
            if self._settings.get(key, "").strip()
        ]

    def _list(self, key: str) -> list[str]:
        return [item.strip() for item in self._settings.get(key, "").split(",") if item.strip()]


def openssl_name(suite: str) -> str:
    """`TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256` is `ECDHE-RSA-AES128-GCM-SHA256` in OpenSSL."""
    exchange, _, cipher = suite.removeprefix("TLS_").partition("_WITH_")
    cipher = re.sub(r"AES_(128|256)", r"AES\1", cipher).replace("_CBC_", "_")
    cipher = cipher.replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    parts = [exchange] if exchange != "RSA" else []
    return "_".join([*parts, cipher]).replace("_", "-") if cipher else suite
