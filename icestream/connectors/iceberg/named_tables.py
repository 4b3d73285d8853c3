"""All tables that a job whose records name them has ever written. Used by `sink`."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import ForbiddenError, NoSuchNamespaceError, NoSuchTableError
from pyiceberg.typedef import Identifier

from icestream.api.errors import SinkUnavailable
from icestream.connectors.iceberg.catalogs.opening import sink_errors
from icestream.connectors.iceberg.commits import checkpoints

_log = logging.getLogger(__name__)

_AT_ONCE: Final = 8
_DEEPEST: Final = 10


def tables_of_job(catalog: Catalog, job: str) -> list[str]:
    """All tables of a catalog that have a checkpoint of a job. Asks for every table: to be called rarely."""
    key = checkpoints.key_of(job)

    def name_of(table: Identifier) -> str | None:
        try:
            with sink_errors(f"looking for the tables of the job: loading table {'.'.join(table)}"):
                found = catalog.load_table(table)
        except (NoSuchTableError, NoSuchNamespaceError):
            return None
        except SinkUnavailable as error:
            # One that nobody can read is nobody's. Any other may be ours, and know best where the job is.
            if not isinstance(error.__cause__, FileNotFoundError | PermissionError | ForbiddenError):
                raise
            _log.info("%s", error)
            return None
        except Exception as error:  # a broken table of somebody else is not ours to tell of
            _log.info("table %s cannot be read: %s", ".".join(table), error)
            return None
        return ".".join(table) if key in found.metadata.properties else None

    with sink_errors("looking for the tables of the job"):
        tables = [table for space in _namespaces(catalog, ()) for table in catalog.list_tables(space)]
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            return sorted(name for name in threads.map(name_of, tables) if name is not None)


def _namespaces(catalog: Catalog, above: Identifier) -> Iterator[Identifier]:
    if len(above) > _DEEPEST:
        return
    for space in catalog.list_namespaces(above):
        inner = space if space[: len(above)] == above else (*above, *space)
        if len(inner) <= len(above):
            continue
        yield inner
        yield from _namespaces(catalog, inner)
