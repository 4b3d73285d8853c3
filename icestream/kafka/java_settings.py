"""From the settings of Kafka's Java clients to librdkafka's, by the table. Used by `clients.py`.

A key of librdkafka that Java does not have is passed on as it is, of a connector only if it is allowed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from icestream.api.config import ConfigDef, Setting, Type
from icestream.api.errors import ConfigError, Problem
from icestream.kafka import connection as connections
from icestream.kafka import keystores, librdkafka
from icestream.kafka.connection import Connection
from icestream.kafka.connector_keys import FILES, NATIVE
from icestream.kafka.java_table import (
    OF_EVERY_CLIENT,
    OTHERWISE_FOR_PRODUCERS,
    TABLE,
    CipherSuites,
    NoEffect,
    Number,
    Ours,
    Partitioner,
    Refused,
    Rule,
    Switch,
    Text,
    TlsVersions,
)
from icestream.kafka.keystores import Named

ROLES: Final = ("consumer", "producer", "admin")
_OF_WORKERS: Final = ("", *(f"{role}." for role in ROLES))

_KNOWN: Final = ConfigDef([Setting(key, Type.STRING, None, "") for key in TABLE])
_TLS_ONLY: Final = ("ssl.", "enable.ssl.", "https.")
_SASL_ONLY: Final = ("sasl.", "enable.sasl.")
_SECRET: Final = ("password", "passphrase", "secret", "pem", "jaas", "oauthbearer.config")
_JAVAS_BACKOFF_MS: Final = 50
_TLS_OFFERED: Final = {"TLSV1.2", "TLSV1.3"}


@dataclass(frozen=True)
class Translation:
    """Settings for librdkafka, and what there is to say about those of the user."""

    settings: Mapping[str, str]
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]


def is_worker_key(key: str) -> bool:
    """Whether a key of a worker's config, without prefix, is meant for Kafka's clients."""
    return key in OF_EVERY_CLIENT or is_connection_key(key)


def is_connection_key(key: str) -> bool:
    """Whether a key says where Kafka is and who we are: those hold for all clients of a worker."""
    return key in ("bootstrap.servers", "security.protocol") or key.startswith((*_TLS_ONLY, *_SASL_ONLY))


def checked(settings: Mapping[str, str], prefix: str, under: Mapping[str, str]) -> Translation:
    """What there is to say about the settings of a client, on the user's keys `<prefix><key>`.

    `under` are settings that hold where these say nothing: the worker's, under a connector's overrides.
    Without a prefix it is the worker's config, of which only the keys of clients are looked at.
    """
    own = settings if prefix else {key: value for key, value in settings.items() if is_worker_key(key)}
    role = next((role for role in ROLES if prefix.startswith(f"{role}.")), None)
    inherited = under.keys() - own.keys()
    found = translated(
        {**under, **own},
        role,
        lambda key: key if key in inherited else f"{prefix}{key}",
        own if prefix not in _OF_WORKERS else (),
    )
    # What is to say about the settings below is told where those are checked.
    return Translation(
        found.settings,
        tuple(problem for problem in found.problems if problem.key not in inherited),
        tuple(warning for warning in found.warnings if warning.key not in inherited),
    )


def translated(
    settings: Mapping[str, str], role: str | None, named: Named = str, brought: Collection[str] = ()
) -> Translation:
    """All settings of one client in librdkafka's words. `brought` are the keys that a connector brings."""
    forbidden = {key for key in brought if not _is_allowed(key)}
    used = {key: value for key, value in settings.items() if _matters(key, settings) and key not in forbidden}
    translator = _Translator(role, named)
    translator.problems += [_forbidden(named(key)) for key in settings if key in forbidden]
    for key, value in used.items():
        translator.take(key, value)
    translator.reconcile_backoff()
    translator.take_connection(used)
    if role == "producer":
        translator.settings.setdefault("partitioner", librdkafka.JAVAS_PARTITIONER)
    return Translation(translator.settings, tuple(translator.problems), tuple(translator.warnings))


def _is_allowed(key: str) -> bool:
    """Whether a connector may bring it. What nobody knows is told later, and has no effect."""
    return key not in FILES and (key in TABLE or key in NATIVE or _is_unknown(key))


def _is_unknown(key: str) -> bool:
    # Asked with a value that does nothing: to set some keys is to load a library or to run a command.
    return (librdkafka.complaint(key, "") or "").startswith(librdkafka.UNKNOWN)


def _forbidden(name: str) -> Problem:
    return Problem(
        name,
        f"'{name}' is not among the settings that a connector may override; set it in the worker's config",
    )


def _matters(key: str, settings: Mapping[str, str]) -> bool:
    """TLS and SASL keys count only where the protocol uses them: the REST server has `ssl.*` keys as well."""
    protocol = settings.get("security.protocol", "").strip().upper() or "PLAINTEXT"
    if key.startswith(_TLS_ONLY):
        return protocol.endswith("SSL")
    if key.startswith(_SASL_ONLY):
        return protocol.startswith("SASL")
    return True


