"""Every route with and without a login, asked of a real socket.

The routes are the app's own, so that a new one cannot be forgotten.
"""

from __future__ import annotations

import base64
import re
import socket
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
from starlette.routing import Route

from icestream.api.errors import NotFoundError
from icestream.cluster.service import ConnectorService
from icestream.cluster.settings.rest_settings import Listener, RestConfig
from icestream.rest.app import TABLE, build_app
from icestream.rest.security import guarded
from icestream.rest.server import RestServer, bind, serve

LOGIN = "Authorization: Basic " + base64.b64encode(b"alice:wonder land").decode() + "\r\n"


class Witness:
    """A service that knows nothing, and writes down that it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def answer(*arguments: object, **more: object) -> Any:
            self.asked.append(name)
            raise NotFoundError("nothing here")

        return answer


@pytest.fixture(scope="module")
def witness() -> Witness:
    return Witness()


@pytest.fixture(scope="module")
def server(witness: Witness) -> Iterator[RestServer]:
    config = RestConfig(
        listeners=(Listener("http", "127.0.0.1", 0),), credentials={"alice": "wonder land", "bob": "b:ob"}
    )
    running = serve(cast(ConnectorService, witness), bind(config))
    yield running
    running.stop()


def status_of(server: RestServer, method: str, target: str, headers: str = "") -> int:
    """Asks for exactly this target: clients would tidy it up."""
    request = (
        f"{method} {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}"
        "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    )
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(request.encode())
        return int(connection.recv(1000).split()[1])


def every_route() -> list[tuple[str, str]]:
    """Verb and template of all that the app answers, as the app itself says."""
    found = []
    for route in build_app(cast(ConnectorService, Witness())).routes:
        assert isinstance(route, Route)
        found += [(verb, route.path) for verb in sorted(route.methods or ())]
    return found


ROUTES = every_route()
SPELLINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "slash": lambda path: path.rstrip("/") + "/",
    "encoded": lambda path: path.replace("o", "%6F"),
    "parameter": lambda path: path + ";x=y",
    "query": lambda path: path + "?x=/connectors/c/tasks",
    "whole URL": lambda path: "http://worker" + path,
    "forwarded": lambda path: path + "?forward=false",
}


def test_the_table_has_all_handlers() -> None:
    assert set(TABLE) <= set(ROUTES)
    assert len(ROUTES) > 60


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_without_a_login_no_route_answers(server: RestServer, witness: Witness, spelling: str) -> None:
    witness.asked.clear()
    wrong = "Authorization: Basic " + base64.b64encode(b"alice:bad").decode() + "\r\n"
    signed = "X-Connect-Authorization: AAAA\r\nX-Connect-Request-Signature-Algorithm: HmacSHA256\r\n"
    for verb, template in ROUTES:
        target = SPELLINGS[spelling](re.sub(r"{\w+}", "x", template))
        if target == "/;x=y":
            continue
        for headers in ("", wrong, signed):
            assert status_of(server, verb, target, headers) == 401, (verb, target, headers)
    assert witness.asked == []


def test_with_a_login_every_route_answers(server: RestServer, witness: Witness) -> None:
    for verb, template in ROUTES:
        target = re.sub(r"{\w+}", "x", template)
        assert status_of(server, verb, target, LOGIN) not in (401, 403, 405), (verb, target)
    assert witness.asked


@pytest.mark.parametrize(
    ("verb", "target", "status"),
    [
        # Seen to create a connector: one reader of the target cut off what another took for an exemption.
        ("POST", "/connectors/#/tasks", 400),
        ("PUT", "/connectors/x/config#/fence", 400),
        ("POST", "/connectors?#/x/tasks", 400),
        ("DELETE", "/connectors/x#", 400),
        ("POST", "/connectors#/../x/tasks", 400),
        # What Kafka Connect's workers send each other; ours do not, so nobody has a business here.
        ("POST", "/connectors/x/tasks", 405),
        ("PUT", "/connectors/x/fence", 404),
        ("POST", "/connectors/x%2Ftasks", 405),
        ("POST", "/connectors/x/y/tasks", 404),
        ("POST", "/connectors/x/tasks/0/restart", 401),
        ("POST", "/connectors/%23/tasks", 405),
    ],
)
def test_no_spelling_gets_past_the_login(
    server: RestServer, witness: Witness, verb: str, target: str, status: int
) -> None:
    witness.asked.clear()
    assert status_of(server, verb, target) == status
    assert witness.asked == []


def test_an_app_that_cannot_be_guarded_is_refused() -> None:
    app = build_app(cast(ConnectorService, Witness()))
    app.mount("/files", app)
    with pytest.raises(TypeError, match="cannot be guarded"):
        guarded(app, {"alice": "x"})
