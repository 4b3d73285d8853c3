"""Asks the database of a config whether it is there, and its table, if the config names one. For `plugin`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from icestream.api.config import Config
from icestream.api.connector import Probe
from icestream.api.errors import ConfigError, FatalError, Problem, SinkUnavailable
from icestream.connectors.jdbc.addresses import URL, missing_file
from icestream.connectors.jdbc.connections import LoginRefused
from icestream.connectors.jdbc.sink.settings import SinkSettings
from icestream.connectors.jdbc.sink.sink import JdbcSink


def database_probes(config: Config, settings: SinkSettings) -> Iterator[Probe]:
    yield Probe(URL, f"the database at {settings.access.address}", lambda probe: _ask(config, settings))


def _ask(config: Config, settings: SinkSettings) -> list[Problem]:
    if missing := missing_file(settings.access.address):
        # A check makes nothing; with auto.create the connector does.
        return [] if settings.creates else [Problem(URL, f"{URL}: {missing}; create it.")]
    quick = replace(settings, access=replace(settings.access, attempts=1))
    sink = JdbcSink(config.get("name", ""), config, quick)
    try:
        for table in sink.targets():
            table.plan({})
        if sink.routing is not None:
            sink.known_targets()
    except ConfigError as error:
        return list(error.problems)
    except FatalError as error:
        key = "connection.password" if isinstance(error, LoginRefused) else URL
        return [Problem(key, f"{key}: {error}.")]
    except SinkUnavailable as error:
        return [Problem(URL, f"{URL}: {error}.")]
    finally:
        sink.close()
    return []
