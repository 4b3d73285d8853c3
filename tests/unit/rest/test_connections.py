"""Connections that come in floods, or that take their time: others are answered all the same."""

from __future__ import annotations

import contextlib
import logging
import os
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, cast

import httpx
import pytest

from icestream.cluster.service import ConnectorService
from icestream.cluster.settings.rest_settings import ConnectionLimits, Listener, RestConfig, parse_rest
from icestream.rest import connections
from icestream.rest.connections import Connections, GuardedListener, guarded_listener
from icestream.rest.server import RestServer, bind, listen, serve

PATIENCE = 60.0
BEGUN = b"POST /connectors HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"
VERSION = b'{"version":"1"}'


@dataclass(frozen=True)
class Info:
    version: str = "1"


class OnlyServer:
    """As much of a service as these requests need; what it tells can be large."""

    version = "1"

    def server(self) -> Info:
        return Info(self.version)


@contextmanager
def served(limits: ConnectionLimits, service: OnlyServer | None = None) -> Iterator[RestServer]:
    config = RestConfig(listeners=(Listener("http", "127.0.0.1", 0),), connections=limits)
    server = serve(cast(ConnectorService, service or OnlyServer()), bind(config))
    yield server
    server.stop()


def connect(server: RestServer, stack: ExitStack) -> socket.socket:
    return stack.enter_context(socket.create_connection((server.host, server.port), timeout=PATIENCE))


def answers(server: RestServer) -> bool:
    with httpx.Client(trust_env=False, timeout=PATIENCE) as client:
        return client.get(server.url).status_code == 200


def received(connection: socket.socket) -> bytes:
    """All until the server hangs up."""
    found = b""
    with contextlib.suppress(ConnectionResetError):
        while data := connection.recv(10_000):
            found += data
    return found


def until(connection: socket.socket, end: bytes) -> bytes:
    found = b""
    while not found.endswith(end):
        found += connection.recv(10_000)
    return found


def eventually(check: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not check():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_config_says_how_many_and_how_long() -> None:
    given = {
        "icestream.rest.connections.max": "40",
        "icestream.rest.headers.timeout.ms": "1500",
        "icestream.rest.body.timeout.ms": "2500",
    }
    assert parse_rest(given, {}).connections == ConnectionLimits(40, 1.5, 2.5)


def test_idle_connections_make_room(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "icestream.rest.connections")
    with served(ConnectionLimits(most=20)) as server, ExitStack() as stack:
        flood = [connect(server, stack) for _ in range(100)]
        assert answers(server)
        assert len(server.connections) <= 20
        # The oldest went.
        assert received(flood[0]) == b""
    assert "more than 20 connections" in caplog.text


def test_a_flood_makes_room_at_the_cost_of_its_own_host() -> None:
    now = [0.0]
    connections = Connections(ConnectionLimits(most=10), clock=lambda: now[0])
    with ExitStack() as stack:

        def opened(host: str) -> socket.socket:
            now[0] += 1
            ours, theirs = socket.socketpair()
            stack.enter_context(ours)
            stack.enter_context(theirs)
            assert connections.opened(ours, host)
            return theirs

        honest = opened("10.0.0.1")
        flood = [opened("10.0.0.2") for _ in range(100)]
        assert len(connections) == 10
        assert all(one.recv(1) == b"" for one in flood[:91])
        honest.setblocking(False)
        with pytest.raises(BlockingIOError):
            honest.recv(1)
    connections.close()


def test_half_sent_requests_make_room() -> None:
    with served(ConnectionLimits(most=20)) as server, ExitStack() as stack:
        for _ in range(50):
            connect(server, stack).sendall(BEGUN)
        eventually(lambda: answers(server))
        assert len(server.connections) <= 20


def test_nobody_is_cut_off_who_waits_for_an_answer() -> None:
    class Slow(OnlyServer):
        def server(self) -> Info:
            asked.release()
            assert is_over.wait(PATIENCE)
            return Info()

    asked, is_over = threading.Semaphore(0), threading.Event()
    with served(ConnectionLimits(most=4), Slow()) as server, ExitStack() as stack:
        waiting = [connect(server, stack) for _ in range(4)]
        for one in waiting:
            one.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        for _ in waiting:
            assert asked.acquire(timeout=PATIENCE)
        assert received(connect(server, stack)).startswith(b"HTTP/1.1 503")
        is_over.set()
        assert all(received(one).startswith(b"HTTP/1.1 200") for one in waiting)


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        (b"", b""),
        (b"GET / HTTP/1.1\r\nHost:", b"HTTP/1.1 408"),
        (BEGUN, b"HTTP/1.1 408"),
    ],
)
def test_whoever_does_not_go_on_is_cut_off(sent: bytes, answer: bytes) -> None:
    with served(ConnectionLimits(headers_s=0.2, body_s=0.2)) as server, ExitStack() as stack:
        slow = connect(server, stack)
        slow.sendall(sent)
        assert received(slow)[: len(b"HTTP/1.1 408")] == answer
        assert answers(server)


def test_a_trickle_is_no_sign_of_life() -> None:
    with served(ConnectionLimits(headers_s=0.5)) as server, ExitStack() as stack:
        slow = connect(server, stack)
        slow.settimeout(0.05)
        slow.sendall(b"GET / HTTP/1.1\r\n")
        deadline = time.monotonic() + PATIENCE
        while True:
            assert time.monotonic() < deadline
            with contextlib.suppress(TimeoutError):
                if slow.recv(100).startswith(b"HTTP/1.1 408"):
                    break
            slow.sendall(b"X: y\r\n")


