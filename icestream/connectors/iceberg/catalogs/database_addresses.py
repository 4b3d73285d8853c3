"""Addresses of SQL catalogs: JDBC's form, with login and parameters apart, as SQLAlchemy takes it.

SQLAlchemy loads whatever driver an address names, and drivers read files that parameters name. So drivers and
parameters are lists. Used by `opening.py` and `java_catalogs.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from icestream.api.config import subset
from icestream.api.errors import ConfigError, Problem
from icestream.connectors.iceberg.catalogs.keys import PREFIX

_FORMS: Final = "jdbc:sqlite:PATH, jdbc:postgresql://HOST/DB, jdbc:mysql://HOST/DB or jdbc:mariadb://HOST/DB"
_OF_THE_CATALOG: Final = frozenset({"user", "password", "schema-version", "strict-mode", "initialize"})
"""Keys under `jdbc.` that Java's JdbcCatalog reads itself, or that are the login."""


@dataclass(frozen=True)
class _Database:
    driver: str
    """Of SQLAlchemy."""
    parameters: Mapping[str, Callable[[str], Mapping[str, str]]]
    """Of the JDBC driver, and what each is for ours."""
    defaults: Mapping[str, str]
    own: frozenset[str]
    """Parameters that may stand in an address of SQLAlchemy's form."""
    harmless: frozenset[str] = frozenset()
    """Parameters that say what is so anyway, or are of Java only."""


def _named(name: str) -> Callable[[str], Mapping[str, str]]:
    return lambda value: {name: value}


