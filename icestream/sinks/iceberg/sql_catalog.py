"""PyIceberg's SQL catalog with our guards. Opened by `guarded_catalogs.py`."""

from __future__ import annotations

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.typedef import EMPTY_DICT, Properties

from icestream.sinks.iceberg.catalog_keys import storage_properties


class GuardedSqlCatalog(SqlCatalog):
    """The properties of a table say where its files are only as far as a connector may."""

    def _load_file_io(self, properties: Properties = EMPTY_DICT, location: str | None = None) -> FileIO:
        return load_file_io(storage_properties({**self.properties, **properties}), location)
