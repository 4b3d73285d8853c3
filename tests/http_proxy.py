"""A server between a client and the real one: it may look at requests, refuse them, or spoil answers."""

from __future__ import annotations

import http.client
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

_NOT_PASSED_ON = ("connection", "transfer-encoding", "keep-alive", "content-length")


@dataclass(frozen=True)
class Request:
    verb: str
    target: str
    """Path and query as they came."""
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes


class ConnectionLost(Exception):
    """The client is to see a connection that is reset."""


PassOn = Callable[[Request], Answer]
Handle = Callable[[Request, PassOn], Answer]


class _Server(ThreadingHTTPServer):
    """Its connections end with it: a client may keep them for its next request."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, *given: Any) -> None:
        self._connections: list[socket.socket] = []
        super().__init__(*given)

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, client = super().get_request()
        self._connections.append(connection)
        return connection, client

    def server_close(self) -> None:
        super().server_close()
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, *given: Any) -> None:
        """Connections that are lost are what this is for."""


@contextmanager
def proxy(upstream: str, handle: Handle) -> Iterator[str]:
    """The address of the proxy. `handle` answers by itself, or passes the request on."""
    place = urlsplit(upstream)

    def pass_on(request: Request) -> Answer:
        connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=120)
        try:
            headers = {k: v for k, v in request.headers.items() if k not in _NOT_PASSED_ON}
            connection.request(request.verb, request.target, request.body or None, headers)
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Otherwise each body waits 40 ms for the acknowledgment of its headers.
        disable_nagle_algorithm = True

        def answer(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            if "100-continue" in headers.get("expect", ""):
                headers.pop("expect")
            request = Request(self.command, self.path, headers, self._body())
            try:
                found = handle(request, pass_on)
            except ConnectionLost:
                # With no time to linger, closing is a reset.
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.close_connection = True
                self.connection.close()
                return
            self.send_response_only(found.status)
            for name, value in found.headers.items():
                if name.lower() not in _NOT_PASSED_ON or (self.command == "HEAD" and found.status == 200):
                    self.send_header(name, value)
            if self.command != "HEAD":
                self.send_header("Content-Length", str(len(found.body)))
            elif found.status != 200:
                self.send_header("Content-Length", "0")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(found.body)

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = answer

        def log_message(self, *given: Any) -> None:
            pass

    server = _Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
