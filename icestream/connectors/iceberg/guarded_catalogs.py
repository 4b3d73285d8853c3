"""PyIceberg's catalogs, which take of a server's and a table's settings only what a connector may set.

Opened by `catalogs.py`. The second guard is below PyIceberg's own loaders of classes: whatever property gets
there, none loads code that is not PyIceberg's. `stage.py` needs it too, in the processes of the pipeline.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

import pyiceberg.catalog
import pyiceberg.catalog.rest.auth
import pyiceberg.io
import pyiceberg.io.pyarrow
import pyiceberg.table.locations
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.typedef import EMPTY_DICT, Properties
from requests import Session
from requests.adapters import HTTPAdapter

from icestream.api.errors import ConfigError, Problem
from icestream.connectors.iceberg.catalog_keys import PREFIX, catalog_settings, not_taken, storage_properties

_log = logging.getLogger(__name__)

_FILE_CLASSES: Final = frozenset(name for names in pyiceberg.io.SCHEMA_TO_FILE_IO.values() for name in names)
_REST_TIMEOUTS: Final = {
    "rest.client.connection-timeout-ms": 15_000,
    "rest.client.socket-timeout-ms": 60_000,
}
_LOGIN_CLASSES: Final = frozenset({"legacyoauth2"})


def guarded_catalog(name: str, properties: Mapping[str, str]) -> Catalog:
    """Open a catalog. Not by PyIceberg's `load_catalog`: that adds settings of this machine's user."""
    refuse_foreign_code()
    if properties["type"] == "rest":
        return _Rest(name, **properties)
    # Late: SQLAlchemy is slow to import, and the driver of a database may be missing.
    from icestream.connectors.iceberg.sql_catalog import GuardedSqlCatalog

    return GuardedSqlCatalog(name, **properties)


class _TimedAdapter(HTTPAdapter):
    """Gives every request a time limit: requests has none of its own."""

    def __init__(self, connect: float, read: float) -> None:
        super().__init__()
        self._limits = connect, read

    def send(self, request: Any, *arguments: Any, **named: Any) -> Any:
        named["timeout"] = named.get("timeout") or self._limits
        return super().send(request, *arguments, **named)


class _Rest(RestCatalog):
    def _config_headers(self, session: Session) -> None:
        # The first that PyIceberg does with a session, before any request for a token.
        limits = [
            int(self.properties.get(key) or milliseconds) / 1000
            for key, milliseconds in _REST_TIMEOUTS.items()
        ]
        for scheme in ("http://", "https://"):
            session.mount(scheme, _TimedAdapter(*limits))
        super()._config_headers(session)

    def _fetch_config(self) -> None:
        super()._fetch_config()
        if strange := not_taken("rest", self.properties):
            _log.warning(
                "catalog '%s' sends settings that are not taken from a server: %s",
                self.name,
                ", ".join(strange),
            )
        self.properties = catalog_settings("rest", self.properties)

    def _load_file_io(self, properties: Properties = EMPTY_DICT, location: str | None = None) -> FileIO:
        return load_file_io(storage_properties({**self.properties, **properties}), location)


def refuse_foreign_code() -> None:
    """Let PyIceberg load its own classes of files and logins in this process, and no others."""
    if pyiceberg.io._import_file_io is _own_file_io:
        return
    pyiceberg.io._import_file_io = _own_file_io
    pyiceberg.catalog._import_catalog = _no_class("py-catalog-impl")
    pyiceberg.io.pyarrow._import_retry_strategy = _no_class("s3.retry-strategy-impl")
    pyiceberg.table.locations._import_location_provider = _no_class("write.py-location-provider.impl")
    pyiceberg.catalog.rest.auth.AuthManagerFactory.create = classmethod(_own_login)  # type: ignore[assignment]


_import_file_io = pyiceberg.io._import_file_io
_create_login = pyiceberg.catalog.rest.auth.AuthManagerFactory.create


def _own_file_io(io_impl: str, properties: Properties) -> FileIO | None:
    if io_impl not in _FILE_CLASSES:
        raise _refused("py-io-impl", io_impl)
    return _import_file_io(io_impl, properties)


def _own_login(cls: type, class_or_name: str, config: dict[str, Any]) -> Any:
    if class_or_name not in _LOGIN_CLASSES:
        raise _refused("auth.impl", class_or_name)
    return _create_login(class_or_name, config)


def _no_class(key: str) -> Any:
    def refuse(*arguments: Any) -> Any:
        name = next((one for one in arguments if isinstance(one, str) and "." in one), "")
        raise _refused(key, name)

    return refuse


def _refused(key: str, name: str) -> ConfigError:
    reason = f"'{key}={name}' names a Python class, which no catalog or table may bring here; remove it"
    return ConfigError(
        [Problem(f"{PREFIX}{key}" if not key.startswith("write.") else "iceberg.tables", reason)]
    )
