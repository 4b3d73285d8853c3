"""The front of the embedded REST catalog: lets in what is signed, and creates warehouses.

A process of the stack (`python -m icestream.embedded.signed_front`, its settings in a file). It answers under
`/_iceberg`, as the catalog inside of MinIO AIStor does; `POST /_iceberg/v1/warehouses` makes the bucket.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar, Final

from icestream.api.nesting import read_json
from icestream.embedded.sigv4 import SignedLogin, Unsigned

PREFIX: Final = "/_iceberg"
SERVICES: Final = ("s3tables", "execute-api")
"""The second for Trino 476, which signs for it and has no setting; later ones have `signing-name`."""
_WAREHOUSES: Final = f"{PREFIX}/v1/warehouses"
_LARGEST: Final = 64 * 1024 * 1024
_LARGEST_OF_STRANGERS: Final = 2**20
"""Of a body that is read only so that the refusal arrives."""
_PATIENCE_S: Final = 120
_TARGET: Final = re.compile(r"/[!-\"$-~]*")
"""ASCII without `#`: what follows that is in no signature."""
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_HOP_BY_HOP: Final = frozenset(
    ["connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "content-length", "host"]
)


@dataclass(frozen=True)
class Front:
    """Where it listens, what stands behind it, and who may come in."""

    port: int
    catalog_port: int
    storage: str
    access_key: str
    secret_key: str = field(repr=False)

    @property
    def login(self) -> SignedLogin:
        return SignedLogin(self.access_key, self.secret_key, SERVICES)


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})


def refusal(status: int, kind: str, message: str) -> Answer:
    """An error as a REST catalog tells it."""
    return Answer(status, json.dumps({"error": {"message": message, "type": kind, "code": status}}).encode())


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _PATIENCE_S
    front: ClassVar[Front]

    def handle_any(self) -> None:
        answer = self._answer()
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = handle_any

    def _answer(self) -> Answer:
        headers = {name.lower(): value for name, value in self.headers.items()}
        early = self._answered_at_once(headers)
        lengths = self.headers.get_all("Content-Length", ["0"])
        is_number = len(lengths) == 1 and lengths[0].isdecimal() and len(lengths[0]) < 10
        most = _LARGEST_OF_STRANGERS if early else _LARGEST
        if "Transfer-Encoding" in self.headers or not is_number or int(lengths[0]) > most:
            # What was not read must not be taken for the next request.
            self.close_connection = True
            return early or refusal(
                411, "BadRequestException", "a body needs a Content-Length of 64 MB at most"
            )
        body = self.rfile.read(int(lengths[0]))
        if early:
            return early
        try:
            self.front.login.check(self.command, self.path, headers, body, datetime.now(UTC))
        except Unsigned as error:
            return refusal(403, "NotAuthorizedException", str(error))
        if self.path == _WAREHOUSES and self.command == "POST":
            return _create_warehouse(self.front, body)
        return self._passed_on(headers, body)

    def _answered_at_once(self, headers: Mapping[str, str]) -> Answer | None:
        """The answer to what needs no look at its body."""
        if self.path == "/health":
            return Answer(200, b"{}")
        if not self.path.startswith(f"{PREFIX}/"):
            return refusal(404, "NotFoundException", f"the catalog is at {PREFIX}")
        if not _TARGET.fullmatch(self.path):
            return refusal(400, "BadRequestException", "an address has ASCII only, and no fragment")
        try:
            self.front.login.claim(headers, datetime.now(UTC))
        except Unsigned as error:
            return refusal(403, "NotAuthorizedException", str(error))
        return None

    def _passed_on(self, headers: Mapping[str, str], body: bytes) -> Answer:
        """The catalog's answer. What proves the login stays here."""
        passed = {
            name: value
            for name, value in headers.items()
            if name not in _HOP_BY_HOP and name != "authorization" and not name.startswith("x-amz-")
        }
        connection = HTTPConnection("127.0.0.1", self.front.catalog_port, timeout=_PATIENCE_S)
        try:
            connection.request(self.command, self.path.removeprefix(PREFIX), body or None, passed)
            came = connection.getresponse()
            kept = {name: value for name, value in came.getheaders() if name.lower() not in _HOP_BY_HOP}
            return Answer(came.status, came.read(), kept)
        except (OSError, HTTPException) as error:
            return refusal(503, "ServiceUnavailableException", f"the catalog does not answer: {error}")
        finally:
            connection.close()

    def log_message(self, format: str, *args: Any) -> None:
        # Strangers write the address: no control characters of theirs reach a terminal.
        line = (format % args).encode("unicode_escape").decode()
        sys.stdout.write(f"{self.log_date_time_string()} {line}\n")
        sys.stdout.flush()


def _create_warehouse(front: Front, body: bytes) -> Answer:
    try:
        name = read_json(body)["name"]
    except (ValueError, KeyError, TypeError):
        return refusal(400, "BadRequestException", "a warehouse needs a name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return refusal(400, "BadRequestException", "the name of a warehouse is that of a bucket")
    from botocore.exceptions import BotoCoreError, ClientError

    client = _storage(front)
    try:
        if name in {bucket["Name"] for bucket in client.list_buckets()["Buckets"]}:
            return refusal(409, "AlreadyExistsException", f"the warehouse '{name}' exists")
        client.create_bucket(Bucket=name)
    except (BotoCoreError, ClientError) as error:
        return refusal(503, "ServiceUnavailableException", f"the bucket was not made: {error}")
    return Answer(200, json.dumps({"name": name}).encode())


def _storage(front: Front) -> Any:
    import boto3
    from botocore.config import Config

    return boto3.client(
        "s3",
        endpoint_url=front.storage,
        aws_access_key_id=front.access_key,
        aws_secret_access_key=front.secret_key,
        region_name="us-east-1",
        config=Config(connect_timeout=10, read_timeout=60, s3={"addressing_style": "path"}),
    )


def server(front: Front) -> ThreadingHTTPServer:
    handler = type("Handler", (_Handler,), {"front": front})
    made = ThreadingHTTPServer(("127.0.0.1", front.port), handler)
    made.daemon_threads = True
    return made


def main(file: str) -> None:
    """Serve until the process is told to end; the settings are in a file that only its owner reads."""
    server(Front(**json.loads(Path(file).read_text()))).serve_forever()


if __name__ == "__main__":
    main(sys.argv[1])
