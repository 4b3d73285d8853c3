"""Opens Delta tables by delta-rs, and puts our errors in place of its own. For the manager alone: delta-rs
has threads of its own, which do not survive the forks of Spark's workers."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from icestream.connectors.delta.commits.log import Entry, TableLog
from icestream.connectors.delta.storage import Storage, storage_errors, table_uri, unavailable
from icestream.waits import waiting_for

_log = logging.getLogger(__name__)

_NO_LOG: Final = "No files in log segment"


@contextmanager
def delta_errors(doing: str) -> Iterator[None]:
    """Raise our error instead of those of delta-rs, but that of a table that is missing."""
    try:
        with waiting_for(f"storage: {doing}"):
            yield
    except TableNotFoundError:
        raise
    except (DeltaError, OSError) as error:
        _log.info("%s: %s", doing, error)
        raise unavailable(doing, error) from error


class KeptTable:
    """A table that is opened once and then only followed: to open one takes longer with every file and every
    commit since the last checkpoint of its log."""

    def __init__(self, name: str, location: str, storage: Storage) -> None:
        self._name, self._location, self._storage = name, location, storage
        self._log = TableLog.of(location, storage)
        self.table: DeltaTable | None = None
        """As it was when it was last looked at."""
        self._last: Entry | None = None

    def now(self) -> DeltaTable | None:
        """The table as it is now; None if there is none."""
        if not self._is_followed():
            self.table = open_table(self._name, self._location, self._storage)
        with storage_errors(f"reading the log of {self._name}"):
            self._last = None if self.table is None else self._log.entry(self.table.version())
        return self.table

    def _is_followed(self) -> bool:
        """Whether the log goes on from where we know it: a table that was removed and created again, or whose
        log was cleaned up, is opened anew."""
        if self.table is None or self._last is None:
            return False
        with storage_errors(f"reading the log of {self._name}"):
            if self._log.entry(self.table.version()) != self._last:
                return False
        with delta_errors(f"opening table {self._name}"):
            try:
                self.table.update_incremental()
            except TableNotFoundError:
                return False
        return True


def open_table(name: str, location: str, storage: Storage) -> DeltaTable | None:
    """The table as it is now; None if there is none."""
    with delta_errors(f"opening table {name}"):
        try:
            return DeltaTable(table_uri(location), storage_options=storage.for_delta(location))
        except TableNotFoundError:
            return None
        except DeltaError as error:
            # An empty folder of an object store is none that is not there.
            if _NO_LOG in str(error):
                return None
            raise
