"""Servers that keep catalogs: a real PostgreSQL, a real MariaDB, and Iceberg's own REST catalog."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from icestream.embedded import ports
from icestream.embedded.jars import fetch
from icestream.embedded.java import java
from tests import databases
from tests.databases import PASSWORD

__all__ = ["PASSWORD"]

JDBC_CATALOG: Final = "org.apache.iceberg.jdbc.JdbcCatalog"
_PATIENCE: Final = 90


@contextmanager
def running_postgresql() -> Iterator[dict[str, str]]:
    with databases.running_postgresql("iceberg") as server:
        yield _catalog_in(server)


@contextmanager
def running_mariadb(folder: Path) -> Iterator[dict[str, str]]:
    with databases.running_mariadb(folder, "iceberg") as server:
        yield _catalog_in(server)


def _catalog_in(server: databases.Server) -> dict[str, str]:
    return {
        "iceberg.catalog.catalog-impl": JDBC_CATALOG,
        "iceberg.catalog.uri": f"jdbc:{server.address}",
        "iceberg.catalog.jdbc.user": server.user,
        "iceberg.catalog.jdbc.password": server.password,
    }


@contextmanager
def running_rest_catalog(folder: Path, s3: Mapping[str, str]) -> Iterator[str]:
    """Its address. The tables are on S3, and it hands out the login there with each of them."""
    port = ports.free_port()
    id_, secret = (s3[f"iceberg.catalog.s3.{key}"] for key in ("access-key-id", "secret-access-key"))
    environment = {
        "CATALOG_REST_PORT": str(port),
        "CATALOG_WAREHOUSE": "s3://warehouse/rest",
        "CATALOG_IO__IMPL": "org.apache.iceberg.aws.s3.S3FileIO",
        "CATALOG_S3_ENDPOINT": s3["iceberg.catalog.s3.endpoint"],
        "CATALOG_S3_PATH__STYLE__ACCESS": "true",
        "CATALOG_S3_ACCESS__KEY__ID": id_,
        "CATALOG_S3_SECRET__ACCESS__KEY": secret,
        "CATALOG_INCLUDE__CREDENTIALS": "true",
        "AWS_ACCESS_KEY_ID": id_,
        "AWS_SECRET_ACCESS_KEY": secret,
        "AWS_REGION": "us-east-1",
    }
    jars = fetch("rest-catalog")
    command = [java(), "-Xmx256m", "-cp", f"{jars}/*", "org.apache.iceberg.rest.RESTCatalogServer"]
    with _running(command, folder, environment, port):
        yield f"http://{ports.HOST}:{port}"


@contextmanager
def running_hive_metastore(folder: Path) -> Iterator[str]:
    """Its address. The metastore is the one among the jars of PySpark, with a database in its memory."""
    import pyspark

    port = ports.free_port()
    settings = {
        "javax.jdo.option.ConnectionURL": "jdbc:derby:memory:metastore;create=true",
        "javax.jdo.option.ConnectionDriverName": "org.apache.derby.iapi.jdbc.AutoloadedDriver",
        "datanucleus.schema.autoCreateAll": "true",
        "datanucleus.connectionPoolingType": "HikariCP",
        "hive.metastore.schema.verification": "false",
        "hive.metastore.warehouse.dir": str(folder / "databases"),
        # Makes the tables of the locks, which only a script does otherwise.
        "hive.in.test": "true",
        "hive.async.log.enabled": "false",
    }
    inner = "".join(f"<property><name>{k}</name><value>{v}</value></property>" for k, v in settings.items())
    (folder / "hive-site.xml").write_text(f"<configuration>{inner}</configuration>")
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in ("java.net", "java.lang")]
    jars = Path(pyspark.__file__).parent / "jars"
    command = [java(), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *opened]
    command += [f"-Djava.io.tmpdir={folder}", "-cp", f"{folder}:{jars}/*"]
    command += ["org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(port)]
    with _running(command, folder, {}, port):
        yield f"thrift://{ports.HOST}:{port}"


@contextmanager
def _running(command: list[str], folder: Path, environment: Mapping[str, str], port: int) -> Iterator[None]:
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            command, env=dict(environment), cwd=folder, stdout=log, stderr=subprocess.STDOUT
        )
    try:
        deadline = time.monotonic() + _PATIENCE
        while not ports.is_listening(port):
            assert server.poll() is None and time.monotonic() < deadline, (folder / "log").read_text()
            time.sleep(0.1)
        yield
    finally:
        server.terminate()
        server.wait(60)
