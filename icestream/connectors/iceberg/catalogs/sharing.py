"""One open catalog for all jobs of a process that have the same settings: opening one costs a connection."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from typing import Final

from pyiceberg.catalog import Catalog

from icestream.api.config import Config
from icestream.connectors.iceberg.catalogs.opening import catalog_name, catalog_properties, open_catalog


@dataclass
class _Open:
    catalog: Catalog
    shares: int = 0


_LOCK: Final = threading.Lock()
_OPEN: Final[dict[tuple[str, str], _Open]] = {}
"""By name and settings."""


class SharedCatalog:
    """A share of the catalog of a connector config, to be closed after use. With the last share the catalog
    is closed."""

    def __init__(self, config: Config) -> None:
        self._key = catalog_name(config), json.dumps(catalog_properties(config), sort_keys=True)
        self._is_closed = False
        with _LOCK:
            found = _OPEN.get(self._key)
            if found is not None:
                found.shares += 1
        self.catalog = found.catalog if found is not None else self._opened(config)

    def _opened(self, config: Config) -> Catalog:
        # Without the lock: a catalog that does not answer holds up only those who need it.
        mine = open_catalog(config)
        with _LOCK:
            kept = _OPEN.setdefault(self._key, _Open(mine))
            kept.shares += 1
        if kept.catalog is not mine:
            mine.close()
        return kept.catalog

    def close(self) -> None:
        with _LOCK:
            if self._is_closed:
                return
            self._is_closed = True
            mine = _OPEN[self._key]
            mine.shares -= 1
            if mine.shares:
                return
            del _OPEN[self._key]
        self.catalog.close()

    def __enter__(self) -> Catalog:
        return self.catalog

    def __exit__(self, *error: object) -> None:
        self.close()
