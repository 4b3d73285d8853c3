"""Files of changes in the data folder of an Iceberg table. Opened by `writer` for tables that get upserts;
`merge` reads them again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import pyarrow as pa
from pyiceberg.table.locations import LocationProvider, load_location_provider

from icestream.connectors.iceberg.catalogs.guarded_catalogs import refuse_foreign_code
from icestream.connectors.iceberg.catalogs.opening import sink_errors
from icestream.connectors.iceberg.catalogs.remote_signing import file_io
from icestream.tables.upserts.change_files import ChangeFileWriter


class ChangeStage(ChangeFileWriter):
    def __init__(
        self,
        schema: pa.Schema,
        ids: Sequence[str],
        location: str,
        properties: Mapping[str, str],
        io_properties: Mapping[str, str],
        prefix: str,
        table: str,
    ) -> None:
        refuse_foreign_code()
        super().__init__(table, schema, ids, prefix)
        self._io = file_io(io_properties, location)
        self._places: LocationProvider = load_location_provider(location, dict(properties))

    def new_path(self, name: str) -> str:
        return self._places.new_data_location(name)

    def create(self, path: str) -> Any:
        return self._io.new_output(path).create(overwrite=True)

    def delete(self, path: str) -> None:
        self._io.delete(path)

    def errors(self, doing: str) -> AbstractContextManager[None]:
        return sink_errors(doing)
