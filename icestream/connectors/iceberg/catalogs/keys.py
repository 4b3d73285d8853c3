"""Which settings reach PyIceberg: lists of what is allowed, for connectors, catalog servers and tables alike.

PyIceberg loads classes and opens files that some properties name, and merges what a server or a table says
into them. So a key that is in none of these lists goes nowhere. Used by `settings.py`, `opening.py` and
`guarded_catalogs.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from icestream.api.config import Config, subset
from icestream.api.errors import Problem

PREFIX: Final = "iceberg.catalog."

TYPES: Final[Mapping[str, str]] = {
    "rest": "rest",
    "sql": "sql",
    "jdbc": "sql",
    "hive": "hive",
    "glue": "glue",
    "dynamodb": "dynamodb",
}
CLASSES: Final[Mapping[str, str]] = {
    "org.apache.iceberg.rest.RESTCatalog": "rest",
    "org.apache.iceberg.jdbc.JdbcCatalog": "sql",
    "org.apache.iceberg.hive.HiveCatalog": "hive",
    "org.apache.iceberg.aws.glue.GlueCatalog": "glue",
    "org.apache.iceberg.aws.dynamodb.DynamoDbCatalog": "dynamodb",
}
"""What users write, and the kind of catalog that each is."""

SESSION_EXPIRES: Final = "s3.session-token-expires-at-ms"
"""Until when a login holds that a catalog server or STS has lent, in Java's name."""
STORAGE: Final = frozenset(
    {
        "buffer-size",
        *(f"client.{key}" for key in ("access-key-id", "secret-access-key", "session-token")),
        *(f"client.{key}" for key in ("region", "role-arn", "role-session-name")),
        *(f"s3.{key}" for key in ("endpoint", "access-key-id", "secret-access-key", "session-token")),
        *(f"s3.{key}" for key in ("region", "resolve-region", "role-arn", "role-session-name")),
        *(f"s3.{key}" for key in ("proxy-uri", "connect-timeout", "request-timeout", "anonymous")),
        *(f"s3.{key}" for key in ("force-virtual-addressing", "server-side-encryption", "sse-kms-key-id")),
        SESSION_EXPIRES,
        *(f"gcs.{key}" for key in ("project-id", "oauth2.token", "oauth2.token-expires-at")),
        *(f"gcs.{key}" for key in ("service.host", "default-bucket-location", "requester-pays")),
        *(f"adls.{key}" for key in ("account-name", "account-key", "account-host")),
        *(f"adls.{key}" for key in ("sas-token", "tenant-id", "client-id", "client-secret", "token")),
        *(f"adls.{key}" for key in ("blob-storage-authority", "blob-storage-scheme", "anon")),
        *(f"adls.{key}" for key in ("dfs-storage-authority", "dfs-storage-scheme")),
        *(f"hdfs.{key}" for key in ("host", "port", "user")),
    }
)
"""Where the files of tables are, and the login there."""
_STORAGE_PREFIXES: Final = ("adls.sas-token.",)

SIGNER_URIS: Final = ("s3.signer.uri", "signer.uri")
SIGNER_ENDPOINTS: Final = ("s3.signer.endpoint", "signer.endpoint")
"""Who signs requests to S3, in the names of Iceberg before 1.11 and since."""

