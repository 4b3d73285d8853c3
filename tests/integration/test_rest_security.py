"""Listeners, TLS, users, CORS and headers beside the real Kafka Connect 4.3.1, both with the same config."""

from __future__ import annotations

import base64
import http.client
import ssl
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import pytest

from icestream.cluster.configs.properties import read_properties
from icestream.cluster.service import ConnectorService
from icestream.cluster.settings.rest_settings import parse_rest
from icestream.embedded import kafka
from icestream.embedded.certificates import certificates
from icestream.embedded.java import java
from icestream.embedded.ports import free_port
from icestream.rest.server import bind, serve
from tests.java_libraries import fetch

pytestmark = [pytest.mark.slow, pytest.mark.network]

_PREFIX: Final = "org.apache.kafka.connect.rest.basic.auth.extension"
_READY_S: Final = 240.0
_VOLATILE: Final = (
    "server",
    "date",
    "content-length",
    "transfer-encoding",
    "connection",
    "expires",
    "x-later",
)


@dataclass(frozen=True)
class Worker:
    """Its ports: the same three listeners on either side."""

    http: int
    https: int
    admin: int


@dataclass(frozen=True)
class Answer:
    status: int
    headers: tuple[tuple[str, str], ...]
    body: str


@dataclass(frozen=True)
class Version:
    version: str = "ours"


class NoConnectors:
    """As much of a service as is asked for here; what it says itself is not compared."""

    def server(self) -> Version:
        return Version()

    def names(self) -> list[str]:
        return []

    def loggers(self) -> dict[str, object]:
        return {}


def config(folder: Path, ports: Worker, more: Mapping[str, str]) -> Path:
    """The worker's file, for both sides."""
    stores = certificates(folder / "stores", "hush-hush")
    users = folder / "users.properties"
    users.write_text("alice=wonder land\nbob=b:ob\n")
    (folder / "jaas.conf").write_text(
        f'KafkaConnect {{ {_PREFIX}.PropertyFileLoginModule required file="{users}"; }};\n'
    )
    converter = "org.apache.kafka.connect.json.JsonConverter"
    keys = {
        "key.converter": converter,
        "value.converter": converter,
        "offset.storage.file.filename": str(folder / f"offsets-{ports.http}"),
        "listeners": f"http://127.0.0.1:{ports.http},https://127.0.0.1:{ports.https}",
        "admin.listeners": f"http://127.0.0.1:{ports.admin}",
        "listeners.https.ssl.keystore.location": str(stores.keystore),
        "listeners.https.ssl.keystore.type": "PKCS12",
        "listeners.https.ssl.keystore.password": stores.password,
        "access.control.allow.origin": r"http://ui.example.com,https://.*\\.good\\.org",
        "response.http.headers.config": (
            'set X-Frame-Options: DENY, "add Cache-Control: no-cache, no-store", add X-Twice: a,'
            "add X-Twice: b, setDate Expires: 0, addDate X-Later: 31540000000, SET  X-Odd :  spaced value ,"
            "add X-Set: a, set X-Set: b"
        ),
        "rest.extension.classes": f"{_PREFIX}.BasicAuthSecurityRestExtension",
        **more,
    }
    file = folder / f"worker-{ports.http}.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
    return file


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory, broker: kafka.Broker) -> Iterator[tuple[Worker, Worker]]:
    """The real one and ours."""
    folder = tmp_path_factory.mktemp("security")
    with ExitStack() as stack:
        real = Worker(*free_ports(3))
        file = config(folder, real, {"bootstrap.servers": broker.bootstrap})
        stack.enter_context(kafka_connect(file, folder, real))
        ours = Worker(*free_ports(3))
        raw = read_properties(config(folder, ours, {}))
        options = f"-Djava.security.auth.login.config={folder / 'jaas.conf'}"
        server = serve(cast(ConnectorService, NoConnectors()), bind(parse_rest(raw, {"KAFKA_OPTS": options})))
        stack.callback(server.stop)
        yield real, ours


def free_ports(count: int) -> list[int]:
    found: list[int] = []
    for _ in range(count):
        found.append(free_port(avoid=found))
    return found


