"""The REST keys of a worker's config, checked and understood: listeners, TLS, authentication, headers.

`parse_rest` is called by the worker's config; `rest/server.py` does what it says.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import ssl
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from icestream.api.config import Config, ConfigDef, Setting, Type
from icestream.api.errors import ConfigError, Problem
from icestream.cluster.settings.console_settings import CONSOLE_SETTINGS, ConsoleConfig, Level
from icestream.cluster.settings.console_settings import LISTENERS as CONSOLE_LISTENERS
from icestream.cluster.settings.rest_auth import AUTH_SETTINGS, read_credentials
from icestream.cluster.settings.rest_tls import Tls, read_tls

USUAL_PORT: Final = 8083
_LOOPBACK: Final = "127.0.0.1"
_FOR_OTHERS: Final = ("rest.advertised.host.name", "rest.advertised.port", "rest.advertised.listener")
"""Who sets one of these wants others to reach the worker; images that take `CONNECT_*` demand the first."""
_EVERYWHERE: Final = ("", "0.0.0.0", "::")
_LISTENER: Final = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")
_SCHEMES: Final = ("http", "https")
_HEADER_ACTIONS: Final = ("set", "add", "setDate", "addDate")
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CSV_ITEM: Final = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)(?:"[^,]*|$)|([^,]*))(?:,|$)', re.DOTALL)


@dataclass(frozen=True)
class ConnectionLimits:
    """Seconds count from the first moment of a phase: a trickle of bytes is no sign of life."""

    most: int = 512
    headers_s: float = 10.0
    body_s: float = 60.0
    unread_s: float = 30.0
    """How long an answer may wait for a client that does not read it."""


REST: Final = ConfigDef(
    (
        Setting(
            "listeners",
            Type.LIST,
            None,
            "Where REST listens: http://host:port or https://host:port; no host is all interfaces. Absent: "
            "where only this machine reaches it, unless 'rest.advertised.*' is set or in a cluster.",
            importance="LOW",
        ),
        Setting("rest.host.name", Type.STRING, "", "Where REST listens when 'listeners' is absent."),
        Setting(
            "rest.port",
            Type.INT,
            USUAL_PORT,
            "The port of REST when 'listeners' is absent; 0 takes a free one.",
            at_least=0,
            check=lambda port: _port_problem(port),
        ),
        Setting(
            "admin.listeners",
            Type.LIST,
            None,
            "Where /admin listens; absent: on 'listeners', empty: nowhere.",
            importance="LOW",
        ),
        Setting(
            "rest.advertised.host.name",
            Type.STRING,
            "",
            "The host that others use to reach this worker.",
            importance="LOW",
        ),
        Setting(
            "rest.advertised.port",
            Type.INT,
            None,
            "The port that others use to reach this worker.",
            importance="LOW",
            check=lambda port: _port_problem(port),
        ),
        Setting(
            "rest.advertised.listener",
            Type.STRING,
            "",
            "http or https: how others reach this worker; http if there is such a listener.",
            importance="LOW",
            check=lambda text: None if text.lower() in ("", *_SCHEMES) else "write http or https",
        ),
        Setting(
            "access.control.allow.origin",
            Type.LIST,
            [],
            "Web origins whose pages may call REST, as regular expressions; * is all.",
            importance="LOW",
            check=lambda origins: _origin_problem(origins),
        ),
        Setting(
            "access.control.allow.methods",
            Type.LIST,
            [],
            "Verbs that pages of these origins may use; GET, POST, HEAD by default.",
            importance="LOW",
        ),
        Setting(
            "response.http.headers.config",
            Type.STRING,
            "",
            'Headers for all answers: set X-Frame-Options: DENY, "add Cache-Control: no-cache, no-store".',
            importance="LOW",
        ),
        Setting(
            "rest.extension.classes",
            Type.LIST,
            [],
            "Basic authentication, by the name of Kafka Connect's BasicAuthSecurityRestExtension.",
            importance="LOW",
        ),
        Setting(
            "icestream.rest.connections.max",
            Type.INT,
            ConnectionLimits.most,
            "Connections at the same time, at most a quarter of the files that the process may open; for one "
            "more, the one that has waited longest for its client is closed.",
            importance="LOW",
            at_least=16,
        ),
        Setting(
            "icestream.rest.headers.timeout.ms",
            Type.INT,
            int(ConnectionLimits.headers_s * 1000),
            "How long a client may take to send the head of a request.",
            importance="LOW",
            at_least=1,
        ),
        Setting(
            "icestream.rest.body.timeout.ms",
            Type.INT,
            int(ConnectionLimits.body_s * 1000),
            "How long a client may take to send the body of a request.",
            importance="LOW",
            at_least=1,
        ),
        *AUTH_SETTINGS,
        *CONSOLE_SETTINGS,
    ),
    prefixes=("ssl.", "listeners.https.", "admin.listeners.https."),
)


@dataclass(frozen=True)
class Listener:
    """One address that REST listens on; no host is all interfaces, port 0 is a free one."""

    scheme: str
    host: str
    port: int

    @property
    def url(self) -> str:
        return f"{self.scheme}://{bracketed(self.host)}:{self.port}"


@dataclass(frozen=True)
class CrossOrigin:
    """Which web pages of other origins may call us; no origin: none."""

    origins: tuple[str, ...] = ()
    methods: tuple[str, ...] = ("GET", "POST", "HEAD")


@dataclass(frozen=True)
class HeaderRule:
    """One header for all answers; the value of a date is milliseconds from now."""

    action: str
    name: str
    value: str

    @property
    def is_set(self) -> bool:
        """It replaces those of the same name from earlier rules."""
        return self.action in ("set", "setDate")

    @property
    def is_date(self) -> bool:
        return self.action.endswith("Date")


@dataclass(frozen=True)
class RestConfig:
    """What REST needs to know. `admin_listeners` is None if /admin is on `listeners`, empty if nowhere."""

    listeners: tuple[Listener, ...] = (Listener("http", _LOOPBACK, USUAL_PORT),)
    admin_listeners: tuple[Listener, ...] | None = None
    tls: Tls | None = None
    admin_tls: Tls | None = None
    cross_origin: CrossOrigin = CrossOrigin()
    headers: tuple[HeaderRule, ...] = ()
    credentials: Mapping[str, str] | None = field(default=None, repr=False)
    """Passwords by user; None lets everybody in."""
    advertised_scheme: str = "http"
    advertised_host: str = ""
    advertised_port: int | None = None
    connections: ConnectionLimits = ConnectionLimits()
    console: ConsoleConfig = field(default_factory=ConsoleConfig)
    warnings: tuple[str, ...] = ()

    @property
    def exposure(self) -> str | None:
        """One sentence if other machines reach us and need no login; None if all is well."""
        listeners = (*self.listeners, *(self.console.listeners or ()))
        open_doors = [*self._doors(listeners, self.tls, self.credentials)]
        # Kafka Connect never asks for users there.
        open_doors += self._doors(self.admin_listeners or (), self.admin_tls, None)
        if not open_doors:
            return None
        return (
            f"REST on {', '.join(open_doors)} can be reached from other machines and asks for no login: "
            "whoever reaches it runs connectors with this worker's rights. Set 'rest.extension.classes', or "
            f"listen on {_LOOPBACK}; see docs/hardening.md"
        )

    def _doors(
        self, listeners: Sequence[Listener], tls: Tls | None, credentials: Mapping[str, str] | None
    ) -> Iterator[str]:
        asks_for_certificates = tls is not None and tls.client_auth is ssl.CERT_REQUIRED
        for it in listeners:
            knows_clients = it.scheme == "https" and asks_for_certificates
            if credentials is None and not knows_clients and not _is_loopback(it.host):
                yield it.url

    @property
    def console_listeners(self) -> tuple[Listener, ...] | None:
        """Those of the console alone; None if it is on `listeners` or nowhere."""
        return None if self.console.level is Level.OFF else self.console.listeners

    def advertised_url(self, bound_ports: Sequence[int]) -> str:
        """How other workers and clients reach us; `bound_ports` are the real ports of `listeners`."""
        at = next((i for i, it in enumerate(self.listeners) if it.scheme == self.advertised_scheme), 0)
        host = self.advertised_host or self.listeners[at].host
        if host in _EVERYWHERE:
            host = _own_address()
        port = self.advertised_port or bound_ports[at]
        return f"{self.advertised_scheme}://{bracketed(host)}:{port}"


def parse_rest(
    raw: Config, environ: Mapping[str, str] = os.environ, *, has_peers: bool = False
) -> RestConfig:
    """Every problem at once, as a ConfigError; keystores and credentials are read here.

    `has_peers`: other workers of a cluster ask this one.
    """
    problems = REST.problems(raw)
    listeners = _listeners(raw, problems, has_peers)
    admin = _other_listeners("admin.listeners", raw, problems)
    console = _other_listeners(CONSOLE_LISTENERS, raw, problems)
    headers = _headers(raw.get("response.http.headers.config", ""), problems)
    warnings: list[str] = []
    tls = admin_tls = None
    scheme = _advertised_scheme(raw, listeners)
    serves = any(it.scheme == "https" for it in (*listeners, *(console or ())))
    if serves or scheme == "https":
        tls = read_tls(raw, "listeners.https.", problems, warnings, serves=serves)
    if any(it.scheme == "https" for it in admin or ()):
        admin_tls = read_tls(raw, "admin.listeners.https.", problems, warnings)
    credentials = read_credentials(raw, environ, problems)
    if problems:
        raise ConfigError(problems)
    values = REST.parse(raw)
    config = RestConfig(
        listeners=listeners,
        admin_listeners=admin,
        tls=tls,
        admin_tls=admin_tls,
        cross_origin=_cross_origin(values),
        headers=headers,
        credentials=credentials,
        advertised_scheme=scheme,
        advertised_host=values["rest.advertised.host.name"],
        advertised_port=values["rest.advertised.port"],
        connections=ConnectionLimits(
            most=values["icestream.rest.connections.max"],
            headers_s=values["icestream.rest.headers.timeout.ms"] / 1000,
            body_s=values["icestream.rest.body.timeout.ms"] / 1000,
        ),
        console=ConsoleConfig(
            level=Level.of(values["icestream.console"]),
            listeners=console,
            hosts=tuple(values["icestream.console.hosts"]),
            shows_payloads=values["icestream.console.payloads"],
        ),
        warnings=tuple(warnings),
    )
    return replace(config, warnings=(*warnings, config.exposure)) if config.exposure else config


def bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _listeners(raw: Config, problems: list[Problem], has_peers: bool) -> tuple[Listener, ...]:
    given = raw.get("listeners")
    if given is None:
        port = raw.get("rest.port", str(USUAL_PORT)).strip()
        is_for_others = has_peers or any(raw.get(key, "").strip() for key in _FOR_OTHERS)
        host = raw.get("rest.host.name", "").strip() or ("" if is_for_others else _LOOPBACK)
        return (Listener("http", host, int(port) if port.isdecimal() else 0),)
    if not given.strip():
        problems.append(Problem("listeners", "'listeners' is empty; name an address such as http://:8083"))
    return parsed_listeners("listeners", given, problems)


def _other_listeners(key: str, raw: Config, problems: list[Problem]) -> tuple[Listener, ...] | None:
    given = raw.get(key)
    return None if given is None else parsed_listeners(key, given, problems)


def parsed_listeners(key: str, given: str, problems: list[Problem]) -> tuple[Listener, ...]:
    """The addresses of a list; what is none of them becomes a problem of the key."""
    found = []
    for item in (item.strip() for item in given.split(",") if given.strip()):
        match = _LISTENER.fullmatch(item)
        scheme = match.group(1).lower() if match else ""
        if match is None or scheme not in _SCHEMES or not 0 <= int(match.group(3)) <= 65535:
            problems.append(
                Problem(
                    key, f"'{item}' in '{key}' is not an address; write http://host:port or https://host:port"
                )
            )
            continue
        found.append(Listener(scheme, match.group(2), int(match.group(3))))
    return tuple(found)


def _advertised_scheme(raw: Config, listeners: Sequence[Listener]) -> str:
    named = raw.get("rest.advertised.listener", "").strip().lower()
    if named:
        return named
    return "https" if listeners and all(it.scheme == "https" for it in listeners) else "http"


def _cross_origin(values: Mapping[str, Any]) -> CrossOrigin:
    methods = tuple(verb.upper() for verb in values["access.control.allow.methods"])
    return CrossOrigin(tuple(values["access.control.allow.origin"]), methods or CrossOrigin().methods)


def _headers(text: str, problems: list[Problem]) -> tuple[HeaderRule, ...]:
    key = "response.http.headers.config"
    rules = []
    for item in _csv(text):
        try:
            rules.append(_header_rule(item))
        except ValueError as error:
            problems.append(Problem(key, f"'{item}' in '{key}' is not a rule: {error}"))
    return tuple(rules)


def _header_rule(item: str) -> HeaderRule:
    action, _, header = item.strip().partition(" ")
    known = {name.lower(): name for name in _HEADER_ACTIONS}
    if action.lower() not in known:
        raise ValueError(f"'{action}' is not one of {', '.join(_HEADER_ACTIONS)}")
    name, colon, value = (part.strip() for part in header.partition(":"))
    # Kafka Connect refuses a second colon; we take it, since addresses have one.
    if not colon or not value:
        raise ValueError("write 'action name: value'")
    if not _HEADER_NAME.fullmatch(name):
        raise ValueError(f"'{name}' is not a header's name")
    if not value.isprintable() or not value.isascii():
        raise ValueError("the value has characters that a header cannot have")
    rule = HeaderRule(known[action.lower()], name, value)
    if rule.is_date and not re.fullmatch(r"-?\d{1,13}", value):
        raise ValueError(f"'{value}' is not a number of milliseconds")
    return rule


def _csv(text: str) -> Iterator[str]:
    """The items between commas, without blanks around them and without quotation marks, as Jetty splits."""
    at = 0
    while at < len(text) and text[at:].strip():
        match = _CSV_ITEM.match(text, at)
        assert match is not None, "the pattern matches the empty item"
        quoted, plain = match.groups()
        yield re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else plain.strip()
        at = match.end()


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _port_problem(port: int) -> str | None:
    return None if 0 <= port <= 65535 else "must be between 0 and 65535"


def _origin_problem(origins: Sequence[str]) -> str | None:
    for origin in origins:
        try:
            re.compile("" if origin == "*" else origin)
        except re.error as error:
            return (
                f"'{origin}' is not a regular expression ({error}); write .* for any characters, or * alone"
            )
    return None


def _own_address() -> str:
    """The address that others reach this machine by, as far as it knows itself."""
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return _LOOPBACK