def _seconds(*names: str) -> Callable[[str], Mapping[str, str]]:
    def given(value: str) -> Mapping[str, str]:
        if not re.fullmatch(r"[0-9]{1,12}", value):
            raise _Unusable("write a number of milliseconds")
        return dict.fromkeys(names, str(max(1, int(value) // 1000)))

    return given


class _Unusable(ValueError):
    """A value that has no counterpart; its text says what to write."""


def _mysql_tls(value: str) -> Mapping[str, str]:
    mode = value.lower().replace("_", "-")
    if mode in ("disabled", "disable", "false"):
        return {"ssl_disabled": "true"}
    if mode == "preferred":
        return {}
    if mode in ("required", "trust", "true"):
        # Encrypted, and nobody's certificate is looked at.
        return {"ssl_check_hostname": "false"}
    if mode in ("verify-ca", "verify-identity", "verify-full"):
        return {"ssl_verify_cert": "true", "ssl_verify_identity": "false" if mode == "verify-ca" else "true"}
    raise _Unusable("write DISABLED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY")


_POSTGRESQL: Final = _Database(
    "postgresql+psycopg2",
    {
        **{name: _named(name) for name in ("sslmode", "sslrootcert", "sslcert", "sslkey", "options")},
        "connectTimeout": _named("connect_timeout"),
        "ApplicationName": _named("application_name"),
    },
    {"connect_timeout": "15", "tcp_user_timeout": "60000"},
    frozenset(
        {
            *("sslmode", "sslrootcert", "sslcert", "sslkey", "options"),
            *("connect_timeout", "tcp_user_timeout", "application_name"),
        }
    ),
)
_MYSQL: Final = _Database(
    "mysql+pymysql",
    {
        "connectTimeout": _seconds("connect_timeout"),
        "socketTimeout": _seconds("read_timeout", "write_timeout"),
        "sslMode": _mysql_tls,
        "useSSL": _mysql_tls,
        "serverSslCert": _named("ssl_ca"),
    },
    {"connect_timeout": "15", "read_timeout": "60", "write_timeout": "60", "charset": "utf8mb4"},
    frozenset(
        {
            *("connect_timeout", "read_timeout", "write_timeout", "charset"),
            *("ssl_ca", "ssl_check_hostname", "ssl_disabled"),
        }
    ),
    frozenset(
        {
            *(
                "characterEncoding",
                "useUnicode",
                "serverTimezone",
                "allowPublicKeyRetrieval",
                "autoReconnect",
            ),
            *("permitMysqlScheme", "tcpKeepAlive", "useServerPrepStmts", "cachePrepStmts"),
        }
    ),
)
_BY_SCHEME: Final = {
    **dict.fromkeys(("postgresql", "postgresql+psycopg2"), _POSTGRESQL),
    **dict.fromkeys(("mysql", "mariadb", "mysql+pymysql", "mariadb+pymysql"), _MYSQL),
}
_SQLITE: Final = ("sqlite", "sqlite+pysqlite")
_ONE_HOST: Final = re.compile(r"(?:[^/@()]*@)?(?:[\w.\-]+|\[[0-9a-fA-F:.]+\])(?::\d+)?", re.ASCII)
"""MySQL's drivers know other forms, in which a host is a parameter: `(host=a,port=1)`, `address=(…)`."""
_HOST: Final = r"(?:[\w.\-]+|\[[0-9a-fA-F:.]+\])(?::\d+)?"
_ONE_READING: Final = re.compile(
    rf"[a-zA-Z0-9+]+://(?:[^/?#@\\\s]*@)?(?:{_HOST}(?:,{_HOST})*)?(?:/[^/?#@\\\s;()]*(?:\?[^#\s]*)?)?",
    re.ASCII,
)
"""Where host, database and parameters begin for SQLAlchemy and all drivers alike. Of `h/db#?a=b`, to some a
fragment, others take parameters, and of `h:1/x@evil/db` the host behind the sign."""


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
        raise _problem("uri", f"Invalid value '{':'.join(uri.split(':')[:2])}:…': use {_FORMS}")
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
    """Without parameters. To Java's driver a colon begins another kind of place, such as one to download."""
    path = address.removeprefix("file:").partition("?")[0]
    if path.startswith(":") or "#" in path:
        raise _problem("uri", "the path must not begin with a colon and have no '#'; write that of a file")
    return path


def _checked(uri: str) -> str:
    address = urlsplit(uri)
    if address.scheme in _SQLITE:
        start, slashes, path = uri.partition(":///")
        if not slashes:
            raise _problem("uri", "Invalid value 'sqlite:…': use sqlite:///PATH or jdbc:sqlite:PATH")
        return f"{start}{slashes}{_sqlite_path(path)}"
    if address.scheme not in _BY_SCHEME:
        shown = f"{address.scheme}:…" if address.scheme else "…"
        raise _problem("uri", f"Invalid value '{shown}': use {_FORMS}")
    database = _BY_SCHEME[address.scheme]
    _refuse_many_readings(uri, database)
    if "@" in address.query:
        # SQLAlchemy takes all before it for a login.
        raise _problem("uri", "write '@' in a parameter as %40")
    if unknown := sorted({key for key, _ in _parameters(address)} - database.own):
        raise _problem("uri", f"the parameter '{unknown[0]}' is not among those that are taken; remove it")
    return f"{database.driver}:{uri.partition(':')[2]}"


def _with_login(uri: str, keys: Mapping[str, str], database: _Database) -> str:
    """Java takes login and parameters from the address or from `jdbc.*`; the latter win."""
    _refuse_many_readings(uri, database)
    address = urlsplit(uri)
    given = {**dict(_parameters(address)), **keys}
    parameters = dict(database.defaults)
    for key, value in given.items():
        if key in database.parameters:
            try:
                parameters |= database.parameters[key](value)
            except _Unusable as error:
                raise _problem(f"jdbc.{key}", f"'{value}' cannot be used; {error}") from None
        elif key not in _OF_THE_CATALOG and key not in database.harmless:
            raise _problem(f"jdbc.{key}", "this parameter of the JDBC driver has no counterpart; remove it")
    if "ssl_verify_cert" in parameters:
        _use_verification(parameters)
    login = ""
    if user := given.get("user"):
        password = f":{quote(given['password'], safe='')}" if "password" in given else ""
        login = f"{quote(user, safe='')}{password}@"
    place = address.netloc.rpartition("@")[2] if login else address.netloc
    return f"{database.driver}://{login}{place}{address.path}?{urlencode(parameters)}"


def _use_verification(parameters: dict[str, str]) -> None:
    """PyMySQL looks at certificates only if it is told who signs them."""
    if "ssl_ca" not in parameters:
        raise _problem(
            "jdbc.sslMode", "the certificate of whoever signs is missing; set jdbc.serverSslCert to its file"
        )
    del parameters["ssl_verify_cert"]
    parameters["ssl_check_hostname"] = parameters.pop("ssl_verify_identity")


def _parameters(address: SplitResult) -> list[tuple[str, str]]:
    """Those without a value, too, which mean `true` to some drivers."""
    return parse_qsl(address.query, keep_blank_values=True)


def _refuse_many_readings(uri: str, database: _Database) -> None:
    if database is _MYSQL and not _ONE_HOST.fullmatch(urlsplit(uri).netloc):
        raise _problem("uri", "the address must have one host, as HOST or HOST:PORT; write it so")
    if not _ONE_READING.fullmatch(uri):
        raise _problem(
            "uri",
            "drivers would read it in more than one way; write it as HOST:PORT/DATABASE?NAME=VALUE, and the "
            "login under jdbc.user and jdbc.password",
        )


def _problem(key: str, message: str) -> ConfigError:
    return ConfigError([Problem(f"{PREFIX}{key}", f"{PREFIX}{key}: {message}.")])