@dataclass
class _Translator:
    """Gathers the settings of one client, and what there is to say about them."""

    role: str | None
    named: Named
    settings: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)

    def take(self, key: str, value: str) -> None:
        rule = (OTHERWISE_FOR_PRODUCERS.get(key) if self.role == "producer" else None) or TABLE.get(key)
        name = self.named(key)
        try:
            if rule is None:
                self._native(key, value, name)
            else:
                self._apply(rule, value.strip(), name)
        except ConfigError as error:
            self.problems += error.problems

    def reconcile_backoff(self) -> None:
        """As in Java, a pause is never longer than the longest one, which is the first if it is not set."""
        first, longest = "reconnect.backoff.ms", "reconnect.backoff.max.ms"
        if first in self.settings:
            self.settings.setdefault(longest, self.settings[first])
        if longest in self.settings:
            limit = int(self.settings[longest])
            self.settings[first] = str(min(int(self.settings.get(first, _JAVAS_BACKOFF_MS)), limit))

    def take_connection(self, settings: Mapping[str, str]) -> None:
        try:
            facts = connections.connection_facts(settings, self.named)
        except ConfigError as error:
            self.problems += error.problems
            return
        self.settings |= librdkafka.connection_settings(facts, settings)
        if facts.mechanism == "GSSAPI" and not librdkafka.has_kerberos():
            key = self.named("sasl.mechanism")
            self.problems.append(
                Problem(
                    key,
                    f"'{key}' is GSSAPI, which is Java's default, but this librdkafka has no Kerberos; use "
                    "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER, or install confluent-kafka from "
                    "source with libsasl2",
                )
            )
        self._check_trust(facts)

    def _check_trust(self, facts: Connection) -> None:
        if facts.ca_pem and keystores.lacks_a_root(facts.ca_pem):
            self._warn(
                self.named("ssl.truststore.location"),
                "has no root certificate, which OpenSSL needs and Java does not; add that of the CA",
            )

    def _warn(self, name: str, about: str) -> None:
        self.warnings.append(Problem(name, f"'{name}' {about}"))

    def _apply(self, rule: Rule, value: str, name: str) -> None:
        match rule:
            case Number():
                self._number(rule, value, name)
            case Text():
                self._text(rule, value, name)
            case Switch(to):
                self.settings[to] = str(_parsed(Setting(name, Type.BOOLEAN, None, ""), value)).lower()
            case Partitioner():
                is_any = _parsed(Setting(name, Type.BOOLEAN, None, ""), value)
                self.settings["partitioner"] = (
                    librdkafka.ANY_PARTITION if is_any else librdkafka.JAVAS_PARTITIONER
                )
            case CipherSuites():
                self._cipher_suites(value, name)
            case TlsVersions():
                self._tls_versions(value, name)
            case Refused(reason, agrees):
                if not _is_among(value, agrees):
                    raise ConfigError([Problem(name, f"'{name}' cannot be used here: {reason}")])
            case NoEffect(reason, agrees) | Ours(reason, agrees):
                if not _is_among(value, agrees):
                    self._warn(name, f"has no effect: {reason}")

    def _number(self, rule: Number, value: str, name: str) -> None:
        given = _parsed(Setting(name, rule.type, None, "", at_least=rule.java_low), value)
        converted = -(-given // rule.unit)
        within = min(max(converted, rule.low), rule.high)
        # -1 is Java's word for "no limit" or "the system's choice", which is 0 here.
        if within != converted and given != -1:
            self._warn(
                name, f"has the effect of {within * rule.unit}, the nearest to {value} that is possible"
            )
        self.settings[rule.to] = str(within)

    def _text(self, rule: Text, value: str, name: str) -> None:
        if rule.choices:
            if value.lower() not in rule.choices:
                raise _invalid(name, value, f"String must be one of: {', '.join(rule.choices)}")
            self.settings[rule.to] = value.lower()
        elif value:
            self.settings[rule.to] = value

    def _cipher_suites(self, value: str, name: str) -> None:
        suites = _listed(value)
        chosen = [suite for suite in suites if not suite.startswith("TLS_") or "_WITH_" in suite]
        if chosen:
            self.settings["ssl.cipher.suites"] = ",".join(chosen)
        elif suites:
            self._warn(name, "has no effect: all suites of TLS 1.3 are on, and no other is named")

    def _tls_versions(self, value: str, name: str) -> None:
        asked = {version.upper() for version in _listed(value)}
        if asked in ({"TLS"}, set(), _TLS_OFFERED):
            return
        if not asked & _TLS_OFFERED:
            raise ConfigError(
                [Problem(name, f"'{name}={value}' cannot be used here; use TLSv1.2, TLSv1.3 or both")]
            )
        if name.endswith("enabled.protocols"):
            self._warn(name, "has no effect: TLS 1.2 and 1.3 are on, the broker chooses; older ones are off")

    def _native(self, key: str, value: str, name: str) -> None:
        """A key that Java does not have: librdkafka's, or nobody's."""
        complaint = librdkafka.complaint(key, value)
        if complaint is None:
            self.settings[key] = value
        elif not complaint.startswith(librdkafka.UNKNOWN):
            told = "" if any(word in key for word in _SECRET) else f": {complaint}"
            raise ConfigError([Problem(name, f"'{name}' has a value that Kafka's client refuses{told}")])
        elif suggestion := _KNOWN.unknown([key])[key]:
            message = (
                f"'{name}' is not a setting of Kafka's clients; did you mean '{self.named(suggestion)}'?"
            )
            raise ConfigError([Problem(name, message)])
        else:
            self._warn(name, "has no effect: it is not a setting of Kafka's clients")


def _parsed(setting: Setting, value: str) -> Any:
    try:
        return setting.parse(value)
    except ValueError as error:
        raise _invalid(setting.name, value, str(error)) from None


def _invalid(name: str, value: str, reason: str) -> ConfigError:
    return ConfigError([Problem(name, f"Invalid value {value} for configuration {name}: {reason}")])


def _listed(value: str) -> list[str]:
    return [item.strip() for item in value.split(",") if item.strip()]


def _is_among(value: str, agrees: tuple[str, ...]) -> bool:
    return value.lower() in [agreed.lower() for agreed in agrees]
