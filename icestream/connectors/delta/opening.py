"""Opens Delta tables by delta-rs, and puts our errors in place of its own. For the manager alone: delta-rs
has threads of its own, which do not survive the forks of Spark's workers."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from icestream.connectors.delta.storage import Storage, table_uri, unavailable
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
