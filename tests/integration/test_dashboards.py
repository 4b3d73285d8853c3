"""Dashboards that people have for Kafka Connect, against a busy worker of ours and a real Prometheus: every
query of theirs is asked as it is written."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from confluent_kafka import Producer
from prometheus_client.openmetrics import parser

from icestream.connectors.iceberg.catalogs.opening import open_catalog
from icestream.embedded.kafka import Broker
from icestream.embedded.minio_tables import sqlite_catalog
from icestream.embedded.topics import ensure_topic
from tests.cluster.workers import WorkerProcess, call, cluster_properties, eventually, ours
from tests.dashboards.prometheus import (
    Prometheus,
    running_prometheus,
    shipped_config,
)
from tests.dashboards.queries import CONFLUENT, CONFLUENT_OLD, QUERIES, REPORTER, STRIMZI, Query
from tests.integration.worker_world import SCHEMA
from tests.kit.programs import needs_program
from tests.spark_settings import with_iceberg

pytestmark = [pytest.mark.slow, needs_program("prometheus")]

_VARIABLES: Final = {
    "kubernetes_namespace": "data",
    "strimzi_connect_cluster_name": "lake",
    "env": "dev",
    "kafka_connect_cluster_id": "icestream",
    "instance": ".*",
    "connector": ".*",
}
_POD: Final = {
    "namespace": "data",
    "pod_name": "lake-connect-0",
    "pod_node_name": "node-1",
    "pod_host_ip": "10.0.0.1",
    "pod_container_name": "lake-connect",
    "pod_container_port_name": "tcp-prometheus",
    "pod_label_strimzi_io_kind": "KafkaConnect",
    "pod_label_strimzi_io_cluster": "lake",
}


@dataclass(frozen=True)
class Scene:
    worker: WorkerProcess
    folder: Path
    strimzi: Prometheus
    confluent: Prometheus

    def asked(self, query: Query) -> list[dict[str, Any]]:
        asked = self.strimzi if query.dashboard in (STRIMZI, REPORTER) else self.confluent
        return asked.ask(query.filled(_VARIABLES))


@pytest.fixture(scope="module")
def scene(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A worker that leads its group: a sink and a source at work, others paused, stopped and failed."""
    folder = tmp_path_factory.mktemp("dashboards")
    properties = cluster_properties(
        broker.bootstrap,
        "dashboards",
        **{
            "icestream.file.connectors.enabled": "true",
            "value.converter.schemas.enable": "false",
            "spark.driver.memory": "1g",
            "spark.jars": with_iceberg()["spark.jars"],
        },
    )
    worker = ours("dashboards", folder, properties)
    with ExitStack() as stack:
        stack.callback(worker.kill)
        worker.start()
        _fill(broker.bootstrap, folder)
        strimzi = shipped_config("strimzi.yaml", worker.address, _POD)
        confluent = shipped_config("confluent.yaml", worker.address)
        scene = Scene(
            worker,
            folder,
            stack.enter_context(running_prometheus(strimzi, folder / "strimzi")),
            stack.enter_context(running_prometheus(confluent, folder / "confluent")),
        )
        eventually(worker.is_ready, lambda: f"the worker does not start: {worker.text()}")
        for name, config in _connectors(folder).items():
            call(worker.url, "PUT", f"/connectors/{name}/config", config)
        call(worker.url, "PUT", "/connectors/rests/pause")
        call(worker.url, "PUT", "/connectors/ended/stop")
        _wait_until_busy(scene)
        yield scene


def _fill(bootstrap: str, folder: Path) -> None:
    (folder / "in.txt").write_text("".join(f"line {number}\n" for number in range(100)))
    ensure_topic(bootstrap, "dash-in", partitions=3)
    ensure_topic(bootstrap, "dash-out", partitions=1)
    catalog = open_catalog(sqlite_catalog(str(folder)))
    catalog.create_namespace_if_not_exists("ns")
    catalog.create_table_if_not_exists("ns.dash", SCHEMA)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(300):
        value = b"{" if number % 100 == 0 else json.dumps({"id": number, "text": "x"}).encode()
        producer.produce("dash-in", value, partition=number % 3)
    assert producer.flush(30) == 0


def _connectors(folder: Path) -> Mapping[str, Mapping[str, str]]:
    source = {
        "connector.class": "FileStreamSource",
        "topic": "dash-out",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    }
    sink = {
        "connector.class": "IcebergSinkConnector",
        "topics": "dash-in",
        "tasks.max": "2",
        "iceberg.tables": "ns.dash",
        "iceberg.control.commit.interval-ms": "200",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": "dash-dlq",
        "errors.deadletterqueue.topic.replication.factor": "1",
        **sqlite_catalog(str(folder)),
    }
    return {
        "lines": {**source, "file": str(folder / "in.txt")},
        "rows": sink,
        "rests": {**source, "file": str(folder / "rests.txt")},
        "ended": {**source, "file": str(folder / "ended.txt")},
        "broken": {**sink, "errors.tolerance": "none", "consumer.override.auto.offset.reset": "earliest"},
    }


