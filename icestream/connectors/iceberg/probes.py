"""Asks the catalog, the tables and the storage of a config whether they are there. For `plugin.py`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Final
from urllib.parse import urlsplit

import pyiceberg.exceptions
import requests

from icestream.api.config import Config
from icestream.api.connector import Probe
from icestream.api.errors import ConfigError, Problem, SinkUnavailable
from icestream.connectors.iceberg.catalogs.opening import PREFIX, catalog_properties, looking_catalog
from icestream.connectors.iceberg.catalogs.place import address
from icestream.connectors.iceberg.catalogs.refusals import is_login_refused, is_refusal_of_aws
from icestream.connectors.iceberg.places import check_place, is_checkable, storage_key, storage_problem
from icestream.connectors.iceberg.settings import ICEBERG_SINK
from icestream.connectors.iceberg.sink import table_from
from icestream.tables.plans import NewTablePlan

_CONNECT_SECONDS: Final = 10
_URI: Final = f"{PREFIX}uri"
_WAREHOUSE: Final = f"{PREFIX}warehouse"
_TABLES: Final = "iceberg.tables"
_LOGINS: Final = tuple(f"{PREFIX}{name}" for name in ("jdbc.password", "jdbc.user", "token", "credential"))
_AWS_LOGINS: Final = tuple(
    f"{PREFIX}{family}.access-key-id" for family in ("glue", "dynamodb", "client", "s3")
)


def catalog_probes(config: Config) -> Iterator[Probe]:
    """Of the catalog with its tables, and of the warehouse. Raises ConfigError."""
    tables = ICEBERG_SINK.parse(config)[_TABLES]
    properties = catalog_properties(config)
    config = _with_time_limit(config)
    key = _place_key(properties)
    yield Probe(
        key,
        _catalog(properties, key),
        lambda probe: _check_tables(config, tables, probe),
    )
    warehouse = properties.get("warehouse", "")
    # The warehouse of a REST catalog is the server's business: often a mere name.
    if properties["type"] != "rest" and is_checkable(warehouse):
        yield Probe(
            storage_key(properties, _WAREHOUSE),
            _storage(properties, warehouse),
            lambda probe: check_place(warehouse, properties, _WAREHOUSE),
        )


def _with_time_limit(config: Config) -> Config:
    uri = config.get(_URI, "")
    if uri.startswith("jdbc:postgresql:"):
        return {f"{PREFIX}jdbc.connectTimeout": str(_CONNECT_SECONDS), **config}
    if uri.startswith(("jdbc:mysql:", "jdbc:mariadb:")):
        return {f"{PREFIX}jdbc.connectTimeout": str(_CONNECT_SECONDS * 1000), **config}
    return config


def _place_key(properties: Mapping[str, str]) -> str:
    """The key that says where the catalog is."""
    kind = properties["type"]
    if kind in ("glue", "dynamodb"):
        return f"{PREFIX}{kind}.endpoint" if properties.get(f"{kind}.endpoint") else f"{PREFIX}client.region"
    return _URI


def _catalog(properties: Mapping[str, str], key: str) -> str:
    if key == _URI:
        return f"the catalog at {address(properties['uri'])}"
    name = {"glue": "Glue", "dynamodb": "DynamoDB"}[properties["type"]]
    place = properties.get(f"{properties['type']}.endpoint")
    return f"{name} at {address(place)}" if place else f"{name} of AWS"


def _check_tables(config: Config, tables: list[str], probe: Probe) -> list[Problem]:
    try:
        catalog = looking_catalog(config)
    except SinkUnavailable as error:
        return [_catalog_problem(error, config)]
    warehouse = config.get(_WAREHOUSE, "")
    problems: list[Problem] = []
    with closing(catalog):
        for name in tables:
            table = table_from(catalog, name, config.get("name", ""), config)
            properties = catalog_properties(config)
            if properties["type"] == "sql":
                # The catalog has answered; the rest is read from where the tables are.
                probe.key = storage_key(properties, _TABLES)
                probe.what = _storage(properties, warehouse)
            try:
                plan = table.plan({})
            except ConfigError as error:
                problems += error.problems
                continue
            except SinkUnavailable as error:
                problems.append(_table_problem(error, config))
                continue
            if isinstance(plan, NewTablePlan):
                continue
            if is_checkable(plan.location) and not _is_same_place(plan.location, warehouse):
                problems += check_place(plan.location, plan.io_properties, _TABLES)
    return problems


def _catalog_problem(error: SinkUnavailable, config: Config) -> Problem:
    cause = error.__cause__
    refusals = (
        pyiceberg.exceptions.UnauthorizedError,
        pyiceberg.exceptions.ForbiddenError,
        pyiceberg.exceptions.OAuthError,
    )
    if isinstance(cause, refusals) or is_login_refused(cause):
        key = next((key for key in _LOGINS if config.get(key)), _URI)
        return Problem(key, f"{key}: {error}; correct the login.")
    key = _place_key(catalog_properties(config))
    if is_refusal_of_aws(cause):
        key = next((key for key in _AWS_LOGINS if config.get(key)), key)
        return Problem(key, f"{key}: {error}; correct the login or its rights.")
    return Problem(key, f"{key}: {error}; check the address, and that the catalog runs.")


def _table_problem(error: SinkUnavailable, config: Config) -> Problem:
    cause = error.__cause__
    if isinstance(cause, OSError) and not isinstance(cause, requests.RequestException):
        return storage_problem(cause, catalog_properties(config), _TABLES)
    return _catalog_problem(error, config)


def _storage(properties: Mapping[str, str], warehouse: str) -> str:
    if properties.get("s3.endpoint"):
        return f"S3 at {address(properties['s3.endpoint'])}"
    return warehouse or "the storage of the tables"


def _is_same_place(location: str, warehouse: str) -> bool:
    ours, theirs = urlsplit(location), urlsplit(warehouse)
    return (ours.scheme, ours.netloc) == (theirs.scheme, theirs.netloc) and bool(warehouse)
