"""A Maven repository and a proxy on loopback: they record what they are asked, and can break transfers."""

from __future__ import annotations

import hashlib
import json
import re
import select
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from icestream.java_artifacts import Coordinate
from tests.kubernetes.certificates import Pair


@dataclass
class Repository:
    """What it has, and how it misbehaves."""

    files: dict[str, bytes]
    """By their paths."""
    url: str = ""
    cut_after: int | None = None
    """Each answer ends after so many bytes, without the rest that it has announced."""
    statuses: list[int] = field(default_factory=list)
    """Of the first answers, in place of files."""
    takes_ranges: bool = True
    login: str | None = None
    """The value of `Authorization` without which it refuses."""
    together: threading.Barrier | None = None
    """So many requests are answered only once all of them are here."""
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    """Paths and ranges."""


@contextmanager
def running_repository(files: Mapping[str, bytes], tls: Pair | None = None) -> Iterator[Repository]:
    repository = Repository(dict(files))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            repository.asked.append((self.path, wanted))
            if repository.together is not None:
                repository.together.wait(60)
            if repository.login is not None and self.headers.get("Authorization") != repository.login:
                return self._answer(401, b"")
            if repository.statuses:
                return self._answer(repository.statuses.pop(0), b"not now")
            content = repository.files.get(self.path.removeprefix("/maven2/"))
            if content is None:
                return self._answer(404, b"not found")
            start = re.fullmatch(r"bytes=(\d+)-", wanted or "")
            if start and repository.takes_ranges:
                return self._answer(206, content[int(start[1]) :])
            self._answer(200, content)

        def _answer(self, status: int, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if repository.cut_after is not None and len(content) > repository.cut_after:
                self.wfile.write(content[: repository.cut_after])
                self.close_connection = True
                return
            self.wfile.write(content)

        def log_message(self, *given: Any) -> None:
            pass

    with _running(Handler, tls) as port:
        repository.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}/maven2"
        yield repository


@dataclass
class Proxy:
    url: str = ""
    asked: list[str] = field(default_factory=list)
    """The places to which it was to connect."""


@contextmanager
def running_proxy() -> Iterator[Proxy]:
    proxy = Proxy()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_CONNECT(self) -> None:
            proxy.asked.append(self.path)
            host, _, port = self.path.rpartition(":")
            with socket.create_connection((host, int(port)), timeout=60) as there:
                self.send_response(200)
                self.end_headers()
                here = self.connection
                while True:
                    for each in select.select([here, there], [], [])[0]:
                        data = each.recv(65536)
                        if not data:
                            self.close_connection = True
                            return
                        (there if each is here else here).sendall(data)

        def log_message(self, *given: Any) -> None:
            pass

    with _running(Handler, None) as port:
        proxy.url = f"http://127.0.0.1:{port}"
        yield proxy


@contextmanager
def _running(handler: type[BaseHTTPRequestHandler], tls: Pair | None) -> Iterator[int]:
    class Server(ThreadingHTTPServer):
        request_queue_size = 128

        def get_request(self) -> tuple[socket.socket, Any]:
            connection, address = super().get_request()
            if tls:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(tls.certificate, tls.key)
                # Shaken by the thread of the connection: this one accepts others.
                return context.wrap_socket(connection, True, do_handshake_on_connect=False), address
            return connection, address

        def handle_error(self, *given: Any) -> None:
            """Clients that refuse a certificate go away."""

    server = Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def lock_of(path: Path, files: Mapping[str, bytes], **sets: list[str]) -> Path:
    """A lock file with sets of coordinates, whose contents are those of a repository."""
    lines = []
    for name, coordinates in sets.items():
        lines += [f"[sets.{name}]", f"roots = {json.dumps(coordinates[:1])}"]
    lines.append("[artifacts]")
    for coordinate in dict.fromkeys(one for coordinates in sets.values() for one in coordinates):
        content = files[Coordinate.parse(coordinate).path]
        names = [name for name, coordinates in sets.items() if coordinate in coordinates]
        digest = hashlib.sha256(content).hexdigest()
        lines.append(
            f'"{coordinate}" = {{ size = {len(content)}, sha256 = "{digest}", sets = {json.dumps(names)} }}'
        )
    path.write_text("\n".join(lines) + "\n")
    return path
