"""Asks the Schema Registries that a connector's converters name whether they are there. For
`check_iceberg.py`."""

from __future__ import annotations

from collections.abc import Iterator

from icestream.api.config import Config, subset
from icestream.api.errors import FatalError, Problem, SourceUnavailable
from icestream.converters.build import converter_class, whole_keys
from icestream.converters.registry.access import access
from icestream.converters.registry.client import RegistryClient
from icestream.converters.registry.settings import SETTINGS


def named_registries(config: Config) -> Iterator[tuple[str, RegistryClient]]:
    """The prefix of the converter that names it, and the registry. Raises ConfigError."""
    for kind in ("key", "value", "header"):
        if converter_class(config, kind) in SETTINGS:
            prefix = f"{kind}.converter."
            with whole_keys(prefix):
                yield prefix, RegistryClient(access(subset(config, prefix)))


def check_registry(prefix: str, registry: RegistryClient) -> list[Problem]:
    key = f"{prefix}schema.registry.url"
    try:
        registry.reach()
    except FatalError as error:
        return [Problem(f"{prefix}basic.auth.user.info", f"{prefix}basic.auth.user.info: {error}.")]
    except SourceUnavailable as error:
        return [Problem(key, f"{key}: {error}; check the address, or start the registry.")]
    finally:
        registry.close()
    return []
