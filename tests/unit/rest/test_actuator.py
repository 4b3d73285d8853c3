"""`/actuator/**` as Spring Boot and Micrometer have it, over a worker whose jobs only pretend."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from icestream.api.errors import ConfigError, SourceUnavailable
from icestream.api.history import BatchRecord, Outcome, TargetCommit, TopicCounts
from icestream.api.status import Progress
from icestream.cli.standalone import StandaloneWorker
from icestream.cli.worker_process import DataPlane
from icestream.cluster.settings.worker_config import parse_standalone
from icestream.logs import of_worker
from icestream.rest.actuator.health import Health, Status, disk_space
from icestream.rest.actuator.kafka_watch import KafkaWatch
from icestream.rest.actuator.meters import RecentMax
from icestream.testing import FakeManagers

JSON = "org.apache.kafka.connect.json.JsonConverter"
SINK = {
    "name": "orders",
    "connector.class": "IcebergSink",
    "topics": "a",
    "iceberg.tables": "db.t",
    "iceberg.catalog.type": "sql",
}
SPRING = "application/vnd.spring-boot.actuator.v3+json"


@dataclass
class Running:
    worker: StandaloneWorker
    plane: DataPlane
    managers: FakeManagers
    url: str

    def get(self, path: str, **more: Any) -> httpx.Response:
        return httpx.get(f"{self.url}/actuator{path}", trust_env=False, timeout=60, **more)

    def tell(self, **counts: Any) -> None:
        topics = counts.pop("topics", {})
        record = BatchRecord(
            **{
                "id": "b",
                "started_ms": 0,
                "outcome": Outcome.COMMITTED,
                "topics": {name: TopicCounts(*those) for name, those in topics.items()},
                "stages": {"stage": 1.0, "commit": 0.5},
                "targets": (TargetCommit("t", "1"),),
                **counts,
            }
        )
        self.plane.observers.batch("orders", record)
        assert self.plane.observers.settle(60)


Start = Callable[..., Running]


class NoKafka:
    """What is known of topics while nobody is at the address of Kafka."""

    def __init__(self, settings: Mapping[str, str]) -> None: ...

    def cluster_id(self) -> str:
        raise SourceUnavailable("nobody answers")


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    # A question to the real one is under way for 15 seconds, whoever has stopped meanwhile.
    monkeypatch.setattr("icestream.kafka.topics.Topics", NoKafka)
    started: list[StandaloneWorker] = []

    def run(**settings: str) -> Running:
        managers = FakeManagers()
        plane = DataPlane(lambda: managers, lambda config: [])
        raw = {
            "bootstrap.servers": "127.0.0.1:1",
            "listeners": "http://127.0.0.1:0",
            "key.converter": JSON,
            "value.converter": JSON,
            "offset.storage.file.filename": str(tmp_path / "offsets"),
            "icestream.actuator.listeners": "http://127.0.0.1:0",
            **{f"icestream.actuator.{key.replace('_', '.')}": value for key, value in settings.items()},
        }
        worker = StandaloneWorker(parse_standalone(raw), plane=plane)
        started.append(worker)
        worker.start()
        worker.service.create("orders", SINK)
        return Running(worker, plane, managers, worker._actuator.urls[0])

    yield run
    for worker in started:
        worker.stop()
    # Lines of other tests are not this worker's.
    of_worker("")


def test_links_name_what_is_there(start: Start) -> None:
    worker = start()
    answer = worker.get("")
    assert answer.headers["content-type"] == SPRING
    links = answer.json()["_links"]
    assert links["self"] == {"href": f"{worker.url}/actuator", "templated": False}
    assert links["health-path"] == {"href": f"{worker.url}/actuator/health/{{*path}}", "templated": True}
    assert "metrics-requiredMetricName" in links and "prometheus" in links
    assert "env" not in links
    assert worker.get("/env").status_code == 404
    assert worker.get("/beans").status_code == 404
    assert httpx.post(f"{worker.url}/actuator/health", trust_env=False).status_code == 405


def test_rest_knows_nothing_of_it(start: Start) -> None:
    worker = start()
    assert httpx.get(f"{worker.worker.url}/actuator/health", trust_env=False).status_code == 404


def test_the_media_type_is_the_one_that_is_asked_for(start: Start) -> None:
    worker = start()
    for accept, expected in (
        ("*/*", SPRING),
        ("application/json", "application/json"),
        ("text/html, application/vnd.spring-boot.actuator.v2+json;q=0.9", SPRING.replace("v3", "v2")),
    ):
        assert worker.get("/metrics", headers={"accept": accept}).headers["content-type"] == expected
    assert worker.get("/metrics", headers={"accept": "text/html"}).status_code == 406


def test_health_without_details_is_a_status_and_the_groups(start: Start) -> None:
    worker = start()
    answer = worker.get("/health")
    # Nobody is at the address of Kafka.
    assert answer.json() in (
        {"status": "UP", "groups": ["liveness", "readiness"]},
        {"status": "DOWN", "groups": ["liveness", "readiness"]},
    )
    assert worker.get("/health/kafka").status_code == 404
    for group in ("liveness", "readiness"):
        answer = worker.get(f"/health/{group}")
        assert (answer.status_code, answer.json()) == (200, {"status": "UP"})


def test_health_with_details_has_components(start: Start) -> None:
    worker = start(health_details="always")
    circuit = {"destination": "s3://lake", "state": "open", "reason": "503", "since": "now"}
    worker.managers.made[0].advance(Progress(circuit=circuit))
    said = worker.get("/health").json()
    assert set(said["components"]) == {
        *("destinations", "diskSpace", "kafka", "livenessState", "ping", "readinessState", "spark")
    }
    assert said["groups"] == ["liveness", "readiness"]
    assert set(said["components"]["diskSpace"]["details"]) == {"total", "free", "threshold", "path", "exists"}
    assert said["components"]["ping"] == {"status": "UP"}
    answer = worker.get("/health/diskSpace")
    assert (answer.status_code, answer.json()["status"]) == (200, "UP")
    assert worker.get("/health/nothing").status_code == 404
    assert worker.get("/health/diskSpace/nothing").status_code == 404
    live = worker.get("/health/liveness").json()
    assert live["components"]["livenessState"]["details"]["message"] == "The process can do its work."


def test_a_worker_that_is_not_ready_is_out_of_service(start: Start) -> None:
    worker = start()
    worker.worker.service._is_ready = False
    answer = worker.get("/health/readiness")
    assert (answer.status_code, answer.json()) == (503, {"status": "OUT_OF_SERVICE"})
    assert worker.get("/health/liveness").status_code == 200
    whole = worker.get("/health")
    assert whole.status_code == 503 and whole.json()["status"] in ("OUT_OF_SERVICE", "DOWN")


def test_the_worst_component_is_the_whole_and_nested_parts_have_paths() -> None:
    inner = Health(components={"s3://lake": Health(Status.DOWN, {"reason": "503"}), "b": Health(Status.UP)})
    whole = Health(components={"destinations": inner, "ping": Health(Status.UP)})
    assert whole.status is Status.DOWN
    found = whole.at(["destinations", "s3://lake"])
    assert found is not None and found.shown() == {"status": "DOWN", "details": {"reason": "503"}}
    assert Health(components={"a": Health(Status.UNKNOWN), "b": Health(Status.UP)}).status is Status.UP
    assert [status.code for status in Status] == [503, 503, 200, 200]
    assert disk_space("/no/such/folder").status is Status.DOWN


def test_kafka_is_asked_now_and_then_and_no_answer_is_no_health() -> None:
    now = 0.0
    error: list[Exception] = []

    def ask() -> dict[str, object]:
        if error:
            raise error[0]
        return {"nodes": 3}

    watch = KafkaWatch(ask, lambda: now)
    assert watch().status is Status.UNKNOWN
    watch.look()
    assert watch() == Health(Status.UP, {"nodes": 3})
    error.append(SourceUnavailable("no broker answers"))
    watch.look()
    assert watch() == Health(Status.DOWN, {"message": "no broker answers"})
    now = 61.0
    assert "for a minute" in watch().details["message"]


def test_meters_by_name_and_tag(start: Start) -> None:
    worker = start()
    worker.tell(topics={"a": (10, 3, 2)})
    worker.tell(topics={"a": (5, 0, 0), "b": (7, 1, 0)}, stages={"stage": 2.0})
    assert worker.get("/metrics").json() == {
        "names": [
            "kafka.connector.records.failed",
            "kafka.connector.records.processed",
            "kafka.connector.s3.write.duration",
            "kafka.connector.schema.validation.failures",
        ]
    }
    assert worker.get("/metrics/kafka.connector.records.processed").json() == {
        "name": "kafka.connector.records.processed",
        "description": "Records that are in the target",
        "measurements": [{"statistic": "COUNT", "value": 22.0}],
        "availableTags": [
            {"tag": "connector", "values": ["orders"]},
            {"tag": "topic", "values": ["a", "b", "several"]},
        ],
    }
    one = worker.get("/metrics/kafka.connector.records.failed", params={"tag": "topic:a"}).json()
    assert one["measurements"] == [{"statistic": "COUNT", "value": 3.0}]
    assert one["availableTags"] == [{"tag": "connector", "values": ["orders"]}]
    invalid = worker.get("/metrics/kafka.connector.schema.validation.failures").json()
    assert invalid["measurements"] == [{"statistic": "COUNT", "value": 2.0}]
    timer = worker.get("/metrics/kafka.connector.s3.write.duration").json()
    assert timer["baseUnit"] == "seconds"
    assert timer["measurements"] == [
        {"statistic": "COUNT", "value": 2.0},
        {"statistic": "TOTAL_TIME", "value": 3.5},
        {"statistic": "MAX", "value": 2.0},
    ]
    assert worker.get("/metrics/nothing").status_code == 404
    both = {"tag": ["topic:a", "connector:nobody"]}
    assert worker.get("/metrics/kafka.connector.records.failed", params=both).status_code == 404
    bad = worker.get("/metrics/kafka.connector.records.failed", params={"tag": "topic"})
    assert bad.status_code == 400 and "'key:value' but was: topic" in bad.json()["message"]


def test_only_what_landed_counts(start: Start) -> None:
    worker = start()
    worker.tell(outcome=Outcome.UNDER_WAY, topics={"a": (10, 0, 0)})
    worker.tell(outcome=Outcome.UNAVAILABLE, topics={"a": (10, 0, 0)})
    assert worker.get("/metrics").json() == {"names": []}


def test_prometheus_has_the_names_of_the_seed_and_the_workers_own(start: Start) -> None:
    worker = start()
    worker.tell(topics={"a": (10, 3, 2)})
    answer = worker.get("/prometheus")
    assert answer.headers["content-type"].startswith("text/plain")
    found = {
        (sample.name, sample.labels.get("topic")): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
        if sample.labels.get("connector") == "orders"
    }
    assert found[("kafka_connector_records_processed_total", "a")] == 10
    assert found[("kafka_connector_records_failed_total", "a")] == 3
    assert found[("kafka_connector_schema_validation_failures_total", "a")] == 2
    assert found[("kafka_connector_s3_write_duration_seconds_count", "a")] == 1
    assert found[("kafka_connector_s3_write_duration_seconds_sum", "a")] == 1.5
    assert found[("kafka_connector_s3_write_duration_seconds_max", "a")] == 1.5
    assert "icestream_info" in answer.text
    chosen = worker.get("/prometheus", params={"includedNames": "kafka_connector_records_failed_total"}).text
    assert [line for line in chosen.splitlines() if not line.startswith("#")] == [
        'kafka_connector_records_failed_total{connector="orders",topic="a"} 3.0'
    ]


def test_env_is_asked_for_by_a_setting_of_its_own_and_has_no_value(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CATALOG_JDBC_PASSWORD", "hunter2-secret")
    worker = start(env_enabled="true")
    answer = worker.get("/env")
    assert "hunter2" not in answer.text
    sources = {one["name"]: one["properties"] for one in answer.json()["propertySources"]}
    assert sources["systemEnvironment"]["CATALOG_JDBC_PASSWORD"] == {
        "value": "******",
        "origin": 'System Environment Property "CATALOG_JDBC_PASSWORD"',
    }
    assert {entry["value"] for source in sources.values() for entry in source.values()} == {"******"}
    one = worker.get("/env/CATALOG_JDBC_PASSWORD").json()
    assert one["property"] == {"source": "systemEnvironment", "value": "******"}
    assert [source["name"] for source in one["propertySources"]] == ["systemEnvironment", "workerConfig"]
    assert worker.get("/env/NOT_THERE").status_code == 404


def test_connectors_are_flat(start: Start) -> None:
    worker = start()
    worker.managers.made[0].advance(Progress(lag=4, rows=100, last_commit_ms=1_700_000_000_000))
    worker.tell(topics={"a": (10, 3, 2)})
    assert worker.get("/connector/metrics").json() == {
        "orders": {
            "state": "RUNNING",
            "lag": 4,
            "lastCommit": "2023-11-14T22:13:20+00:00",
            "recordsProcessed": 10,
            "recordsFailed": 3,
            "schemaValidationFailures": 2,
            "recordsInTarget": 100,
            "s3Writes": 1,
            "s3WriteSecondsMean": 1.5,
            "s3WriteSecondsMax": 1.5,
        }
    }
    worker.worker.service.delete("orders")
    assert worker.get("/connector/metrics").json() == {}
    assert worker.get("/metrics").json() == {"names": []}


def test_the_largest_value_is_forgotten_after_three_minutes() -> None:
    largest = RecentMax()
    largest.add(5.0, 1000.0)
    largest.add(1.0, 1090.0)
    assert largest.value(1100.0) == 5.0
    assert largest.value(1200.0) == 1.0
    assert largest.value(1400.0) == 0.0


def test_an_address_that_is_none_is_told() -> None:
    with pytest.raises(ConfigError, match=r"icestream\.actuator\.listeners"):
        parse_standalone(
            {
                "key.converter": JSON,
                "value.converter": JSON,
                "offset.storage.file.filename": "offsets",
                "icestream.actuator.listeners": "8081",
            }
        )
