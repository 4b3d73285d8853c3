"""A connector's catalog in the words of Iceberg's Java libraries, for Spark SQL over the same tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from icestream.api.config import Config, subset
from icestream.api.errors import ConfigError, Problem
from icestream.connectors.iceberg.catalog_keys import catalog_settings
from icestream.connectors.iceberg.catalogs import PREFIX, catalog_kind, catalog_name, catalog_properties

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
_JAVA_TYPES = {"sql": "jdbc", "rest": "rest"}


@dataclass(frozen=True)
class JavaCatalog:
    name: str
    # Not in the repr: passwords and keys are among them.
    properties: Mapping[str, str] = field(repr=False)

    @property
    def may_use_s3(self) -> bool:
        """Whether S3 is configured, or a REST catalog may hand out tables on S3."""
        on_s3 = self.properties.get("warehouse", "").startswith(("s3:", "s3a:", "s3n:"))
        return on_s3 or self.properties.get("type") == "rest" or self.properties.get("io-impl") == _S3_IO


def java_catalog(config: Config) -> JavaCatalog:
    """The catalog of a connector config as Java's `SparkCatalog` takes it."""
    given = subset(config, PREFIX)
    name = catalog_name(config)
    if "." in name:
        reason = f"Catalog '{name}' has a dot in its name, which Spark SQL does not allow; rename it."
        raise ConfigError([Problem("iceberg.catalog", reason)])
    kind = catalog_kind(given)
    properties = {
        **catalog_settings(kind, given),
        **{key: value for key, value in given.items() if _is_of_java(key, value)},
    }
    properties["type"] = _JAVA_TYPES[kind]
    if "uri" in given:
        catalog_properties(config)  # refuses an address whose parameters are not known
        properties.pop("uri", None)
        properties |= _jdbc_address(given["uri"]) if kind == "sql" else {"uri": given["uri"]}
    if kind == "sql":
        # The layout that PyIceberg's SQL catalog writes.
        properties["jdbc.schema-version"] = "V1"
    return JavaCatalog(name, _with_s3(properties))


def _is_of_java(key: str, value: str) -> bool:
    """Not an arbitrary key: Java's catalogs and JDBC drivers load classes that some of them name."""
    if key == "io-impl":
        return value.startswith(_ICEBERGS_OWN)
    return key in _JDBC or key.startswith(_OF_JAVA)


def _with_s3(properties: dict[str, str]) -> dict[str, str]:
    if region := properties.pop("s3.region", None):
        properties.setdefault("client.region", region)
    if any(key.startswith("s3.") for key in properties) or properties.get("warehouse", "").startswith("s3"):
        properties.setdefault("io-impl", _S3_IO)
    if "s3.endpoint" in properties and properties.get("s3.force-virtual-addressing", "false") != "true":
        # As the sink finds its files there; Java would look for a host with the bucket's name.
        properties.setdefault("s3.path-style-access", "true")
    return properties


def _jdbc_address(uri: str) -> dict[str, str]:
    """An address in JDBC's form, with the login apart; SQLAlchemy's form is translated."""
    if uri.startswith("jdbc:"):
        return {"uri": uri}
    parts = urlsplit(uri)
    if parts.scheme == "sqlite":
        return {"uri": f"jdbc:sqlite:{parts.path.removeprefix('/')}"}
    port = f":{parts.port}" if parts.port else ""
    found = {"uri": f"jdbc:postgresql://{parts.hostname or 'localhost'}{port}{parts.path}"}
    if parts.username:
        found["jdbc.user"] = unquote(parts.username)
    if parts.password:
        found["jdbc.password"] = unquote(parts.password)
    return found
