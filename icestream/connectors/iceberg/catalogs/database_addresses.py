"""Addresses of SQL catalogs: JDBC's form, with login and parameters apart, as SQLAlchemy takes it.

SQLAlchemy loads whatever driver an address names, and drivers read files that parameters name. So drivers and
parameters are lists. Used by `opening.py` and `java_catalogs.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, unquote, urlencode, urlsplit

from icestream.api.config import subset
from icestream.api.errors import ConfigError, Problem
from icestream.connectors.iceberg.catalogs.keys import PREFIX
from icestream.databases.addresses import (
    BY_SCHEME,
    FORMS,
    MYSQL,
    POSTGRESQL,
    Database,
    Unusable,
    driver_parameters,
    parameters_of,
    reading_problem,
    sqlite_path,
)

_OF_THE_CATALOG: Final = frozenset({"user", "password", "schema-version", "strict-mode", "initialize"})
"""Keys under `jdbc.` that Java's JdbcCatalog reads itself, or that are the login."""


_DRIVERS: Final = {POSTGRESQL.name: "postgresql+psycopg2", MYSQL.name: "mysql+pymysql"}
"""Of SQLAlchemy."""
_BY_SCHEME: Final = {
    **BY_SCHEME,
    "postgresql+psycopg2": POSTGRESQL,
    **dict.fromkeys(("mysql+pymysql", "mariadb+pymysql"), MYSQL),
}
_SQLITE: Final = ("sqlite", "sqlite+pysqlite")


def sqlalchemy_uri(java: Mapping[str, str]) -> str:
    """SQLAlchemy's form of `uri` and `jdbc.*`; an address without `jdbc:` is SQLAlchemy's already."""
    uri = java["uri"]
    if not uri.startswith("jdbc:"):
        return _checked(uri)
    address = uri.removeprefix("jdbc:")
    if address.startswith("sqlite:"):
        return f"sqlite:///{_sqlite_path(address.removeprefix('sqlite:'))}"
    scheme, slashes, _ = address.partition("://")
    if not slashes or scheme not in ("postgresql", "mysql", "mariadb"):
        # Only the scheme is shown: the rest may hold a password.
        raise _problem("uri", f"Invalid value '{':'.join(uri.split(':')[:2])}:…': use {FORMS}")
    return _with_login(address, subset(java, "jdbc."), _BY_SCHEME[scheme])


def jdbc_address(java: Mapping[str, str]) -> dict[str, str]:
    """The same for Java: an address in JDBC's form, and the login apart if it was SQLAlchemy's.

    Raises ConfigError as `sqlalchemy_uri` does: Java's drivers, too, load classes that parameters name."""
    checked = urlsplit(sqlalchemy_uri(java))
    if checked.scheme in _SQLITE:
        return {"uri": f"jdbc:sqlite:{checked.path.removeprefix('/')}"}
    if java["uri"].startswith("jdbc:"):
        return {"uri": java["uri"]}
    found = {"uri": f"jdbc:{urlsplit(java['uri']).scheme.partition('+')[0]}://"}
    found["uri"] += f"{checked.netloc.rpartition('@')[2] or 'localhost'}{checked.path}"
    if checked.username:
        found["jdbc.user"] = unquote(checked.username)
    if checked.password:
        found["jdbc.password"] = unquote(checked.password)
    return found


def _sqlite_path(address: str) -> str:
    try:
        return sqlite_path(address)
    except ValueError as error:
        raise _problem("uri", str(error)) from None


def _checked(uri: str) -> str:
    address = urlsplit(uri)
    if address.scheme in _SQLITE:
        start, slashes, path = uri.partition(":///")
        if not slashes:
            raise _problem("uri", "Invalid value 'sqlite:…': use sqlite:///PATH or jdbc:sqlite:PATH")
        return f"{start}{slashes}{_sqlite_path(path)}"
    if address.scheme not in _BY_SCHEME:
        shown = f"{address.scheme}:…" if address.scheme else "…"
        raise _problem("uri", f"Invalid value '{shown}': use {FORMS}")
    database = _BY_SCHEME[address.scheme]
    _refuse_many_readings(uri, database)
    if "@" in address.query:
        # SQLAlchemy takes all before it for a login.
        raise _problem("uri", "write '@' in a parameter as %40")
    if unknown := sorted({key for key, _ in parameters_of(uri)} - database.own):
        raise _problem("uri", f"the parameter '{unknown[0]}' is not among those that are taken; remove it")
    return f"{_DRIVERS[database.name]}:{uri.partition(':')[2]}"


def _with_login(uri: str, keys: Mapping[str, str], database: Database) -> str:
    """Java takes login and parameters from the address or from `jdbc.*`; the latter win."""
    _refuse_many_readings(uri, database)
    address = urlsplit(uri)
    given = {**dict(parameters_of(uri)), **keys}
    try:
        parameters = driver_parameters(given, database, _OF_THE_CATALOG)
    except Unusable as error:
        raise _problem(f"jdbc.{error.parameter}", str(error)) from None
    login = ""
    if user := given.get("user"):
        password = f":{quote(given['password'], safe='')}" if "password" in given else ""
        login = f"{quote(user, safe='')}{password}@"
    place = address.netloc.rpartition("@")[2] if login else address.netloc
    return f"{_DRIVERS[database.name]}://{login}{place}{address.path}?{urlencode(parameters)}"


def _refuse_many_readings(uri: str, database: Database) -> None:
    if problem := reading_problem(uri, database):
        if "more than one way" in problem:
            problem += (
                "; write it as HOST:PORT/DATABASE?NAME=VALUE, and the login under jdbc.user and jdbc.password"
            )
        raise _problem("uri", problem)


def _problem(key: str, message: str) -> ConfigError:
    return ConfigError([Problem(f"{PREFIX}{key}", f"{PREFIX}{key}: {message}.")])
