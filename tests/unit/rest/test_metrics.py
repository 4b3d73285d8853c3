"""`/metrics` on REST and on listeners of its own: who is let in, in which format, how many at a time."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics

from icestream.api.errors import ConfigError, PreconditionError, Problem
from icestream.cluster.service import ConnectorService
from icestream.cluster.settings.metrics_settings import MetricsConfig, parse_metrics
from icestream.cluster.settings.rest_settings import Listener
from icestream.cluster.stores.connector_store import MemoryStore
from icestream.metrics.collector import WorkerCollector
from icestream.metrics.counters import Counters
from icestream.metrics.facts import WorkerFacts, facts_of
from icestream.metrics.requests import RequestCounts
from icestream.rest.app import ApiOptions
from icestream.rest.metrics_answers import bind_metrics, metrics_route, serve_metrics
from icestream.rest.server import HERE, RestServer, bind, serve

JSON = "org.apache.kafka.connect.json.JsonConverter"
WORKER = {"key.converter": JSON, "value.converter": JSON}


@pytest.fixture
def service() -> Iterator[ConnectorService]:
    made = ConnectorService("127.0.0.1:8083", MemoryStore(), WORKER)
    yield made
    made.close()


@pytest.fixture
def served(service: ConnectorService) -> Iterator[Any]:
    servers: list[RestServer] = []

    def start(*, credentials: dict[str, str] | None = None, on_rest: bool = True) -> RestServer:
        requests = RequestCounts()
        collector = WorkerCollector(facts_of(service, Counters()))
        collector.add(requests.families)
        routes = (metrics_route(collector.registry),) if on_rest else ()
        bound = bind(replace(HERE, credentials=credentials))
        servers.append(serve(service, bound, ApiOptions(routes=routes, requests=requests)))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


def get(url: str, **more: Any) -> httpx.Response:
    return httpx.get(url, trust_env=False, timeout=60, **more)


def test_rest_has_metrics_in_both_formats(served: Any) -> None:
    url = f"{served().url}/metrics"
    answer = get(url)
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert "icestream_group_leader 1.0" in answer.text.splitlines()
    answer = get(url, headers={"Accept": "application/openmetrics-text; version=1.0.0"})
    assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert [family.name for family in openmetrics(answer.text)]
    assert httpx.head(url, trust_env=False).status_code == 200
    assert httpx.post(url, trust_env=False).status_code == 405
    assert get(f"{url}/").status_code == 404


def test_gzip_and_chosen_names(served: Any) -> None:
    url = served().url
    with httpx.stream(
        "GET", f"{url}/metrics", params={"name[]": "icestream_info"}, trust_env=False
    ) as answer:
        assert answer.headers["content-encoding"] == "gzip"
        lines = gzip.decompress(b"".join(answer.iter_raw())).decode().splitlines()
    assert len(lines) == 3 and lines[-1].startswith("icestream_info{")
    assert get(f"{url}/metrics?name[]=none").text == ""


def test_the_login_of_rest_holds(served: Any) -> None:
    url = served(credentials={"ann": "secret"}).url
    assert get(f"{url}/metrics").status_code == 401
    assert get(f"{url}/metrics", auth=("ann", "secret")).status_code == 200


def test_rest_without_metrics_says_what_kafka_connect_says(served: Any) -> None:
    url = served(on_rest=False).url
    assert get(f"{url}/metrics").text == get(f"{url}/nope").text
    assert get(f"{url}/metrics").status_code == 404


def test_requests_are_told_by_route(served: Any) -> None:
    url = served().url
    for path in ("/connectors/a/status", "/connectors/b%2Fc/status", "/connectors", "/nope", "/live"):
        get(url + path)
    lines = get(f"{url}/metrics").text.splitlines()
    for labels, number in (
        ('code="404",method="GET",route="/connectors/{connector}/status"', 2),
        ('code="200",method="GET",route="/connectors"', 1),
        ('code="404",method="GET",route="other"', 1),
        ('code="200",method="GET",route="/live"', 1),
    ):
        assert f"icestream_rest_requests_total{{{labels}}} {number}.0" in lines


def test_a_listener_of_its_own_has_metrics_and_nothing_else() -> None:
    config = MetricsConfig((Listener("http", "127.0.0.1", 0),))
    bound = bind_metrics(config)
    assert bound is not None
    server = serve_metrics(WorkerCollector(lambda: WorkerFacts(1.0)).registry, config, bound)
    try:
        assert "icestream_info{" in get(f"{server.url}/metrics").text
        assert get(f"{server.url}/connectors").status_code == 404
        with pytest.raises(PreconditionError, match=r"choose another in 'metrics\.listeners'"):
            bind_metrics(MetricsConfig((Listener("http", "127.0.0.1", server.port),)))
    finally:
        server.stop()
    assert bind_metrics(MetricsConfig()) is None


def test_many_scrapes_at_once_wait_or_are_refused() -> None:
    may_end, most, inside = threading.Event(), [0], [0]
    lock = threading.Lock()

    def slow() -> WorkerFacts:
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        may_end.wait(60)
        with lock:
            inside[0] -= 1
        return WorkerFacts(1.0)

    config = MetricsConfig((Listener("http", "127.0.0.1", 0),))
    bound = bind_metrics(config)
    assert bound is not None
    server = serve_metrics(WorkerCollector(slow).registry, config, bound)
    codes: list[int] = []
    threads = [
        threading.Thread(target=lambda: codes.append(get(f"{server.url}/metrics").status_code))
        for _ in range(30)
    ]
    try:
        for thread in threads:
            thread.start()
        # 18 are served or wait; the others have their answer at once.
        deadline = threading.Event()
        while len(codes) < 12 and not deadline.wait(0.05):
            pass
        assert codes == [503] * 12
    finally:
        may_end.set()
        for thread in threads:
            thread.join()
        server.stop()
    assert codes.count(200) == 18 and most[0] == 2


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, []),
        ({"metrics.listeners": "http://:9404"}, ["http://:9404"]),
        (
            {"icestream.metrics.listeners": "http://:9404,http://[::1]:9405"},
            ["http://:9404", "http://[::1]:9405"],
        ),
        (
            {"metrics.listeners": "http://:9404", "icestream.metrics.listeners": "http://:9404"},
            ["http://:9404"],
        ),
        ({"prometheus.metrics.reporter.listener": "http://0.0.0.0:8080"}, ["http://0.0.0.0:8080"]),
        (
            {
                "prometheus.metrics.reporter.listener": "http://:8080",
                "prometheus.metrics.reporter.listener.enable": "false",
            },
            [],
        ),
    ],
)
def test_listeners_by_any_of_their_names(given: dict[str, str], found: list[str]) -> None:
    problems: list[Problem] = []
    assert [one.url for one in parse_metrics(given, problems).listeners] == found
    assert not problems


def test_an_address_that_is_none_is_a_problem_of_its_key() -> None:
    from icestream.cluster.settings.worker_config import parse_standalone

    with pytest.raises(ConfigError, match=r"'9404' in 'metrics\.listeners' is not an address"):
        parse_standalone(
            {**WORKER, "offset.storage.file.filename": "/tmp/offsets", "metrics.listeners": "9404"}
        )
    with pytest.raises(ConfigError, match=r"metrics\.listeners"):
        parse_standalone(
            {**WORKER, "offset.storage.file.filename": "/tmp/offsets", "icestream.metric.listeners": "x"}
        )
