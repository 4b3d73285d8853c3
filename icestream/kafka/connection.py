"""How a client reaches Kafka and who it is there, understood from Java's settings or librdkafka's.

`java_settings.py` turns it into librdkafka's words; the group membership into those of its own client.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, TypeVar

from icestream.api.errors import ConfigError, Problem
from icestream.kafka import keystores, logins
from icestream.kafka.keystores import Identity, Named
from icestream.kafka.logins import Kerberos, OAuth, login_facts
from icestream.named_files import content

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_KAFKAS_PLACE: Final = "localhost:9092"
_ADDRESS: Final = re.compile(r"(?:[\w\-%.]*://)?(\[[\w:%.\-]+\]|[\w\-%.]+):(\d+)")

JAVA_KEYS: Final = (
    "bootstrap.servers",
    "security.protocol",
    *logins.JAVA_KEYS,
    "ssl.endpoint.identification.algorithm",
    "ssl.key.password",
    *(f"ssl.keystore.{part}" for part in ("type", "location", "password", "key", "certificate.chain")),
    *(f"ssl.truststore.{part}" for part in ("type", "location", "password", "certificates")),
)


@dataclass(frozen=True)
class Connection:
    """All that a client of any library needs to know; secrets are not in its repr."""

    bootstrap_servers: tuple[str, ...]
    protocol: str = "PLAINTEXT"
    mechanism: str | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    oauth: OAuth | None = None
    kerberos: Kerberos | None = None
    ca_pem: str | None = field(default=None, repr=False)
    cert_pem: str | None = field(default=None, repr=False)
    key_pem: str | None = field(default=None, repr=False)
    """Never encrypted: a password of the key has been applied already."""
    verifies_certificate: bool = True
    check_hostname: bool = True

    @property
    def uses_tls(self) -> bool:
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def uses_sasl(self) -> bool:
        return self.protocol in ("SASL_PLAINTEXT", "SASL_SSL")


def connection_facts(settings: Mapping[str, str], named: Named = str) -> Connection:
    """Understand the settings of one client; raises ConfigError with every problem, by the user's key."""
    problems: list[Problem] = []
    none: tuple[str, ...] = ()
    servers = _attempt(lambda: _servers(settings, named), none, problems)
    protocol = _attempt(lambda: _protocol(settings, named), "PLAINTEXT", problems)
    facts = Connection(bootstrap_servers=servers, protocol=protocol)
    if facts.uses_sasl:
        facts = _attempt(lambda: _with_login(facts, settings, named), facts, problems)
    if facts.uses_tls:
        facts = _with_tls(facts, settings, named, problems)
    if problems:
        raise ConfigError(problems)
    return facts


_T = TypeVar("_T")


def _attempt(step: Callable[[], _T], otherwise: _T, problems: list[Problem]) -> _T:
    try:
        return step()
    except ConfigError as error:
        problems.extend(error.problems)
        return otherwise


def _problem(key: str, message: str) -> ConfigError:
    return ConfigError([Problem(key, message)])


def _servers(settings: Mapping[str, str], named: Named) -> tuple[str, ...]:
    key = named("bootstrap.servers")
    given = [
        server.strip()
        for server in settings.get("bootstrap.servers", _KAFKAS_PLACE).split(",")
        if server.strip()
    ]
    if not given:
        raise _problem(key, f"'{key}' is empty; name at least one host:port")
    found = []
    for server in given:
        address = _ADDRESS.fullmatch(server)
        if address is None or not 0 < int(address[2]) < 65536:
            raise _problem(key, f"'{key}' has '{server}', which is not an address; write host:port")
        found.append(f"{address[1]}:{address[2]}")
    return tuple(found)


def _protocol(settings: Mapping[str, str], named: Named) -> str:
    key = named("security.protocol")
    given = settings.get("security.protocol", "").strip() or "PLAINTEXT"
    if given.upper() not in PROTOCOLS:
        raise _problem(key, f"'{key}={given}' is not a protocol; use one of {', '.join(PROTOCOLS)}")
    return given.upper()


def _with_login(facts: Connection, settings: Mapping[str, str], named: Named) -> Connection:
    login = login_facts(settings, named)
    return replace(
        facts,
        mechanism=login.mechanism,
        username=login.username,
        password=login.password,
        oauth=login.oauth,
        kerberos=login.kerberos,
    )


def _with_tls(
    facts: Connection, settings: Mapping[str, str], named: Named, problems: list[Problem]
) -> Connection:
    own = _attempt(lambda: _identity(settings, named), None, problems)
    return replace(
        facts,
        ca_pem=_attempt(lambda: _trusted(settings, named), None, problems),
        cert_pem=own.certificates_pem if own else None,
        key_pem=own.key_pem if own else None,
        verifies_certificate=(
            settings.get("enable.ssl.certificate.verification", "true").strip().lower() != "false"
        ),
        check_hostname=_attempt(lambda: _checks_hostname(settings, named), True, problems),
    )


def _trusted(settings: Mapping[str, str], named: Named) -> str | None:
    if settings.get("ssl.ca.location") not in (None, "", "probe"):
        return _text_of("ssl.ca.location", settings, named)
    return settings.get("ssl.ca.pem") or keystores.trusted_certificates(settings, named)


def _identity(settings: Mapping[str, str], named: Named) -> Identity | None:
    in_words_of_java = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": settings.get("ssl.certificate.pem")
        or _text_of("ssl.certificate.location", settings, named)
        or "",
        "ssl.keystore.key": settings.get("ssl.key.pem")
        or _text_of("ssl.key.location", settings, named)
        or "",
    }
    if not in_words_of_java["ssl.keystore.key"]:
        return keystores.identity(settings, named)
    if "ssl.key.password" in settings:
        in_words_of_java["ssl.key.password"] = settings["ssl.key.password"]
    return keystores.identity(in_words_of_java, named)


def _text_of(key: str, settings: Mapping[str, str], named: Named) -> str | None:
    """The text of a file that librdkafka's settings name; None if it is not set or names a folder."""
    location = settings.get(key, "").strip()
    if not location or Path(location).is_dir():
        return None
    try:
        return content(Path(location)).decode(errors="replace")
    except OSError as error:
        raise _problem(
            named(key), f"'{named(key)}={location}' cannot be read ({error.strerror}); check the path"
        ) from None


def _checks_hostname(settings: Mapping[str, str], named: Named) -> bool:
    key = "ssl.endpoint.identification.algorithm"
    algorithm = settings.get(key, "https").strip().lower()
    if algorithm not in ("https", "", "none"):
        raise _problem(
            named(key),
            f"'{named(key)}={algorithm}' is not known; use https, or leave it empty to accept any host name",
        )
    return algorithm == "https"
