"""Kafka Connect's REST API: codes, bodies, key order and headers, as the real 4.3.1 gives them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

import httpx
import pytest

from icestream import __version__
from icestream.api.status import Progress
from icestream.cluster.connector_registry import Patience
from icestream.cluster.service import ConnectorService, Extras
from icestream.cluster.settings.rest_settings import CrossOrigin
from icestream.cluster.stores.connector_store import MemoryStore
from icestream.rest.server import HERE, bind, serve
from icestream.testing import FakeManagers

JSON = "org.apache.kafka.connect.json.JsonConverter"
WORKER = {"key.converter": JSON, "value.converter": JSON, "value.converter.schemas.enable": "false"}
CONFIG = {
    "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
    "tasks.max": "1",
    "topics": "t",
    "iceberg.tables": "db.t",
    "iceberg.catalog.type": "sql",
}
NAMED = {**CONFIG, "name": "sink"}


@dataclass
class Running:
    """One server for all tests of this file: starting and stopping one takes longer than a test."""

    managers: FakeManagers
    service: ConnectorService
    api: httpx.Client


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    managers = FakeManagers()
    extras = Extras(cluster_id=lambda: "abc", patience=Patience(2.0, 2.0))
    service = ConnectorService("127.0.0.1:8083", MemoryStore(), WORKER, extras=extras)
    service.connectors.use(managers)
    server = serve(service)
    # Requests look as if they went to http://worker:8083.
    with httpx.Client(base_url=server.url, headers={"host": "worker:8083"}, trust_env=False) as client:
        yield Running(managers, service, client)
    server.stop()
    service.close()


@pytest.fixture
def service(running: Running) -> Iterator[ConnectorService]:
    yield running.service
    for name in running.service.names():
        running.service.delete(name)


@pytest.fixture
def managers(running: Running, service: ConnectorService) -> FakeManagers:
    return running.managers


@pytest.fixture
def api(running: Running, service: ConnectorService) -> httpx.Client:
    return running.api


def create(api: httpx.Client, name: str = "sink") -> None:
    assert api.post("/connectors", json={"name": name, "config": CONFIG}).status_code == 201


def test_the_root_says_who_we_are(api: httpx.Client) -> None:
    answer = api.get("/")
    assert answer.text == f'{{"version":"4.3.1-icestream","commit":"{__version__}","kafka_cluster_id":"abc"}}'
    assert answer.headers["content-type"] == "application/json"


def test_health_is_starting_and_then_healthy(api: httpx.Client, service: ConnectorService) -> None:
    starting = api.get("/health")
    assert (starting.status_code, starting.json()["status"]) == (503, "starting")
    service.ready()
    healthy = api.get("/health")
    assert healthy.status_code == 200
    assert (
        healthy.text
        == '{"status":"healthy","message":"Worker has completed startup and is ready to handle requests."}'
    )


def test_create_answers_201_with_location_and_info(api: httpx.Client) -> None:
    answer = api.post("/connectors", json={"name": " sink ", "config": {**CONFIG, "tasks.max": 1}})
    assert answer.status_code == 201
    assert answer.headers["location"] == "http://worker:8083/connectors/sink"
    expected = {"name": "sink", "config": NAMED, "tasks": [{"connector": "sink", "task": 0}], "type": "sink"}
    assert answer.text == json.dumps(expected, separators=(",", ":"))
    again = api.post("/connectors", json={"name": "sink", "config": CONFIG})
    assert (again.status_code, again.json()) == (
        409,
        {"error_code": 409, "message": "Connector sink already exists"},
    )


def test_status_has_the_keys_in_order(api: httpx.Client, managers: FakeManagers) -> None:
    create(api)
    part = f'"state":"RUNNING","worker_id":"127.0.0.1:8083","version":"{__version__}"'
    assert api.get("/connectors/sink/status").text == (
        f'{{"name":"sink","connector":{{{part}}},"tasks":[{{"id":0,{part}}}],"type":"sink"}}'
    )
    managers.latest("sink").fail("boom")
    failed = api.get("/connectors/sink/status").json()
    assert list(failed["connector"]) == ["state", "worker_id", "version", "trace"]
    assert failed["tasks"][0]["trace"].endswith("ValueError: boom\n")


def test_the_list_expands(api: httpx.Client, managers: FakeManagers) -> None:
    create(api)
    managers.latest("sink").advance(Progress(lag=4, rows=7, last_commit_ms=5))
    assert api.get("/connectors").text == '["sink"]'
    assert api.get("/connectors/").text == '["sink"]'
    assert api.get("/connectors?expand=zzz").json() == {"sink": {}}
    expanded = api.get("/connectors?expand=status&expand=info&expand=progress").json()["sink"]
    assert list(expanded) == ["status", "info", "progress"]
    assert expanded["info"]["config"] == NAMED
    assert expanded["progress"]["lag"] == 4
    assert expanded["progress"]["rows"] == 7


def test_put_config_creates_and_updates(api: httpx.Client) -> None:
    created = api.put("/connectors/sink/config", json=CONFIG)
    assert (created.status_code, created.headers["location"]) == (201, "http://worker:8083/connectors/sink")
    updated = api.put("/connectors/sink/config", json={**CONFIG, "tasks.max": "3"})
    assert (updated.status_code, len(updated.json()["tasks"])) == (200, 3)
    assert "location" not in updated.headers
    assert api.get("/connectors/sink/config").json()["tasks.max"] == "3"
    assert api.patch("/connectors/sink/config", json={"tasks.max": None}).json()["tasks"][0]["task"] == 0
    assert "tasks.max" not in api.get("/connectors/sink/config").json()


@pytest.mark.parametrize(
    ("verb", "path", "code"),
    [
        ("PUT", "/connectors/sink/pause", 202),
        ("PUT", "/connectors/sink/resume", 202),
        ("PUT", "/connectors/sink/stop", 204),
        ("POST", "/connectors/sink/restart", 204),
        ("POST", "/connectors/sink/tasks/0/restart", 204),
        ("DELETE", "/connectors/sink", 204),
    ],
)
def test_actions_answer_without_a_body(api: httpx.Client, verb: str, path: str, code: int) -> None:
    create(api)
    answer = api.request(verb, path)
    assert (answer.status_code, answer.text) == (code, "")


def test_restart_with_tasks_answers_the_plan(api: httpx.Client) -> None:
    create(api)
    answer = api.post("/connectors/sink/restart?includeTasks=true")
    assert answer.status_code == 202
    assert answer.json()["connector"]["state"] == "RESTARTING"
    assert answer.json()["tasks"][0]["state"] == "RESTARTING"


def test_tasks_show_their_config(api: httpx.Client) -> None:
    create(api)
    (task,) = api.get("/connectors/sink/tasks").json()
    assert task["id"] == {"connector": "sink", "task": 0}
    assert task["config"]["task.class"] == "org.apache.iceberg.connect.IcebergSinkTask"
    assert api.get("/connectors/sink/tasks/0/status").json()["id"] == 0


@pytest.mark.parametrize(
    ("verb", "path", "message"),
    [
        ("GET", "/connectors/no", "Connector no not found"),
        ("GET", "/connectors/no/config", "Connector no not found"),
        ("GET", "/connectors/no/status", "No status found for connector no"),
        ("GET", "/connectors/no/tasks", "Connector no not found"),
        ("GET", "/connectors/no/tasks/0/status", "No status found for task no-0"),
        ("POST", "/connectors/no/restart?includeTasks=true", "Unknown connector: no"),
        ("PUT", "/connectors/no/pause", "Unknown connector no"),
        ("PUT", "/connectors/no/resume", "Unknown connector no"),
        ("DELETE", "/connectors/no", "Connector no not found"),
        ("GET", "/connectors/no/tasks/x/status", "HTTP 404 Not Found"),
        ("GET", "/nope", "HTTP 404 Not Found"),
        ("GET", "/connector-plugins/Foo/config", "Unknown plugin Foo."),
    ],
)
def test_what_is_not_there_is_404(api: httpx.Client, verb: str, path: str, message: str) -> None:
    answer = api.request(verb, path)
    assert answer.status_code == 404
    assert answer.text == json.dumps({"error_code": 404, "message": message}, separators=(",", ":"))


def test_wrong_verbs_and_media_types(api: httpx.Client) -> None:
    assert api.put("/connectors").json() == {"error_code": 405, "message": "HTTP 405 Method Not Allowed"}
    plain = api.post("/connectors", content="x", headers={"content-type": "text/plain"})
    assert plain.json() == {"error_code": 415, "message": "HTTP 415 Unsupported Media Type"}
    assert api.post("/connectors", content="{}").status_code == 415
    html = api.get("/connectors", headers={"accept": "text/html"})
    assert html.json() == {"error_code": 406, "message": "HTTP 406 Not Acceptable"}
    options = api.options("/connectors")
    assert (options.status_code, options.headers["allow"]) == (200, "HEAD,POST,GET,OPTIONS")


@pytest.mark.parametrize(
    "body",
    [
        "{",
        "",
        "[]",
        "null",
        '{"name": "a"}',
        '{"name": "a", "foo": 1, "config": {}}',
        '{"name": "a", "config": {"x": {}}}',
        '{"name": "a", "initial_state": "foo", "config": {}}',
    ],
)
def test_a_body_that_cannot_be_read_is_500_as_in_kafka_connect(api: httpx.Client, body: str) -> None:
    answer = api.post("/connectors", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 500
    assert list(answer.json()) == ["error_code", "message"]


def test_an_invalid_config_lists_every_error(api: httpx.Client) -> None:
    bad = {**CONFIG, "tasks.max": "0", "topics": ""}
    answer = api.post("/connectors", json={"name": "sink", "config": bad})
    assert answer.status_code == 400
    assert answer.json()["message"] == (
        "Connector configuration is invalid and contains the following 3 error(s):"
        "\nInvalid value 0 for configuration tasks.max: Value must be at least 1"
        "\nMust configure one of topics or topics.regex"
        "\nMust configure one of topics or topics.regex"
        "\nYou can also find the above list of errors at the endpoint "
        "`/connector-plugins/{connectorType}/config/validate`"
    )


def test_two_names_for_one_connector_are_refused(api: httpx.Client) -> None:
    answer = api.post("/connectors", json={"name": "a", "config": {**CONFIG, "name": "b"}})
    assert answer.status_code == 400
    assert answer.json()["message"] == (
        "Connector name configuration (b) doesn't match connector name in the URL (a)"
    )


def test_a_missing_or_unknown_class_is_400_in_plain_words(api: httpx.Client) -> None:
    missing = api.post("/connectors", json={"name": "x", "config": {}})
    assert missing.json() == {
        "error_code": 400,
        "message": "Connector config {name=x} contains no connector type",
    }
    unknown = api.post("/connectors", json={"name": "x", "config": {**CONFIG, "connector.class": "Foo"}})
    assert unknown.status_code == 400
    assert unknown.json()["message"].startswith("Failed to find any class that implements Connector")


def test_plugins_are_listed_and_described(api: httpx.Client) -> None:
    listed = api.get("/connector-plugins").json()
    assert {plugin["class"] for plugin in listed} >= {
        "org.apache.iceberg.connect.IcebergSinkConnector",
        "io.tabular.iceberg.connect.IcebergSinkConnector",
        "org.apache.kafka.connect.file.FileStreamSinkConnector",
        "org.apache.kafka.connect.file.FileStreamSourceConnector",
    }
    keys = api.get("/connector-plugins/IcebergSink/config").json()
    assert list(keys[0]) == [
        "name",
        "type",
        "required",
        "default_value",
        "importance",
        "documentation",
        "group",
        "order_in_group",
        "width",
        "display_name",
        "dependents",
    ]
    assert {"iceberg.tables", "topics", "tasks.max"} <= {key["name"] for key in keys}


def test_validate_shows_values_errors_and_warnings(api: httpx.Client) -> None:
    config = {**NAMED, "tasks.max": "x", "topic": "t", "my.note": "x"}
    answer = api.put("/connector-plugins/IcebergSinkConnector/config/validate", json=config)
    report = answer.json()
    values = {entry["value"]["name"]: entry["value"] for entry in report["configs"]}
    assert answer.status_code == 200
    assert report["error_count"] == 3
    assert values["tasks.max"]["value"] is None
    assert values["tasks.max"]["errors"] == [
        "Invalid value x for configuration tasks.max: Not a number of type INT",
        "Invalid value null for configuration tasks.max: Value must be non-null",
    ]
    assert values["topic"]["recommended_values"] == ["topics"]
    assert values["iceberg.control.topic"]["value"] == "control-iceberg"
    assert report["warnings"] == ["'my.note' is not a known configuration and has no effect"]
    mismatch = api.put("/connector-plugins/Foo/config/validate", json=config)
    assert mismatch.status_code == 400
    assert "does not match request type Foo" in mismatch.json()["message"]


def test_names_with_spaces_and_umlauts_work(api: httpx.Client) -> None:
    created = api.post("/connectors", json={"name": "größe 1", "config": CONFIG})
    assert created.headers["location"] == "http://worker:8083/connectors/gr%C3%B6%C3%9Fe%201"
    assert api.get("/connectors/gr%C3%B6%C3%9Fe%201").json()["name"] == "größe 1"


def test_other_origins_are_allowed_only_when_named(service: ConnectorService) -> None:
    allowed = []
    for cross_origin in (CrossOrigin(), CrossOrigin(("http://ui",))):
        server = serve(service, bind(replace(HERE, cross_origin=cross_origin)))
        answer = httpx.get(server.url, headers={"origin": "http://ui"}, trust_env=False)
        allowed.append(answer.headers.get("access-control-allow-origin"))
        server.stop()
    assert allowed == [None, "http://ui"]
