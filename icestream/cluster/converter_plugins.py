"""The converters that we have: their names, and their settings as `/connector-plugins` shows them.

Which of them a connector may use is the connector's to say (`icestream.plugins`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from icestream.api.config import REQUIRED, Config, Setting, Type
from icestream.api.connector_settings import JSON_CONVERTER, STRING_CONVERTER
from icestream.plugins import BYTES, JSON, STRING

VERSION: Final = "4.3.1"
"""Of the classes that are part of Kafka Connect itself."""
SIMPLE_HEADERS: Final = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
_TYPE: Final = Setting("converter.type", Type.STRING, REQUIRED, "key, value or header.", importance="LOW")


@dataclass(frozen=True)
class ConverterPlugin:
    """A converter; for headers, or for keys and values too."""

    class_name: str
    settings: tuple[Setting, ...]
    is_for_records: bool = True

    @property
    def simple_name(self) -> str:
        return self.class_name.rpartition(".")[2]


CONVERTERS: Final = (
    ConverterPlugin(BYTES, (_TYPE,)),
    ConverterPlugin(JSON, (_TYPE, *JSON_CONVERTER)),
    ConverterPlugin(SIMPLE_HEADERS, (), is_for_records=False),
    ConverterPlugin(STRING, (_TYPE, *STRING_CONVERTER)),
)


def find_converter(name: str) -> ConverterPlugin | None:
    """By full class name, simple name, or simple name without `Converter`; headers' own has no short one."""
    for plugin in CONVERTERS:
        names = [plugin.class_name, plugin.simple_name]
        if plugin.is_for_records:
            names.append(plugin.simple_name.removesuffix("Converter"))
        if name in names:
            return plugin
    return None


def named_converter_settings(config: Config, kinds: Sequence[str]) -> list[Setting]:
    """The sub-keys of the converters that a config names itself, as settings of their full keys."""
    return [
        replace(
            setting,
            name=f"{kind}.converter.{setting.name}",
            spoken=setting.name,
            display_name=setting.display_name or setting.name,
        )
        for kind in kinds
        for plugin in [find_converter(config.get(f"{kind}.converter", "").strip())]
        if plugin is not None
        for setting in _as_reported(plugin.settings)
    ]


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
    return sorted(settings, key=lambda setting: order.index(setting.name))
