"""A connector's catalog in the words of Iceberg's Java libraries, for Spark SQL over the same tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from icestream.api.config import Config
from icestream.api.connector import SparkCatalog
from icestream.api.errors import ConfigError, Problem
from icestream.connectors.iceberg.catalogs.database_addresses import jdbc_address
from icestream.connectors.iceberg.catalogs.hadoop_settings import with_hadoop
from icestream.connectors.iceberg.catalogs.keys import SIGNER_ENDPOINTS, SIGNER_URIS, catalog_settings
from icestream.connectors.iceberg.catalogs.opening import catalog_kind, catalog_name, catalog_properties
from icestream.java_artifacts import root

_RUNTIME: Final = str(root("spark-iceberg"))
_SQLITE: Final = str(root("spark-sqlite"))
_POSTGRESQL: Final = str(root("spark-postgresql"))
_MARIADB: Final = str(root("spark-mariadb"))
_MYSQL: Final = str(root("spark-mysql"))
_AWS: Final = str(root("spark-aws"))
_EXTENSIONS: Final = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
_CATALOG_CLASS: Final = "org.apache.iceberg.spark.SparkCatalog"
_S3_IO = "org.apache.iceberg.aws.s3.S3FileIO"
_ICEBERGS_OWN = "org.apache.iceberg."
_OF_JAVA = (
    *("cache-enabled", "cache.", "s3.path-style-access", "s3.remote-signing-enabled", "s3.multipart."),
    *("s3.sse.", "s3.acl", "s3.delete.", "s3.checksum-enabled", "s3.dualstack-enabled", "s3.tags."),
    *("s3.use-arn-region-enabled", "s3.acceleration-enabled", "s3.cross-region-access-enabled"),
    *("client.assume-role.", "http-client."),
)
"""Settings that only Java has; none names a class."""
_JDBC = ("jdbc.user", "jdbc.password", "jdbc.strict-mode", "jdbc.sslmode", "jdbc.sslrootcert", "jdbc.sslcert")
_JAVA_TYPES = {"sql": "jdbc", "rest": "rest", "hive": "hive", "glue": "glue"}
_DYNAMODB = "org.apache.iceberg.aws.dynamodb.DynamoDbCatalog"
_ROLE_FACTORY = "org.apache.iceberg.aws.AssumeRoleAwsClientFactory"


def java_catalog(config: Config) -> SparkCatalog:
    """The catalog of a connector config as Iceberg's `SparkCatalog` takes it."""
    given = with_hadoop(config)
    name = catalog_name(config)
    if "." in name:
        reason = f"Catalog '{name}' has a dot in its name, which Spark SQL does not allow; rename it."
        raise ConfigError([Problem("iceberg.catalog", reason)])
    kind = catalog_kind(given)
    properties = {
        **catalog_settings(kind, given),
        **{key: value for key, value in given.items() if _is_of_java(key, value)},
    }
    if kind == "dynamodb":
        # Java has no short name for it.
        properties.pop("type", None)
        properties["catalog-impl"] = _DYNAMODB
    else:
        properties["type"] = _JAVA_TYPES[kind]
    catalog_properties(config)  # refuses an address whose parameters are not known
    if "uri" in given:
        properties.pop("uri", None)
        properties |= jdbc_address(given) if kind == "sql" else {"uri": given["uri"]}
    if kind == "sql":
        # The layout that PyIceberg's SQL catalog writes.
        properties["jdbc.schema-version"] = "V1"
    properties = _with_s3(properties)
    # Otherwise a session that stays open shows tables as they were up to half a minute ago.
    properties = {"cache-enabled": "false", **properties}
    return SparkCatalog(name, _CATALOG_CLASS, properties, _EXTENSIONS, _jars(properties))


def _jars(properties: Mapping[str, str]) -> list[str]:
    needed = [_RUNTIME]
    uri = properties.get("uri", "")
    if uri.startswith("jdbc:sqlite:"):
        needed.append(_SQLITE)
    if uri.startswith("jdbc:postgresql:"):
        needed.append(_POSTGRESQL)
    if uri.startswith("jdbc:mariadb:"):
        needed.append(_MARIADB)
    if uri.startswith("jdbc:mysql:"):
        needed.append(_MYSQL)
    if _may_use_s3(properties):
        needed.append(_AWS)
    return needed


def _may_use_s3(properties: Mapping[str, str]) -> bool:
    """Whether S3 is configured, or a REST catalog may hand out tables on S3."""
    on_s3 = properties.get("warehouse", "").startswith(("s3:", "s3a:", "s3n:"))
    in_aws = properties.get("type") in ("rest", "glue") or properties.get("catalog-impl") == _DYNAMODB
    return on_s3 or in_aws or properties.get("io-impl") == _S3_IO


def _is_of_java(key: str, value: str) -> bool:
    """Not an arbitrary key: Java's catalogs and JDBC drivers load classes that some of them name."""
    if key == "io-impl":
        return value.startswith(_ICEBERGS_OWN)
    return key in _JDBC or key.startswith(_OF_JAVA)


def _with_s3(properties: dict[str, str]) -> dict[str, str]:
    for older, newer in (SIGNER_URIS, SIGNER_ENDPOINTS):
        if said := properties.pop(older, None):
            properties.setdefault(newer, said)
    if region := properties.pop("s3.region", None):
        properties.setdefault("client.region", region)
    if any(key.startswith("s3.") for key in properties) or properties.get("warehouse", "").startswith("s3"):
        properties.setdefault("io-impl", _S3_IO)
    if properties.get("client.assume-role.arn"):
        properties["client.factory"] = _ROLE_FACTORY
        if region := properties.get("client.region"):
            properties.setdefault("client.assume-role.region", region)
    if "s3.endpoint" in properties and properties.get("s3.force-virtual-addressing", "false") != "true":
        # As the sink finds its files there; Java would look for a host with the bucket's name.
        properties.setdefault("s3.path-style-access", "true")
    return properties