@contextmanager
def kafka_connect(file: Path, folder: Path, ports: Worker) -> Iterator[None]:
    library = fetch("kafka-connect-logins")
    command = [
        *(java(), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
        f"-Djava.security.auth.login.config={folder / 'jaas.conf'}",
        *("-cp", f"{library}/*", "org.apache.kafka.connect.cli.ConnectStandalone", str(file)),
    ]
    log = folder / "connect.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + _READY_S
        while not is_ready(ports):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"Kafka Connect did not start: {log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.2)
        yield
    finally:
        process.kill()
        process.wait(60)


def is_ready(ports: Worker) -> bool:
    try:
        return asked(ports.admin, "GET", "/admin/loggers").status == 200
    except OSError:
        return False


def asked(
    port: int, method: str, path: str, headers: Mapping[str, str] | None = None, tls: bool = False
) -> Answer:
    connection: Any
    if tls:
        connection = http.client.HTTPSConnection(
            "127.0.0.1", port, timeout=90, context=ssl._create_unverified_context()
        )
    else:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=90)
    try:
        connection.request(method, path, headers={"Connection": "close", **(headers or {})})
        response = connection.getresponse()
        shown = sorted(
            (name.lower(), value) for name, value in response.getheaders() if name.lower() not in _VOLATILE
        )
        return Answer(response.status, tuple(shown), response.read().decode())
    finally:
        connection.close()


def user(text: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(text.encode()).decode()}


ALICE: Final = user("alice:wonder land")
UI: Final = {"Origin": "http://ui.example.com"}
PREFLIGHT: Final = {**UI, "Access-Control-Request-Method": "POST"}
REQUESTS: Final[tuple[tuple[str, str, Mapping[str, str]], ...]] = (
    ("GET", "/", {}),
    ("GET", "/", ALICE),
    ("GET", "/", user("bob:b:ob")),
    ("GET", "/", user("alice:bad")),
    ("GET", "/", user("nobody:x")),
    ("GET", "/", user("alice")),
    ("GET", "/", user(":")),
    ("GET", "/", {"Authorization": "Basic"}),
    ("GET", "/", {"Authorization": "Bearer Ym9iOmI6b2I="}),
    ("GET", "/", {"Authorization": "basic Ym9iOmI6b2I="}),
    ("GET", "/", {"Authorization": "Basic Ym9iOmI6b2I"}),
    ("HEAD", "/connectors", {}),
    ("GET", "/connectors/", {}),
    ("GET", "/connectors/x/status", {}),
    ("DELETE", "/connectors/x", {}),
    ("PUT", "/connectors/x/pause", {}),
    ("POST", "/connectors/x/restart", {}),
    ("GET", "/nope", {}),
    ("GET", "/nope", ALICE),
    ("DELETE", "/", {}),
    ("OPTIONS", "/connectors", {}),
    ("GET", "/admin/loggers", ALICE),
    ("GET", "/", {**ALICE, **UI}),
    ("GET", "/", UI),
    ("GET", "/", {**ALICE, "Origin": "https://a.good.org"}),
    ("GET", "/", {**ALICE, "Origin": "https://good.org"}),
    ("GET", "/", {**ALICE, "Origin": "HTTP://UI.example.com"}),
    ("GET", "/", {**ALICE, "Origin": "http://ui.example.com http://evil.org"}),
    ("GET", "/", {**ALICE, "Origin": "http://evil.org"}),
    ("GET", "/", {**ALICE, **PREFLIGHT}),
    ("OPTIONS", "/connectors", {**ALICE, **PREFLIGHT}),
    ("OPTIONS", "/connectors", PREFLIGHT),
    ("OPTIONS", "/connectors", {**ALICE, **PREFLIGHT, "Access-Control-Request-Headers": "authorization"}),
    ("OPTIONS", "/connectors", {**ALICE, **PREFLIGHT, "Access-Control-Request-Method": "PUT"}),
    ("OPTIONS", "/connectors", {**ALICE, **UI}),
    ("OPTIONS", "/connectors", {**ALICE, **PREFLIGHT, "Origin": "http://evil.org"}),
)


def steady(answer: Answer, path: str) -> Answer:
    """Sets in the order of their names, and no word of what the service says itself."""
    headers = tuple(
        (
            name,
            ",".join(sorted(value.split(",")))
            if name in ("allow", "access-control-allow-methods")
            else value,
        )
        for name, value in answer.headers
    )
    body = "" if answer.status == 200 else answer.body
    return Answer(answer.status, headers, body)


@pytest.mark.parametrize("tls", [False, True])
def test_both_answer_the_same(sides: tuple[Worker, Worker], tls: bool) -> None:
    different = []
    for method, path, headers in REQUESTS:
        real, ours = (
            steady(asked(side.https if tls else side.http, method, path, headers, tls), path)
            for side in sides
        )
        if real != ours:
            different.append((method, path, headers, real, ours))
    assert different == []


@pytest.mark.parametrize("path", ["/", "/connectors", "/admin/loggers", "/nope"])
def test_both_keep_admin_apart_and_plain(sides: tuple[Worker, Worker], path: str) -> None:
    real, ours = (steady(asked(side.admin, "GET", path, UI), path) for side in sides)
    assert real == ours


def test_both_end_plain_http_on_the_https_port(sides: tuple[Worker, Worker]) -> None:
    for side in sides:
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            asked(side.https, "GET", "/", ALICE)
