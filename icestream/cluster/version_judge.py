"""Versions of connectors and converters that a config asks for (KIP-891) must be the ones we have; we have
one of each. Called by `connector_config`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from icestream.api.config import Config
from icestream.api.connector_settings import CONVERTER_KINDS
from icestream.api.errors import Problem
from icestream.converters.catalog import find_converter
from icestream.plugins import Connector


@dataclass(frozen=True)
class _Asked:
    key: str
    version_key: str
    class_name: str
    available: Sequence[str]


def version_problems(config: Config, connector: Connector) -> list[Problem]:
    found = []
    for asked in _asked(config, connector):
        version = config.get(asked.version_key)
        if version is not None and version.strip() not in asked.available:
            message = (
                f"Plugin {asked.class_name} not found that matches the version range [{version},{version}], "
                f"available versions: [{', '.join(asked.available)}]"
            )
            found += [Problem(asked.key, message), Problem(asked.version_key, message)]
    return found


def _asked(config: Config, connector: Connector) -> Iterator[_Asked]:
    yield _Asked("connector.class", "connector.plugin.version", connector.class_name, [connector.version])
    for kind in CONVERTER_KINDS:
        converter = find_converter(config.get(f"{kind}.converter", "").strip())
        if converter is not None:
            # Kafka Connect lists a class once as a converter of records and once as one of headers.
            available = [converter.version] * (converter.is_for_records + converter.is_for_headers)
            key = f"{kind}.converter"
            yield _Asked(key, f"{key}.plugin.version", converter.class_name, available)
