"""The registry of plugins: every class that a config may name, whatever its kind.

Converters, transforms and predicates are tables of their packages, read here. A connector is found by its
entry point (group `icestream.connectors`), ours like those of other packages. One that cannot be loaded is
left out, which the worker says when it starts: the worker and the other connectors go on.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from icestream.api.config import Config
from icestream.api.connector import ConnectorPlugin, JavaClass
from icestream.api.environment_job import EnvironmentJob
from icestream.api.errors import NotFoundError
from icestream.api.sink import SinkPlugin
from icestream.api.source import SourcePlugin
from icestream.api.topics_file import TopicsFileRules
from icestream.converters.catalog import CONVERTERS
from icestream.transforms.catalog import ALL_PREDICATES, all_transforms

GROUP: Final = "icestream.connectors"
_OURS: Final = "icestream"
_SUFFIX: Final = "Connector"


@dataclass(frozen=True)
class Connector:
    """A connector class under one of its names, and the plugin that it belongs to."""

    java: JavaClass
    plugin: ConnectorPlugin

    @property
    def class_name(self) -> str:
        return self.java.name

    @property
    def simple_name(self) -> str:
        return self.java.simple_name

    @property
    def version(self) -> str:
        return self.java.version

    @property
    def kind(self) -> str:
        """sink or source."""
        return self.plugin.kind

    @property
    def is_source(self) -> bool:
        return self.plugin.kind == "source"


@dataclass(frozen=True)
class Installed:
    """The connectors that can be used, and a sentence for each plugin that cannot."""

    plugins: Sequence[ConnectorPlugin]
    problems: Sequence[str]

    @property
    def connectors(self) -> list[Connector]:
        return [Connector(java, plugin) for plugin in self.plugins for java in plugin.classes]


@functools.cache
def installed() -> Installed:
    """All connector plugins of this Python environment; looked for once."""
    return load_plugins(entry_points(group=GROUP))


def load_plugins(points: Iterable[EntryPoint]) -> Installed:
    """Load the plugins of entry points, our own first: nobody else's can take their names."""
    plugins: list[ConnectorPlugin] = []
    problems: list[str] = []
    owners: dict[str, EntryPoint] = {}
    ordered = sorted(points, key=lambda point: (_package(point) != _OURS, _package(point)))
    if not any(_package(point) == _OURS for point in ordered):
        problems.append(
            "icestream's own connectors are not registered in this Python environment: its metadata is "
            "missing or of an older version; install icestream again, with pip install -e . in a checkout"
        )
    for point in ordered:
        try:
            plugin = _loaded(point)
        except Exception as error:  # whatever the code of others raises when it is imported
            reason = f"{type(error).__name__}: {error}"
            problems.append(f"{_named(point)} cannot be loaded ({reason}); correct or remove the package")
            continue
        taken = next((java.name for java in plugin.classes if java.name in owners), None)
        if taken is not None:
            problems.append(
                f"{_named(point)} is left out: its class {taken} is that of {_named(owners[taken])}; "
                "remove one of the two packages, or rename the class"
            )
            continue
        owners |= {java.name: point for java in plugin.classes}
        plugins.append(plugin)
    return Installed(plugins, problems)


def _loaded(point: EntryPoint) -> ConnectorPlugin:
    made = point.load()
    plugin = made() if isinstance(made, type) else made
    if not isinstance(plugin, SinkPlugin | SourcePlugin):
        raise TypeError(f"{point.value} is neither a SinkPlugin nor a SourcePlugin")
    if not plugin.classes or not all(isinstance(java, JavaClass) for java in plugin.classes):
        raise TypeError(f"{point.value} has no JavaClass in classes")
    return plugin


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist else ""


def _named(point: EntryPoint) -> str:
    return f"connector plugin '{point.name}' of package '{_package(point)}'"


def find_connector(name: str) -> Connector:
    """The connector of a full class name, a simple name, or a simple name without `Connector`."""
    wanted = name.strip()
    known = installed().connectors
    for one in known:
        if one.class_name == wanted:
            return one
    for one in known:
        if one.simple_name in (wanted, wanted + _SUFFIX):
            return one
    available = ", ".join(one.class_name for one in known)
    message = (
        f"Failed to find any class that implements Connector and which name matches {name}, "
        f"available connectors are: {available}"
    )
    raise NotFoundError("; ".join([message, *installed().problems]))


