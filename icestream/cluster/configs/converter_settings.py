"""The converters of a config: which they are, and their settings under the keys that the config has for them.

Used by the validation of connectors and workers, and by the reports of `validate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from icestream.api.config import Config, ConfigDef, Setting, Type
from icestream.api.connector_settings import CONVERTER_KINDS
from icestream.converters.catalog import SIMPLE_HEADERS, ConverterPlugin, find_converter

_ANY_KEY: Final = ConfigDef((), prefixes=("",))
_NO_LOGIN: Final = (Type.BOOLEAN, Type.INT, Type.CLASS)
_REPORTED: Final = (
    "decimal.format",
    "converter.type",
    "schemas.cache.size",
    "replace.null.with.default",
    "schemas.enable",
    "schema.content",
    "converter.encoding",
)
"""The order of Kafka Connect's report, which is that of a hash table."""


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
    places = {name: place for place, name in enumerate(_REPORTED)}
    return sorted(settings, key=lambda setting: places.get(setting.name, len(places)))


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
