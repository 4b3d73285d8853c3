"""A worker's config file, checked and understood. Called by the command line before anything starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from icestream.api.config import Config
from icestream.api.errors import ConfigError, Problem
from icestream.cluster.unknown_keys import judge_unknown_keys
from icestream.cluster.worker_settings import (
    CLIENT_KEYS_OF_JAVA,
    CLIENT_KEYS_UNUSED,
    DISTRIBUTED,
    NOT_YET,
    WITHOUT_EFFECT,
    WORKER,
)

_LOOPBACK: Final = "127.0.0.1"
_ALL_INTERFACES: Final = "0.0.0.0"


@dataclass(frozen=True)
class Listener:
    """Where REST listens."""

    host: str
    port: int


@dataclass(frozen=True)
class WorkerConfig:
    """What a standalone worker needs to know; `raw` goes to the data plane and to connectors as it is."""

    raw: Mapping[str, str]
    listener: Listener
    state_file: Path
    log_level: str
    advertised_host: str
    advertised_port: int | None
    stop_timeout: float
    allow_origin: str
    allow_methods: tuple[str, ...]
    warnings: tuple[str, ...]

    def worker_id(self, bound_port: int) -> str:
        """How this worker names itself in the status of connectors."""
        host = self.advertised_host or (
            _LOOPBACK if self.listener.host == _ALL_INTERFACES else self.listener.host
        )
        return f"{host}:{self.advertised_port or bound_port}"


def parse_worker_config(raw: Config) -> WorkerConfig:
    """Every problem at once, as a ConfigError; what has no effect becomes a warning."""
    unknown = judge_unknown_keys(WORKER, raw, raw.get("icestream.unknown.keys", "typos").strip())
    problems = [*WORKER.problems(raw), *unknown.problems, *_not_yet(raw)]
    listener, listener_problems = _listener(raw)
    state_file, state_problems = _state_file(raw)
    problems += [*listener_problems, *state_problems]
    if problems:
        raise ConfigError(problems)
    values = WORKER.parse(raw)
    return WorkerConfig(
        raw=dict(raw),
        listener=listener,
        state_file=state_file,
        log_level=values["icestream.log.level"].upper(),
        advertised_host=values["rest.advertised.host.name"],
        advertised_port=values["rest.advertised.port"],
        stop_timeout=values["task.shutdown.graceful.timeout.ms"] / 1000,
        allow_origin=values["access.control.allow.origin"],
        allow_methods=_methods(values),
        warnings=(*unknown.warnings, *_without_effect(raw)),
    )


def _methods(values: Mapping[str, Any]) -> tuple[str, ...]:
    named = tuple(
        verb.strip().upper() for verb in values["access.control.allow.methods"].split(",") if verb.strip()
    )
    return named or ("GET", "POST", "HEAD")


def _without_effect(raw: Config) -> list[str]:
    plain = [f"'{key}' has no effect: {reason}" for key, reason in WITHOUT_EFFECT.items() if key in raw]
    unused = [
        f"'{key}' has no effect: it is not passed on to Kafka's client by this version"
        for key in CLIENT_KEYS_UNUSED
        if key in raw
    ]
    standalone = [f"'{key}' has no effect: this is a standalone worker" for key in DISTRIBUTED if key in raw]
    return plain + unused + standalone


def _not_yet(raw: Config) -> list[Problem]:
    plain = [
        Problem(key, f"'{key}' is not supported by this version; remove it")
        for key in NOT_YET
        if raw.get(key, "").strip()
    ]
    java = [key for key in raw if key.removeprefix("consumer.").startswith(CLIENT_KEYS_OF_JAVA)]
    return plain + [
        Problem(
            key,
            f"'{key}' is a setting of Kafka's Java client, which this version does not translate; use "
            "librdkafka's sasl.username, sasl.password, ssl.ca.location, ssl.certificate.location, "
            "ssl.key.location",
        )
        for key in java
    ]


def _listener(raw: Config) -> tuple[Listener, list[Problem]]:
    given = [item.strip() for item in raw.get("listeners", "").split(",") if item.strip()]
    if not given:
        port = raw.get("rest.port", "8083").strip()
        return Listener(
            raw.get("rest.host.name", "").strip() or _LOOPBACK, int(port) if port.isdecimal() else 0
        ), []
    nowhere = Listener(_LOOPBACK, 0)
    if len(given) > 1:
        return nowhere, [
            Problem("listeners", f"'listeners={','.join(given)}' has {len(given)} addresses; name one")
        ]
    try:
        parts = urlsplit(given[0])
        port_number = parts.port
    except ValueError:
        parts, port_number = urlsplit(""), None
    if parts.scheme.lower() == "https":
        return nowhere, [Problem("listeners", "https is not supported by this version; use http://host:port")]
    if parts.scheme.lower() != "http" or port_number is None:
        return nowhere, [
            Problem("listeners", f"'listeners={given[0]}' is not an address; write http://host:port")
        ]
    # Kafka Connect reads an address without a host as "all interfaces".
    return Listener(parts.hostname or _ALL_INTERFACES, port_number), []


def _state_file(raw: Config) -> tuple[Path, list[Problem]]:
    own = raw.get("icestream.state.file", "").strip()
    kafkas = raw.get("offset.storage.file.filename", "").strip()
    if own:
        return Path(own), []
    if kafkas:
        return Path(kafkas + ".icestream.json"), []
    key = "offset.storage.file.filename"
    return Path(), [
        Problem(
            key,
            f'Missing required configuration "{key}" which has no default value: '
            "connectors are kept beside this file.",
        )
    ]