def test_a_second_request_on_a_connection_has_its_own_time() -> None:
    with served(ConnectionLimits(headers_s=0.3)) as server, ExitStack() as stack:
        kept = connect(server, stack)
        kept.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert until(kept, VERSION).startswith(b"HTTP/1.1 200")
        # Longer than a head may take: between requests the time of idle connections counts.
        time.sleep(0.6)
        kept.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert until(kept, VERSION).startswith(b"HTTP/1.1 200")
        kept.sendall(b"GET / HTTP/1.1\r\n")
        assert received(kept).startswith(b"HTTP/1.1 408")


def test_an_answer_that_nobody_reads_is_given_up() -> None:
    service = OnlyServer()
    service.version = "x" * 30_000_000
    with served(ConnectionLimits(unread_s=0.2), service) as server, ExitStack() as stack:
        connect(server, stack).sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        eventually(lambda: len(server.connections) == 0)


def test_no_descriptor_left_is_one_line_and_an_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The client hears that it is not served; the event loop hears that nobody is there."""
    caplog.set_level(logging.WARNING, "icestream.rest.connections")
    connections = Connections(ConnectionLimits())
    listener = guarded_listener(listen("127.0.0.1", 0), connections)
    listener.setblocking(False)
    real, failures = socket.socket.accept, [OSError(24, "Too many open files")]

    def accept(self: socket.socket) -> Any:
        if failures:
            raise failures.pop()
        return real(self)

    monkeypatch.setattr(socket.socket, "accept", accept)
    with contextlib.closing(listener), socket.create_connection(listener.getsockname()) as client:
        client.settimeout(PATIENCE)
        with pytest.raises(BlockingIOError):
            GuardedListener.accept(listener)
        assert received(client) == b""
        with socket.create_connection(listener.getsockname()):
            GuardedListener.accept(listener)[0].close()
    connections.close()
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


def test_what_stops_gives_its_descriptors_back() -> None:
    def count() -> int:
        return len(os.listdir("/proc/self/fd"))

    with served(ConnectionLimits()) as server:
        assert answers(server)
    before = count()
    for _ in range(3):
        with served(ConnectionLimits()) as server:
            assert answers(server)
    eventually(lambda: count() <= before)


@pytest.mark.parametrize("sent", [b"1\r\n \r\n" * 300_000, b"1\r\n \r\n1\r\n \r\n" * 100 + b"0\r\n\r\n"])
def test_a_body_in_countless_chunks_is_refused(sent: bytes) -> None:
    """To read a million bytes that come one by one takes seconds, in which nobody else is answered."""
    with served(ConnectionLimits()) as server, ExitStack() as stack:
        connection = connect(server, stack)
        head = b"PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        with contextlib.suppress(ConnectionError):
            connection.sendall(head + sent)
        is_refused = b"405" not in received(connection)
        assert is_refused == (len(sent) > 100_000)
        assert answers(server)


@pytest.mark.parametrize("target", ["/", "/connectors", "/no/such/path"])
def test_a_body_with_two_lengths_is_refused_and_nothing_after_it_is_read(target: str) -> None:
    """Whoever asks, and whatever for: a proxy may have let the rest of it through as the body of somebody."""
    with served(ConnectionLimits()) as server, ExitStack() as stack:
        connection = connect(server, stack)
        connection.sendall(
            f"POST {target} HTTP/1.1\r\nHost: x\r\nContent-Length: 30\r\nTransfer-Encoding: chunked\r\n\r\n"
            "0\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n".encode()
        )
        answer = received(connection)
        assert answer.startswith(b"HTTP/1.1 400") and answer.count(b"HTTP/1.1 ") == 1


def test_a_body_that_goes_wrong_while_it_is_answered_is_no_error_of_ours(
    caplog: pytest.LogCaptureFixture,
) -> None:
    head = b"PUT /no/such HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    with served(ConnectionLimits()) as server:
        for bad in (b"x\r\n", b"1\r\n \r\n" * 5_000, b"1\r\n \r\nx\r\n"):
            for pause in (0.0, 0.1):
                with ExitStack() as stack:
                    connection = connect(server, stack)
                    connection.sendall(head)
                    # So that it has been answered, or not.
                    time.sleep(pause)
                    with contextlib.suppress(ConnectionError):
                        connection.sendall(bad)
                    received(connection)
        assert answers(server)
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.parametrize(
    ("most", "soft", "asked"),
    [
        (2**20, 256, [65_536]),
        (10_240, 256, [65_536, 10_240]),
        (20_000, 20_000, [65_536, 20_000]),
        (0, 256, [65_536, 10_240]),
    ],
)
def test_the_limit_of_open_files_is_raised_as_far_as_the_system_lets(
    most: int, soft: int, asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """macOS says that there is no limit, and refuses more than one that it does not say."""
    taken: list[int] = []

    def set_limit(kind: int, limits: tuple[int, int]) -> None:
        taken.append(limits[0])
        if limits[0] > most:
            raise ValueError("current limit exceeds maximum limit")

    monkeypatch.setattr(connections.resource, "getrlimit", lambda kind: (soft, resource.RLIM_INFINITY))
    monkeypatch.setattr(connections.resource, "setrlimit", set_limit)
    connections.raise_file_limit()
    assert taken == asked
