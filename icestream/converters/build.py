"""From a connector's config, filled with the worker's, to its converters. Called by the pipeline and the file
jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from icestream.api.config import Config, subset
from icestream.api.errors import ConfigError, Problem
from icestream.converters.header_converters import SimpleHeaderConverter
from icestream.converters.json_converter import JsonConverter
from icestream.converters.primitives import (
    NUMBER_NAMES,
    PACKAGE,
    BooleanConverter,
    ByteArrayConverter,
    number_converter,
)
from icestream.converters.strings import StringConverter
from icestream.records.records import Converter

Factory = Callable[[Mapping[str, str], bool], Converter]

JSON: Final = "org.apache.kafka.connect.json.JsonConverter"
STRING: Final = "org.apache.kafka.connect.storage.StringConverter"
SIMPLE_HEADERS: Final = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
_BYTES: Final = f"{PACKAGE}ByteArrayConverter"
TAKES_ANY_BYTES: Final = frozenset((STRING, _BYTES, SIMPLE_HEADERS))
"""What these converters read they never refuse: nobody needs to try."""


def _number(simple_name: str) -> Factory:
    return lambda settings, is_key: number_converter(simple_name)


_OURS: Final[Mapping[str, Factory]] = {
    JSON: JsonConverter.configured,
    STRING: StringConverter.configured,
    SIMPLE_HEADERS: SimpleHeaderConverter.configured,
    _BYTES: ByteArrayConverter.configured,
    f"{PACKAGE}BooleanConverter": BooleanConverter.configured,
    **{PACKAGE + name: _number(name) for name in NUMBER_NAMES},
}


def converter_class(config: Config, kind: str) -> str:
    """The full class name of `key.converter`, `value.converter` or `header.converter`. Raises ConfigError."""
    key = f"{kind}.converter"
    named = config.get(key, "").strip() or (SIMPLE_HEADERS if kind == "header" else JSON)
    for class_name in (*_OURS, *_registry_classes()):
        simple = class_name.rpartition(".")[2]
        if named in (class_name, simple, simple.removesuffix("Converter")):
            return class_name
    raise ConfigError([Problem(key, f"'{key}={named}' is no converter that we have; use {JSON}")])


def converter_from(config: Config, kind: str) -> Converter:
    """The converter of `kind`: key, value or header. Raises ConfigError with the keys of the config."""
    class_name = converter_class(config, kind)
    prefix = f"{kind}.converter."
    settings = subset(config, prefix)
    with whole_keys(prefix):
        if class_name in _OURS:
            return _OURS[class_name](settings, kind == "key")
        from icestream.converters.registry.build import registry_converter

        return registry_converter(class_name, settings, kind == "key")


def _registry_classes() -> tuple[str, ...]:
    from icestream.converters.registry.settings import SETTINGS

    return tuple(SETTINGS)


@contextmanager
def whole_keys(prefix: str) -> Iterator[None]:
    """What a converter says of its own settings, said of the keys that they have in the config."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError([Problem(prefix + one.key, one.message) for one in error.problems]) from None
