"""Random requests, well-formed and not, sent to a worker's REST: it answers each, and nothing is an ERROR.

The seed is printed; ICESTREAM_FUZZ_SEED repeats a run.
"""

from __future__ import annotations

import json
import logging
import os
import random
import re
import socket
import string
import time
from collections.abc import Iterator
from typing import Any, Final

import httpx
import pytest

from icestream.api.offset_admin import OffsetEntry
from icestream.cluster.connector_registry import Patience
from icestream.cluster.service import ConnectorService, Extras
from icestream.cluster.stores.connector_store import MemoryStore
from icestream.jobs.probes import probe_connector
from icestream.rest.app import TABLE
from icestream.rest.server import RestServer, serve
from icestream.testing import FakeManagers

SERVERS: Final = ("icestream.rest", "uvicorn", "asyncio")
PATIENCE: Final = 60.0
JSON: Final = "org.apache.kafka.connect.json.JsonConverter"
WORKER: Final = {
    "key.converter": JSON,
    "value.converter": JSON,
    "bootstrap.servers": "127.0.0.1:1",
    "icestream.file.connectors.enabled": "true",
}
NAMES: Final = ("c", "a b", "größe", "..", "%", "a/b", "\0", "x" * 300, "🚀", "", "a#b", "a?b", "{}", "null")
TEXTS: Final = (
    "",
    " ",
    "t",
    "-1",
    "0",
    "1e999",
    "true",
    "\0",
    "\ud800",
    "ü" * 50,
    "x" * 5000,
    "a,b,,c",
    "(a+)+b",
    "a{99999999999}",
    "(" * 500,
    "[",
    "http://[::1",
    "/dev/zero",
    "../../etc/passwd",
    "${file:/etc/passwd:x}",
    "${",
    "$1",
    "%s%n",
    "2147483647",
    "9" * 400,
    "jdbc:postgresql://[::1",
    "s3://[",
    "org.apache.kafka.connect.transforms.Cast$Value",
    "io.confluent.connect.avro.AvroConverter",
    "subprocess.getoutput",
    "Infinity",
    "None",
    "٣",
)
KEYS: Final = (
    "name",
    "connector.class",
    "tasks.max",
    "topics",
    "topics.regex",
    "file",
    "topic",
    "batch.size",
    "transforms",
    "transforms.a.type",
    "transforms.a.regex",
    "transforms.a.replacement",
    "predicates",
    "predicates.p.type",
    "errors.tolerance",
    "errors.deadletterqueue.topic.name",
    "key.converter",
    "value.converter",
    "header.converter",
    "value.converter.schema.registry.url",
    "iceberg.tables",
    "iceberg.catalog.type",
    "iceberg.catalog.uri",
    "iceberg.catalog.warehouse",
    "iceberg.catalog.py-io-impl",
    "iceberg.tables.route-field",
    "iceberg.control.commit.interval-ms",
    "iceberg.table.db.t.partition-by",
    "consumer.override.bootstrap.servers",
    "consumer.override.plugin.library.paths",
    "producer.override.linger.ms",
    "value.schema.inline",
    "value.schema.file",
    "icestream.unknown.keys",
    "icestream.commit.rows",
    "config.action.reload",
    "level",
    "",
)
CONFIGS: Final[tuple[dict[str, str], ...]] = (
    {"connector.class": "FileStreamSource", "file": "none", "topic": "t"},
    {
        "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
        "file": "none",
        "topics": "t",
    },
    {
        "connector.class": "io.tabular.iceberg.connect.IcebergSinkConnector",
        "topics": "t",
        "iceberg.tables": "db.t",
        "iceberg.catalog.type": "rest",
        "iceberg.catalog.uri": "http://127.0.0.1:1",
    },
    {"connector.class": "NoSuch"},
)
CLASSES: Final = tuple(config["connector.class"] for config in CONFIGS)
PARAMETERS: Final = ("expand", "forward", "scope", "includeTasks", "onlyFailed", "connectorsOnly")
ARGUMENTS: Final = ("status", "info", "progress", "true", "false", "cluster", "", "%00", "x" * 200)
VERBS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "get", "X" * 100)
TYPES: Final = (
    "application/json",
    "application/json; charset=utf-8",
    "text/plain",
    "a/b/c",
    "",
    "*/*",
    "\x80",
)


class Offsets:
    """Takes and gives what was given."""

    def __init__(self) -> None:
        self.entries: list[OffsetEntry] = []

    def read(self, name: str, config: Any) -> list[OffsetEntry]:
        return self.entries

    def alter(self, name: str, config: Any, entries: Any) -> str:
        self.entries = list(entries)
        return "altered"

    def reset(self, name: str, config: Any) -> str:
        return "reset"


@pytest.fixture(scope="module")
def server() -> Iterator[RestServer]:
    extras = Extras(
        deep_check=lambda config: probe_connector(config, WORKER, 0.3),
        offsets=Offsets(),
        patience=Patience(2.0, 2.0),
    )
    service = ConnectorService("127.0.0.1:8083", MemoryStore(), WORKER, extras=extras)
    service.connectors.use(FakeManagers())
    service.ready()
    running = serve(service)
    yield running
    running.stop()
    service.close()


