"""A server that says what a test tells it to, for what our own REST API never says."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


@dataclass(frozen=True)
class Request:
    verb: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class Canned:
    """Answers by verb and path: a status and a body, of bytes or of JSON. Keeps every request."""

    server: ThreadingHTTPServer
    answers: dict[tuple[str, str], tuple[int, Any]] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)

    @property
    def port(self) -> int:
        return int(self.server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def say(self, verb: str, path: str, status: int, body: Any = None) -> None:
        self.answers[verb, path] = (status, body)

    def asked(self) -> list[str]:
        return [f"{request.verb} {request.path}" for request in self.requests]


@pytest.fixture
def canned() -> Iterator[Canned]:
    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            sent = self.rfile.read(length)
            headers = {name.lower(): value for name, value in self.headers.items()}
            found.requests.append(
                Request(self.command, self.path, headers, json.loads(sent) if sent else None)
            )
            status, body = found.answers.get((self.command, self.path), (404, {"message": "not canned"}))
            raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
            self.send_response(status)
            for name, value in found.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = answer

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found = Canned(server)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield found
    found.close()
    thread.join()


@pytest.fixture(autouse=True)
def lines_of_no_worker() -> Iterator[None]:
    """A worker that another test ran in this process has given its name to all lines."""
    from icestream.logs import context

    before = context.worker()
    context.of_worker("")
    yield
    context.of_worker(before)