_OF_EVERY_CATALOG: Final = frozenset({"type", "uri", "warehouse"})
ROLE: Final = frozenset(
    f"client.assume-role.{key}" for key in ("arn", "region", "external-id", "session-name", "timeout-sec")
)
"""The role whose login is used at AWS. Of the connector only: no server may choose it."""
_LOGIN: Final = ("access-key-id", "secret-access-key", "session-token")
_BY_KIND: Final[Mapping[str, frozenset[str]]] = {
    "sql": frozenset({"init_catalog_tables", "pool_pre_ping"}),
    "rest": frozenset(
        {
            *("prefix", "token", "credential", "scope", "audience", "resource", "oauth2-server-uri"),
            *("rest.sigv4-enabled", "rest.signing-region", "rest.signing-name", "rest.sigv4.max-retries"),
            *("rest.client.connection-timeout-ms", "rest.client.socket-timeout-ms"),
            *("s3.remote-signing-enabled", *SIGNER_URIS, *SIGNER_ENDPOINTS),
            *("rest-page-size", "snapshot-loading-mode", "namespace-separator", "view-endpoints-supported"),
        }
    ),
    "glue": frozenset(
        {
            *(f"glue.{key}" for key in ("id", "skip-archive", "endpoint", "region", "max-retries")),
            *(f"glue.{key}" for key in _LOGIN),
        }
    ),
    "dynamodb": frozenset(
        {
            *(f"dynamodb.{key}" for key in ("table-name", "endpoint", "region", *_LOGIN)),
            "init_catalog_tables",
        }
    ),
    "hive": frozenset(
        {
            *("hive.hive2-compatible", "ugi"),
            *("lock-check-min-wait-time", "lock-check-max-wait-time", "lock-check-retries"),
        }
    ),
}
_OF_THE_CONNECTOR: Final[Mapping[str, frozenset[str]]] = {
    "rest": frozenset(
        {
            *(f"rest.{key}" for key in _LOGIN),
            *("rest.auth.type", "rest.auth.basic.username", "rest.auth.basic.password"),
        }
    ),
}
"""Who a connector is to a catalog server, which has no say in it."""
_REST_PREFIX: Final = "header."

_OF_JAVA: Final = frozenset(
    {
        *("name", "catalog-impl", "io-impl", "s3.path-style-access", "client.factory"),
        *("clients", "cache-enabled", "client.credentials-provider", "token-refresh-enabled"),
        *("token-exchange-enabled", "token-expires-in-ms", "s3.remote-signing-enabled"),
    }
)
"""Java's words that are understood here, or that say what is done anyway."""
_OF_JDBC: Final = frozenset(
    f"jdbc.{key}"
    for key in ("user", "password", "schema-version", "strict-mode", "sslmode", "sslrootcert", "sslcert")
)
_NAMES_CODE: Final = ("auth", "ssl", "py-", "botocore_session", "s3.signer", "s3.retry-strategy-impl")
_NAMES_FILES: Final = ("gcs.session-kwargs", "hdfs.kerberos_ticket", "adls.credential", "gcp.bigquery.")
_ICEBERGS_OWN: Final = "org.apache.iceberg."
_ROLE_FACTORY: Final = "org.apache.iceberg.aws.AssumeRoleAwsClientFactory"
_USUAL_FACTORY: Final = "org.apache.iceberg.aws.AwsClientFactories$DefaultAwsClientFactory"
_USUAL_LOGINS: Final = frozenset(
    f"software.amazon.awssdk.auth.credentials.{name}CredentialsProvider"
    for name in ("Default", "EnvironmentVariable", "InstanceProfile", "Container", "WebIdentityTokenFile")
)
_REGIONS: Final = (
    *("client.region", "s3.region", "rest.signing-region", "client.assume-role.region"),
    *("glue.region", "dynamodb.region"),
)
_REGION: Final = re.compile(r"[a-z0-9][a-z0-9\-]{0,62}", re.IGNORECASE)
"""It becomes part of a host's name."""


def known_keys() -> frozenset[str]:
    """Every key of a catalog that means something here, for those who know it by another spelling."""
    return STORAGE.union(_OF_EVERY_CATALOG, _OF_JAVA, _OF_JDBC, *_BY_KIND.values())


def storage_properties(properties: Mapping[str, Any]) -> dict[str, str]:
    """Of what a catalog, its server and a table say, what PyIceberg needs to open files."""
    return {key: str(value) for key, value in properties.items() if _is_of_storage(key)}


def catalog_settings(kind: str, properties: Mapping[str, Any]) -> dict[str, str]:
    """Of a config what PyIceberg's catalog gets."""
    return {key: str(value) for key, value in properties.items() if _is_allowed(kind, key)}


