"""The tables of a job whose records name them: those that are open, and all that it has ever written. Used by
`sink`."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Generic, TypeVar

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import ForbiddenError, NoSuchNamespaceError, NoSuchTableError
from pyiceberg.typedef import Identifier

from icestream.api.errors import SinkUnavailable
from icestream.connectors.iceberg.catalogs.opening import sink_errors
from icestream.connectors.iceberg.commits import checkpoints

_T = TypeVar("_T")
_log = logging.getLogger(__name__)

_AT_ONCE: Final = 8
_DEEPEST: Final = 10


class LastUsed(Generic[_T]):
    """Things by name, made when they are asked for; those that were not asked for longest are let go."""

    def __init__(self, make: Callable[[str], _T], most: int) -> None:
        self._make = make
        self._most = most
        self._held: dict[str, _T] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._held)

    def get(self, name: str) -> _T:
        with self._lock:
            held = self._held.pop(name, None) or self._make(name)
            self._held[name] = held
            while len(self._held) > self._most:
                del self._held[next(iter(self._held))]
        return held


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
