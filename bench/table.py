"""The table that both sides fill: made anew for each run, watched while it fills, checked at the end."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from icestream.embedded.minio_tables import LOG_TABLES, WAREHOUSE, sqlite_catalog

if TYPE_CHECKING:
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.table import Table

API_LOG: Final = LOG_TABLES[0]
ID_FIELD: Final = "callInfo.requestID"


@dataclass(frozen=True)
class Content:
    """What a reader finds in the table's data files."""

    rows: int
    distinct: int
    files: int
    commits: int


class BenchTable:
    """One table in a SQLite catalog of its own, under a folder that is new for each run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._database = folder / "catalog.db"
        self._seen: str | None = None
        self._rows = 0

    @cached_property
    def _catalog(self) -> SqlCatalog:
        from pyiceberg.catalog.sql import SqlCatalog

        return SqlCatalog(
            WAREHOUSE, uri=f"sqlite:///{self._database}", warehouse=(self._folder / WAREHOUSE).as_uri()
        )

    def create(self) -> None:
        (self._folder / WAREHOUSE).mkdir(parents=True)
        API_LOG.create(self._catalog)

    def connector_settings(self) -> dict[str, str]:
        """The keys by which a sink connector finds this table."""
        return {"iceberg.tables": API_LOG.table, **sqlite_catalog(str(self._folder))}

    def visible_rows(self) -> int:
        """The rows in the current snapshot; one look at the catalog's pointer while nothing is committed."""
        pointer = self.pointer()
        if pointer != self._seen:
            self._rows = rows_of(self._table())
            self._seen = pointer
        return self._rows

    def content(self) -> Content:
        """Read the id of every row from the data files, not from the statistics."""
        import pyarrow.compute as pc

        table = self._table()
        files = table.inspect.files().num_rows
        ids = table.scan(selected_fields=(ID_FIELD,)).to_arrow()
        column = pc.struct_field(ids.column("callInfo"), "requestID")
        return Content(ids.num_rows, pc.count_distinct(column).as_py(), files, len(table.metadata.snapshots))

    def appended(self, seen: Mapping[str, float]) -> Iterator[tuple[float, Sequence[str]]]:
        """The ids of the rows that each snapshot added, with the time at which it was first seen.

        `seen` are the metadata files with those times; a snapshot that came between two of them was seen with
        the later one.
        """
        from pyiceberg.manifest import ManifestEntryStatus
        from pyiceberg.table import StaticTable

        known: set[int] = set()
        for place, at in sorted(seen.items(), key=lambda item: item[1]):
            table = StaticTable.from_metadata(place)
            for snapshot in table.metadata.snapshots:
                if snapshot.snapshot_id in known:
                    continue
                known.add(snapshot.snapshot_id)
                paths = [
                    entry.data_file.file_path
                    for manifest in snapshot.manifests(table.io)
                    if manifest.added_snapshot_id == snapshot.snapshot_id
                    for entry in manifest.fetch_manifest_entry(table.io)
                    if entry.status == ManifestEntryStatus.ADDED
                ]
                yield at, [one for path in paths for one in _ids(path)]

    def sizes(self) -> tuple[int, int]:
        """How many data files and commits the table has."""
        table = self._table()
        return table.inspect.files().num_rows, len(table.metadata.snapshots)

    def _table(self) -> Table:
        return self._catalog.load_table(API_LOG.table)

    def pointer(self) -> str:
        """The metadata file that is current."""
        connection = sqlite3.connect(f"{self._database.as_uri()}?mode=ro", uri=True, timeout=10)
        try:
            row = connection.execute(
                "select metadata_location from iceberg_tables where table_namespace = ? and table_name = ?",
                tuple(API_LOG.table.split(".")),
            ).fetchone()
        finally:
            connection.close()
        return str(row[0])


def _ids(path: str) -> list[str]:
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    column = pq.ParquetFile(path.removeprefix("file://")).read([ID_FIELD]).column("callInfo")
    return list(pc.struct_field(column, "requestID").to_pylist())


def rows_of(table: Table) -> int:
    snapshot = table.current_snapshot()
    if snapshot is None or snapshot.summary is None:
        return 0
    return int(snapshot.summary["total-records"] or 0)


def wait_for_rows(
    visible: Callable[[], int],
    wanted: int,
    *,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
    every_s: float,
    patience_s: float,
) -> int:
    """Wait until so many rows are visible, or none is added for `patience_s`. Returns what is there."""
    rows, changed = visible(), clock()
    while rows < wanted and clock() - changed < patience_s:
        sleep(every_s)
        found = visible()
        if found != rows:
            rows, changed = found, clock()
    return rows