def servers_settings(
    kind: str, properties: Mapping[str, Any], given: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """Of a config with a server's additions what a catalog gets, and the keys that are not the server's."""
    ours = {key: value for key, value in given.items() if not _is_servers(kind, key)}
    theirs = {key: str(value) for key, value in properties.items() if _is_servers(kind, key)}
    return {**theirs, **ours}, sorted(properties.keys() - theirs.keys() - ours.keys())


def likely_kind(java: Mapping[str, str]) -> str:
    """The kind that a config means; of one that means none, the most common."""
    if implementation := java.get("catalog-impl"):
        return CLASSES.get(implementation, "rest")
    return TYPES.get(java.get("type", "").lower(), "rest")


def not_taken(kind: str, properties: Iterable[str]) -> list[str]:
    return sorted(key for key in properties if not _is_allowed(kind, key))


def key_problems(config: Config) -> list[Problem]:
    """Keys that would make PyIceberg load code or read files of the worker, and values that name such."""
    java = subset(config, PREFIX)
    return [
        *(
            Problem(
                f"{PREFIX}{key}",
                f"'{PREFIX}{key}' cannot be used: a connector names no code and no login files of the "
                "worker; remove it",
            )
            for key in java
            if _is_dangerous(key)
        ),
        *_value_problems(java),
    ]


def _value_problems(java: Mapping[str, str]) -> list[Problem]:
    found: list[tuple[str, str]] = []
    if "adls.connection-string" in java:
        # It has addresses in it, among much else.
        found.append(
            ("adls.connection-string", "is not taken; set adls.account-name and adls.account-key instead")
        )
    found += _signing_problems(java)
    if not java.get("io-impl", _ICEBERGS_OWN).startswith(_ICEBERGS_OWN):
        found.append(
            ("io-impl", "names a class that is not Iceberg's own, which cannot be loaded; remove it")
        )
    factory = java.get("client.factory", _USUAL_FACTORY)
    if factory not in (_USUAL_FACTORY, _ROLE_FACTORY):
        found.append(("client.factory", f"names a class that cannot be loaded; use {_ROLE_FACTORY}"))
    if factory == _ROLE_FACTORY and not java.get("client.assume-role.arn"):
        found.append(("client.assume-role.arn", "is missing; set it to the role's ARN"))
    if java.get("client.credentials-provider") not in (None, *_USUAL_LOGINS):
        found.append(
            (
                "client.credentials-provider",
                "names a class that cannot be loaded; remove it, and set s3.access-key-id and "
                "s3.secret-access-key, or let the worker's environment have the login",
            )
        )
    found += [
        (key, "is no region; write one such as us-east-1")
        for key in _REGIONS
        if key in java and not _REGION.fullmatch(java[key].strip())
    ]
    return [Problem(f"{PREFIX}{key}", f"'{PREFIX}{key}' {why}") for key, why in found]


def _signing_problems(java: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if java.get("s3.remote-signing-enabled", "").strip().lower() == "true":
        if likely_kind(java) != "rest":
            yield (
                "s3.remote-signing-enabled",
                "is for REST catalogs, whose servers sign; remove it, and set s3.access-key-id and "
                "s3.secret-access-key",
            )
        signs = java.get("rest.sigv4-enabled", "").lower() == "true"
        if signs or java.get("rest.auth.type", "").lower() == "sigv4":
            yield (
                "s3.remote-signing-enabled",
                "cannot be used together with rest.sigv4-enabled: whoever has keys of AWS signs by itself; "
                "remove one of them",
            )
    yield from (
        (key, "is the path of a service; set the address of its host by s3.signer.uri")
        for key in SIGNER_ENDPOINTS
        if "://" in java.get(key, "") or java.get(key, "").startswith("//")
    )


def key_warnings(kind: str, config: Config) -> list[str]:
    """Keys that have no effect, as far as nobody else says so."""
    return [
        f"'{PREFIX}{key}' has no effect: it is not among the settings of {kind} catalogs that are taken here"
        for key in not_taken(kind, subset(config, PREFIX))
        if key not in _OF_JAVA and not key.startswith("jdbc.") and not _is_dangerous(key)
    ]


def _is_dangerous(key: str) -> bool:
    if key in SIGNER_URIS or key in SIGNER_ENDPOINTS:
        return False
    return (key.endswith("-impl") and key not in _OF_JAVA) or key.startswith((*_NAMES_CODE, *_NAMES_FILES))


def _is_of_storage(key: str) -> bool:
    return key in STORAGE or key.startswith(_STORAGE_PREFIXES)


def _is_allowed(kind: str, key: str) -> bool:
    return key in ROLE or key in _OF_THE_CONNECTOR.get(kind, ()) or _is_servers(kind, key)


def _is_servers(kind: str, key: str) -> bool:
    """Whether a catalog server may say it, too."""
    return (
        key in _OF_EVERY_CATALOG
        or key in _BY_KIND[kind]
        or (kind == "rest" and key.startswith(_REST_PREFIX))
        or _is_of_storage(key)
    )