def sink_plugin(name: str) -> SinkPlugin:
    """The plugin of a sink's class name; raises NotFoundError."""
    plugin = find_connector(name).plugin
    if not isinstance(plugin, SinkPlugin):
        raise NotFoundError(f"{name} is a source connector")
    return plugin


def environment_job(environ: Mapping[str, str]) -> EnvironmentJob | None:
    """The job that environment variables describe, of the first plugin that knows such jobs."""
    sinks = (plugin for plugin in installed().plugins if isinstance(plugin, SinkPlugin))
    return next((job for sink in sinks if (job := sink.job_from_environment(environ)) is not None), None)


def topics_file_rules(environ: Mapping[str, str]) -> TopicsFileRules | None:
    """What the first plugin that knows topics files makes of one."""
    sinks = (plugin for plugin in installed().plugins if isinstance(plugin, SinkPlugin))
    return next((rules for sink in sinks if (rules := sink.topics_file(environ)) is not None), None)


@dataclass(frozen=True)
class ConfigProviderPlugin:
    """A class that a worker's `config.providers.NAME.class` may name."""

    class_name: str
    factory: str
    """`module:Class`; its `configured` is called with the parameters, and the prefix of their keys."""

    @property
    def simple_name(self) -> str:
        return self.class_name.rpartition(".")[2]

    def make(self, parameters: Config, prefix: str) -> Any:
        """The provider; raises ConfigError."""
        module, _, name = self.factory.partition(":")
        return getattr(import_module(module), name).configured(parameters, prefix)


_APACHE: Final = "org.apache.kafka.common.config.provider."
_STRIMZI: Final = "io.strimzi.kafka."
CONFIG_PROVIDERS: Final = tuple(
    ConfigProviderPlugin(f"{package}{java}ConfigProvider", f"icestream.cluster.configs.{ours}")
    for package, java, ours in (
        (_APACHE, "File", "providers:FileProvider"),
        (_APACHE, "Directory", "providers:DirectoryProvider"),
        (_APACHE, "EnvVar", "providers:EnvironmentProvider"),
        (_STRIMZI, "EnvVar", "providers:EnvironmentProvider"),
        (_STRIMZI, "KubernetesSecret", "kubernetes_providers:SecretProvider"),
        (_STRIMZI, "KubernetesConfigMap", "kubernetes_providers:ConfigMapProvider"),
    )
)


def find_config_provider(name: str) -> ConfigProviderPlugin | None:
    """By full class name, simple name, or simple name without `ConfigProvider`."""
    for one in CONFIG_PROVIDERS:
        if name in (one.class_name, one.simple_name, one.simple_name.removesuffix("ConfigProvider")):
            return one
    return None


@dataclass(frozen=True)
class ListedPlugin:
    """A class as `/connector-plugins` shows it."""

    class_name: str
    kind: str
    version: str


def connector_plugins() -> list[ListedPlugin]:
    """Sinks, then sources, each by name."""
    known = installed().connectors
    return [
        *_sorted("sink", {one.class_name: one.version for one in known if not one.is_source}),
        *_sorted("source", {one.class_name: one.version for one in known if one.is_source}),
    ]


def all_plugins() -> list[ListedPlugin]:
    """Connectors, transforms, predicates, converters of records, converters of headers."""
    transforms = {name: plugin.version for plugin in all_transforms() for name in plugin.class_names}
    of_records = {one.class_name: one.version for one in CONVERTERS if one.is_for_records}
    of_headers = {one.class_name: one.version for one in CONVERTERS if one.is_for_headers}
    return [
        *connector_plugins(),
        *_sorted("transformation", transforms),
        *_sorted("predicate", {one.class_name: one.version for one in ALL_PREDICATES}),
        *_sorted("converter", of_records),
        *_sorted("header_converter", of_headers),
    ]


def _sorted(kind: str, versions: Mapping[str, str]) -> list[ListedPlugin]:
    return [ListedPlugin(name, kind, versions[name]) for name in sorted(versions)]
