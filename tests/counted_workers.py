"""The workers of a cluster as the operator's scaling sees them: an answer to GET /connectors, on loopback."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from icestream.embedded import ports


class Workers:
    """GET /connectors of a cluster; `answer` is what it says, None: 500."""

    def __init__(self) -> None:
        self.answer: Any = []
        self.asked = 0
        workers = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                workers.asked += self.path == "/connectors"
                body = json.dumps(workers.answer).encode()
                self.send_response(500 if workers.answer is None else 200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer((ports.HOST, 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def address(self) -> str:
        return f"{ports.HOST}:{self.server.server_address[1]}"

    def have(self, connectors: int) -> None:
        self.answer = [f"c{number}" for number in range(connectors)]

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
