"""The open JDBC sink of one job: its tables, one by config or one for each topic. Made by `plugin`."""

from __future__ import annotations

from collections.abc import Sequence

from icestream.api.config import Config
from icestream.api.sink import OpenWriter, Routing, Sink
from icestream.connectors.jdbc.sink.checkpoints import CheckpointTable
from icestream.connectors.jdbc.sink.settings import SinkSettings
from icestream.connectors.jdbc.sink.table import JdbcTable, Session, TableSettings
from icestream.connectors.jdbc.sink.table_names import table_id
from icestream.connectors.jdbc.sink.writer import JdbcWriter


class JdbcSink(Sink):
    def __init__(self, name: str, config: Config, settings: SinkSettings) -> None:
        self.writer: OpenWriter = JdbcWriter
        self._job = name
        self._session = Session(settings.access)
        self._checkpoints = CheckpointTable(settings.access, table_id(settings.checkpoints))
        self._settings = TableSettings(
            settings.access,
            self._checkpoints,
            settings.rules,
            settings.creates,
            settings.growth,
            settings.limit,
            settings.types,
        )
        self._tables: dict[str, JdbcTable] = {}
        only = only_table(config, settings)
        if only is None:
            self.routing = Routing(settings.names, True, settings.most_tables, "icestream.jdbc.tables.max")
        else:
            self.target(only)

    def targets(self) -> Sequence[JdbcTable]:
        return [] if self.routing is not None else list(self._tables.values())

    def target(self, name: str) -> JdbcTable:
        if name not in self._tables:
            self._tables[name] = JdbcTable(name, table_id(name), self._job, self._settings, self._session)
        return self._tables[name]

    def known_targets(self) -> Sequence[JdbcTable]:
        if self.routing is None:
            return self.targets()
        with self._session.used("look for the tables of the job") as connection:
            return [self.target(name) for name in self._checkpoints.targets(connection, self._job)]

    def close(self) -> None:
        self._session.close()


def only_table(config: Config, settings: SinkSettings) -> str | None:
    """The one table that gets all records; None: topics name them, perhaps after transforms."""
    names = settings.names
    if names.is_fixed and not names.by_topic:
        return names.format
    topics = [one.strip() for one in config.get("topics", "").split(",") if one.strip()]
    if len(topics) == 1 and not config.get("transforms", "").strip():
        name, problem = names.of(topics[0])
        return name if problem is None else None
    return None
