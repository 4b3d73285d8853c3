"""A REST catalog on a real socket, in front of a SQLite one, that can be told to say nothing more.

As a process of its own (`processes.CatalogProcess`) it can be killed. Arguments: its port, and the pipeline's
folder.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import CommitTableRequest

from icestream.connectors.iceberg.catalogs.opening import open_catalog


class SilentCatalog:
    """Answers what a sink asks for: its config, a table, a commit. `hush` makes it take requests and wait."""

    def __init__(self, behind: Catalog) -> None:
        self._behind = behind
        self._speaks = threading.Event()
        self._speaks.set()
        self.ignored = 0
        """Requests that came while it said nothing."""
        self.commits = 0

    def hush(self) -> None:
        self._speaks.clear()

    def speak(self) -> None:
        self._speaks.set()

    def answer(self, path: str, body: bytes) -> tuple[int, object]:
        if not self._speaks.is_set():
            self.ignored += 1
            self._speaks.wait()
        if path.startswith("/v1/config"):
            return 200, {"defaults": {}, "overrides": {}}
        *_, namespace, _, name = path.partition("?")[0].split("/")
        table = self._behind.load_table(f"{namespace}.{name}")
        if body:
            request = CommitTableRequest.model_validate_json(body)
            try:
                response = self._behind.commit_table(table, request.requirements, request.updates)
            except CommitFailedException as error:
                return 409, {"error": {"message": str(error), "type": "CommitFailedException", "code": 409}}
            self.commits += 1
            return 200, json.loads(response.model_dump_json(by_alias=True))
        metadata = json.loads(table.metadata.model_dump_json())
        return 200, {"metadata-location": table.metadata_location, "metadata": metadata, "config": {}}

    @contextmanager
    def serve(self, port: int = 0) -> Iterator[str]:
        """The address while it is there."""
        catalog = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                code, answer = catalog.answer(
                    self.path, self.rfile.read(int(self.headers["Content-Length"] or 0))
                )
                text = json.dumps(answer).encode()
                self.send_response(code)
                # Without it requests guesses the encoding, and takes what looks like UTF-7 for that.
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_POST = do_GET

            def log_message(self, *arguments: Any) -> None:
                """Nothing."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *arguments: Any) -> None:
                """Clients that gave up waiting are what this is for."""

        server = Server(("127.0.0.1", port), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            self.speak()
            server.shutdown()
            server.server_close()


def main(port: int, folder: str) -> None:
    config = {
        "iceberg.catalog": "crashes",
        "iceberg.catalog.type": "jdbc",
        "iceberg.catalog.uri": f"jdbc:sqlite:{folder}/catalog.db",
        "iceberg.catalog.warehouse": f"file://{folder}/warehouse",
    }
    with open_catalog(config) as behind, SilentCatalog(behind).serve(port):
        print("serving", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
