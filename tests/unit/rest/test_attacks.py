"""Requests that were uncaught 500s, or kept everybody else waiting: each is a 400 with a sentence."""

from __future__ import annotations

import json
import logging
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from icestream.api.errors import Problem
from icestream.cluster.configs.limits import place_problems
from icestream.cluster.connector_registry import Patience
from icestream.cluster.service import ConnectorService, Extras
from icestream.cluster.stores.connector_store import MemoryStore
from icestream.jobs.probes import probe_connector
from icestream.rest.server import RestServer, serve
from icestream.testing import FakeManagers

JSON = "org.apache.kafka.connect.json.JsonConverter"
WORKER = {
    "key.converter": JSON,
    "value.converter": JSON,
    "bootstrap.servers": "127.0.0.1:1",
    "icestream.file.connectors.enabled": "true",
}
SOURCE = {"connector.class": "FileStreamSource", "file": "in.txt", "topic": "t"}
ICEBERG = {
    "connector.class": "io.tabular.iceberg.connect.IcebergSinkConnector",
    "topics": "t",
    "iceberg.tables": "db.t",
    "iceberg.catalog.type": "rest",
    "iceberg.catalog.uri": "http://127.0.0.1:1",
}


def check(config: Any) -> list[Problem]:
    return probe_connector(config, WORKER, 0.5)


@pytest.fixture(scope="module")
def server() -> Iterator[RestServer]:
    extras = Extras(deep_check=check, patience=Patience(2.0, 2.0))
    service = ConnectorService("127.0.0.1:8083", MemoryStore(), WORKER, extras=extras)
    service.connectors.use(FakeManagers())
    service.ready()
    running = serve(service)
    yield running
    running.stop()
    service.close()


@pytest.fixture
def api(server: RestServer, caplog: pytest.LogCaptureFixture) -> Iterator[httpx.Client]:
    """Whatever a test does, nothing is logged as an error: an attack is the client's fault."""
    with httpx.Client(base_url=server.url, trust_env=False, timeout=120) as client:
        yield client
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.parametrize("depth", [102, 300, 600, 900])
def test_deep_offsets(api: httpx.Client, depth: int) -> None:
    # As text: a depth that our own encoder would not write.
    offset = '{"x":' * depth + "1" + "}" * depth
    body = f'{{"offsets":[{{"partition":{{"filename":"a"}},"offset":{offset}}}]}}'
    answer = api.patch("/connectors/c/offsets", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400, answer.text
    assert "nested deeper than 100 levels" in answer.json()["message"]


def test_a_number_of_a_million_digits(api: httpx.Client) -> None:
    number = "1" * 10**6
    body = f'{{"offsets":[{{"partition":{{"filename":"a"}},"offset":{{"position":{number}}}}}]}}'
    answer = api.patch("/connectors/c/offsets", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, "1000000 digits" in answer.text) == (400, True)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("iceberg.catalog.uri", "http://[::1", "is not an address"),
        ("iceberg.catalog.uri", "jdbc:postgresql://[::1", "is not an address"),
        ("iceberg.catalog.uri", "http://a:99999999", "is not an address"),
        ("iceberg.catalog.warehouse", "s3://[::1/x", "is not an address"),
        ("iceberg.catalog.s3.endpoint", "http://[::1", "is not an address"),
        ("iceberg.catalog.uri", "http://inner:80\\@catalog.example.com/", "has a backslash"),
        ("iceberg.catalog.uri", "http://inner:80 @catalog.example.com/", "has a backslash or a blank"),
        ("iceberg.catalog.warehouse", "/tmp/a\0b", "has a NUL character"),
        ("value.schema.file", "/tmp/a\0b", "has a NUL character"),
        ("transforms", ",".join(map(str, range(101))), "names 101; at most 100"),
        ("iceberg.tables", ",".join(map(str, range(5001))), "names 5001; at most 5000"),
        ("topics", "t" * 2**20, "bytes; at most 1048576"),
    ],
)
def test_values_that_cannot_be(api: httpx.Client, key: str, value: str, reason: str) -> None:
    answer = api.post("/connectors", json={"name": "c", "config": {**ICEBERG, key: value}})
    assert answer.status_code == 400, answer.text
    assert reason in answer.json()["message"]
    assert api.get("/connectors").json() == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("value.converter.schema.registry.url", "http://a:8081,https://b:8081/x"),
        ("iceberg.catalog.uri", "jdbc:postgresql://a:5432,b:5432/db?user=u"),
        ("iceberg.catalog.uri", "http://[::1]:8181"),
        ("iceberg.catalog.warehouse", "s3://arn:aws:s3:eu-west-1:123:accesspoint/x"),
        ("iceberg.catalog.warehouse", "/data/[a],b"),
        ("iceberg.catalog.warehouse", "file:///data/my files/a\\b"),
    ],
)
def test_values_that_can_be(key: str, value: str) -> None:
    assert place_problems({key: value}) == []


def test_an_error_repeats_no_password() -> None:
    (problem,) = place_problems({"iceberg.catalog.uri": "http://user:pass@host:secret/x"})
    assert "secret" not in problem.message and "pass" not in problem.message


def test_a_file_with_a_nul(api: httpx.Client) -> None:
    answer = api.put("/connectors/c/config", json={**SOURCE, "file": "a\0b"})
    assert (answer.status_code, "NUL" in answer.text) == (400, True)


@pytest.mark.parametrize("path", ["/connectors/%00", "/connectors/a%00b/status", "/admin/loggers/%00"])
def test_a_path_with_a_nul(api: httpx.Client, path: str) -> None:
    assert api.get(path).status_code == 400


def test_a_body_of_millions_of_values(api: httpx.Client) -> None:
    answer = api.post(
        "/connectors", content=b"[" + b"1," * 2_000_000 + b"1]", headers={"Content-Type": "application/json"}
    )
    assert (answer.status_code, "more than 200000 values" in answer.text) == (400, True)


def test_twenty_bodies_of_five_megabytes_at_once(api: httpx.Client) -> None:
    """All are answered, and others are answered meanwhile."""
    bodies = [
        b'{"a":[' + b"1," * (5 * 2**19 - 10) + b"1]}",
        b'{"a":"' + b"x" * (5 * 2**20 - 10) + b'"}',
        b"[" * (5 * 2**20),
        json.dumps({f"k{number}": "x" * 1000 for number in range(4_990)}).encode(),
    ]
    headers = {"Content-Type": "application/json"}

    def send(number: int) -> int:
        path = "/connectors/c/config" if number % 2 else "/connector-plugins/FileStreamSource/config/validate"
        return api.put(path, content=bodies[number % 4], headers=headers).status_code

    with ThreadPoolExecutor(20) as pool:
        running = [pool.submit(send, number) for number in range(20)]
        while not all(one.done() for one in running):
            assert api.get("/connectors").json() == []
        assert {one.result() for one in running} <= {400, 500}


def test_a_client_that_goes_away_is_no_error(api: httpx.Client, server: RestServer) -> None:
    for sent in (b"POST /connectors HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{", b"GET / HT", b""):
        with socket.create_connection((server.host, server.port)) as connection:
            connection.sendall(sent)
    # The server has seen that they are gone when it answers somebody who came later, or soon after.
    assert api.get("/connectors").status_code == 200
    time.sleep(0.2)
