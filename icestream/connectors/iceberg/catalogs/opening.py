"""Iceberg catalogs from the Java names of their settings (`iceberg.catalog.*`), opened through PyIceberg."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from pyiceberg.catalog import Catalog

from icestream.api.config import Config
from icestream.api.errors import ConfigError, Problem, SinkRefused, SinkUnavailable
from icestream.connectors.iceberg.catalogs.database_addresses import sqlalchemy_uri
from icestream.connectors.iceberg.catalogs.hadoop_settings import with_hadoop
from icestream.connectors.iceberg.catalogs.keys import CLASSES, PREFIX, TYPES, catalog_settings
from icestream.connectors.iceberg.catalogs.refusals import is_refusal
from icestream.waits import waiting_for

if TYPE_CHECKING:
    from requests import RequestException

_log = logging.getLogger(__name__)
__all__ = ["PREFIX", "catalog_kind", "catalog_name", "catalog_properties", "open_catalog"]

_WITHOUT_ADDRESS = ("glue", "dynamodb")
_EXTRAS = {
    "psycopg2": "postgres",
    "pymysql": "mysql",
    "boto3": "aws",
    "botocore": "aws",
    "thrift": "hive",
    "hive_metastore": "hive",
}
_RENAMED = {"client.region": "s3.region"}
_CLIENT_ERRORS = {
    "botocore.exceptions": ("ClientError", "BotoCoreError"),
    "thrift.Thrift": ("TException",),
}
_UNREACHED = re.compile(r"\[Errno -?\d+\] ([^\"'()]+)|(certificate verify failed[^\"'()]*)")
_SERVERS_WORDS = re.compile(r"(AWS Error .*? operation)(?: \(.*?\))?: .*")


def catalog_name(config: Config) -> str:
    return config.get("iceberg.catalog") or "iceberg"


def catalog_properties(config: Config) -> dict[str, str]:
    """The settings of a connector's catalog in PyIceberg's names."""
    java = with_hadoop(config)
    kind = catalog_kind(java)
    properties = catalog_settings(kind, {_RENAMED.get(key, key): value for key, value in java.items()})
    properties["type"] = kind
    if kind not in _WITHOUT_ADDRESS:
        if not java.get("uri"):
            raise _problem("uri", "the catalog's address is missing; set it")
        properties["uri"] = sqlalchemy_uri(java) if kind == "sql" else java["uri"]
    if kind == "rest":
        properties |= _rest_properties(java)
    if (path_style := java.get("s3.path-style-access")) is not None:
        properties["s3.force-virtual-addressing"] = "false" if path_style.lower() == "true" else "true"
    return properties


def _rest_properties(java: Mapping[str, str]) -> dict[str, str]:
    """What Java says in other words: who signs or logs in, and an address that is part of another."""
    found = {}
    auth = java.get("rest.auth.type", "").lower()
    if auth not in ("", "none", "basic", "oauth2", "sigv4"):
        raise _problem("rest.auth.type", f"'{auth}' is not known; use none, basic, oauth2 or sigv4")
    if auth == "sigv4":
        found["rest.sigv4-enabled"] = "true"
    if (server := java.get("oauth2-server-uri")) and "://" not in server:
        found["oauth2-server-uri"] = f"{java['uri'].rstrip('/')}/{server.lstrip('/')}"
    return found


def catalog_kind(java: Mapping[str, str]) -> str:
    """`sql`, `rest`, `hive`, `glue` or `dynamodb`, from the settings under `iceberg.catalog.`."""
    if implementation := java.get("catalog-impl"):
        if implementation not in CLASSES:
            raise ConfigError(
                [Problem(f"{PREFIX}catalog-impl", _unsupported("catalog-impl", implementation, CLASSES))]
            )
        return CLASSES[implementation]
    kind = java.get("type", "")
    if kind.lower() not in TYPES:
        raise ConfigError([Problem(f"{PREFIX}type", _unsupported("type", kind, TYPES))])
    return TYPES[kind.lower()]


def _unsupported(key: str, value: str, known: Mapping[str, str]) -> str:
    return (
        f"Invalid value '{value}' for {PREFIX}{key}: this version opens {', '.join(known)}; set one of these."
    )


def _problem(key: str, message: str) -> ConfigError:
    return ConfigError([Problem(f"{PREFIX}{key}", f"{PREFIX}{key}: {message}.")])


def open_catalog(config: Config) -> Catalog:
    """The catalog of a connector config, to be closed after use. Jobs share one: `sharing.py`."""
    return _new(catalog_name(config), catalog_properties(config))


def looking_catalog(config: Config) -> Catalog:
    """A catalog of one's own that changes nothing: a database that is not there is not created.

    For checks. Raises ConfigError if there is nothing to look at.
    """
    properties = {**catalog_properties(config), "init_catalog_tables": "false"}
    if properties["type"] == "glue":
        properties["glue.max-retries"] = "1"
    path = properties.get("uri", "").partition("sqlite:///")[2]
    if path:
        if not Path(path).is_file():
            raise _problem("uri", f"there is no database '{path}'; create it: an empty file is enough")
        properties["uri"] = f"sqlite:///file:{quote(path)}?mode=ro&uri=true"
    return _new(catalog_name(config), properties)


def _new(name: str, properties: Mapping[str, str]) -> Catalog:
    # Late: this module is read by whoever only wants to know an address.
    from icestream.connectors.iceberg.catalogs.guarded_catalogs import guarded_catalog

    with sink_errors(f"opening catalog '{name}'"):
        try:
            return guarded_catalog(name, properties)
        except ModuleNotFoundError as error:
            missing = (error.name or "").partition(".")[0]
            if missing not in _EXTRAS:
                raise
            raise _problem(
                "catalog-impl" if missing not in ("psycopg2", "pymysql") else "uri",
                f"Python's '{missing}' is missing; install it: pip install 'icestream[{_EXTRAS[missing]}]'",
            ) from error


@contextmanager
def sink_errors(doing: str) -> Iterator[None]:
    """Raise our errors instead of those of catalogs, databases and object stores."""
    try:
        with waiting_for(f"catalog or object store: {doing}"):
            yield
    except _outages() as error:
        kind = SinkRefused if is_refusal(error) else SinkUnavailable
        raise kind(f"{doing}: {told(error)}") from error


def _outages() -> tuple[type[Exception], ...]:
    """What clients raise. Of those that not every process has only the loaded ones can."""
    import requests
    import sqlalchemy.exc
    from pyiceberg.exceptions import GenericDynamoDbError, RESTError, ServerError

    loaded = ((sys.modules.get(module), names) for module, names in _CLIENT_ERRORS.items())
    return (
        OSError,
        sqlalchemy.exc.SQLAlchemyError,
        requests.RequestException,
        ServerError,
        RESTError,
        GenericDynamoDbError,
        *(getattr(module, name) for module, names in loaded if module for name in names),
    )


def told(error: Exception) -> str:
    """The reason for those who may see a connector: of what a server answers only the code.

    Its words may be those of any host that the worker reaches and its users do not; they go to the log.
    """
    from requests import ConnectionError, HTTPError

    if isinstance(error, ConnectionError) and (why := _UNREACHED.search(str(error))):
        return f"{_address_of(error)} cannot be reached ({(why[1] or why[2]).strip()})"
    if isinstance(error.__cause__, HTTPError) and error.__cause__.response is not None:
        _log.warning("a catalog answers: %s", error)
        return f"the catalog answers HTTP {error.__cause__.response.status_code} ({type(error).__name__})"
    if "botocore.exceptions" in sys.modules and (answer := getattr(error, "response", None)):
        _log.warning("AWS answers: %s", error)
        code = answer.get("Error", {}).get("Code", "") if isinstance(answer, dict) else ""
        operation = getattr(error, "operation_name", "a request")
        return f"AWS answers {code or type(error).__name__} to {operation}"
    reason = first_line(str(error) or type(error).__name__)
    # Arrow: "AWS Error NO_SUCH_BUCKET during HeadBucket operation: …", and then what the server said.
    return _SERVERS_WORDS.sub(r"\1", reason)


def _address_of(error: RequestException) -> str:
    """Without path and query, which say nothing of why."""
    parts = urlsplit(str(error.request.url if error.request is not None else ""))
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts.netloc else "its address"


def first_line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else "no reason given"