class Fuzzer:
    """One random request after the other."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def request(self) -> tuple[bytes, bool]:
        """What to send, and whether it is whole: otherwise the server may wait for the rest."""
        chance = self._chance
        verb, template = chance.choice(list(TABLE))
        if chance.random() < 0.2:
            verb = chance.choice(VERBS)
        body = b"" if verb in ("GET", "HEAD") and chance.random() < 0.9 else self._body(template)
        head = f"{verb} {self._target(template)} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        kind = TYPES[0] if chance.random() < 0.85 else chance.choice(TYPES)
        head += f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        if chance.random() < 0.1:
            head += f"Accept: {chance.choice(TYPES)}\r\n"
        if chance.random() < 0.1:
            head += f"Authorization: {self._text()}\r\n".replace("\0", "")
        whole = head.encode(errors="replace") + b"\r\n" + body
        return (self._damaged(whole), False) if chance.random() < 0.15 else (whole, True)

    def _target(self, template: str) -> str:
        chance = self._chance

        def segment(match: re.Match[str]) -> str:
            name = "c" if chance.random() < 0.6 else chance.choice((*NAMES, *CLASSES))
            return httpx.QueryParams({"x": name}).__str__()[2:].replace("+", "%20") or "c"

        path = re.sub(r"{\w+}", segment, template)
        if chance.random() < 0.1:
            path += chance.choice(("/", "//", "#/tasks", ";a=b", "?", "%00", "/..", "/%2e%2e", "%zz"))
        if chance.random() < 0.3:
            path += "?" + "&".join(
                f"{chance.choice(PARAMETERS)}={chance.choice(ARGUMENTS)}" for _ in range(chance.randint(1, 4))
            )
        return path

    def _body(self, template: str) -> bytes:
        chance = self._chance
        if chance.random() < 0.15:
            return json.dumps(self._value(0)).encode()
        if template.endswith("/offsets"):
            entry = {"partition": self._value(1), "offset": self._value(1)}
            document: Any = {"offsets": [entry] * chance.randint(0, 3)}
        else:
            document = self._config()
            if template == "/connectors":
                document = {
                    "name": "c" if chance.random() < 0.6 else chance.choice(NAMES),
                    "config": document,
                }
                if chance.random() < 0.3:
                    document["initial_state"] = self._text()
        return json.dumps(document).encode()

    def _config(self) -> dict[str, Any]:
        chance = self._chance
        config: dict[str, Any] = dict(chance.choice(CONFIGS))
        for _ in range(chance.choice((0, 1, 1, 2, 6))):
            config[chance.choice(KEYS)] = self._text() if chance.random() < 0.9 else self._value(1)
        if chance.random() < 0.1:
            config["transforms"] = "a"
        return config

    def _text(self) -> str:
        if self._chance.random() < 0.8:
            return self._chance.choice(TEXTS)
        return "".join(self._chance.choices(string.printable, k=self._chance.randint(1, 30)))

    def _value(self, depth: int) -> Any:
        chance = self._chance
        kind = chance.randint(0, 7 if depth < 6 else 4)
        if kind <= 1:
            return self._text()
        if kind == 2:
            return chance.choice((0, -1, 1.5, 1e300, 10**30, 10**500, float("nan")))
        if kind <= 4:
            return chance.choice((None, True, False))
        if kind == 5:
            return [self._value(depth + 1) for _ in range(chance.randint(0, 3))]
        return {chance.choice(KEYS): self._value(depth + 1) for _ in range(chance.randint(0, 3))}

    def _damaged(self, whole: bytes) -> bytes:
        chance = self._chance
        at = chance.randrange(len(whole))
        if chance.random() < 0.5:
            # Cut off: the client leaves in the middle.
            return whole[:at]
        return whole[:at] + chance.randbytes(chance.randint(1, 8)) + whole[at + 1 :]


def answer(server: RestServer, request: bytes, is_whole: bool) -> bytes:
    with socket.create_connection((server.host, server.port), timeout=PATIENCE) as connection:
        try:
            connection.sendall(request)
            if not is_whole:
                # The client leaves, whatever the server is waiting for.
                connection.shutdown(socket.SHUT_WR)
            found = b""
            while data := connection.recv(65_536):
                found += data
            return found
        except ConnectionError:
            return b""


def fuzz(server: RestServer, caplog: pytest.LogCaptureFixture, count: int) -> None:
    seed = int(os.environ.get("ICESTREAM_FUZZ_SEED", time.time_ns() % 1_000_000))
    print("ICESTREAM_FUZZ_SEED", seed)
    fuzzer = Fuzzer(random.Random(seed))
    for number in range(count):
        caplog.clear()
        request, is_whole = fuzzer.request()
        found = answer(server, request, is_whole)
        errors = [
            record.getMessage()
            for record in caplog.records
            if record.levelno >= logging.ERROR and record.name.startswith(SERVERS)
        ]
        assert not errors, (seed, number, request, errors)
        is_answer = re.match(rb"HTTP/1\.1 [2-5]\d\d ", found) is not None
        assert is_answer or not (is_whole or found), (seed, number, request, found[:200])
    with httpx.Client(base_url=server.url, trust_env=False, timeout=PATIENCE) as client:
        assert client.get("/health").status_code == 200


def test_300_random_requests(server: RestServer, caplog: pytest.LogCaptureFixture) -> None:
    fuzz(server, caplog, 300)


@pytest.mark.long
def test_20_000_random_requests(server: RestServer, caplog: pytest.LogCaptureFixture) -> None:
    fuzz(server, caplog, 20_000)
