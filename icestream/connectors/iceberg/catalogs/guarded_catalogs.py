"""PyIceberg's catalogs, which take of a server's and a table's settings only what a connector may set.

Opened by `opening.py`. The second guard is below PyIceberg's own loaders of classes: whatever property gets
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
from pyiceberg.catalog.rest.auth import AuthManager, BasicAuthManager, NoopAuthManager
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.typedef import EMPTY_DICT, Properties
from pyiceberg.utils.properties import get_header_properties
from requests import Session

from icestream.api.errors import ConfigError, Problem
from icestream.connectors.iceberg.catalogs.keys import (
    PREFIX,
    SIGNER_URIS,
    servers_settings,
    storage_properties,
)
from icestream.connectors.iceberg.catalogs.lent_login import LentLogin
from icestream.connectors.iceberg.catalogs.remote_signing import asks_for_signing, file_io, signed_properties
from icestream.connectors.iceberg.catalogs.signed_requests import SigningAdapter, TimedAdapter

_log = logging.getLogger(__name__)

_FILE_CLASSES: Final = frozenset(name for names in pyiceberg.io.SCHEMA_TO_FILE_IO.values() for name in names)
_LOGIN_CLASSES: Final = frozenset({"legacyoauth2"})


def guarded_catalog(name: str, properties: Mapping[str, str]) -> Catalog:
    """Open a catalog. Not by PyIceberg's `load_catalog`: that adds settings of this machine's user."""
    refuse_foreign_code()
    if properties["type"] == "rest":
        return _Rest(name, **properties)
    # Late: they are slow to import, and what they need may be missing.
    if properties["type"] == "glue":
        from icestream.connectors.iceberg.catalogs.aws_catalogs import GuardedGlueCatalog

        return GuardedGlueCatalog(name, **properties)
    if properties["type"] == "dynamodb":
        from icestream.connectors.iceberg.catalogs.aws_catalogs import GuardedDynamoDbCatalog

        return GuardedDynamoDbCatalog(name, **properties)
    if properties["type"] == "hive":
        from icestream.connectors.iceberg.catalogs.hive_catalog import GuardedHiveCatalog

        return GuardedHiveCatalog(name, **properties)
    from icestream.connectors.iceberg.catalogs.sql_catalog import GuardedSqlCatalog

    return GuardedSqlCatalog(name, **properties)


class _Rest(LentLogin, RestCatalog):
    _chosen_signer: str | None = None
    """The connector's own word, which no server changes."""

    def _config_headers(self, session: Session) -> None:
        if asks_for_signing(self.properties):
            # Otherwise PyIceberg asks for logins.
            session.headers["X-Iceberg-Access-Delegation"] = "remote-signing"
        # The first that PyIceberg does with a session, before any request for a token.
        for scheme in ("http://", "https://"):
            session.mount(scheme, TimedAdapter(self.properties))
        super()._config_headers(session)

    def _init_sigv4(self, session: Session) -> None:
        session.mount(self.uri, SigningAdapter(self.properties, self._role))

    def _create_legacy_oauth2_auth_manager(self, session: Session) -> AuthManager:
        properties = self.properties
        if properties.get("rest.auth.type", "").lower() == "basic":
            return BasicAuthManager(
                properties.get("rest.auth.basic.username", ""), properties.get("rest.auth.basic.password", "")
            )
        if not (properties.get("token") or properties.get("credential")):
            # Otherwise it says "Bearer None".
            return NoopAuthManager()
        return super()._create_legacy_oauth2_auth_manager(session)

    def _fetch_config(self) -> None:
        given = dict(self._settings or {})
        self._chosen_signer = next((given[key] for key in SIGNER_URIS if given.get(key)), None)
        super()._fetch_config()
        self.properties, strange = servers_settings("rest", self._settings or {}, given)
        if strange:
            _log.warning(
                "catalog '%s' sends settings that are not taken from a server: %s",
                self.name,
                ", ".join(strange),
            )

    def _load_file_io(self, properties: Properties = EMPTY_DICT, location: str | None = None) -> FileIO:
        said = {**self.properties, **properties}
        if not asks_for_signing(said):
            return load_file_io(storage_properties(said), location)
        headers = get_header_properties(self.properties)
        # A server may give a token for the files of one table.
        if token := properties.get("token"):
            headers["Authorization"] = f"Bearer {token}"
        elif self._auth_manager and (login := self._auth_manager.auth_header()):
            headers["Authorization"] = login
        return file_io(signed_properties(said, self.uri, self._chosen_signer, headers), location)


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
