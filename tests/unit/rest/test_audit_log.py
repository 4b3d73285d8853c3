"""Who changed what, from where, with what result; and who failed to log in."""

from __future__ import annotations

import base64
import logging
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from icestream.api.errors import NotFoundError, PreconditionError
from icestream.cluster.service import ConnectorService
from icestream.cluster.settings.rest_settings import Listener, RestConfig
from icestream.rest.audit_log import LOG, audit_to
from icestream.rest.server import RestServer, bind, serve

USERS = {"alice": "wonder land"}


class Service:
    def pause(self, name: str) -> None:
        if name == "no":
            raise NotFoundError("no such connector")

    def names(self) -> list[str]:
        return []

    def logger(self, name: str) -> Any:
        raise NotFoundError("none")


@pytest.fixture
def server(caplog: pytest.LogCaptureFixture) -> Iterator[RestServer]:
    caplog.set_level(logging.INFO, LOG.name)
    here = Listener("http", "127.0.0.1", 0)
    config = RestConfig(listeners=(here,), admin_listeners=(here,), credentials=USERS)
    running = serve(cast(ConnectorService, Service()), bind(config))
    yield running
    running.stop()


def ask(method: str, url: str, login: tuple[str, str] | None = None) -> tuple[int, str]:
    """The status, and the address that the request came from."""
    with httpx.Client(trust_env=False, timeout=60, auth=login) as client:
        answer = client.request(method, url)
        address = answer.extensions["network_stream"].get_extra_info("client_addr")
        return answer.status_code, f"{address[0]}:{address[1]}"


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == LOG.name]


def test_a_change_is_told_with_its_user_and_result(
    server: RestServer, caplog: pytest.LogCaptureFixture
) -> None:
    alice = ("alice", "wonder land")
    assert ask("PUT", f"{server.url}/connectors/c%0Ad/pause", alice)[0] == 400
    done, came_from = ask("PUT", f"{server.url}/connectors/c/pause", alice)
    missing, also_from = ask("PUT", f"{server.url}/connectors/no/pause", alice)
    ask("GET", f"{server.url}/connectors", alice)
    assert (done, missing) == (202, 404)
    assert lines(caplog)[1:] == [
        f'user="alice" from={came_from} request=PUT /connectors/c/pause result=202',
        f'user="alice" from={also_from} request=PUT /connectors/no/pause result=404',
    ]
    assert "request=PUT /connectors/c%0Ad/pause result=400" in lines(caplog)[0]


def test_failed_logins_are_told_without_what_was_typed(
    server: RestServer, caplog: pytest.LogCaptureFixture
) -> None:
    for login in (None, ("alice", "guess-1"), ("hunter2", "guess-2")):
        assert ask("GET", f"{server.url}/connectors", login)[0] == 401
    users = [line.split(" from=")[0].removeprefix("login failed: user=") for line in lines(caplog)]
    assert users == ['"(none)"', '"alice"', '"(unknown)"']
    assert not any(word in caplog.text for word in ("guess", "hunter2"))


def test_the_admin_listener_is_audited_too(server: RestServer, caplog: pytest.LogCaptureFixture) -> None:
    assert ask("PUT", f"{server.admin_urls[0]}/admin/loggers/x")[0] == 500
    assert 'user="-"' in lines(caplog)[0] and "result=500" in lines(caplog)[0]


def test_a_client_that_left_is_told_as_such(server: RestServer, caplog: pytest.LogCaptureFixture) -> None:
    login = base64.b64encode(b"alice:wonder land").decode()
    with socket.create_connection((server.host, server.port)) as connection:
        connection.sendall(
            f"POST /connectors HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {login}\r\n"
            "Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{".encode()
        )
    server.stop()
    assert ["POST /connectors" in line and 'user="alice"' in line for line in lines(caplog)] == [True]


def test_a_file_of_its_own_is_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "audit.log"
    before = LOG.handlers[:]
    try:
        audit_to(file)
        LOG.warning("user=%s", "alice")
        assert file.read_text().endswith("WARNING icestream.audit user=alice\n")
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        with pytest.raises(PreconditionError, match="cannot write the audit log"):
            audit_to(tmp_path / "none" / "audit.log")
    finally:
        for handler in [one for one in LOG.handlers if one not in before]:
            LOG.removeHandler(handler)
            handler.close()
