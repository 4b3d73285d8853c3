"""Iceberg's own REST catalog, from the test fixtures of its API: command and environment. For the stack."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from icestream.embedded.jars import fetch
from icestream.embedded.java import java


@dataclass(frozen=True)
class Catalog:
    """Where it listens, where it keeps which tables there are, and where the tables are."""

    port: int
    database: Path
    warehouse: str
    storage: str
    access_key: str
    secret_key: str = field(repr=False)

    def environment(self) -> dict[str, str]:
        return {
            "CATALOG_REST_PORT": str(self.port),
            "CATALOG_URI": f"jdbc:sqlite:{self.database}",
            "CATALOG_JDBC_SCHEMA__VERSION": "V1",
            "CATALOG_WAREHOUSE": f"s3://{self.warehouse}",
            "CATALOG_IO__IMPL": "org.apache.iceberg.aws.s3.S3FileIO",
            "CATALOG_S3_ENDPOINT": self.storage,
            "CATALOG_S3_PATH__STYLE__ACCESS": "true",
            "CATALOG_S3_ACCESS__KEY__ID": self.access_key,
            "CATALOG_S3_SECRET__ACCESS__KEY": self.secret_key,
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_REGION": "us-east-1",
        }


def command() -> list[str]:
    """The jars are downloaded at the first call on a machine."""
    jars = fetch("rest-catalog")
    server = "org.apache.iceberg.rest.RESTCatalogServer"
    # At its start it would log all of its properties, the login to the storage too.
    quiet = f"-Dorg.slf4j.simpleLogger.log.{server}=warn"
    return [java(), "-Xmx256m", quiet, "-cp", f"{jars}/*", server]
