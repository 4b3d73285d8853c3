"""An API server that answers too much, too slowly or elsewhere, and what config providers make of it."""

from __future__ import annotations

import gzip
import itertools
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from icestream.api.errors import ConfigError
from icestream.cluster.configs.kubernetes_api import Access, ApiAnswer, HttpsApi, NoCluster
from icestream.cluster.configs.kubernetes_providers import SecretProvider
from icestream.cluster.configs.providers import Providers


class Hostile(BaseHTTPRequestHandler):
    """Its answer is named by the path."""

    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(302 if self.path == "/redirect" else 200)
        if self.path == "/redirect":
            self.send_header("Location", "/stolen")
        if self.path == "/bomb":
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        try:
            if self.path == "/endless":
                while True:
                    self.wfile.write(b" " * 65_536)
            self.wfile.write({"/deep": b"[" * 200_000, "/bomb": BOMB}.get(self.path, b"{}"))
        except OSError:
            pass  # The other side has had enough.

    def log_message(self, format: str, *args: Any) -> None:
        pass


BOMB = gzip.compress(b'{"data": "' + b" " * 20_000_000 + b'"}')


@pytest.fixture
def asked() -> list[str]:
    return []


@pytest.fixture
def api(asked: list[str]) -> Iterator[Callable[..., HttpsApi]]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Hostile,), {"asked": asked}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    access = Access(f"http://127.0.0.1:{server.server_port}", ssl.create_default_context())
    yield lambda **settings: HttpsApi(access, **settings)
    server.shutdown()
    server.server_close()


def test_an_endless_answer_is_not_read_to_its_end(api: Callable[..., HttpsApi]) -> None:
    with pytest.raises(NoCluster, match="got more than 4,194,304 bytes"):
        api(clock=lambda: 0.0).get("/endless")


def test_an_answer_that_takes_its_time_has_an_end(api: Callable[..., HttpsApi]) -> None:
    ticks = itertools.count(step=6)
    with pytest.raises(NoCluster, match="no end within 10 s"):
        api(clock=lambda: float(next(ticks))).get("/endless")
    assert next(ticks) <= 30, "it was read on"


@pytest.mark.parametrize("path", ["/deep", "/bomb"])
def test_an_answer_that_would_fill_the_memory_is_none(api: Callable[..., HttpsApi], path: str) -> None:
    assert api().get(path) == ApiAnswer(200, None)


def test_a_redirect_is_not_followed(api: Callable[..., HttpsApi], asked: list[str]) -> None:
    assert api().get("/redirect").status == 302
    assert asked == ["/redirect"]


def test_an_api_server_that_hangs_is_waited_for_once_whatever_a_config_names() -> None:
    now, asked = [0.0], []

    class Hanging:
        namespace = "mine"

        def get(self, path: str) -> ApiAnswer:
            asked.append(path)
            now[0] += 10
            raise NoCluster("cannot reach the Kubernetes API server")

    providers = Providers({"secrets": SecretProvider(Hanging, lambda: now[0])})
    with pytest.raises(ConfigError, match="cannot reach"):
        providers.resolved({str(n): f"${{secrets:ns/db{n}:k}}" for n in range(900)})
    assert len(asked) == 1
    now[0] += 60
    with pytest.raises(ConfigError, match="cannot reach"):
        providers.resolved({"a": "${secrets:ns/db:k}"})
    assert len(asked) == 2, "it is asked again later"
