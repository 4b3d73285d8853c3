"""What an address of a database in JDBC's form may say, and what it is to the Python driver.

Drivers read files and load code that parameters name, and do not agree on where a host begins. So databases
and parameters are lists, and an address must have one reading. Used by connectors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, urlsplit

FORMS: Final = "jdbc:sqlite:PATH, jdbc:postgresql://HOST/DB, jdbc:mysql://HOST/DB or jdbc:mariadb://HOST/DB"

FILES: Final = ("sslrootcert", "sslcert", "sslkey", "ssl_ca")
"""Parameters of the Python drivers that name files."""
_MOST_SECONDS: Final = 3600

Translation = Callable[[str], Mapping[str, str]]


@dataclass(frozen=True)
class Database:
    """A kind of server: which parameters of its JDBC driver are known, and what each is for ours."""

    name: str
    port: int
    parameters: Mapping[str, Translation]
    defaults: Mapping[str, str]
    own: frozenset[str]
    """Parameters of the Python driver that may be given by their own names."""
    harmless: frozenset[str] = frozenset()
    """Parameters that say what is so anyway, or are of Java only."""
    has_one_host: bool = False


class Unusable(ValueError):
    """A parameter that has no counterpart; its text says what to do."""

    def __init__(self, parameter: str, reason: str) -> None:
        super().__init__(reason)
        self.parameter = parameter


def _named(name: str) -> Translation:
    return lambda value: {name: value}


def _whole(value: str, what: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", value):
        raise ValueError(f"write a number of {what}")
    return int(value)


def _milliseconds(*names: str) -> Translation:
    return lambda value: dict.fromkeys(names, _limited(_whole(value, "milliseconds") // 1000 or 1))


def _limited(seconds: int) -> str:
    """None waits for ever."""
    return str(min(seconds, _MOST_SECONDS))


def _postgresql_connect_timeout(value: str) -> Mapping[str, str]:
    seconds = _whole(value, "seconds")
    return {"connect_timeout": _limited(seconds)} if seconds else {}


def _postgresql_socket_timeout(value: str) -> Mapping[str, str]:
    seconds = _whole(value, "seconds")
    return {"tcp_user_timeout": str(seconds * 1000)} if seconds else {}


def _postgresql_tls(value: str) -> Mapping[str, str]:
    if value.lower() not in ("", "true", "false"):
        raise ValueError("write true or false")
    return {"sslmode": "prefer" if value.lower() == "false" else "verify-full"}


def _postgresql_schema(value: str) -> Mapping[str, str]:
    schemas = [one.strip() for one in value.split(",")]
    if not all(re.fullmatch(r'[\w$]+|"[\w$ \-]+"', one) for one in schemas):
        raise ValueError("write names of schemas, separated by commas")
    # Blanks end an option of libpq unless they are escaped.
    path = ",".join(schemas).replace(" ", "\\ ")
    return {"options": f"-c search_path={path}"}


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
    raise ValueError("write DISABLED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY")


_POSTGRESQL_FILES: Final = FILES[:3]
POSTGRESQL: Final = Database(
    "postgresql",
    5432,
    {
        **{name: _named(name) for name in ("sslmode", *_POSTGRESQL_FILES, "options")},
        "connectTimeout": _postgresql_connect_timeout,
        "loginTimeout": _postgresql_connect_timeout,
        "socketTimeout": _postgresql_socket_timeout,
        "ApplicationName": _named("application_name"),
        "ssl": _postgresql_tls,
        "currentSchema": _postgresql_schema,
    },
    {"connect_timeout": "15", "tcp_user_timeout": "60000"},
    frozenset(
        {
            *("sslmode", *_POSTGRESQL_FILES, "options"),
            *("connect_timeout", "tcp_user_timeout", "application_name"),
        }
    ),
    frozenset(
        {
            *("tcpKeepAlive", "reWriteBatchedInserts", "prepareThreshold", "defaultRowFetchSize"),
            *("stringtype", "preferQueryMode", "binaryTransfer", "assumeMinServerVersion"),
        }
    ),
)
MYSQL: Final = Database(
    "mysql",
    3306,
    {
        "connectTimeout": _milliseconds("connect_timeout"),
        "socketTimeout": _milliseconds("read_timeout", "write_timeout"),
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
            *("characterEncoding", "useUnicode", "serverTimezone", "allowPublicKeyRetrieval"),
            *("autoReconnect", "permitMysqlScheme", "tcpKeepAlive", "useServerPrepStmts"),
            *("cachePrepStmts", "rewriteBatchedStatements", "useCursorFetch", "defaultFetchSize"),
            *("connectionTimeZone", "useBulkStmts"),
        }
    ),
    has_one_host=True,
)
BY_SCHEME: Final = {"postgresql": POSTGRESQL, "mysql": MYSQL, "mariadb": MYSQL}

_ONE_HOST: Final = re.compile(r"(?:[^/@()]*@)?(?:[\w.\-]+|\[[0-9a-fA-F:.]+\])(?::\d+)?", re.ASCII)
"""MySQL's drivers know other forms, in which a host is a parameter: `(host=a,port=1)`, `address=(…)`."""
_HOST: Final = r"(?:[\w.\-]+|\[[0-9a-fA-F:.]+\])(?::\d+)?"
_ONE_READING: Final = re.compile(
    rf"[a-zA-Z0-9+]+://(?:[^/?#@\\\s]*@)?(?:{_HOST}(?:,{_HOST})*)?(?:/[^/?#@\\\s;()]*(?:\?[^#\s]*)?)?",
    re.ASCII,
)
"""Where host, database and parameters begin for all drivers alike. Of `h/db#?a=b`, to some a fragment, others
take parameters, and of `h:1/x@evil/db` the host behind the sign."""


