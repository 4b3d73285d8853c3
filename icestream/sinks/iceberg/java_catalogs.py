"""A connector's catalog in the words of Iceberg's Java libraries, for Spark SQL over the same tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from icestream.api.config import Config, subset
from icestream.api.errors import ConfigError, Problem
from icestream.sinks.iceberg.catalogs import PREFIX, catalog_kind, catalog_name

_S3_IO = "org.apache.iceberg.aws.s3.S3FileIO"
_REPLACED = ("name", "catalog-impl", "type", "uri")
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
    properties = {key: value for key, value in given.items() if key not in _REPLACED}
    properties["type"] = _JAVA_TYPES[kind]
    if "uri" in given:
        properties |= _jdbc_address(given["uri"]) if kind == "sql" else {"uri": given["uri"]}
    if kind == "sql":
        # The layout that PyIceberg's SQL catalog writes.
        properties["jdbc.schema-version"] = "V1"
    return JavaCatalog(name, _with_s3(properties))


def _with_s3(properties: dict[str, str]) -> dict[str, str]:
    if region := properties.pop("s3.region", None):
        properties.setdefault("client.region", region)
    if any(key.startswith("s3.") for key in properties) or properties.get("warehouse", "").startswith("s3"):
        properties.setdefault("io-impl", _S3_IO)
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
