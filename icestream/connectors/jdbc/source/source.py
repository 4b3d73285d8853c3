"""The JDBC source of one task: its tables, taken in turns. Opened by the plugin."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from icestream.api.config import Config
from icestream.api.offset_admin import OffsetEntry
from icestream.api.source import SourceBatch
from icestream.connectors.jdbc.connections import access_from
from icestream.connectors.jdbc.dialects.base import Connection, TableId
from icestream.connectors.jdbc.source.columns import values_of
from icestream.connectors.jdbc.source.commit_order import TransactionAges
from icestream.connectors.jdbc.source.databases import source_database
from icestream.connectors.jdbc.source.offsets import (
    BEGINNING,
    QUERY_PARTITION,
    Position,
    find_position,
    table_partitions,
    to_offset,
)
from icestream.connectors.jdbc.source.sessions import Session
from icestream.connectors.jdbc.source.settings import SourceSettings, settings_from
from icestream.connectors.jdbc.source.table_reader import ReadRows, TableReader
from icestream.connectors.jdbc.source.tables import chosen_tables
from icestream.records.records import Records

_log = logging.getLogger(__name__)


def open_source(task: Config) -> JdbcSource:
    """Raises ConfigError; connects later."""
    settings = settings_from(task)
    access = access_from(task)
    return JdbcSource(
        settings, Session(access, source_database(access.dialect, settings.types), settings.isolation)
    )


class _Reading:
    """A table, how its rows are read, and under which partition its offset is stored."""

    def __init__(self, reader: TableReader, topic: str, partition: Mapping[str, str]) -> None:
        self.reader = reader
        self.topic = topic
        self.partition = partition


class JdbcSource:
    def __init__(
        self,
        settings: SourceSettings,
        session: Session,
        clock: Callable[[], float] = time.monotonic,
        wall_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._settings = settings
        self._session = session
        self._clock = clock
        self._wall_ms = wall_ms
        self._ages = TransactionAges()
        self._stored: dict[str, OffsetEntry] = {}
        """How far each table is; also of tables that are gone, and may come back."""
        self._tables: dict[TableId | None, _Reading] = {}
        self._turn = 0
        self._looked_at = 0.0
        self._begun: list[OffsetEntry] = []
        """Where tables begin whose first offset is not stored yet."""

    def seek(self, offsets: Sequence[OffsetEntry]) -> None:
        for reading in self._tables.values():
            reading.reader.close()
        self._tables = {}
        self._begun = []
        self._stored = {str(entry.partition): entry for entry in offsets}
        self._look_for_tables()

    def read(self, limit: int) -> SourceBatch | None:
        if self._clock() - self._looked_at >= self._settings.tables_seconds:
            self._look_for_tables()
        groups: list[Records] = []
        after = dict(enumerate(self._begun, -len(self._begun)))
        self._begun = []
        count = 0
        readings = list(self._tables.values())
        for step in range(len(readings)):
            place = (self._turn + step) % len(readings)
            reading = readings[place]
            found = reading.reader.read(limit - count)
            if found is None:
                continue
            groups.append(self._records(reading, found, count))
            after[place] = OffsetEntry(reading.partition, to_offset(found.after))
            count += found.rows.num_rows
            if count >= limit:
                self._turn = place + 1
                break
        entries = {str(entry.partition): entry for entry in after.values()}
        self._stored |= entries
        return SourceBatch(groups, list(entries.values())) if entries else None

    def close(self) -> None:
        for reading in self._tables.values():
            reading.reader.close()
        self._session.close()

    def _records(self, reading: _Reading, found: ReadRows, first: int) -> Records:
        size = found.rows.num_rows
        facts = found.facts
        return Records(
            rows=np.arange(first, first + size),
            topic=reading.topic,
            partitions=None,
            timestamps=pa.array(np.full(size, self._wall_ms())),
            key=None,
            value=values_of(facts.schema, facts.columns, found.rows, self._settings.types),
        )

    def _look_for_tables(self) -> None:
        """Tables that are new are read from now on, those that are gone no more."""
        self._looked_at = self._clock()
        if self._settings.query:
            if None not in self._tables:
                self._add(None, self._settings.prefix, [QUERY_PARTITION])
            return
        tables = self._session.ask(self._listed, "list the tables")
        for table in [known for known in self._tables if known not in tables]:
            self._tables.pop(table).reader.close()
            _log.info("table %s is gone", table)
        for table in tables:
            if table not in self._tables:
                self._add(table, self._settings.prefix + table.name, table_partitions(table))
        if not self._tables and self._settings.choice.names:
            _log.warning(
                "%s has none of the tables of table.whitelist=%s; looking again in %.0f s",
                self._session.access.address,
                ",".join(self._settings.choice.names),
                self._settings.tables_seconds,
            )

    def _listed(self, connection: Connection) -> list[TableId]:
        settings = self._settings
        found = self._session.database.dialect.tables(
            connection, settings.catalog, settings.schema, settings.table_types
        )
        return [table for table in chosen_tables(found, settings.choice) if settings.share.has(table)]

    def _add(self, table: TableId | None, topic: str, partitions: Sequence[Mapping[str, str]]) -> None:
        reader = TableReader(self._session, self._settings, table, self._ages, self._clock, self._wall_ms)
        partition, position = find_position(self._stored.values(), partitions)
        if position == BEGINNING:
            initial = reader.initial_position()
            if initial is not None:
                # Stored at once: a start at "now" that only the first row made lasting could lose rows.
                self._begun.append(OffsetEntry(partition, to_offset(initial)))
                position = initial
        reader.seek(position)
        self._tables[table] = _Reading(reader, topic, partition)


__all__ = ["JdbcSource", "Position", "open_source"]
