"""A real Schema Registry for tests: Apicurio, which speaks Confluent's API; and a door that wants
credentials."""

from __future__ import annotations

import base64
import signal
import ssl
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

import httpx

from icestream.embedded import ports
from icestream.embedded.java import java
from icestream.embedded.process import spawn
from tests.java_libraries import fetch

_READY_S: Final = 240.0


@contextmanager
def running_registry(folder: Path) -> Iterator[str]:
    """The address of a registry that forgets everything when it stops."""
    archive = next(fetch("registry").iterdir())
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    port = ports.free_port()
    log = folder / "registry.log"
    command = [
        *(java(), "-Xmx256m", "-XX:TieredStopAtLevel=1"),
        *(f"-Dquarkus.http.host={ports.HOST}", f"-Dquarkus.http.port={port}"),
        *("-jar", str(next(folder.glob("*-runner.jar")))),
    ]
    process = spawn(command, output=log, die_with_parent=True)
    try:
        url = f"http://{ports.HOST}:{port}/apis/ccompat/v7"
        deadline = time.monotonic() + _READY_S
        while not _answers(url):
            assert process.is_alive(), log.read_text()[-2000:]
            assert time.monotonic() < deadline, log.read_text()[-2000:]
            time.sleep(0.2)
        yield url
    finally:
        process.send(signal.SIGTERM)
        if not process.wait(10):
            process.send(signal.SIGKILL)


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/subjects", timeout=30).is_success
    except httpx.HTTPError:
        return False


@dataclass
class Door:
    """A server before another that lets in who shows the right `Authorization`; counts the others."""

    url: str
    refused: list[str] = field(default_factory=list)
    is_away: bool = False
    """Whether nobody is let in for now."""


@contextmanager
def guarded(target: str, authorization: str, tls: ssl.SSLContext | None = None) -> Iterator[Door]:
    door = Door("")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._forward()

        def do_POST(self) -> None:
            self._forward()

        def _forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            given = self.headers.get("Authorization", "")
            if door.is_away:
                self._answer(503, b"")
                return
            if given != authorization:
                door.refused.append(given)
                self._answer(401, b'{"error_code":401,"message":"Unauthorized"}')
                return
            sent = httpx.request(
                self.command,
                f"{target}{self.path}",
                content=body,
                headers={"Content-Type": "application/vnd.schemaregistry.v1+json"},
                timeout=90,
            )
            self._answer(sent.status_code, sent.content)

        def _answer(self, status: int, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            return

    with ThreadingHTTPServer((ports.HOST, 0), Handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        door.url = f"{'http' if tls is None else 'https'}://{ports.HOST}:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield door
        finally:
            server.shutdown()
            thread.join()


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
