"""The converters that we have: their names, and their settings as `/connector-plugins` shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from icestream import __version__
from icestream.api.config import REQUIRED, Config, ConfigDef, Setting, Type
from icestream.api.connector_settings import CONVERTER_KINDS, JSON_CONVERTER, STRING_CONVERTER
from icestream.converters.registry.settings import SETTINGS as REGISTRY_SETTINGS
from icestream.converters.registry.settings import WITHOUT_EFFECT

VERSION: Final = "4.3.1"
"""Of the classes that are part of Kafka Connect itself."""
JSON: Final = "org.apache.kafka.connect.json.JsonConverter"
STRING: Final = "org.apache.kafka.connect.storage.StringConverter"
SIMPLE_HEADERS: Final = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
_OF_BYTES: Final = "org.apache.kafka.connect.converters."
_PRIMITIVES: Final = ("Boolean", "ByteArray", "Double", "Float", "Integer", "Long", "Short")
_TYPE: Final = Setting("converter.type", Type.STRING, REQUIRED, "key, value or header.", importance="LOW")
_NO_KEYS: Final = ConfigDef(())
_ANY_KEY: Final = ConfigDef((), prefixes=("",))


@dataclass(frozen=True)
class ConverterPlugin:
    """A converter of headers, of keys and values, or of both."""

    class_name: str
    settings: ConfigDef = _NO_KEYS
    is_for_records: bool = True
    is_for_headers: bool = True
    version: str = VERSION
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


CONVERTERS: Final = (
    *(ConverterPlugin(f"{_OF_BYTES}{kind}Converter") for kind in _PRIMITIVES),
    ConverterPlugin(JSON, ConfigDef(JSON_CONVERTER)),
    ConverterPlugin(SIMPLE_HEADERS, is_for_records=False),
    ConverterPlugin(STRING, ConfigDef(STRING_CONVERTER)),
    *(
        ConverterPlugin(name, ConfigDef(settings), True, False, __version__, WITHOUT_EFFECT)
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


def chosen_converter(kind: str, config: Config) -> ConverterPlugin | None:
    """The converter that a config, filled with the worker's, means."""
    named = config.get(f"{kind}.converter", "").strip()
    found = find_converter(named or (SIMPLE_HEADERS if kind == "header" else ""))
    return found if found and found.serves(kind) else None


def settings_by_prefix(config: Config) -> dict[str, ConfigDef]:
    """What may stand after `value.converter.` and the like; anything, if we do not know the converter."""
    return {
        f"{kind}.converter.": plugin.settings if (plugin := chosen_converter(kind, config)) else _ANY_KEY
        for kind in CONVERTER_KINDS
    }


def converter_definition(config: Config) -> ConfigDef:
    """The settings of a config's converters under their whole keys."""
    return ConfigDef(
        tuple(
            _under(prefix, setting)
            for prefix, definition in settings_by_prefix(config).items()
            for setting in definition.settings
        ),
        tuple(
            prefix + known
            for prefix, definition in settings_by_prefix(config).items()
            for known in definition.prefixes
        ),
    )


def converter_warnings(given: Config, effective: Config) -> list[str]:
    return [
        f"'{key}' has no effect: {why}"
        for kind in CONVERTER_KINDS
        if (plugin := chosen_converter(kind, effective))
        for name, why in plugin.without_effect.items()
        if (key := f"{kind}.converter.{name}") in given
    ]


def named_converter_settings(config: Config) -> list[Setting]:
    """The settings of the converters that a config names itself, in the order of a report."""
    return [
        _under(f"{kind}.converter.", setting)
        for kind in sorted(CONVERTER_KINDS)
        for plugin in [find_converter(config.get(f"{kind}.converter", "").strip())]
        if plugin is not None
        for setting in _as_reported(plugin.shown_settings)
    ]


def _under(prefix: str, setting: Setting) -> Setting:
    return replace(
        setting,
        name=prefix + setting.name,
        spoken=setting.name,
        display_name=setting.display_name or setting.name,
    )


def _as_reported(settings: Sequence[Setting]) -> list[Setting]:
    """In the order of Kafka Connect's report, which is that of a hash table."""
    order = (
        "decimal.format",
        "converter.type",
        "schemas.cache.size",
        "replace.null.with.default",
        "schemas.enable",
        "schema.content",
        "converter.encoding",
    )
    places = {name: place for place, name in enumerate(order)}
    return sorted(settings, key=lambda setting: places.get(setting.name, len(places)))


_NO_LOGIN: Final = (Type.BOOLEAN, Type.INT, Type.CLASS)


def inherited_converter(config: Config, worker: Config, prefix: str) -> dict[str, str]:
    """The worker's converter (`value.converter` and the like) with its sub-keys, where a config names none.

    Whoever names another registry brings the login to it: then only settings that hold none are the worker's.
    """
    whole = {key: value for key, value in worker.items() if key == prefix or key.startswith(f"{prefix}.")}
    address = f"{prefix}.schema.registry.url"
    if config.get(address, "").strip() in ("", worker.get(address, "").strip()):
        return whole
    plugin = find_converter(worker.get(prefix, "").strip())
    known = plugin.settings.settings if plugin else ()
    harmless = {f"{prefix}.{setting.name}" for setting in known if setting.type in _NO_LOGIN}
    return {key: value for key, value in whole.items() if key == prefix or key in harmless}
