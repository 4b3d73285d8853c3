"""/healthz, /readyz and /metrics of the operator, in a thread of its own. The process starts it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from icestream.api.errors import PreconditionError

_CONTENT: Final = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True)
class Vitals:
    """What the endpoints ask."""

    is_alive: Callable[[], bool]
    """False: the loop hangs, and the process should be started anew."""
    is_ready: Callable[[], bool]
    metrics: Callable[[], bytes]


class HealthServer:
    def __init__(self, host: str, port: int, vitals: Vitals) -> None:
        class Handler(BaseHTTPRequestHandler):
            timeout = 10

            def do_GET(self) -> None:
                code, body = answer(self.path.partition("?")[0], vitals)
                self.send_response(code)
                self.send_header("Content-Type", _CONTENT)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        try:
            self._server = ThreadingHTTPServer((host, port), Handler)
        except OSError as error:
            raise PreconditionError(
                f"cannot listen on {host}:{port} ({error.strerror or error}); choose another --port"
            ) from None
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]

    def start(self) -> None:
        threading.Thread(target=self._server.serve_forever, name="health", daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def answer(path: str, vitals: Vitals) -> tuple[int, bytes]:
    if path == "/metrics":
        return 200, vitals.metrics()
    probes = {"/healthz": vitals.is_alive, "/readyz": vitals.is_ready}
    if path not in probes:
        return 404, b"not found\n"
    return (200, b"ok\n") if probes[path]() else (503, b"not yet\n")
