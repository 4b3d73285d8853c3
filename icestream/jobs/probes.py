"""Asks whether what a connector config points at is there: Kafka, Schema Registries, and what the connector
itself names. Called by the service for `validate` and before a connector is created or changed.

All are asked at once and have the same time, so that an address where nobody answers costs one time limit
and is an error on its key.
"""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from icestream.api.config import Config, subset
from icestream.api.connector import Probe
from icestream.api.connector_settings import CONVERTER_KINDS, SINK_CONNECTOR
from icestream.api.errors import ConfigError, FatalError, IcestreamError, Problem, SourceUnavailable
from icestream.api.sink import SinkPlugin
from icestream.converters.catalog import named_converter, whole_keys
from icestream.converters.registry.access import access
from icestream.converters.registry.client import RegistryClient
from icestream.deadlines import Overdue, started
from icestream.kafka.clients import client_settings
from icestream.kafka.topics import Topics, reach
from icestream.plugins import find_connector

_log = logging.getLogger(__name__)

SECONDS: Final = 10.0
"""How long a thing may take to answer."""
_SPARE_SECONDS: Final = 2.0
"""Kafka's client is told to answer sooner: it knows why nobody does."""
_MOST_AT_ONCE: Final = 64
_free = threading.BoundedSemaphore(_MOST_AT_ONCE)
"""A client that hangs keeps its thread: there must not be ever more of them."""

_DEAD_LETTERS: Final = "errors.deadletterqueue.topic.name"
_ROLES: Final = ("admin", "consumer", "producer")


def probe_connector(config: Config, worker: Config, seconds: float = SECONDS) -> list[Problem]:
    """What is wrong with the things that a config names, by key."""
    try:
        probes = connector_probes(config, worker, seconds)
    except ConfigError as error:
        return list(error.problems)
    # One thing that is away may be met by two probes.
    return list(dict.fromkeys(answers(probes, seconds)))


def connector_probes(config: Config, worker: Config, seconds: float = SECONDS) -> list[Probe]:
    """Ways to ask the things that a config names. Raises ConfigError."""
    plugin = find_connector(config.get("connector.class", "")).plugin
    probes = [*plugin.probes(config, worker)]
    if isinstance(plugin, SinkPlugin) and plugin.probes_kafka:
        probes += [*kafka_probes(config, worker, seconds), *registry_probes(config)]
    return probes


def answers(probes: Sequence[Probe], seconds: float) -> Iterator[Problem]:
    """Ask all at once, and wait for each answer until the time is over."""
    deadline = time.monotonic() + seconds
    waiting = [(probe, _begin(probe)) for probe in probes]
    for probe, answer in waiting:
        try:
            yield from answer(deadline - time.monotonic())
        except Overdue:
            reason = f"{probe.what} did not answer in {seconds:.0f} s; check address, login and network"
            yield _problem(probe.key, reason)


def _begin(probe: Probe) -> Callable[[float], Sequence[Problem]]:
    if not _free.acquire(blocking=False):
        reason = f"{_MOST_AT_ONCE} checks still wait for answers; try again later"
        return lambda seconds: [_problem(probe.key, reason)]

    def run() -> Sequence[Problem]:
        try:
            return probe.ask(probe)
        except ConfigError as error:
            return list(error.problems)
        except IcestreamError as error:
            return [_problem(probe.key, f"{probe.what} refuses: {error}; correct this key, or ask its owner")]
        except Exception as error:  # whatever a client raises at an address that is something else
            _log.warning("checking %s: %s", probe.what, error, exc_info=error)
            # Not its text, which may have what an inner host said.
            reason = type(error).__name__
            return [_problem(probe.key, f"{probe.what} answers strangely ({reason}); check the address")]
        finally:
            _free.release()

    return started(run, f"check-{probe.key}")


def _problem(key: str, message: str) -> Problem:
    return Problem(key, f"{key}: {message}.")


# -- Schema Registries --


def registry_probes(config: Config) -> Iterator[Probe]:
    """One for each converter that names a registry. Raises ConfigError."""
    for prefix, registry in _named_registries(config):
        where = " or ".join(registry.access.urls)
        yield Probe(
            f"{prefix}schema.registry.url",
            f"the Schema Registry at {where}",
            functools.partial(_check_registry, prefix, registry),
        )


def _named_registries(config: Config) -> Iterator[tuple[str, RegistryClient]]:
    for kind in CONVERTER_KINDS:
        if named_converter(config, kind).uses_registry:
            prefix = f"{kind}.converter."
            with whole_keys(prefix):
                yield prefix, RegistryClient(access(subset(config, prefix)))


def _check_registry(prefix: str, registry: RegistryClient, probe: Probe) -> list[Problem]:
    try:
        registry.reach()
    except FatalError as error:
        return [_problem(f"{prefix}basic.auth.user.info", str(error))]
    except SourceUnavailable as error:
        return [
            _problem(f"{prefix}schema.registry.url", f"{error}; check the address, or start the registry")
        ]
    finally:
        registry.close()
    return []


# -- Kafka --


def kafka_probes(config: Config, worker: Config, seconds: float) -> Iterator[Probe]:
    """One per different way to reach Kafka: a connector may override the worker's for each kind of client."""
    seen: list[Mapping[str, str]] = []
    for role in _ROLES:
        settings = client_settings(worker, role, subset(config, f"{role}.override."))
        way = {key: value for key, value in settings.items() if _is_of_connection(key)}
        if way in seen:
            continue
        seen.append(way)
        ask = _KafkaCheck(config, role, way, max(1.0, seconds - _SPARE_SECONDS))
        yield Probe(_blamed(config, role), f"Kafka at {settings['bootstrap.servers']}", ask)


def _is_of_connection(key: str) -> bool:
    return key in ("bootstrap.servers", "security.protocol") or key.startswith(
        ("sasl.", "ssl.", "enable.ssl.")
    )


def _blamed(config: Config, role: str) -> str:
    """The connector's own key if it overrides how Kafka is reached; otherwise the one that needs Kafka."""
    prefix = f"{role}.override."
    own = [key for key in sorted(config) if _is_of_connection(key.removeprefix(prefix)) and prefix in key]
    addresses = [key for key in own if key.endswith(".bootstrap.servers")]
    return (addresses or own or ["topics.regex" if config.get("topics.regex") else "topics"])[0]


@dataclass(frozen=True)
class _KafkaCheck:
    """Topics that do not exist yet are no error: a connector may be there first, as in Kafka Connect."""

    config: Config
    role: str
    settings: Mapping[str, str]
    seconds: float

    def __call__(self, probe: Probe) -> list[Problem]:
        try:
            reach(self.settings, self.seconds)
        except ConfigError as error:
            return [self._on_own_key(problem, probe.key) for problem in error.problems]
        except SourceUnavailable as error:
            reason = f"{probe.what} does not answer ({error}); check address, login and network"
            return [_problem(probe.key, reason)]
        topics = Topics(self.settings)
        sink = SINK_CONNECTOR.parse(self.config)
        if sink["topics"]:
            probe.key = "topics"
            topics.describe(sink["topics"])
        if sink[_DEAD_LETTERS]:
            probe.key = _DEAD_LETTERS
            topics.describe([sink[_DEAD_LETTERS]])
        return []

    def _on_own_key(self, problem: Problem, otherwise: str) -> Problem:
        """The connector has the key only if it overrides the worker's."""
        own = f"{self.role}.override.{problem.key}"
        key = own if own in self.config else otherwise
        return Problem(key, f"{key}: {problem.message}.")
