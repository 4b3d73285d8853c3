"""Opens what the config of an Iceberg sink points at: catalog, tables, warehouse, Kafka, registries. For
`check.py`.

All at once, each with the same time limit, so that a hanging endpoint costs one limit and is an error on its
key.
"""

from __future__ import annotations

import functools
import logging
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from urllib.parse import urlsplit

import pyiceberg.exceptions
import requests
import sqlalchemy.exc

from icestream.api.config import Config, subset
from icestream.api.errors import ConfigError, IcestreamError, Problem, SinkUnavailable, SourceUnavailable
from icestream.connectors.iceberg.catalogs import PREFIX, catalog_kind, catalog_properties, looking_catalog
from icestream.connectors.iceberg.places import check_place, is_checkable, storage_key, storage_problem
from icestream.connectors.iceberg.settings import write_props
from icestream.connectors.iceberg.table import IcebergTable
from icestream.converters.registry.client import RegistryClient
from icestream.deadlines import Overdue, started
from icestream.jobs.check_registry import check_registry, named_registries
from icestream.jobs.job import Job, job_from
from icestream.kafka.clients import client_settings
from icestream.kafka.reach import reach
from icestream.kafka.topics import Topics

_log = logging.getLogger(__name__)

_CONNECT_SECONDS = 10
_SPARE_SECONDS = 2.0
"""Kafka's client is told to answer sooner: it knows why nobody does."""
_MOST_AT_ONCE = 64
_free = threading.BoundedSemaphore(_MOST_AT_ONCE)
"""A client that hangs keeps its thread: there must not be ever more of them."""

_URI = f"{PREFIX}uri"
_WAREHOUSE = f"{PREFIX}warehouse"
_DEAD_LETTERS = "errors.deadletterqueue.topic.name"
_ROLES = ("admin", "consumer", "producer")
_LOGIN_REFUSED = re.compile(
    r"password authentication failed|no password supplied|role \".*\" does not exist|Access denied for user"
)


@dataclass
class Doing:
    """What a probe is busy with: the key and the thing to blame if it does not answer."""

    key: str
    what: str


Probe = tuple[Doing, Callable[[Doing], list[Problem]]]


def check_iceberg(config: Config, worker: Config, seconds: float) -> list[Problem]:
    """What is wrong with the things that the config names, by key."""
    try:
        job = job_from(config.get("name", ""), config)
        probes = [
            *_catalog_probes(config, job),
            *_kafka_probes(config, worker, job, seconds),
            *_registry_probes(config),
        ]
    except ConfigError as error:
        return list(error.problems)
    # One thing that is away may be met by two probes.
    return list(dict.fromkeys(_answers(probes, seconds)))


def _answers(probes: list[Probe], seconds: float) -> Iterator[Problem]:
    deadline = time.monotonic() + seconds
    waiting = [(doing, _begin(doing, look)) for doing, look in probes]
    for doing, answer in waiting:
        try:
            yield from answer(deadline - time.monotonic())
        except Overdue:
            reason = f"{doing.what} did not answer in {seconds:.0f} s; check address, login and network"
            yield Problem(doing.key, f"{doing.key}: {reason}.")


def _begin(doing: Doing, look: Callable[[Doing], list[Problem]]) -> Callable[[float], list[Problem]]:
    if not _free.acquire(blocking=False):
        reason = f"{_MOST_AT_ONCE} checks still wait for answers; try again later"
        return lambda seconds: [Problem(doing.key, f"{doing.key}: {reason}.")]

    def run() -> list[Problem]:
        try:
            return look(doing)
        except ConfigError as error:
            return list(error.problems)
        except IcestreamError as error:
            return [_problem(doing.key, f"{doing.what} refuses: {error}; correct this key, or ask its owner")]
        except Exception as error:  # whatever a client raises at an address that is something else
            _log.warning("checking %s: %s", doing.what, error, exc_info=error)
            # Not its text, which may have what an inner host said.
            reason = type(error).__name__
            return [_problem(doing.key, f"{doing.what} answers strangely ({reason}); check the address")]
        finally:
            _free.release()

    return started(run, f"check-{doing.key}")


def _problem(key: str, message: str) -> Problem:
    return Problem(key, f"{key}: {message}.")


def _registry_probes(config: Config) -> Iterator[Probe]:
    for prefix, registry in named_registries(config):
        where = " or ".join(registry.access.urls)
        yield (
            Doing(f"{prefix}schema.registry.url", f"the Schema Registry at {where}"),
            functools.partial(_check_registry, prefix, registry),
        )


def _check_registry(prefix: str, registry: RegistryClient, doing: Doing) -> list[Problem]:
    return check_registry(prefix, registry)


# -- catalog and storage --


def _catalog_probes(config: Config, job: Job) -> Iterator[Probe]:
    properties = catalog_properties(config)
    config = _with_time_limit(config)
    address = _address(config[_URI])
    yield Doing(_URI, f"the catalog at {address}"), lambda doing: _check_tables(config, job, doing)
    warehouse = properties.get("warehouse", "")
    # The warehouse of a REST catalog is the server's business: often a mere name.
    if properties["type"] == "sql" and is_checkable(warehouse):
        yield (
            Doing(storage_key(properties, _WAREHOUSE), _storage(properties, warehouse)),
            lambda doing: check_place(warehouse, properties, _WAREHOUSE),
        )


