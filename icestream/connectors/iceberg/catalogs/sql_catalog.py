"""PyIceberg's SQL catalog with our guards, and without reading again what was just written. Opened by
`guarded_catalogs.py`."""

from __future__ import annotations

import weakref
from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import TableRequirement, TableUpdate
from pyiceberg.typedef import EMPTY_DICT, Identifier, Properties
from sqlalchemy import NullPool, create_engine
from sqlalchemy.exc import OperationalError, ProgrammingError

from icestream.connectors.iceberg.catalogs.keys import storage_properties
from icestream.connectors.iceberg.catalogs.lent_login import LentLogin
from icestream.connectors.iceberg.commits.light_metadata import MetadataTexts


class GuardedSqlCatalog(LentLogin, SqlCatalog):
    """The properties of a table say where its files are only as far as a connector may."""

    def __init__(self, name: str, **properties: str) -> None:
        super().__init__(name, **properties)
        self._read: weakref.WeakValueDictionary[str, TableMetadata] = weakref.WeakValueDictionary()
        """Metadata files that some table of this process still holds, by location: none ever changes."""
        self._texts = MetadataTexts()

    def _init_catalog(self) -> None:
        # Called by PyIceberg with the engine that it has made, before that has opened anything.
        if self.engine.dialect.name == "sqlite":
            # A connection to a file costs next to nothing: none stays open between two questions.
            self.engine = create_engine(self.engine.url, poolclass=NullPool)
        try:
            super()._init_catalog()
        except BaseException:
            self.close()
            raise

    def load_table(self, identifier: str | Identifier) -> Table:
        try:
            return super().load_table(identifier)
        except (OperationalError, ProgrammingError) as error:
            # A database that has never been a catalog, opened by somebody who may not make it one.
            if IcebergTables.__tablename__ in str(error.orig):
                raise NoSuchTableError(f"there is no catalog in the database: {identifier}") from error
            raise

    def _load_file_io(self, properties: Properties = EMPTY_DICT, location: str | None = None) -> FileIO:
        return load_file_io(storage_properties({**self.properties, **properties}), location)

    def _convert_orm_to_iceberg(self, orm_table: IcebergTables) -> Table:
        location = orm_table.metadata_location
        metadata = self._read.get(location) if location else None
        if metadata is None or location is None:
            table = super()._convert_orm_to_iceberg(orm_table)
            self._read[table.metadata_location] = table.metadata
            return table
        return Table(
            identifier=(*Catalog.identifier_to_tuple(orm_table.table_namespace), orm_table.table_name),
            metadata=metadata,
            metadata_location=location,
            io=self._load_file_io(metadata.properties, location),
            catalog=self,
        )

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        response = super().commit_table(table, requirements, updates)
        self._read[response.metadata_location] = response.metadata
        return response

    def _write_metadata(  # type: ignore[override]
        self, metadata: TableMetadata, io: FileIO, metadata_path: str
    ) -> None:
        self._texts.write(metadata, io, metadata_path)

    def drop_table(self, identifier: Any) -> None:
        super().drop_table(identifier)
        self._read.clear()
