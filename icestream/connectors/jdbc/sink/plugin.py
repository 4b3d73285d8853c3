"""The JDBC sink as plugins: what the rest of the worker knows of it, under the class names of three products.

Read when the worker starts, so what opens databases is imported only by the methods that need it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Final

from icestream.api.config import Config
from icestream.api.connector import JavaClass, Probe, Retries
from icestream.api.errors import ConfigError, Problem
from icestream.api.sink import Sink, SinkOptions, SinkPlugin
from icestream.connectors.jdbc.addresses import FOLDERS, driver_of, file_problem
from icestream.connectors.jdbc.sink import keys, settings
from icestream.connectors.jdbc.sink.plans import RECORD_HEADER, RECORD_KEY
from icestream.connectors.jdbc.sink.settings import SinkSettings, warnings

_CONFLUENT: Final = "io.confluent.connect.jdbc."
_AIVEN: Final = "io.aiven.connect.jdbc."
_DEBEZIUM: Final = "io.debezium.connector.jdbc."
_ROWS_OF_A_FILE: Final = 50_000
"""Rows for SQLite travel through the manager."""


class _JdbcSink(SinkPlugin):
    """What they have in common."""

    uses_spark = True
    address_keys = ("connection.url",)
    worker_settings = (FOLDERS,)
    mode_key: ClassVar[str] = "pk.mode"
    fields_key: ClassVar[str] = "pk.fields"
    retry_keys: ClassVar[Sequence[str]] = ("max.retries", "retry.backoff.ms")
    without_effect: ClassVar[Mapping[str, str]] = keys.WITHOUT_EFFECT

    @abstractmethod
    def meant(self, config: Config) -> SinkSettings:
        """What a config says, in whichever words its class has."""

    def problems(self, config: Config) -> list[Problem]:
        try:
            return settings.problems(self.meant(config), self.mode_key, self.fields_key)
        except ConfigError as error:
            known = {one.key for one in self.definition(config).problems(config)}
            return [one for one in error.problems if one.key not in known]

    def warnings(self, config: Config) -> list[str]:
        return warnings(config, self.without_effect)

    def not_allowed(self, config: Config, worker: Config) -> list[Problem]:
        try:
            problem = file_problem(config, worker)
        except ConfigError:
            return []  # said by `problems`
        return [problem] if problem else []

    def packages(self, config: Config) -> Mapping[str, str]:
        return driver_of(config)

    def tasks(self, config: Config, most: int) -> list[Config]:
        return [dict(config) for _ in range(most)]

    def options(self, config: Config) -> SinkOptions:
        meant = self.meant(config)
        return SinkOptions(
            commit_seconds=meant.commit_seconds,
            most_rows=None if meant.access.dialect.stages_in_tasks else _ROWS_OF_A_FILE,
            needs_keys=meant.rules.keys.mode == RECORD_KEY,
            needs_headers=meant.rules.keys.mode == RECORD_HEADER,
        )

    def destination(self, config: Config) -> str:
        return str(self.meant(config).access.address)

    def retries(self, config: Config) -> Retries:
        """Only what the config says: Java's ten times three seconds are over before a database is back."""
        meant = self.meant(config)
        says_most, says_wait = (bool(config.get(key, "").strip()) for key in self.retry_keys)
        return Retries(meant.most_retries if says_most else None, meant.retry_seconds if says_wait else None)

    def open(self, name: str, config: Config) -> Sink:
        from icestream.connectors.jdbc.sink.sink import JdbcSink

        return JdbcSink(name, config, self.meant(config))

    def probes(self, config: Config, worker: Config) -> Iterator[Probe]:
        from icestream.connectors.jdbc.sink.probes import database_probes

        return database_probes(config, self.meant(config))


class JdbcSinkPlugin(_JdbcSink):
    classes = (JavaClass(f"{_CONFLUENT}JdbcSinkConnector", f"{_CONFLUENT}sink.JdbcSinkTask"),)
    settings = keys.CONFLUENT
    java_loggers: ClassVar = {"io.confluent.connect.jdbc": ("icestream.connectors.jdbc",)}

    def meant(self, config: Config) -> SinkSettings:
        return settings.of_confluent(config)


class AivenJdbcSinkPlugin(_JdbcSink):
    classes = (JavaClass(f"{_AIVEN}JdbcSinkConnector", f"{_AIVEN}sink.JdbcSinkTask"),)
    settings = keys.AIVEN
    java_loggers: ClassVar = {"io.aiven.connect.jdbc": ("icestream.connectors.jdbc",)}

    def meant(self, config: Config) -> SinkSettings:
        return settings.of_aiven(config)


class DebeziumJdbcSinkPlugin(_JdbcSink):
    classes = (JavaClass(f"{_DEBEZIUM}JdbcSinkConnector", f"{_DEBEZIUM}JdbcSinkConnectorTask"),)
    settings = keys.DEBEZIUM
    java_loggers: ClassVar = {"io.debezium.connector.jdbc": ("icestream.connectors.jdbc",)}
    mode_key = "primary.key.mode"
    fields_key = "primary.key.fields"
    retry_keys = ("flush.max.retries", "flush.retry.delay.ms")
    without_effect = keys.WITHOUT_EFFECT_OF_DEBEZIUM

    def meant(self, config: Config) -> SinkSettings:
        return settings.of_debezium(config)