def _wait_until_busy(scene: Scene) -> None:
    """Until both servers have seen what the panels are about, and enough samples for rates."""
    seen = (
        'kafka_connect_sink_task_sink_record_read_total{connector="rows",task="0"} >= 300',
        'kafka_connect_source_task_source_record_write_total{connector="lines"} >= 100',
        'kafka_connect_connector_status{connector="ended",status="stopped"}',
        'kafka_connect_worker_connector_paused_task_count{connector="rests"} > 0',
        'kafka_connect_worker_connector_failed_task_count{connector="broken"} > 0',
    )

    def missing() -> list[str]:
        servers = (scene.strimzi, scene.confluent)
        unseen = [one for one in seen if not all(server.ask(one) for server in servers)]
        return unseen or [one.panel for one in QUERIES if not one.empty and not scene.asked(one)]

    eventually(lambda: not missing(), lambda: f"{missing()}\n{scene.worker.text()}", 180)


@pytest.mark.parametrize("dashboard", [STRIMZI, REPORTER, CONFLUENT, CONFLUENT_OLD])
def test_every_query_is_answered(scene: Scene, dashboard: str) -> None:
    """Those that have no data are listed with the reason."""
    asked = [query for query in QUERIES if query.dashboard == dashboard]
    answers = {query: scene.asked(query) for query in asked}

    assert [query.expression for query, found in answers.items() if not found and not query.empty] == []
    assert [query.expression for query, found in answers.items() if found and query.empty] == []


def test_numbers_are_those_of_the_connectors(scene: Scene) -> None:
    task = '{connector="rows",task="0"}'
    number = scene.strimzi.number

    assert number(f"kafka_connect_sink_task_sink_record_read_total{task}") == 300
    assert number(f"kafka_connect_sink_task_sink_record_send_total{task}") == 297
    assert number(f"kafka_connect_task_error_total_records_skipped{task}") == 3
    assert number(f"kafka_connect_task_error_deadletterqueue_produce_requests{task}") == 3
    assert number('sum(kafka_connect_sink_task_partition_count{connector="rows"})') == 3
    assert number('kafka_connect_source_task_source_record_write_total{connector="lines"}') == 100
    assert number("kafka_connect_worker_connector_count") == 5
    assert number("kafka_connect_worker_rebalance_completed_rebalances_total") >= 1
    assert number("kafka_connect_worker_connector_startup_success_total") >= 5
    table = scene.strimzi.ask("count by (connector) (kafka_connect_connector_status)")
    assert sorted(one["metric"]["connector"] for one in table) == [
        "broken",
        "ended",
        "lines",
        "rests",
        "rows",
    ]


def test_both_formats_are_taken_by_their_parsers(scene: Scene) -> None:
    url = f"{scene.worker.url}/metrics"
    wanted = {"Accept": "application/openmetrics-text; version=1.0.0"}
    strict = httpx.get(url, headers=wanted, timeout=30, trust_env=False)
    assert strict.headers["content-type"].startswith("application/openmetrics-text")
    assert len(list(parser.text_string_to_metric_families(strict.text))) > 300  # type: ignore[no-untyped-call]

    plain = httpx.get(url, timeout=30, trust_env=False)
    promtool = shutil.which("promtool")
    assert promtool is not None
    checked = subprocess.run(
        [promtool, "check", "metrics"], input=plain.content, capture_output=True, timeout=60
    )
    # 3: it dislikes Kafka's names (`_ms`, `_count`, a gauge `_total`); 1 would be: it cannot read them.
    assert checked.returncode in (0, 3), checked.stderr.decode()


def test_series_of_a_deleted_connector_are_gone(scene: Scene) -> None:
    url = scene.worker.url
    source = {
        "connector.class": "FileStreamSource",
        "topic": "dash-out",
        "file": str(scene.folder / "gone.txt"),
    }
    call(url, "PUT", "/connectors/gone/config", source)
    eventually(
        lambda: '"gone"' in httpx.get(f"{url}/metrics", timeout=30, trust_env=False).text, lambda: "no series"
    )
    call(url, "DELETE", "/connectors/gone")

    plain = httpx.get(f"{scene.worker.url}/metrics", timeout=30, trust_env=False).text
    assert '"gone"' not in plain
    assert '"rows"' in plain
