"""Names of connectors, as users write them, to what we know about each; modules are imported late."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Final, Protocol, cast

from icestream import __version__
from icestream.api.config import Config, ConfigDef
from icestream.api.errors import NotFoundError, Problem

_SUFFIX: Final = "Connector"
_KAFKA_VERSION: Final = "4.3.1"
"""Of the classes that are part of Kafka Connect itself."""


class PluginSettings(Protocol):
    """What the settings module of a connector offers."""

    def definition(self, config: Config) -> ConfigDef: ...

    def problems(self, config: Config) -> list[Problem]: ...

    def warnings(self, config: Config) -> list[str]: ...


class SourceSettings(PluginSettings, Protocol):
    """What that of a source offers besides."""

    def exactly_once_problem(self, config: Config) -> str | None: ...


@dataclass(frozen=True)
class Plugin:
    """A connector class under one of its names."""

    class_name: str
    type: str
    task_class: str
    settings_module: str
    version: str = __version__
    most_tasks: int = sys.maxsize
    numbers_tasks: bool = False
    """Whether the config of a task says which one it is, as the Java class has it."""

    @property
    def is_source(self) -> bool:
        return self.type == "source"

    @property
    def simple_name(self) -> str:
        return self.class_name.rpartition(".")[2]

    def settings(self) -> PluginSettings:
        return cast(PluginSettings, import_module(self.settings_module))

    def source_settings(self) -> SourceSettings:
        return cast(SourceSettings, import_module(self.settings_module))


ICEBERG_SETTINGS: Final = "icestream.connectors.iceberg.settings"

CONNECTORS: Final[Sequence[Plugin]] = (
    Plugin(
        "org.apache.iceberg.connect.IcebergSinkConnector",
        "sink",
        "org.apache.iceberg.connect.IcebergSinkTask",
        ICEBERG_SETTINGS,
        numbers_tasks=True,
    ),
    Plugin(
        "io.tabular.iceberg.connect.IcebergSinkConnector",
        "sink",
        "io.tabular.iceberg.connect.IcebergSinkTask",
        ICEBERG_SETTINGS,
        numbers_tasks=True,
    ),
    Plugin(
        "org.apache.kafka.connect.file.FileStreamSinkConnector",
        "sink",
        "org.apache.kafka.connect.file.FileStreamSinkTask",
        "icestream.connectors.file.sink_settings",
        _KAFKA_VERSION,
    ),
    Plugin(
        "org.apache.kafka.connect.file.FileStreamSourceConnector",
        "source",
        "org.apache.kafka.connect.file.FileStreamSourceTask",
        "icestream.connectors.file.source_settings",
        _KAFKA_VERSION,
        most_tasks=1,
    ),
)


def find_connector(name: str) -> Plugin:
    """The plugin of a full class name, a simple name, or a simple name without `Connector`."""
    wanted = name.strip()
    for plugin in CONNECTORS:
        if plugin.class_name == wanted:
            return plugin
    for plugin in CONNECTORS:
        if plugin.simple_name in (wanted, wanted + _SUFFIX):
            return plugin
    available = ", ".join(plugin.class_name for plugin in CONNECTORS)
    raise NotFoundError(
        f"Failed to find any class that implements Connector and which name matches {name}, "
        f"available connectors are: {available}"
    )