def _with_time_limit(config: Config) -> Config:
    if not config[_URI].startswith("jdbc:postgresql:"):
        return config
    return {f"{PREFIX}jdbc.connectTimeout": str(_CONNECT_SECONDS), **config}


def _check_tables(config: Config, job: Job, doing: Doing) -> list[Problem]:
    try:
        catalog = looking_catalog(config)
    except SinkUnavailable as error:
        return [_catalog_problem(error, config)]
    warehouse = config.get(_WAREHOUSE, "")
    problems: list[Problem] = []
    with closing(catalog):
        for name in job.tables:
            table = IcebergTable(catalog, name, job.name, write_props=write_props(config))
            if catalog_kind(subset(config, PREFIX)) == "sql":
                # The catalog has answered; the rest is read from where the tables are.
                properties = catalog_properties(config)
                doing.key = storage_key(properties, "iceberg.tables")
                doing.what = _storage(properties, warehouse)
            try:
                plan = table.plan({})
            except ConfigError as error:
                problems += error.problems
                continue
            except SinkUnavailable as error:
                problems.append(_table_problem(error, config))
                continue
            if is_checkable(plan.location) and not _is_same_place(plan.location, warehouse):
                problems += check_place(plan.location, plan.io_properties, "iceberg.tables")
    return problems


def _catalog_problem(error: SinkUnavailable, config: Config) -> Problem:
    cause = error.__cause__
    refusals = (
        pyiceberg.exceptions.UnauthorizedError,
        pyiceberg.exceptions.ForbiddenError,
        pyiceberg.exceptions.OAuthError,
    )
    # A database that refuses a login tells so in its text only.
    refuses = isinstance(cause, sqlalchemy.exc.SQLAlchemyError) and _LOGIN_REFUSED.search(str(cause))
    if isinstance(cause, refusals) or refuses:
        key = next((key for key in _logins(config) if config.get(key)), _URI)
        return _problem(key, f"{error}; correct the login")
    return _problem(_URI, f"{error}; check the address, and that the catalog runs")


def _logins(config: Config) -> Iterator[str]:
    for name in ("jdbc.password", "jdbc.user", "token", "credential"):
        yield f"{PREFIX}{name}"


def _table_problem(error: SinkUnavailable, config: Config) -> Problem:
    cause = error.__cause__
    if isinstance(cause, OSError) and not isinstance(cause, requests.RequestException):
        return storage_problem(cause, catalog_properties(config), "iceberg.tables")
    return _catalog_problem(error, config)


def _storage(properties: Mapping[str, str], warehouse: str) -> str:
    if properties.get("s3.endpoint"):
        return f"S3 at {_address(properties['s3.endpoint'])}"
    return warehouse or "the storage of the tables"


def _is_same_place(location: str, warehouse: str) -> bool:
    ours, theirs = urlsplit(location), urlsplit(warehouse)
    return (ours.scheme, ours.netloc) == (theirs.scheme, theirs.netloc) and bool(warehouse)


def _address(uri: str) -> str:
    """Host and port, or the path: never the login that an address may hold."""
    parts = urlsplit(uri.removeprefix("jdbc:"))
    return parts.netloc.rpartition("@")[2] or parts.path


# -- Kafka --


def _kafka_probes(config: Config, worker: Config, job: Job, seconds: float) -> Iterator[Probe]:
    """One per different way to reach Kafka: a connector may override the worker's for each kind of client."""
    seen: list[Mapping[str, str]] = []
    for role in _ROLES:
        settings = client_settings(worker, role, subset(config, f"{role}.override."))
        way = {key: value for key, value in settings.items() if _is_of_connection(key)}
        if way in seen:
            continue
        seen.append(way)
        doing = Doing(_blamed(config, role), f"Kafka at {settings['bootstrap.servers']}")
        check = _KafkaCheck(config, job, role, way, max(1.0, seconds - _SPARE_SECONDS))
        yield doing, check


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
    job: Job
    role: str
    settings: Mapping[str, str]
    seconds: float

    def __call__(self, doing: Doing) -> list[Problem]:
        try:
            reach(self.settings, self.seconds)
        except ConfigError as error:
            return [self._on_own_key(problem, doing.key) for problem in error.problems]
        except SourceUnavailable as error:
            reason = f"{doing.what} does not answer ({error}); check address, login and network"
            return [_problem(doing.key, reason)]
        topics = Topics(self.settings)
        if self.job.topics:
            doing.key = "topics"
            topics.describe(self.job.topics)
        if self.job.dead_letters:
            doing.key = _DEAD_LETTERS
            topics.describe([self.job.dead_letters.topic])
        return []

    def _on_own_key(self, problem: Problem, otherwise: str) -> Problem:
        """The connector has the key only if it overrides the worker's."""
        own = f"{self.role}.override.{problem.key}"
        key = own if own in self.config else otherwise
        return Problem(key, f"{key}: {problem.message}.")
