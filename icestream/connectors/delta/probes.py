"""Asks the tables of a config whether they are there and can be written. For `plugin.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from icestream.api.config import Config
from icestream.api.connector import Probe
from icestream.api.errors import ConfigError, Problem, SinkUnavailable
from icestream.connectors.delta.settings import tables
from icestream.connectors.delta.sink import table_from
from icestream.connectors.delta.storage import S3
from icestream.connectors.delta.table_settings import LOCATION, location_of

_ENDPOINT: Final = f"{S3}endpoint"


def table_probes(config: Config) -> Iterator[Probe]:
    for name in tables(config):
        yield Probe(
            _key(config),
            f"table '{name}' at {location_of(config, name)}",
            lambda probe, name=name: _check(name, config),  # type: ignore[misc]
        )


def _check(name: str, config: Config) -> Sequence[Problem]:
    try:
        table_from(name, config.get("name", ""), config).plan({})
    except ConfigError as error:
        return error.problems
    except SinkUnavailable as error:
        key = _key(config)
        if "HTTP 404" in str(error):  # a table that is missing is no error of the store's
            place = location_of(config, name)
            return [Problem(key, f"{key}: {error} for {place}; check the address, or create the bucket.")]
        return [Problem(key, f"{key}: {error}; check the address, the login, and that the storage runs.")]
    return []


def _key(config: Config) -> str:
    return _ENDPOINT if config.get(_ENDPOINT, "").strip() else LOCATION
