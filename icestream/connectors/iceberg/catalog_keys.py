"""Which settings reach PyIceberg: lists of what is allowed, for connectors, catalog servers and tables alike.

PyIceberg loads classes and opens files that some properties name, and merges what a server or a table says
into them. So a key that is in none of these lists goes nowhere. Used by `settings.py`, `catalogs.py` and
`guarded_catalogs.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from icestream.api.config import Config, subset
from icestream.api.errors import Problem

PREFIX: Final = "iceberg.catalog."

STORAGE: Final = frozenset(
    {
        "buffer-size",
        *(f"client.{key}" for key in ("access-key-id", "secret-access-key", "session-token")),
        *(f"client.{key}" for key in ("region", "role-arn", "role-session-name")),
        *(f"s3.{key}" for key in ("endpoint", "access-key-id", "secret-access-key", "session-token")),
        *(f"s3.{key}" for key in ("region", "resolve-region", "role-arn", "role-session-name")),
        *(f"s3.{key}" for key in ("proxy-uri", "connect-timeout", "request-timeout", "anonymous")),
        *(f"s3.{key}" for key in ("force-virtual-addressing", "server-side-encryption", "sse-kms-key-id")),
        *(f"gcs.{key}" for key in ("project-id", "oauth2.token", "oauth2.token-expires-at")),
        *(f"gcs.{key}" for key in ("service.host", "default-bucket-location", "requester-pays")),
        *(f"adls.{key}" for key in ("account-name", "account-key", "account-host", "connection-string")),
        *(f"adls.{key}" for key in ("sas-token", "tenant-id", "client-id", "client-secret", "token")),
        *(f"adls.{key}" for key in ("blob-storage-authority", "blob-storage-scheme", "anon")),
        *(f"adls.{key}" for key in ("dfs-storage-authority", "dfs-storage-scheme")),
        *(f"hdfs.{key}" for key in ("host", "port", "user")),
    }
)
"""Where the files of tables are, and the login there."""
_STORAGE_PREFIXES: Final = ("adls.sas-token.",)

_OF_EVERY_CATALOG: Final = frozenset({"type", "uri", "warehouse"})
_BY_KIND: Final[Mapping[str, frozenset[str]]] = {
    "sql": frozenset({"init_catalog_tables", "pool_pre_ping"}),
    "rest": frozenset(
        {
            *("prefix", "token", "credential", "scope", "audience", "resource", "oauth2-server-uri"),
            *("rest.sigv4-enabled", "rest.signing-region", "rest.signing-name", "rest.sigv4.max-retries"),
            *("rest.client.connection-timeout-ms", "rest.client.socket-timeout-ms"),
            *("rest-page-size", "snapshot-loading-mode", "namespace-separator", "view-endpoints-supported"),
        }
    ),
}
_REST_PREFIX: Final = "header."

_OF_JAVA: Final = frozenset({"name", "catalog-impl", "io-impl", "s3.path-style-access"})
"""Java's words that are understood here, or that say what is done anyway."""
_OF_JDBC: Final = frozenset(
    f"jdbc.{key}"
    for key in ("user", "password", "schema-version", "strict-mode", "sslmode", "sslrootcert", "sslcert")
)
_NAMES_CODE: Final = ("auth", "ssl", "py-", "botocore_session", "s3.signer", "s3.retry-strategy-impl")
_NAMES_FILES: Final = ("gcs.session-kwargs", "hdfs.kerberos_ticket", "adls.credential", "gcp.bigquery.")


def known_keys() -> frozenset[str]:
    """Every key of a catalog that means something here, for those who know it by another spelling."""
    return STORAGE.union(_OF_EVERY_CATALOG, _OF_JAVA, _OF_JDBC, *_BY_KIND.values())


def storage_properties(properties: Mapping[str, Any]) -> dict[str, str]:
    """Of what a catalog, its server and a table say, what PyIceberg needs to open files."""
    return {key: str(value) for key, value in properties.items() if _is_of_storage(key)}


def catalog_settings(kind: str, properties: Mapping[str, Any]) -> dict[str, str]:
    """Of a config, or of a config with a server's additions, what PyIceberg's catalog gets."""
    return {key: str(value) for key, value in properties.items() if _is_allowed(kind, key)}


def not_taken(kind: str, properties: Iterable[str]) -> list[str]:
    return sorted(key for key in properties if not _is_allowed(kind, key))


def key_problems(config: Config) -> list[Problem]:
    """Keys that would make PyIceberg load code or read files of the worker."""
    return [
        Problem(
            f"{PREFIX}{key}",
            f"'{PREFIX}{key}' cannot be used: a connector names no code and no login files of the worker; "
            "remove it",
        )
        for key in subset(config, PREFIX)
        if _is_dangerous(key)
    ]


def key_warnings(kind: str, config: Config) -> list[str]:
    """Keys that have no effect, as far as nobody else says so."""
    return [
        f"'{PREFIX}{key}' has no effect: it is not among the settings of {kind} catalogs that are taken here"
        for key in not_taken(kind, subset(config, PREFIX))
        if key not in _OF_JAVA and not key.startswith("jdbc.") and not _is_dangerous(key)
    ]


def _is_dangerous(key: str) -> bool:
    return (key.endswith("-impl") and key not in _OF_JAVA) or key.startswith((*_NAMES_CODE, *_NAMES_FILES))


def _is_of_storage(key: str) -> bool:
    return key in STORAGE or key.startswith(_STORAGE_PREFIXES)


def _is_allowed(kind: str, key: str) -> bool:
    return (
        key in _OF_EVERY_CATALOG
        or key in _BY_KIND[kind]
        or (kind == "rest" and key.startswith(_REST_PREFIX))
        or _is_of_storage(key)
    )
