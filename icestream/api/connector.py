"""What a connector is to everybody else: its classes, its settings, what it says about a config.

A connector is a package with an entry point in the group `icestream.connectors` that names a `SinkPlugin`
(`api/sink.py`) or a `SourcePlugin` (`api/source.py`). `icestream.plugins` finds them; the REST API, the
validation and the job managers know no more of a connector than what is declared here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from icestream import __version__
from icestream.api.config import Config, ConfigDef, Setting, subset
from icestream.api.errors import Problem


@dataclass(frozen=True)
class JavaClass:
    """A name that users write as `connector.class`. A plugin may have several: those of earlier homes."""

    name: str
    task_class: str
    """What `GET /connectors/{name}/tasks` shows as `task.class`."""
    version: str = __version__

    @property
    def simple_name(self) -> str:
        return self.name.rpartition(".")[2]


@dataclass
class Probe:
    """One thing that a config points at, and how to ask whether it is there.

    `ask` runs in a thread of its own and has some seconds. While it goes on to the next thing it may change
    `key` and `what` of the probe it is given: they are blamed if no answer comes.
    """

    key: str
    what: str
    """The thing as a sentence names it, such as `the catalog at host:8181`; never with a password."""
    ask: Callable[[Probe], Sequence[Problem]] = field(repr=False)


@dataclass(frozen=True)
class Retries:
    """What a config says, in the connector's own words, about a destination that does not answer; None:
    nothing, and `icestream.retry.*` holds. Those keys of the connector itself win."""

    most: int | None = None
    """How often in a row it is asked again before the connector fails."""
    first_seconds: float | None = None
    """The wait after the first failure."""


@dataclass(frozen=True)
class SparkCatalog:
    """How Spark SQL reads the tables that a connector writes, for `icestream sql`."""

    name: str
    class_name: str
    # Not in the repr: passwords and keys are among them.
    properties: Mapping[str, str] = field(repr=False)
    extensions: str = ""
    """Of `spark.sql.extensions`."""
    jars: Sequence[str] = ()
    """Maven coordinates."""


class ConnectorPlugin:
    """What sinks and sources have in common. A plugin overrides what it has an answer to."""

    kind: ClassVar[Literal["sink", "source"]]
    classes: ClassVar[Sequence[JavaClass]] = ()
    settings: ClassVar[ConfigDef] = ConfigDef(())
    """Its own settings; those of every sink or source are added to them."""

    address_keys: ClassVar[Sequence[str]] = ()
    """Keys whose values are addresses: `icestream.allowed.hosts` of the worker holds for them."""
    most_names: ClassVar[Mapping[str, int]] = {}
    """Keys that are lists of names, and how many names each may have."""
    client_prefixes: ClassVar[Mapping[str, str]] = {}
    """Prefixes of settings for Kafka's clients besides `producer.override.` and the like, and the role of
    the client: `producer`, `consumer` or `admin`."""
    may_have_process: ClassVar[bool] = True
    """Whether `icestream.job.manager=process` is possible: what a process that is not yet dead does is
    refused by the targets."""
    java_loggers: ClassVar[Mapping[str, Sequence[str]]] = {}
    """Names of Java loggers, and the Python loggers that say what they would say."""
    worker_settings: ClassVar[Sequence[Setting]] = ()
    """Settings of the worker that are about this connector."""
    jar: ClassVar[str] = ""
    """The jar that holds the connector in Kafka Connect, such as `connect-file`, if naming it in the
    worker's `plugin.path` has an effect here."""

    def definition(self, config: Config) -> ConfigDef:
        """The settings of one config, where some depend on others."""
        return self.settings

    def problems(self, config: Config) -> list[Problem]:
        """What is wrong with a config, besides what the settings say. Opens nothing."""
        return []

    def tasks(self, config: Config, most: int) -> Sequence[Config]:
        """The configs of its tasks, at most so many. Opens nothing: REST asks, to show them."""
        return [config] * most

    def warnings(self, config: Config) -> list[str]:
        """What has no effect."""
        return []

    def not_allowed(self, config: Config, worker: Config) -> list[Problem]:
        """Why the worker's config does not let this connector run; asked before anything else."""
        return []

    def packages(self, config: Config) -> Mapping[str, str]:
        """Python modules that this config needs beyond those that every worker has, and the extra of
        Icestream that brings each: `{"boto3": "s3"}`. The config may be wrong."""
        return {}

    def place_addresses(self, config: Config) -> Iterator[tuple[str, str]]:
        """Keys, and the addresses that their values lead to without being one: folders and buckets.
        `icestream.allowed.hosts` of the worker holds for these as well."""
        yield from ()

    def destination(self, config: Config) -> str:
        """The system at the other end of the connector: `s3://bucket`, `the catalog at host:8181`. Connectors
        of a worker that have the same one share a circuit breaker. Shown as it is: never with a password.
        Empty: it is nobody else's."""
        return ""

    def retries(self, config: Config) -> Retries:
        """The connector's own settings for what to do when the destination does not answer."""
        return Retries()

    def probes(self, config: Config, worker: Config) -> Iterator[Probe]:
        """Ways to ask what the config points at: a catalog, a bucket, a database. May raise ConfigError."""
        yield from ()

    def spark_catalog(self, config: Config) -> SparkCatalog | None:
        """Where Spark SQL finds the connector's tables; None if it has none."""
        return None

    def is_on_plugin_path(self, worker: Config) -> bool:
        """Whether the worker's `plugin.path` names the jar of this connector."""
        jar = re.compile(rf"(?:.*/)?{re.escape(self.jar)}(?:-[\w.\-]+)?\.jar")
        parts = worker.get("plugin.path", "").split(",")
        return bool(self.jar) and any(jar.fullmatch(part.strip()) for part in parts)

    def client_overrides(self, config: Config, role: str) -> dict[str, str]:
        """The connector's own settings for a Kafka client of this role."""
        found: dict[str, str] = {}
        for prefix, of_role in self.client_prefixes.items():
            if of_role == role:
                found |= subset(config, prefix)
        return found | subset(config, f"{role}.override.")
