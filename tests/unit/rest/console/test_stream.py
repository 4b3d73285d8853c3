"""The stream of events on real sockets: what it tells, to how many, and how it ends."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import pytest

from icestream.api.history import BatchRecord, Event, Outcome
from icestream.api.status import Progress
from icestream.rest import server as rest_server
from icestream.rest.console import stream
from icestream.rest.console.overview import Overview
from icestream.rest.server import RestServer, bind, serve

from .conftest import OURS, World, config_of

PATIENCE = 60.0
Told = tuple[str, str, dict[str, Any]]


def events_of(response: httpx.Response) -> Iterator[Told]:
    """Id, name and data of each event."""
    fields = {"id": "", "event": "", "data": ""}
    for line in response.iter_lines():
        if line:
            name, _, value = line.partition(": ")
            if name in fields:
                fields[name] = value
        elif fields["data"]:
            yield fields["id"], fields["event"], json.loads(fields["data"])
            fields = {"id": "", "event": "", "data": ""}


@contextmanager
def opened(server: RestServer, query: str = "", **headers: str) -> Iterator[Iterator[Told]]:
    sent = {**OURS, **{name.replace("_", "-"): value for name, value in headers.items()}}
    with (
        httpx.Client(trust_env=False, timeout=PATIENCE) as client,
        client.stream("GET", f"{server.url}/console/api/events{query}", headers=sent) as response,
    ):
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["x-accel-buffering"] == "no"
        assert response.headers["cache-control"] == "no-store"
        yield events_of(response)


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.02)


def next_of(events: Iterator[Told], name: str) -> Told:
    return next(told for told in events if told[1] == name)


@pytest.fixture
def server(world: World) -> Iterator[RestServer]:
    """One of its own: it is stopped, or full."""
    started = serve(world.service, bind(config_of({})))
    yield started
    started.stop()


def test_hello_then_everything_then_what_changes(world: World, server: RestServer) -> None:
    world.create("orders")
    with opened(server) as events:
        _, first, hello = next(events)
        assert first == "hello" and hello["assets"]
        version, second, overview = next(events)
        assert second == "overview" and version == str(overview["version"])
        assert [row[0] for row in overview["rows"]] == ["orders"]
        world.managers.latest("orders").advance(Progress(lag=9, rows=1, batches=1))
        version, _, changed = next_of(events, "rows")
        assert version == str(changed["version"]) and int(version) > overview["version"]
        assert [row[0] for row in changed["rows"]] == ["orders"]
        world.service.pause("orders")
        _, _, state = next_of(events, "state")
        assert (state["connector"], state["state"], state["health"]) == ("orders", "PAUSED", "paused")
        world.service.delete("orders")
        assert next(told for told in events if told[1] == "rows" and told[2]["gone"])[2]["gone"] == ["orders"]


def test_a_state_is_told_also_if_somebody_else_saw_it_first(world: World) -> None:
    world.create("orders")
    overview = Overview(world.service, lambda: 1_000)
    before = overview.all()["version"]
    world.service.pause("orders")
    overview.own()
    for _ in range(2):
        changes, states = overview.changes(before)
        assert [(one.connector, one.state) for one in states] == [("orders", "PAUSED")]
    assert overview.changes(changes.version)[1] == []


def test_it_goes_on_where_it_ended(world: World, server: RestServer) -> None:
    world.create("orders")
    world.create("clicks")
    known = world.ask("GET", "overview", server=server).json()["version"]
    world.managers.latest("clicks").advance(Progress(lag=9, rows=1, batches=1))
    with opened(server, last_event_id=str(known)) as events:
        assert next(events)[1] == "hello"
        _, name, changed = next(events)
        assert (name, [row[0] for row in changed["rows"]]) == ("rows", ["clicks"])


@pytest.mark.parametrize("given", ["1", "99999999999999999", "-5", "x", "9" * 400, "1e9"])
def test_an_id_that_is_not_ours_begins_anew(world: World, server: RestServer, given: str) -> None:
    with opened(server, last_event_id=given) as events:
        assert [next(events)[1], next(events)[1]] == ["hello", "overview"]


def test_batches_and_events_of_the_connector_that_is_open(world: World, server: RestServer) -> None:
    world.create("orders")
    world.create("clicks")
    history = world.service.history
    history.batch("orders", BatchRecord("old", 1, Outcome.COMMITTED))
    with opened(server, "?connector=orders") as events:
        next_of(events, "overview")
        history.batch("clicks", BatchRecord("other", 1, Outcome.COMMITTED))
        history.batch("orders", BatchRecord("b1", 1, Outcome.COMMITTED, read=5))
        history.event("orders", Event(5, "retry", "again"))
        _, _, said = next_of(events, "batch")
        assert (said["connector"], said["batch"]["id"]) == ("orders", "b1")
        assert next_of(events, "event")[2]["event"]["text"] == "again"


def test_what_handlers_tell_reaches_all(world: World, server: RestServer) -> None:
    streams = server._before_stop.__self__._streams  # type: ignore[attr-defined]
    with opened(server) as events:
        next_of(events, "overview")
        streams.tell("replay", {"connector": "orders", "sent": 3})
        assert next_of(events, "replay")[2] == {"connector": "orders", "sent": 3}


def test_there_is_a_most_and_places_are_freed(world: World) -> None:
    server = serve(world.service, bind(config_of({"icestream.rest.connections.max": "16"})))
    try:
        with ExitStack() as stack:
            all_events = [stack.enter_context(opened(server)) for _ in range(4)]
            assert [next(events)[1] for events in all_events] == ["hello"] * 4
            refused = world.ask("GET", "events", server=server)
            assert refused.status_code == 503 and "4 open streams" in refused.json()["message"]
            # What asks for nothing lasting is answered as ever.
            assert world.ask("GET", "overview", server=server).status_code == 200
        streams = server._before_stop.__self__._streams  # type: ignore[attr-defined]
        until(lambda: len(streams) == 0)
        assert streams._tasks == []
        with opened(server) as events:
            assert next(events)[1] == "hello"
    finally:
        server.stop()


def test_streams_end_when_the_server_stops(world: World) -> None:
    server = serve(world.service, bind(config_of({})))
    ended = threading.Event()
    with opened(server) as events:
        next_of(events, "overview")

        def read_on() -> None:
            for _ in events:
                pass
            ended.set()

        threading.Thread(target=read_on, daemon=True).start()
        server.stop()
        # In order, not by a broken connection: the iteration came to its end.
        assert ended.wait(PATIENCE)
        assert not server._thread.is_alive()


@pytest.mark.parametrize("is_cut", [False, True])
def test_a_server_with_a_client_that_does_not_read_stops_quietly(
    world: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, is_cut: bool
) -> None:
    monkeypatch.setattr(rest_server, "_STOP_TIMEOUT", PATIENCE)
    server = serve(world.service, bind(config_of({})))
    for uvicorn, _ in server._servers:
        # A busy machine shall not decide who hangs up first.
        uvicorn.config.timeout_graceful_shutdown = int(PATIENCE)
    streams = server._before_stop.__self__._streams  # type: ignore[attr-defined]
    request = "GET /console/api/events HTTP/1.1\r\nHost: localhost\r\nX-Icestream-Console: 1\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port)) as idle:
        idle.sendall(request.encode())
        until(lambda: len(streams) == 1)
        (client,) = streams._clients
        deadline = time.monotonic() + PATIENCE
        # Until so much waits that the sockets are full.
        while (len(streams) if is_cut else len(client.waiting) < 20) and time.monotonic() < deadline:
            streams.tell("replay", {"connector": "x" * 100_000})
            time.sleep(0.002)
        assert client.is_cut == is_cut
        server.stop()
    assert not server._thread.is_alive()
    assert [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING] == []


def test_who_does_not_read_is_cut_off(world: World, server: RestServer) -> None:
    streams = server._before_stop.__self__._streams  # type: ignore[attr-defined]
    request = "GET /console/api/events HTTP/1.1\r\nHost: localhost\r\nX-Icestream-Console: 1\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port)) as idle:
        idle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        idle.sendall(request.encode())
        until(lambda: len(streams) == 1)
        filling = {"connector": "x" * 60_000}
        deadline = time.monotonic() + PATIENCE
        while len(streams) and time.monotonic() < deadline:
            streams.tell("replay", filling)
            time.sleep(0.001)
        assert len(streams) == 0
    with opened(server) as events:
        assert next(events)[1] == "hello"


def test_who_is_behind_by_much_is_cut_off_however_few_events_that_are() -> None:
    client = stream._Client("", "")
    everything, more = b"x" * (2 * stream.MOST_WAITING_BYTES), b"y" * (stream.MOST_WAITING_BYTES // 4)
    client.put(everything)
    assert not client.is_cut and len(client.waiting) == 1
    client.put(more)
    assert client.is_cut and len(client.waiting) == 1
    other = stream._Client("", "")
    for _ in range(stream.MOST_WAITING):
        other.put(more)
    assert other.is_cut and sum(map(len, other.waiting)) <= stream.MOST_WAITING_BYTES


def test_silence_is_filled_with_comments(
    world: World, server: RestServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "_COMMENT_SECONDS", 0.05)
    with (
        httpx.Client(trust_env=False, timeout=PATIENCE) as client,
        client.stream("GET", f"{server.url}/console/api/events", headers=OURS) as response,
    ):
        assert next(line for line in response.iter_lines() if line.startswith(":")) == ":"


def test_nobody_looks_and_nothing_is_done(world: World, server: RestServer) -> None:
    streams = server._before_stop.__self__._streams  # type: ignore[attr-defined]
    with opened(server) as events:
        next_of(events, "overview")
        assert len(streams._tasks) == 2
    until(lambda: not streams._tasks)


def test_a_head_of_the_stream_is_no_stream(world: World, server: RestServer) -> None:
    assert world.ask("HEAD", "events", server=server).status_code == 200
    assert len(server._before_stop.__self__._streams) == 0  # type: ignore[attr-defined]
