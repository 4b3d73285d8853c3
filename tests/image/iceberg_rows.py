"""A worker in a container, its Iceberg sink, and the rows that it has landed; for the tests of the image."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping

import httpx

from icestream.connectors.iceberg.catalogs.opening import open_catalog
from icestream.embedded.kafka import Broker
from icestream.embedded.ports import HOST
from tests.image.container import PATIENCE, Container


def worker_variables(broker: Broker, port: int) -> dict[str, str]:
    cluster = f"image-{uuid.uuid4().hex[:8]}"
    topics = {f"CONNECT_{kind}_STORAGE_TOPIC": f"{cluster}-{kind}" for kind in ("CONFIG", "OFFSET", "STATUS")}
    replicas = {name.replace("TOPIC", "REPLICATION_FACTOR"): "1" for name in topics}
    return {
        "CONNECT_BOOTSTRAP_SERVERS": broker.bootstrap,
        "CONNECT_GROUP_ID": cluster,
        "CONNECT_LISTENERS": f"http://{HOST}:{port}",
        "CONNECT_REST_ADVERTISED_HOST_NAME": HOST,
        "CONNECT_KEY_CONVERTER": "org.apache.kafka.connect.json.JsonConverter",
        "CONNECT_VALUE_CONVERTER": "org.apache.kafka.connect.json.JsonConverter",
        "CONNECT_VALUE_CONVERTER_SCHEMAS_ENABLE": "false",
        "CONNECT_SPARK_DRIVER_MEMORY": "512m",
        **topics,
        **replicas,
    }


def until_healthy(container: Container, url: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        assert container.holder.poll() is None, container.output()
        assert time.monotonic() < deadline, container.output()
        try:
            if httpx.get(f"{url}/health", timeout=10).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)


def sink_config(topic: str, uri: str, catalog: Mapping[str, str]) -> dict[str, str]:
    return {
        "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
        "topics": topic,
        "iceberg.tables": "db.rows",
        "iceberg.tables.auto-create-enabled": "true",
        "iceberg.control.commit.interval-ms": "500",
        "iceberg.catalog": "lake",
        "iceberg.catalog.type": "jdbc",
        "iceberg.catalog.uri": uri,
        **catalog,
    }


def rows_of(config: Mapping[str, str]) -> int:
    from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
    from sqlalchemy.exc import OperationalError

    try:
        table = open_catalog(dict(config)).load_table("db.rows")
    except (NoSuchTableError, NoSuchNamespaceError, OperationalError):
        return 0
    return len(table.scan().to_arrow()) if table.current_snapshot() else 0
