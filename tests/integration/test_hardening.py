"""The config of docs/hardening.md, started as it is there and attacked.

A process of its own with few file descriptors, over jobs that only pretend: what is attacked is REST.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import resource
import socket
import ssl
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import httpx
import pytest
from starlette.routing import Route

from icestream.cluster.service import ConnectorService
from icestream.embedded.certificates import certificates
from icestream.embedded.ports import free_port
from icestream.rest.app import build_app
from icestream.rest.connections import raise_file_limit

PATIENCE = 120.0
FEW_FILES = 1024
PAGE = Path(__file__).parents[2] / "docs" / "hardening.md"
ALICE = ("alice", "wonder-land-1")
SECRETS = {"kafka": "kafka-hush-1", "stores": "stores-hush-1"}
PROGRAM = """
import resource, sys
from pathlib import Path
from icestream.cli.standalone import StandaloneWorker
from icestream.cli.worker_process import DataPlane, prepare_process, run_until_told
from icestream.cluster.configs.properties import read_properties
from icestream.cluster.settings.worker_config import parse_standalone
from icestream.testing import FakeManagers

resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[2]), int(sys.argv[2])))
config = parse_standalone(read_properties(Path(sys.argv[1])))
prepare_process(config, None)
run_until_told(StandaloneWorker(config, [], DataPlane(FakeManagers, lambda _: [])))
"""


@dataclass(frozen=True)
class Hardened:
    port: int
    folder: Path
    trust: ssl.SSLContext
    process: subprocess.Popen[bytes]

    def client(self, login: tuple[str, str] | None = ALICE) -> httpx.Client:
        return httpx.Client(
            base_url=f"https://127.0.0.1:{self.port}",
            verify=self.trust,
            auth=login,
            trust_env=False,
            timeout=PATIENCE,
        )

    @property
    def log(self) -> str:
        return (self.folder / "worker.log").read_text(errors="replace")

    @property
    def audit(self) -> Path:
        return self.folder / "lib" / "audit.log"


def from_the_page(folder: Path, port: int) -> str:
    """The config of the page with this machine's folders and port, and nothing else."""
    block = re.search(r"```properties\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert block is not None
    text = block[1].replace("/etc/icestream", f"{folder}/etc").replace("/var/lib/icestream", f"{folder}/lib")
    text = text.replace("listeners=https://:8443", f"listeners=https://:{port}")
    return text.replace("kafka.example.com:9093", "127.0.0.1:1")


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hardened]:
    folder = tmp_path_factory.mktemp("hardened")
    (folder / "lib").mkdir()
    stores = certificates(folder / "etc", SECRETS["stores"])
    stores.keystore.rename(folder / "etc" / "keystore.p12")
    stores.truststore_pkcs12.rename(folder / "etc" / "truststore.p12")
    (folder / "etc" / "secrets.properties").write_text("".join(f"{k}={v}\n" for k, v in SECRETS.items()))
    (folder / "etc" / "users.properties").write_text("=".join(ALICE) + "\n")
    port = free_port()
    (folder / "worker.properties").write_text(from_the_page(folder, port))
    with (folder / "worker.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(folder / "worker.properties"), str(FEW_FILES)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    trust = ssl.create_default_context(cafile=str(stores.truststore_pem))
    started = Hardened(port, folder, trust, process)
    try:
        deadline = time.monotonic() + PATIENCE
        while not is_healthy(started):
            assert process.poll() is None and time.monotonic() < deadline, started.log
            time.sleep(0.1)
        yield started
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()


def is_healthy(worker: Hardened) -> bool:
    try:
        with worker.client() as client:
            return client.get("/health").status_code == 200
    except httpx.TransportError:
        return False


def test_it_starts_without_a_warning(worker: Hardened) -> None:
    assert [line for line in worker.log.splitlines() if "can be reached" in line or " ERROR " in line] == []
    with worker.client() as client:
        assert client.get("/health").json()["message"].endswith("ready to handle requests.")


def test_no_route_answers_without_a_login(worker: Hardened) -> None:
    with worker.client(None) as nobody, worker.client(("alice", "guess")) as guessing:
        for route in build_app(cast(ConnectorService, object())).routes:
            assert isinstance(route, Route)
            if route.path.startswith("/admin"):
                continue
            for verb in route.methods or ():
                path = re.sub(r"{\w+}", "x", route.path)
                statuses = [one.request(verb, path).status_code for one in (nobody, guessing)]
                assert statuses == [401, 401], (verb, path)
        assert nobody.get("/admin/loggers").status_code == 404
    with worker.trust.wrap_socket(connected(worker), server_hostname="127.0.0.1") as raw:
        raw.sendall(b"POST /connectors/#/tasks HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
        assert raw.recv(100).startswith(b"HTTP/1.1 400")


def test_http_without_tls_gets_nothing(worker: Hardened) -> None:
    with connected(worker) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        with contextlib.suppress(ConnectionResetError):
            assert b"HTTP/1.1 200" not in raw.recv(100)


def test_the_audit_log_tells_it_all_and_only_its_owner(worker: Hardened) -> None:
    config = {"connector.class": "FileStreamSink", "topics": "t", "consumer.override.group.id": "other"}
    with worker.client(("alice", "guess-2")) as guessing, worker.client() as alice:
        assert guessing.delete("/connectors/audited").status_code == 401
        assert alice.put("/connectors/audited/config", json=config).status_code == 400
    lines = [line for line in worker.audit.read_text().splitlines() if "/connectors/audited" in line]
    assert len(lines) == 2
    assert 'login failed: user="alice" from=127.0.0.1:' in lines[0] and lines[0].endswith("result=401")
    assert 'user="alice"' in lines[1] and lines[1].endswith("PUT /connectors/audited/config result=400")
    assert lines[1] in worker.log
    assert stat.S_IMODE(worker.audit.stat().st_mode) == 0o600


def test_1300_idle_sockets_and_60_half_requests_stop_nobody(worker: Hardened) -> None:
    """More than the process has file descriptors; before, REST was dead and the log grew by 7 MB a second."""
    raise_file_limit()
    most = min(1300, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 400)
    before = len(worker.log)
    with ExitStack() as stack:
        for _ in range(most):
            stack.enter_context(connected(worker))
        with worker.client() as client:
            assert client.get("/connectors").json() == []
        for number in range(60):
            try:
                slow = stack.enter_context(
                    worker.trust.wrap_socket(connected(worker), server_hostname="127.0.0.1")
                )
                slow.sendall(b"GET / HTTP/1.1\r\nHost:")
            except OSError:
                # It was this one's turn to make room.
                continue
            if number % 20 == 0:
                with worker.client() as client:
                    assert client.get("/connectors").json() == []
        assert open_files(worker.process.pid) < FEW_FILES // 2
    assert len(worker.log) - before < 100_000
    assert worker.process.poll() is None


@pytest.mark.long
def test_all_attacks_at_once_for_a_minute(worker: Hardened) -> None:
    """Floods of sockets, half requests, large bodies, wrong logins and noise; somebody honest is answered."""
    raise_file_limit()
    seed = int(os.environ.get("ICESTREAM_FUZZ_SEED", time.time_ns() % 1_000_000))
    print("ICESTREAM_FUZZ_SEED", seed)
    before, end = len(worker.log), time.monotonic() + 60
    attacks = (idle_sockets, half_requests, large_bodies, wrong_logins, noise)
    with ThreadPoolExecutor(len(attacks)) as pool:
        running = [pool.submit(repeated, attack, worker, random.Random(seed), end) for attack in attacks]
        answered = 0
        while not all(one.done() for one in running):
            # Among 400 newer sockets of the same host it may be its turn to make room; clients ask again.
            with contextlib.suppress(httpx.TransportError), worker.client() as client:
                answered += client.get("/connectors").status_code == 200
        assert all(one.result() > 0 for one in running)
    assert answered > 10
    assert worker.process.poll() is None
    assert len(worker.log) - before < 1_000_000
    assert open_files(worker.process.pid) < FEW_FILES // 2
    with worker.client() as client:
        assert client.get("/health").status_code == 200


Attack = Callable[[Hardened, random.Random], None]


def repeated(attack: Attack, worker: Hardened, chance: random.Random, end: float) -> int:
    """How often it was made. That the worker hangs up on an attacker is what is wanted."""
    count = 0
    while time.monotonic() < end:
        with contextlib.suppress(OSError, httpx.TransportError):
            attack(worker, chance)
        count += 1
    return count


def idle_sockets(worker: Hardened, chance: random.Random) -> None:
    with ExitStack() as stack:
        for _ in range(400):
            stack.enter_context(connected(worker))
        time.sleep(0.5)


def half_requests(worker: Hardened, chance: random.Random) -> None:
    with ExitStack() as stack:
        for _ in range(20):
            slow = stack.enter_context(
                worker.trust.wrap_socket(connected(worker), server_hostname="127.0.0.1")
            )
            slow.sendall(b"POST /connectors HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")


def large_bodies(worker: Hardened, chance: random.Random) -> None:
    body = chance.choice((b"[" * 5 * 2**20, b'{"a":[' + b"1," * 2**20, b'{"a":"' + b"x" * 5 * 2**20))
    with worker.client() as client:
        headers = {"Content-Type": "application/json"}
        assert client.put("/connectors/c/config", content=body, headers=headers).status_code in (
            400,
            413,
            500,
        )


def wrong_logins(worker: Hardened, chance: random.Random) -> None:
    with worker.client(("alice", f"guess-{chance.random()}")) as client:
        for _ in range(50):
            assert client.delete("/connectors/c").status_code == 401


def noise(worker: Hardened, chance: random.Random) -> None:
    with worker.trust.wrap_socket(connected(worker), server_hostname="127.0.0.1") as raw:
        raw.sendall(chance.randbytes(chance.randint(1, 100_000)))


def test_no_secret_is_in_any_log(worker: Hardened) -> None:
    told = worker.log + worker.audit.read_text()
    assert [word for word in (*SECRETS.values(), ALICE[1], "guess") if word in told] == []


def connected(worker: Hardened) -> socket.socket:
    return socket.create_connection(("127.0.0.1", worker.port), timeout=PATIENCE)


def open_files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))
