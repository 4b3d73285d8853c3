"""Iceberg catalogs from the Java names of their settings (`iceberg.catalog.*`), opened through PyIceberg."""

from __future__ import annotations

import functools
import json
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, parse_qsl, quote, urlencode, urlsplit

from pyiceberg.catalog import Catalog

from icestream.api.config import Config, subset
from icestream.api.errors import ConfigError, Problem, SinkUnavailable
from icestream.connectors.iceberg.catalog_keys import PREFIX, catalog_settings
from icestream.waits import waiting_for

if TYPE_CHECKING:
    from requests import RequestException

_log = logging.getLogger(__name__)
__all__ = ["PREFIX", "catalog_kind", "catalog_name", "catalog_properties", "new_catalog", "open_catalog"]

_TYPES = {"rest": "rest", "sql": "sql", "jdbc": "sql"}
_CLASSES = {
    "org.apache.iceberg.rest.RESTCatalog": "rest",
    "org.apache.iceberg.jdbc.JdbcCatalog": "sql",
}
_RENAMED = {"client.region": "s3.region"}
_UNREACHED = re.compile(r"\[Errno -?\d+\] ([^\"'()]+)|(certificate verify failed[^\"'()]*)")
_SERVERS_WORDS = re.compile(r"(AWS Error .*? operation)(?: \(.*?\))?: .*")
_DATABASE_TIMEOUTS = {"connect_timeout": "15", "tcp_user_timeout": "60000"}
"""Object stores need none: Arrow's client for S3 gives up by itself after seconds."""
_DATABASES = {
    "sqlite": "sqlite",
    "sqlite+pysqlite": "sqlite",
    "postgresql": "postgresql+psycopg2",
    "postgresql+psycopg2": "postgresql+psycopg2",
}
_JDBC_CATALOG_KEYS = {"user", "password", "schema-version", "strict-mode", "initialize"}
_POSTGRESQL_PARAMETERS = {
    "sslmode": "sslmode",
    "sslrootcert": "sslrootcert",
    "sslcert": "sslcert",
    "sslkey": "sslkey",
    "connectTimeout": "connect_timeout",
    "ApplicationName": "application_name",
    "options": "options",
}


def catalog_name(config: Config) -> str:
    return config.get("iceberg.catalog") or "iceberg"


def catalog_properties(config: Config) -> dict[str, str]:
    """The settings of a connector's catalog in PyIceberg's names."""
    java = subset(config, PREFIX)
    kind = catalog_kind(java)
    properties = catalog_settings(kind, {_RENAMED.get(key, key): value for key, value in java.items()})
    properties["type"] = kind
    if not java.get("uri"):
        raise _problem("uri", "the catalog's address is missing; set it")
    properties["uri"] = _sql_uri(java) if kind == "sql" else java["uri"]
    if (path_style := java.get("s3.path-style-access")) is not None:
        properties["s3.force-virtual-addressing"] = "false" if path_style.lower() == "true" else "true"
    return properties


def catalog_kind(java: Mapping[str, str]) -> str:
    """`sql` or `rest`, from the settings under `iceberg.catalog.`."""
    if implementation := java.get("catalog-impl"):
        if implementation not in _CLASSES:
            raise ConfigError(
                [Problem(f"{PREFIX}catalog-impl", _unsupported("catalog-impl", implementation, _CLASSES))]
            )
        return _CLASSES[implementation]
    kind = java.get("type", "")
    if kind.lower() not in _TYPES:
        raise ConfigError([Problem(f"{PREFIX}type", _unsupported("type", kind, _TYPES))])
    return _TYPES[kind.lower()]


def _unsupported(key: str, value: str, known: Mapping[str, str]) -> str:
    return (
        f"Invalid value '{value}' for {PREFIX}{key}: this version opens {', '.join(known)}; set one of these."
    )


def _sql_uri(java: Mapping[str, str]) -> str:
    """SQLAlchemy's form of a JDBC address; an address without `jdbc:` is SQLAlchemy's already."""
    uri = java["uri"]
    if not uri.startswith("jdbc:"):
        return _checked_uri(uri)
    address = uri.removeprefix("jdbc:")
    if address.startswith("sqlite:"):
        path = address.removeprefix("sqlite:").removeprefix("file:").partition("?")[0]
        return f"sqlite:///{path}"
    if address.startswith("postgresql://"):
        return _postgresql_uri(urlsplit(address), subset(java, "jdbc."))
    # Only the scheme is shown: the rest may hold a password.
    scheme = ":".join(uri.split(":")[:2])
    raise _problem("uri", f"Invalid value '{scheme}:…': use jdbc:sqlite:PATH or jdbc:postgresql://HOST/DB")


