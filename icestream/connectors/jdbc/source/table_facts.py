"""What a table, or a query, looks like now, and by which of its columns it is read. Asked by `table_reader`
before each window: columns come and go."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from icestream.api.errors import FatalError
from icestream.connectors.jdbc.dialects.base import ColumnInfo, Connection, TableId
from icestream.connectors.jdbc.source.columns import SourceColumn, value_schema
from icestream.connectors.jdbc.source.databases.base import SourceDatabase
from icestream.connectors.jdbc.source.settings import SourceSettings
from icestream.connectors.jdbc.source.tables import mapped
from icestream.connectors.jdbc.source.windows import Cursors
from icestream.records.schema import ConnectSchema

_KEY_TYPES: Final = frozenset(
    {
        *("int2", "int4", "int8", "text", "varchar", "bpchar", "uuid"),
        *("tinyint", "smallint", "mediumint", "int", "bigint", "char", "integer"),
    }
)
"""Types of key columns whose order statements can go by."""


@dataclass(frozen=True)
class TableFacts:
    """What a table looks like now."""

    columns: Sequence[SourceColumn]
    schema: ConnectSchema
    cursors: Cursors
    number: int | None
    """The place of the column that grows."""
    timestamps: Sequence[int]
    keys: Sequence[int]
    digits: int = 6


@dataclass(frozen=True)
class TableDescriber:
    """Describes one table as the settings have it read; None is the query."""

    database: SourceDatabase
    settings: SourceSettings
    table: TableId | None

    @property
    def name(self) -> str:
        return "the query" if self.table is None else str(self.table)

    def facts(self, connection: Connection) -> TableFacts | None:
        """None if the table is gone."""
        database, settings = self.database, self.settings
        dialect = database.dialect
        if self.table is None:
            infos, keys = database.described(connection, settings.query), []
        else:
            infos = dialect.columns(connection, self.table)
            keys = dialect.primary_key(connection, self.table)
        if not infos:
            return None
        columns = [database.column(info, dialect.quote(info.name)) for info in infos]
        places = {info.name: place for place, info in enumerate(infos)}
        key_places = [places[name] for name in keys]
        if not all(infos[place].type_name in _KEY_TYPES for place in key_places):
            key_places = []
        number = self._number_place(infos, places)
        timestamps = [self._place(name, places, "timestamp") for name in self._timestamp_names()]
        self._validate(infos, number, timestamps)
        self._check_types(infos, columns, number, timestamps)
        cursors = Cursors()
        digits = 6
        if timestamps:
            names = [dialect.quote(infos[place].name) for place in timestamps]
            cursors = database.timestamp_cursor(names, [infos[place] for place in timestamps])
            digits = min(database.timestamp_digits(infos[place]) for place in timestamps)
        cursors = dataclasses.replace(
            cursors,
            number=None if number is None else database.number_cursor(dialect.quote(infos[number].name)),
            keys=tuple(dialect.quote(infos[place].name) for place in key_places),
            quote_value=database.quote_value,
        )
        schema = value_schema(None if self.table is None else self.table.name, columns)
        return TableFacts(columns, schema, cursors, number, timestamps, key_places, digits)

    def _number_place(self, infos: Sequence[ColumnInfo], places: dict[str, int]) -> int | None:
        settings = self.settings
        if not settings.has_number:
            return None
        name = settings.number_column
        if self.table is not None and settings.number_columns:
            name = mapped(settings.number_columns, self.table) or ""
        if name:
            return self._place(name, places, "incrementing")
        counted = [place for place, info in enumerate(infos) if info.is_auto_increment]
        if len(counted) != 1:
            raise FatalError(
                f"{self.name} has {len(counted)} columns that the database counts up itself; name the one to "
                "read by in incrementing.column.name"
            )
        return counted[0]

    def _timestamp_names(self) -> Sequence[str]:
        settings = self.settings
        if not settings.has_timestamp:
            return ()
        if self.table is not None and settings.timestamp_mapping:
            found = mapped(settings.timestamp_mapping, self.table)
            if found is None:
                raise FatalError(
                    f"timestamp.columns.mapping has no pattern for {self.name}; add one, or leave the "
                    "table out"
                )
            return [name.strip() for name in found.strip("[]").split("|")]
        return settings.timestamp_columns

    def _place(self, name: str, places: dict[str, int], what: str) -> int:
        if name in places:
            return places[name]
        alike = [known for known in places if known.lower() == name.lower()]
        if self.settings.any_case and len(alike) == 1:
            return places[alike[0]]
        hint = f"; there is '{alike[0]}'" if alike else f"; it has {', '.join(list(places)[:20])}"
        raise FatalError(f"{self.name} has no {what} column '{name}'{hint}")

    def _check_types(
        self,
        infos: Sequence[ColumnInfo],
        columns: Sequence[SourceColumn],
        number: int | None,
        timestamps: Sequence[int],
    ) -> None:
        """A fraction has no place in an offset: its row would come again and again. Of a day it cannot be
        told which of its rows are new."""
        by = f"{self.name} cannot be read by column"
        if number is not None and not self.database.counts(infos[number], columns[number]):
            info = infos[number]
            raise FatalError(
                f"{by} '{info.name}', whose type {info.declared} has no whole numbers; name another in "
                "incrementing.column.name"
            )
        for place in timestamps:
            if columns[place].shape not in self.database.time_shapes:
                info = infos[place]
                raise FatalError(
                    f"{by} '{info.name}', whose type {info.declared} tells no time of day; name a timestamp "
                    "in timestamp.column.name"
                )

    def _validate(self, infos: Sequence[ColumnInfo], number: int | None, timestamps: Sequence[int]) -> None:
        if not self.settings.validates or self.table is None:
            return
        if number is not None and infos[number].is_nullable:
            raise FatalError(
                f"{self.name} cannot be read by column '{infos[number].name}', which may be null: such "
                "rows would never be read; make it NOT NULL, or set validate.non.null=false"
            )
        if timestamps and all(infos[place].is_nullable for place in timestamps):
            names = ", ".join(infos[place].name for place in timestamps)
            raise FatalError(
                f"{self.name} cannot be read by {names}, which may be null: such rows would never be "
                "read; make it NOT NULL, or set validate.non.null=false"
            )
