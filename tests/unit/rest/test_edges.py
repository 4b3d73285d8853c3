"""What no client of Kafka Connect should ever see, and what keeps one client from hurting the others."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
import uvicorn

from icestream.api.errors import BadOffsets, NotLeader, Problem
from icestream.api.offset_admin import OffsetEntry
from icestream.cluster.connector_registry import Patience
from icestream.cluster.service import ConnectorService, Extras
from icestream.cluster.stores.connector_store import MemoryStore
from icestream.rest.app import ApiOptions, build_app
from icestream.rest.exchange import MAX_KEYS, MAX_NAME, TopicTracking
from icestream.rest.server import listen
from icestream.testing import FakeManagers

JSON = "org.apache.kafka.connect.json.JsonConverter"
WORKER = {"key.converter": JSON, "value.converter": JSON, "icestream.file.connectors.enabled": "true"}
CONFIG = {
    "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
    "file": "in.txt",
    "topic": "t",
}


class Offsets:
    """Offsets in memory."""

    def __init__(self) -> None:
        self.entries: list[OffsetEntry] = [OffsetEntry({"filename": "in.txt"}, {"position": 3})]

    def read(self, name: str, config: Any) -> list[OffsetEntry]:
        return self.entries

    def alter(self, name: str, config: Any, entries: Any) -> str:
        if any(entry.partition is None for entry in entries):
            raise BadOffsets("Partition objects cannot be null")
        self.entries = list(entries)
        return "altered"

    def reset(self, name: str, config: Any) -> str:
        self.entries = []
        return "reset"


class Checks:
    """A deep check that waits until it may go on."""

    def __init__(self) -> None:
        self.may_go_on = threading.Event()
        self.waiting = threading.Semaphore(0)
        self.is_slow = False

    def __call__(self, config: Any) -> list[Problem]:
        if self.is_slow:
            self.waiting.release()
            self.may_go_on.wait(120)
        return []


@contextmanager
def served(service: ConnectorService, options: ApiOptions | None = None) -> Iterator[httpx.Client]:
    listening = listen("127.0.0.1", 0)
    server = uvicorn.Server(
        uvicorn.Config(
            build_app(service, options), log_config=None, lifespan="off", timeout_graceful_shutdown=1
        )
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    with httpx.Client(base_url=f"http://127.0.0.1:{listening.getsockname()[1]}", trust_env=False) as client:
        yield client
    server.should_exit = True
    thread.join(60)
    listening.close()


@pytest.fixture
def checks() -> Iterator[Checks]:
    checks = Checks()
    yield checks
    checks.may_go_on.set()


@pytest.fixture
def service(checks: Checks) -> Iterator[ConnectorService]:
    extras = Extras(deep_check=checks, offsets=Offsets(), patience=Patience(2.0, 2.0))
    service = ConnectorService("127.0.0.1:8083", MemoryStore(), WORKER, extras=extras)
    service.connectors.use(FakeManagers())
    yield service
    service.close()


@pytest.fixture
def api(service: ConnectorService) -> Iterator[httpx.Client]:
    with served(service) as client:
        yield client


def create(api: httpx.Client, name: str = "c", **more: str) -> httpx.Response:
    return api.post("/connectors", json={"name": name, "config": CONFIG, **more})


def message(answer: httpx.Response) -> str:
    return str(answer.json()["message"])


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("a/b", "a%2Fb"),
        ("50%", "50%25"),
        ("a\\b", "a%5Cb"),
        ("%2F", "%252F"),
        ("größe 1", "gr%C3%B6%C3%9Fe%201"),
    ],
)
def test_every_name_that_can_be_created_can_be_reached(api: httpx.Client, name: str, path: str) -> None:
    assert create(api, name).status_code == 201
    assert api.get(f"/connectors/{path}/config").json()["name"] == name
    assert api.delete(f"/connectors/{path}").status_code == 204
    assert api.get("/connectors").json() == []


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("//", "empty segment"),
        ("/connectors//config", "empty segment"),
        ("/connectors/%zz", "must be encoded"),
        ("/connectors/%FF", "not UTF-8"),
        ("/connectors/%00", "control character"),
        ("/connectors/%2e%2E", "ambiguous"),
    ],
)
def test_a_path_that_cannot_be_read_is_400(api: httpx.Client, path: str, words: str) -> None:
    # A request by hand: clients repair such paths.
    request = httpx.Request("GET", api.base_url)
    request.url = request.url.copy_with(raw_path=path.encode())
    answer = api.send(request)
    assert answer.status_code == 400
    assert words in message(answer)


def test_a_body_over_the_limit_is_413_and_nothing_is_created(api: httpx.Client) -> None:
    answer = api.post("/connectors", json={"name": "c", "config": {**CONFIG, "note": "x" * 6 * 2**20}})
    assert (answer.status_code, answer.json()["error_code"]) == (413, 413)
    assert api.get("/connectors").json() == []


def test_too_many_keys_and_too_long_names_are_400_and_nothing_is_created(api: httpx.Client) -> None:
    many = {**CONFIG, **{f"key{number}": "x" for number in range(MAX_KEYS)}}
    answers = [
        api.post("/connectors", json={"name": "c", "config": many}),
        api.put("/connectors/c/config", json=many),
        create(api, "n" * (MAX_NAME + 1)),
        api.put(f"/connectors/{'n' * (MAX_NAME + 1)}/config", json=CONFIG),
    ]
    assert [answer.status_code for answer in answers] == [400] * 4
    assert "at most" in message(answers[0]) and "at most" in message(answers[2])
    assert api.get("/connectors").json() == []


def test_half_a_character_in_a_name_is_no_stack_trace(api: httpx.Client) -> None:
    body = json.dumps({"name": "a\ud800", "config": CONFIG})
    answer = api.post("/connectors", content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (201, 400)
    assert api.get("/connectors").status_code == 200


def test_of_many_creates_at_once_one_wins(api: httpx.Client) -> None:
    with ThreadPoolExecutor(8) as pool:
        codes = sorted(answer.status_code for answer in pool.map(lambda _: create(api), range(8)))
    assert codes == [201] + [409] * 7


def test_slow_validations_do_not_starve_the_others(api: httpx.Client, checks: Checks) -> None:
    checks.is_slow = True
    path = "/connector-plugins/FileStreamSource/config/validate"
    with ThreadPoolExecutor(60) as pool:
        running = [pool.submit(api.put, path, json={**CONFIG, "name": "c"}, timeout=180) for _ in range(60)]
        for _ in range(40):
            assert checks.waiting.acquire(timeout=120)
        assert api.get("/connectors").status_code == 200
        assert api.put("/connectors/c/pause").status_code == 404
        assert not any(future.done() for future in running)
        checks.may_go_on.set()
        assert {future.result().status_code for future in running} == {200}


def test_a_request_that_takes_too_long_is_500(service: ConnectorService, checks: Checks) -> None:
    checks.is_slow = True
    with served(service, ApiOptions(timeout=0.2)) as api:
        answer = create(api)
    assert (answer.status_code, message(answer)) == (500, "Request timed out")


def test_topics_can_be_switched_off(service: ConnectorService) -> None:
    with served(service, ApiOptions(topics=TopicTracking(is_enabled=False))) as api:
        answers = [api.get("/connectors/c/topics"), api.put("/connectors/c/topics/reset")]
    assert [(it.status_code, message(it)) for it in answers] == [(403, "Topic tracking is disabled.")] * 2
    with served(service, ApiOptions(topics=TopicTracking(may_reset=False))) as api:
        assert api.get("/connectors/c/topics").json() == {"c": {"topics": []}}
        reset = api.put("/connectors/c/topics/reset")
    assert (reset.status_code, message(reset)) == (403, "Topic tracking reset is disabled.")


def test_offsets_keep_their_numbers(api: httpx.Client) -> None:
    create(api, initial_state="STOPPED")
    assert api.get("/connectors/c/offsets").json() == {
        "offsets": [{"partition": {"filename": "in.txt"}, "offset": {"position": 3}}]
    }
    wanted = {"offsets": [{"partition": {"filename": "a", "n": 1.5}, "offset": {"position": 7}}]}
    assert api.patch("/connectors/c/offsets", json=wanted).json() == {"message": "altered"}
    assert api.get("/connectors/c/offsets").json() == wanted
    refused = api.patch("/connectors/c/offsets", json={"offsets": [{"offset": {"position": 7}}]})
    assert (refused.status_code, message(refused)) == (400, "Partition objects cannot be null")
    assert api.delete("/connectors/c/offsets").json() == {"message": "reset"}


class Follower:
    """A worker that leads nothing: it says who does."""

    def __init__(self, leader: str) -> None:
        self.generation = 1
        self.is_well = True
        self.is_shared = True
        self._leader = leader

    def owns(self, name: str) -> bool:
        return False

    def require_leader(self) -> None:
        raise NotLeader(self._leader)


@contextmanager
def follower(leader: str) -> Iterator[httpx.Client]:
    service = ConnectorService("127.0.0.1:8084", MemoryStore(), WORKER, membership=Follower(leader))
    with served(service) as client:
        yield client
    service.close()


def test_a_follower_asks_the_leader(api: httpx.Client) -> None:
    with follower(str(api.base_url)) as second:
        created = create(second, "a/b c")
        assert (created.status_code, created.json()["name"]) == (201, "a/b c")
        assert created.headers["location"] == f"{str(second.base_url).rstrip('/')}/connectors/a%2Fb%20c"
        assert create(second, "a/b c").status_code == 409
        restarted = second.post("/connectors/a%2Fb%20c/restart?includeTasks=true")
        assert (restarted.status_code, restarted.json()["name"]) == (202, "a/b c")
        missing = second.delete("/connectors/no")
        assert (missing.status_code, message(missing)) == (404, "Connector no not found")
        assert second.delete("/connectors/a%2Fb%20c").status_code == 204
    assert api.get("/connectors").json() == []


def test_a_request_goes_two_hops_and_no_further(api: httpx.Client) -> None:
    with follower(str(api.base_url)) as second, follower(str(second.base_url)) as third:
        assert create(third).status_code == 201
        with follower(str(third.base_url)) as fourth:
            lost = create(fourth, "d")
    assert lost.status_code == 409
    assert message(lost) == (
        "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"
    )
    assert api.get("/connectors").json() == ["c"]


def test_a_leader_that_is_gone_is_an_error_in_one_sentence() -> None:
    with listen("127.0.0.1", 0) as probe:
        port = probe.getsockname()[1]
    with follower(f"http://127.0.0.1:{port}") as second:
        answer = create(second)
    assert answer.status_code == 500
    assert message(answer).startswith("IO Error trying to forward REST request: ")
    with follower("") as second:
        assert "no known leader URL" in message(create(second))


def test_what_the_leader_needs_is_passed_on(api: httpx.Client) -> None:
    seen: dict[str, str] = {}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.update({name.decode(): value.decode() for name, value in scope["headers"]})
        seen["query"] = scope["query_string"].decode()
        await send({"type": "http.response.start", "status": 302, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    listening = listen("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    with follower(f"http://127.0.0.1:{listening.getsockname()[1]}") as second:
        answer = second.post("/connectors/c/restart?onlyFailed=true", auth=("ada", "secret"))
    server.should_exit = True
    thread.join(60)
    assert seen["authorization"].startswith("Basic ")
    assert seen["query"] == "onlyFailed=true&forward=true"
    assert (answer.status_code, message(answer)) == (
        500,
        "Unexpected status code when handling forwarded request: 302",
    )


@pytest.mark.parametrize(
    "path", ["connectors;@{}/c/config", "connectors;x@{}", "connectors/c/config", "@{}/c"]
)
def test_no_path_leads_a_forwarded_request_elsewhere(api: httpx.Client, path: str) -> None:
    """Behind the address of the leader such a path would be its port, or a login to a host that it names."""
    with listen("127.0.0.1", 0) as inner, follower(str(api.base_url)) as second:
        target = path.format(f"127.0.0.1:{inner.getsockname()[1]}")
        answer = by_hand(second, f"PUT {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        inner.setblocking(False)
        with pytest.raises(BlockingIOError):
            inner.accept()
    assert answer.startswith("HTTP/1.1 400") and "does not begin with a slash" in answer


def by_hand(api: httpx.Client, request: str) -> str:
    """All that is answered until the server hangs up."""
    address = (api.base_url.host, api.base_url.port or 0)
    with socket.create_connection(address, timeout=60) as connection:
        connection.sendall(request.encode())
        return b"".join(iter(lambda: connection.recv(65_536), b"")).decode()


def test_half_a_surrogate_pair_becomes_a_question_mark(api: httpx.Client) -> None:
    body = json.dumps({"name": "a\ud800", "config": {**CONFIG, "file": "b\udfff"}})
    answer = api.post("/connectors", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 201, answer.text
    assert api.get("/connectors").json() == ["a?"]
    assert api.get("/connectors/a%3F/config").json()["file"] == "b?"
