"""The front of the embedded catalog, and requests that were made to get around its login."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from icestream.embedded.signed_front import Front, server

PATH = "/_iceberg/v1/namespaces"


class Catalog(BaseHTTPRequestHandler):
    seen: list[str]

    def do_GET(self) -> None:
        self.seen.append(self.path)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def seen() -> list[str]:
    """Paths that the catalog behind the front was asked for."""
    return []


@pytest.fixture
def port(seen: list[str]) -> Iterator[int]:
    catalog = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Catalog,), {"seen": seen}))
    front = server(Front(0, catalog.server_port, "http://127.0.0.1:1", "key", "secret"))
    for one in (catalog, front):
        one.daemon_threads = True
        threading.Thread(target=one.serve_forever, args=(0.05,), daemon=True).start()
    yield front.server_port
    for one in (catalog, front):
        one.shutdown()
        one.server_close()


def asked(port: int, line: str, headers: dict[str, str], body: bytes = b"") -> list[str]:
    """The status lines of all answers, until the front closes the connection."""
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    with socket.create_connection(("127.0.0.1", port), 120) as connection:
        connection.sendall(f"{line} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + body)
        with connection.makefile("rb") as answers:
            return [it.split()[1].decode() for it in answers if it.startswith(b"HTTP/1.1 ")]


def signed(port: int, path: str = PATH) -> dict[str, str]:
    request = AWSRequest("GET", f"http://127.0.0.1:{port}{path}")
    SigV4Auth(Credentials("key", "secret"), "s3tables", "us-east-1").add_auth(request)
    own = {name: str(value) for name, value in request.headers.items()}
    return {"Host": f"127.0.0.1:{port}", **own, "Connection": "close"}


def test_what_is_signed_reaches_the_catalog(port: int, seen: list[str]) -> None:
    assert asked(port, f"GET {PATH}", signed(port)) == ["200"]
    assert seen == ["/v1/namespaces"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"{PATH}#/x", "400"),
        (f"{PATH}\xe9", "400"),
        (f"{PATH}/../x", "403"),
        ("/_iceberg/../v1/namespaces", "403"),
        ("/_iceberg%2Fv1/namespaces", "404"),
        (f"http://elsewhere{PATH}", "404"),
    ],
)
def test_a_signature_is_good_for_its_own_path_only(
    port: int, seen: list[str], path: str, status: str
) -> None:
    assert asked(port, f"GET {path}", signed(port)) == [status]
    assert seen == []


@pytest.mark.parametrize("length", ["60000000", "9" * 5000, "-1", "1_0", "x"])
def test_strangers_do_not_have_much_read(port: int, seen: list[str], length: str) -> None:
    """The answer comes although the body never does."""
    assert asked(port, f"POST {PATH}", {"Host": "x", "Content-Length": length}) == ["403"]
    assert seen == []


@pytest.mark.parametrize("path", ["/health", "/elsewhere", PATH])
def test_a_body_is_never_the_next_request(port: int, path: str) -> None:
    smuggled = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
    length = {"Host": "x", "Connection": "close", "Content-Length": str(len(smuggled))}
    assert len(asked(port, f"GET {path}", length, smuggled)) == 1
    assert len(asked(port, f"GET {path}", {"Host": "x", "Transfer-Encoding": "chunked"}, smuggled)) == 1


def test_the_log_has_no_signs_that_a_terminal_obeys(port: int, capsys: pytest.CaptureFixture[str]) -> None:
    asked(port, "GET /\x1b[31m", {"Host": "x", "Connection": "close"})
    assert "\x1b" not in capsys.readouterr().out