def _checked_uri(uri: str) -> str:
    """SQLAlchemy loads whatever driver an address names, and drivers read files that parameters name."""
    address = urlsplit(uri)
    if address.scheme not in _DATABASES:
        shown = f"{address.scheme}:…" if address.scheme else "…"
        raise _problem("uri", f"Invalid value '{shown}': use jdbc:sqlite:PATH or jdbc:postgresql://HOST/DB")
    if _DATABASES[address.scheme] == "sqlite":
        return uri.partition("?")[0]
    known = {*_POSTGRESQL_PARAMETERS.values()}
    if unknown := sorted({key for key, _ in parse_qsl(address.query)} - known):
        raise _problem("uri", f"the parameter '{unknown[0]}' is not among those that are taken; remove it")
    return f"{_DATABASES[address.scheme]}:{uri.partition(':')[2]}"


def _postgresql_uri(address: SplitResult, properties: Mapping[str, str]) -> str:
    """Java takes login and parameters from the address or from `jdbc.*`; the latter win."""
    given = {**dict(parse_qsl(address.query)), **properties}
    parameters = {_POSTGRESQL_PARAMETERS[key]: given[key] for key in given if key in _POSTGRESQL_PARAMETERS}
    if unknown := sorted(given.keys() - _POSTGRESQL_PARAMETERS.keys() - _JDBC_CATALOG_KEYS):
        raise _problem(
            f"jdbc.{unknown[0]}", "this parameter of the JDBC driver has no counterpart; remove it"
        )
    login = ""
    if user := given.get("user"):
        password = f":{quote(given['password'], safe='')}" if "password" in given else ""
        login = f"{quote(user, safe='')}{password}@"
    query = f"?{urlencode({**_DATABASE_TIMEOUTS, **parameters})}"
    return f"postgresql+psycopg2://{login}{address.netloc}{address.path}{query}"


def _problem(key: str, message: str) -> ConfigError:
    return ConfigError([Problem(f"{PREFIX}{key}", f"{PREFIX}{key}: {message}.")])


def open_catalog(config: Config) -> Catalog:
    """The catalog of a connector config. One per process and settings: opening one costs a connection."""
    return _opened(catalog_name(config), json.dumps(catalog_properties(config), sort_keys=True))


def new_catalog(config: Config) -> Catalog:
    """A catalog of one's own, to be closed after use."""
    return _new(catalog_name(config), catalog_properties(config))


def looking_catalog(config: Config) -> Catalog:
    """A catalog of one's own that changes nothing: a database that is not there is not created.

    For checks. Raises ConfigError if there is nothing to look at.
    """
    properties = {**catalog_properties(config), "init_catalog_tables": "false"}
    path = properties["uri"].partition("sqlite:///")[2]
    if path:
        if not Path(path).is_file():
            raise _problem("uri", f"there is no database '{path}'; create the catalog and its tables first")
        properties["uri"] = f"sqlite:///file:{quote(path)}?mode=ro&uri=true"
    return _new(catalog_name(config), properties)


@functools.lru_cache(maxsize=64)
def _opened(name: str, properties: str) -> Catalog:
    return _new(name, json.loads(properties))


def _new(name: str, properties: Mapping[str, str]) -> Catalog:
    # Late: this module is read by whoever only wants to know an address.
    from icestream.connectors.iceberg.guarded_catalogs import guarded_catalog

    with sink_errors(f"opening catalog '{name}'"):
        try:
            return guarded_catalog(name, properties)
        except ModuleNotFoundError as error:
            raise _problem(
                "uri", f"Python's '{error.name}' is missing; install it: pip install 'icestream[postgres]'"
            ) from error


@contextmanager
def sink_errors(doing: str) -> Iterator[None]:
    """Raise our errors instead of those of catalogs, databases and object stores."""
    import requests
    import sqlalchemy.exc
    from pyiceberg.exceptions import RESTError, ServerError

    try:
        with waiting_for(f"catalog or object store: {doing}"):
            yield
    except (
        OSError,
        sqlalchemy.exc.SQLAlchemyError,
        requests.RequestException,
        ServerError,
        RESTError,
    ) as error:
        raise SinkUnavailable(f"{doing}: {told(error)}") from error


def told(error: Exception) -> str:
    """The reason for those who may see a connector: of what a server answers only the code.

    Its words may be those of any host that the worker reaches and its users do not; they go to the log.
    """
    from requests import ConnectionError, HTTPError

    if isinstance(error, ConnectionError) and (why := _UNREACHED.search(str(error))):
        return f"{_address_of(error)} cannot be reached ({(why[1] or why[2]).strip()})"
    if isinstance(error.__cause__, HTTPError) and error.__cause__.response is not None:
        _log.warning("a catalog answers: %s", error)
        return f"the catalog answers HTTP {error.__cause__.response.status_code} ({type(error).__name__})"
    reason = first_line(str(error) or type(error).__name__)
    # Arrow: "AWS Error NO_SUCH_BUCKET during HeadBucket operation: …", and then what the server said.
    return _SERVERS_WORDS.sub(r"\1", reason)


def _address_of(error: RequestException) -> str:
    """Without path and query, which say nothing of why."""
    parts = urlsplit(str(error.request.url if error.request is not None else ""))
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts.netloc else "its address"


def first_line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else "no reason given"
