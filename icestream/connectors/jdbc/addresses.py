"""The database that a config names: `connection.url` and its siblings, as arguments of a Python driver.

Databases and parameters are lists (`icestream.databases`); everything else is refused with what there is.
Used by the sink and the source to open connections, and by their plugins to check configs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from icestream.api.config import Config, Setting, Type, subset
from icestream.api.errors import ConfigError, Problem
from icestream.databases.addresses import (
    BY_SCHEME,
    FORMS,
    Unusable,
    driver_parameters,
    parameters_of,
    reading_problem,
    sqlite_path,
)

URL: Final = "connection.url"
PREFIX: Final = "connection."
_OWN_KEYS: Final = frozenset(
    {"url", "user", "username", "password", "attempts", "backoff.ms", "provider", "restart.on.errors"}
)
"""Keys under `connection.` that are no parameters of a driver."""
DRIVERS: Final = {"postgresql": "psycopg2", "mysql": "pymysql"}
EXTRAS: Final = {"psycopg2": "postgres", "pymysql": "mysql"}
"""What `pip install 'icestream[…]'` has to name."""
_LOGIN: Final = frozenset({"user", "password"})

FOLDERS: Final = Setting(
    "icestream.database.folders",
    Type.LIST,
    [],
    "The folders whose SQLite databases connectors may read and write; none if it is not set.",
)


@dataclass(frozen=True)
class DatabaseAddress:
    """Where a database is and who we are to it. Plain data: it crosses process boundaries."""

    kind: str
    """`postgresql`, `mysql` or `sqlite`."""
    hosts: tuple[tuple[str, int], ...] = ()
    database: str = ""
    """Its name, or the path of its file."""
    user: str = ""
    password: str = field(default="", repr=False)
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Of the Python driver."""
    scheme: str = ""
    """As the address has it: MariaDB and MySQL share a driver."""

    def __str__(self) -> str:
        """Without login, for messages."""
        if self.kind == "sqlite":
            return f"sqlite:{self.database}"
        hosts = ",".join(f"{host}:{port}" for host, port in self.hosts)
        return f"{self.scheme}://{hosts}/{self.database}"


def database_address(config: Config) -> DatabaseAddress:
    """The address of a connector config; ConfigError with the key that is wrong."""
    url = config.get(URL, "").strip()
    if not url:
        raise _problem(URL, f"the address of the database is missing; write {FORMS}")
    address = url.removeprefix("jdbc:")
    if address.startswith("sqlite:") and url.startswith("jdbc:"):
        return _sqlite(address.removeprefix("sqlite:"))
    scheme, slashes, _ = address.partition("://")
    if not slashes or scheme not in BY_SCHEME or not url.startswith("jdbc:"):
        # Only the scheme is shown: the rest may hold a password.
        shown = ":".join(url.split(":")[:2]) if url.startswith("jdbc:") else url.split(":")[0]
        raise _problem(
            URL,
            f"'{shown[:40]}:…' is no database that this version has: use PostgreSQL, MySQL, MariaDB or "
            f"SQLite, as {FORMS}",
        )
    return _server(config, address, scheme)


def _sqlite(rest: str) -> DatabaseAddress:
    try:
        path = sqlite_path(rest)
    except ValueError as error:
        raise _problem(URL, str(error)) from None
    if not path or "\0" in path:
        raise _problem(URL, "a database in memory would be gone with the task; write jdbc:sqlite:PATH")
    return DatabaseAddress("sqlite", database=path, scheme="sqlite")


def _server(config: Config, address: str, scheme: str) -> DatabaseAddress:
    database = BY_SCHEME[scheme]
    if problem := reading_problem(address, database):
        raise _problem(
            URL,
            f"{problem}; write jdbc:{scheme}://HOST:PORT/DATABASE?NAME=VALUE, and the login under "
            "connection.user and connection.password",
        )
    parts = urlsplit(address)
    given = dict(parameters_of(address))
    own = {key: value for key, value in subset(config, PREFIX).items() if _is_parameter(key)}
    try:
        parameters = driver_parameters({**given, **own}, database, _LOGIN)
    except Unusable as error:
        key = PREFIX + error.parameter if error.parameter in own else URL
        shown = "" if error.parameter in own else f"parameter '{error.parameter}': "
        raise _problem(key, shown + str(error)) from None
    login, _, place = parts.netloc.rpartition("@")
    if not place:
        raise _problem(URL, f"the host is missing; write jdbc:{scheme}://HOST:PORT/DATABASE")
    name, _, secret = login.partition(":")
    user = config.get("connection.user") or config.get("connection.username") or given.get("user") or ""
    password = config.get("connection.password") or given.get("password") or unquote(secret)
    return DatabaseAddress(
        database.name,
        tuple(_host_and_port(one, database.port) for one in place.split(",")),
        unquote(parts.path.removeprefix("/")),
        user or unquote(name),
        password,
        parameters,
        scheme,
    )


def _is_parameter(key: str) -> bool:
    return key not in _OWN_KEYS and not key.startswith("pool.")


def _host_and_port(place: str, port: int) -> tuple[str, int]:
    parts = urlsplit(f"//{place}")
    try:
        return parts.hostname or "", parts.port or port
    except ValueError:
        raise _problem(URL, f"'{place}' has no port below 65536; correct it") from None


def file_problem(config: Config, worker: Config) -> Problem | None:
    """Why the worker does not let a connector have its SQLite database; None if it does."""
    if not config.get(URL, "").strip().startswith("jdbc:sqlite:"):
        return None
    path = database_address(config).database
    folders = [Path(os.path.realpath(one)) for one in FOLDERS.parse(worker.get(FOLDERS.name, ""))]
    if any(Path(os.path.realpath(path)).is_relative_to(folder) for folder in folders):
        return None
    if not folders:
        why = f"this worker opens no files of SQLite; name the folder of '{path}' in its {FOLDERS.name}"
    else:
        why = f"'{path}' is in none of the folders of {FOLDERS.name}; choose a file in one of them"
    return Problem(URL, f"{URL}: {why}.")


def driver_of(config: Config) -> Mapping[str, str]:
    """The module of Python that reaches the database, and the extra that brings it; empty for SQLite, and for
    an address that is wrong."""
    try:
        kind = database_address(config).kind
    except ConfigError:
        return {}
    module = DRIVERS.get(kind)
    return {module: EXTRAS[module]} if module else {}


def missing_file(address: DatabaseAddress) -> str | None:
    """Why a SQLite database is not there yet; None if it is. To open one makes it."""
    if address.kind != "sqlite" or Path(address.database).exists():
        return None
    return f"there is no database '{address.database}'"


def _problem(key: str, message: str) -> ConfigError:
    return ConfigError([Problem(key, f"{key}: {message}.")])
