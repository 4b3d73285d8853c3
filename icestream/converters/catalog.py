"""The converters that we have: their Java names, their settings, and what makes each of them.

Read by the registry of plugins and the validation of configs; `converter_from` is called by the jobs, with a
connector's config that has the worker's converters where it names none.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from icestream import __version__
from icestream.api.config import REQUIRED, Config, ConfigDef, Setting, Type, subset
from icestream.api.errors import ConfigError, Problem
from icestream.converters.header_converters import SimpleHeaderConverter
from icestream.converters.json_converter import SETTINGS as JSON_SETTINGS
from icestream.converters.json_converter import JsonConverter
from icestream.converters.primitives import (
    NUMBER_NAMES,
    PACKAGE,
    BooleanConverter,
    ByteArrayConverter,
    number_converter,
)
from icestream.converters.registry.settings import SETTINGS as REGISTRY_SETTINGS
from icestream.converters.registry.settings import WITHOUT_EFFECT
from icestream.converters.strings import SETTINGS as STRING_SETTINGS
from icestream.converters.strings import StringConverter
from icestream.records.records import Converter

Factory = Callable[[Mapping[str, str], bool], Converter]
"""Called with the settings, and whether the converter is for keys."""

VERSION: Final = "4.3.1"
"""Of the classes that are part of Kafka Connect itself."""
JSON: Final = "org.apache.kafka.connect.json.JsonConverter"
STRING: Final = "org.apache.kafka.connect.storage.StringConverter"
SIMPLE_HEADERS: Final = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
_BYTES: Final = f"{PACKAGE}ByteArrayConverter"
_NO_KEYS: Final = ConfigDef(())
_TYPE: Final = Setting("converter.type", Type.STRING, REQUIRED, "key, value or header.", importance="LOW")
TAKES_ANY_BYTES: Final = frozenset((STRING, _BYTES, SIMPLE_HEADERS))
"""What these converters read they never refuse: nobody needs to try."""


@dataclass(frozen=True)
class ConverterPlugin:
    """A converter of headers, of keys and values, or of both."""

    class_name: str
    make: Factory
    settings: ConfigDef = _NO_KEYS
    is_for_records: bool = True
    is_for_headers: bool = True
    version: str = VERSION
    uses_registry: bool = False
    without_effect: Mapping[str, str] = field(default_factory=dict)
    """Settings that change nothing here, and why."""

    @property
    def simple_name(self) -> str:
        return self.class_name.rpartition(".")[2]

    @property
    def shown_settings(self) -> tuple[Setting, ...]:
        """As REST tells them."""
        settings = tuple(self.settings.settings)
        return (_TYPE, *settings) if self.is_for_records and self.is_for_headers else settings

    def serves(self, kind: str) -> bool:
        return self.is_for_headers if kind == "header" else self.is_for_records


def _number(simple_name: str) -> Factory:
    return lambda settings, is_key: number_converter(simple_name)


def _with_registry(class_name: str, settings: Mapping[str, str], is_key: bool) -> Converter:
    # Late: few connectors have a registry.
    from icestream.converters.registry.converter import registry_converter

    return registry_converter(class_name, settings, is_key)


CONVERTERS: Final = (
    ConverterPlugin(f"{PACKAGE}BooleanConverter", BooleanConverter.configured),
    ConverterPlugin(_BYTES, ByteArrayConverter.configured),
    *(ConverterPlugin(PACKAGE + name, _number(name)) for name in NUMBER_NAMES),
    ConverterPlugin(JSON, JsonConverter.configured, JSON_SETTINGS),
    ConverterPlugin(SIMPLE_HEADERS, SimpleHeaderConverter.configured, is_for_records=False),
    ConverterPlugin(STRING, StringConverter.configured, STRING_SETTINGS),
    *(
        ConverterPlugin(
            name,
            functools.partial(_with_registry, name),
            ConfigDef(settings),
            is_for_headers=False,
            version=__version__,
            uses_registry=True,
            without_effect=WITHOUT_EFFECT,
        )
        for name, settings in REGISTRY_SETTINGS.items()
    ),
)


def converters_for(kind: str) -> list[str]:
    """The classes to choose from for keys, values or headers."""
    return sorted(plugin.class_name for plugin in CONVERTERS if plugin.serves(kind))


def find_converter(name: str) -> ConverterPlugin | None:
    """By full class name, simple name, or simple name without `Converter`; headers' own has no short one."""
    for plugin in CONVERTERS:
        names = [plugin.class_name, plugin.simple_name]
        if plugin.is_for_records:
            names.append(plugin.simple_name.removesuffix("Converter"))
        if name in names:
            return plugin
    return None


def named_converter(config: Config, kind: str) -> ConverterPlugin:
    """What `key.converter`, `value.converter` or `header.converter` means. Raises ConfigError."""
    key = f"{kind}.converter"
    named = config.get(key, "").strip() or (SIMPLE_HEADERS if kind == "header" else JSON)
    found = find_converter(named)
    if found is None:
        raise ConfigError([Problem(key, f"'{key}={named}' is no converter that we have; use {JSON}")])
    return found


def converter_from(config: Config, kind: str) -> Converter:
    """The converter of `kind`: key, value or header. Raises ConfigError with the keys of the config."""
    converter, prefix = named_converter(config, kind), f"{kind}.converter."
    with whole_keys(prefix):
        return converter.make(subset(config, prefix), kind == "key")


@contextmanager
def whole_keys(prefix: str) -> Iterator[None]:
    """What a converter says of its own settings, said of the keys that they have in the config."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError([Problem(prefix + one.key, one.message) for one in error.problems]) from None
