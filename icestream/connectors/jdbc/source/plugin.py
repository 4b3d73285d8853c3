"""The JDBC source as a plugin: what the rest of the worker knows of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Final

from icestream.api.config import Config
from icestream.api.connector import JavaClass, Probe, Retries
from icestream.api.errors import ConfigError, IcestreamError, Problem
from icestream.api.offset_admin import OffsetEntry
from icestream.api.source import Source, SourcePlugin
from icestream.connectors.jdbc.addresses import FOLDERS, URL, driver_of, file_problem, missing_file
from icestream.connectors.jdbc.source import checks
from icestream.connectors.jdbc.source.keys import JDBC_SOURCE
from icestream.connectors.jdbc.source.settings import TASK, TASK_TABLES

_CONFLUENT: Final = "io.confluent.connect.jdbc."
_AIVEN: Final = "io.aiven.connect.jdbc."
_MOST_TABLES: Final = 10_000


class JdbcSourcePlugin(SourcePlugin):
    classes = (
        JavaClass(f"{_CONFLUENT}JdbcSourceConnector", f"{_CONFLUENT}source.JdbcSourceTask", "10.8.0"),
        JavaClass(f"{_AIVEN}JdbcSourceConnector", f"{_AIVEN}source.JdbcSourceTask", "6.10.0"),
    )
    settings = JDBC_SOURCE
    address_keys = (URL,)
    most_names: ClassVar = {"table.whitelist": _MOST_TABLES, "table.blacklist": _MOST_TABLES}
    worker_settings = (FOLDERS,)
    java_loggers: ClassVar = {f"{_CONFLUENT}source": ("icestream.connectors.jdbc.source",)}

    def problems(self, config: Config) -> list[Problem]:
        from icestream.connectors.jdbc.connections import access_from

        found = checks.problems(config)
        try:
            access_from(config)
        except ConfigError as error:
            found += error.problems
        return found

    def warnings(self, config: Config) -> list[str]:
        return checks.warnings(config)

    def destination(self, config: Config) -> str:
        from icestream.connectors.jdbc.connections import access_from

        return str(access_from(config).address)

    def retries(self, config: Config) -> Retries:
        attempts = self.settings.parse(config)["query.retry.attempts"]
        return Retries(None if attempts < 0 else attempts)

    def not_allowed(self, config: Config, worker: Config) -> list[Problem]:
        try:
            problem = file_problem(config, worker)
        except ConfigError:
            return []  # said by `problems`
        return [problem] if problem else []

    def packages(self, config: Config) -> Mapping[str, str]:
        return driver_of(config)

    def probes(self, config: Config, worker: Config) -> Iterator[Probe]:
        from icestream.connectors.jdbc.connections import LoginRefused, access_from

        access = access_from(config)

        def ask(_: Probe) -> Sequence[Problem]:
            if missing := missing_file(access.address):
                return [Problem(URL, f"{URL}: {missing}; create it")]
            source = self.open({**config, "connection.attempts": "1"})
            try:
                source.seek(())
            except IcestreamError as error:
                key = "connection.password" if isinstance(error, LoginRefused) else URL
                return [Problem(key, f"{key}: {error}.")]
            finally:
                source.close()
            return []

        yield Probe(URL, f"the database {access.address}", ask)

    def tasks(self, config: Config, most: int) -> Sequence[Config]:
        if config.get("query", "").strip() or config.get("query.masked", "").strip():
            return [config]
        names = [name.strip() for name in config.get("table.whitelist", "").split(",") if name.strip()]
        if names:
            count = min(most, len(names))
            return [{**config, TASK_TABLES: ",".join(names[n::count])} for n in range(count)]
        return [{**config, TASK: f"{n}/{most}"} for n in range(most)]

    def open(self, task: Config) -> Source:
        from icestream.connectors.jdbc.source.source import open_source

        return open_source(task)

    def check_offsets(self, config: Config, entries: Sequence[OffsetEntry]) -> None:
        from icestream.connectors.jdbc.source.offsets import check_offsets

        mode = config.get("mode", "")
        check_offsets(
            entries,
            is_query=bool(config.get("query", "").strip() or config.get("query.masked", "").strip()),
            has_number="incrementing" in mode,
            has_timestamp="timestamp" in mode,
        )

    def exactly_once_problem(self, config: Config) -> str | None:
        """A dump that is interrupted begins again where the table has no key to go on from."""
        if config.get("mode", "").strip() != "bulk":
            return None
        return "The connector does not support exactly-once semantics with the provided configuration."