def reading_problem(uri: str, database: Database) -> str | None:
    """Why drivers would not agree on what an address without `jdbc:` says; None if they do."""
    if not _ONE_READING.fullmatch(uri) and not database.has_one_host:
        return "drivers would read it in more than one way"
    try:
        netloc = urlsplit(uri).netloc
    except ValueError:
        return "the brackets of the host do not match"
    if database.has_one_host and not _ONE_HOST.fullmatch(netloc):
        return "the address must have one host, as HOST or HOST:PORT; write it so"
    return None if _ONE_READING.fullmatch(uri) else "drivers would read it in more than one way"


def parameters_of(uri: str) -> list[tuple[str, str]]:
    """Those without a value, too, which mean `true` to some drivers."""
    return parse_qsl(urlsplit(uri).query, keep_blank_values=True)


def driver_parameters(
    given: Mapping[str, str], database: Database, apart: frozenset[str] = frozenset()
) -> dict[str, str]:
    """The parameters of the Python driver; `apart` are read by others. Raises Unusable."""
    found = dict(database.defaults)
    for key, value in given.items():
        if key in database.parameters:
            try:
                found |= database.parameters[key](value)
            except ValueError as error:
                raise Unusable(key, f"'{value}' cannot be used; {error}") from None
        elif key not in apart and key not in database.harmless:
            raise Unusable(key, "this parameter of the JDBC driver has no counterpart; remove it")
    if "ssl_verify_cert" in found:
        _use_verification(found)
    return found


def _use_verification(parameters: dict[str, str]) -> None:
    """PyMySQL looks at certificates only if it is told who signs them."""
    if "ssl_ca" not in parameters:
        raise Unusable(
            "sslMode", "the certificate of whoever signs is missing; set serverSslCert to its file"
        )
    del parameters["ssl_verify_cert"]
    parameters["ssl_check_hostname"] = parameters.pop("ssl_verify_identity")


def sqlite_path(address: str) -> str:
    """What follows `jdbc:sqlite:`, without parameters. ValueError if it is more than the path of a file: to
    Java's driver a colon begins another kind of place, such as one to download."""
    path = address.removeprefix("file:").partition("?")[0]
    if path.startswith(":") or "#" in path:
        raise ValueError("the path must not begin with a colon and have no '#'; write that of a file")
    return path
