"""Debian's container registry on this machine: open, behind a password, behind tokens; and a server that says
what a test wants it to."""

from __future__ import annotations

import base64
import json
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx

from icestream.embedded import ports
from icestream.embedded.process import spawn
from tests.kit.programs import require_program

USER, PASSWORD = "someone", "a-pass:word"
_READY_S = 120.0


@contextmanager
def running_registry(folder: Path, auth: dict[str, Any] | None = None) -> Iterator[str]:
    """Its host and port."""
    program = require_program("docker-registry")
    folder.mkdir(parents=True, exist_ok=True)
    port = ports.free_port()
    config: dict[str, Any] = {
        "version": 0.1,
        "log": {"level": "warn"},
        "storage": {"filesystem": {"rootdirectory": str(folder / "data")}, "delete": {"enabled": True}},
        "http": {"addr": f"{ports.HOST}:{port}"},
    }
    if auth:
        config["auth"] = auth
    (folder / "config.yml").write_text(json.dumps(config))
    log = folder / "registry.log"
    process = spawn([program, "serve", str(folder / "config.yml")], output=log, die_with_parent=True)
    try:
        deadline = time.monotonic() + _READY_S
        while not _answers(port):
            assert process.is_alive(), log.read_text()[-2000:]
            assert time.monotonic() < deadline, log.read_text()[-2000:]
            time.sleep(0.05)
        yield f"{ports.HOST}:{port}"
    finally:
        process.send(signal.SIGTERM)
        if not process.wait(10):
            process.send(signal.SIGKILL)


def _answers(port: int) -> bool:
    try:
        return httpx.get(f"http://{ports.HOST}:{port}/v2/", timeout=5).status_code in (200, 401)
    except httpx.HTTPError:
        return False


def password_file(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    made = subprocess.run(
        [require_program("htpasswd"), "-Bbn", "-C", "4", USER, PASSWORD],
        capture_output=True,
        check=True,
        timeout=60,
    )
    file = folder / "htpasswd"
    file.write_bytes(made.stdout)
    return file


def docker_config(host: str, user: str = USER, password: str = PASSWORD) -> bytes:
    packed = base64.b64encode(f"{user}:{password}".encode()).decode()
    return json.dumps({"auths": {host: {"auth": packed}}}).encode()


@dataclass
class Scripted:
    """A server that answers by a function, and remembers what it was asked."""

    port: int
    asked: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)

    @property
    def host(self) -> str:
        return f"{ports.HOST}:{self.port}"


Answer = tuple[int, dict[str, str], bytes]


@contextmanager
def scripted(answer: Callable[[str, str, dict[str, str]], Answer]) -> Iterator[Scripted]:
    """`answer(verb, path, headers)` gives status, headers and body."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", "0")))
            headers = {name.lower(): value for name, value in self.headers.items()}
            told.asked.append((self.command, self.path, headers))
            status, own, body = answer(self.command, self.path, headers)
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **own}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = _answer

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer((ports.HOST, 0), Handler)
    server.daemon_threads = True
    told = Scripted(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield told
    finally:
        server.shutdown()
        server.server_close()
        thread.join(30)
