"""Two workers of a group: what one is asked about a connector of the other, and what it shows of all."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from icestream.api.errors import NotLeader
from icestream.api.history import BatchRecord, Outcome
from icestream.api.status import Progress
from icestream.cluster.connector_registry import Patience
from icestream.cluster.group.membership import GroupView, Move, Peer, Rebalance
from icestream.cluster.service import ConnectorService, Extras
from icestream.cluster.stores.connector_store import MemoryStore, StoredConnector
from icestream.rest.console.peers import hops_of
from icestream.rest.server import RestServer, bind, serve
from icestream.testing import FakeManagers

from .conftest import CONFIG, OURS, WORKER, config_of

LOGIN = {"authorization": "Basic " + base64.b64encode(b"alice:wonder").decode()}


@dataclass
class InGroup:
    """A membership that a test arranges."""

    own_url: str
    group: dict[str, frozenset[str]]
    """Connectors by address; all workers of a test share it."""
    leader_url: str = ""
    generation: int = 7
    is_well: bool = True
    has_joined: bool = True
    is_shared: bool = True
    silent_for: float | None = None
    rebalances: Sequence[Rebalance] = ()
    consoles: dict[str, str] = field(default_factory=dict)

    @property
    def view(self) -> GroupView:
        return GroupView()

    @property
    def peers(self) -> Sequence[Peer]:
        return [Peer(url, names, self.consoles.get(url, url), "0.1") for url, names in self.group.items()]

    def owns(self, name: str) -> bool:
        return name in self.group.get(self.own_url, frozenset())

    def require_leader(self) -> None:
        if self.leader_url != self.own_url:
            raise NotLeader(self.leader_url)


@dataclass
class Worker:
    url: str
    server: RestServer
    service: ConnectorService
    managers: FakeManagers
    membership: InGroup

    def ask(self, verb: str, path: str, **more: Any) -> httpx.Response:
        headers = {**OURS, **more.pop("headers", {})}
        with httpx.Client(trust_env=False, timeout=60) as client:
            return client.request(verb, f"{self.url}/console/api/{path}", headers=headers, **more)

    def row(self, name: str) -> dict[str, Any]:
        answer = self.ask("GET", "overview").json()
        (row,) = [row for row in answer["rows"] if row[0] == name]
        return dict(zip(answer["columns"], row, strict=True))


@dataclass
class Group:
    connectors: dict[str, frozenset[str]] = field(default_factory=dict)
    workers: list[Worker] = field(default_factory=list)

    def join(self, *names: str, knows: Sequence[str], **settings: str) -> Worker:
        bound = bind(config_of(settings))
        url = bound.advertised_url
        self.connectors[url] = frozenset(names)
        membership = InGroup(url, self.connectors, leader_url=next(iter(self.connectors)))
        store = MemoryStore()
        extras = Extras(patience=Patience(2.0, 2.0))
        service = ConnectorService(url.removeprefix("http://"), store, WORKER, membership, extras=extras)
        managers = FakeManagers()
        service.connectors.use(managers)
        for name in knows:
            store.put(name, StoredConnector({**CONFIG, "name": name}))
        service.ready()
        self.workers.append(Worker(url, serve(service, bound), service, managers, membership))
        return self.workers[-1]


@pytest.fixture
def group() -> Iterator[Group]:
    made = Group()
    yield made
    for worker in made.workers:
        worker.server.stop()
        worker.service.close()


def two(group: Group, **settings: str) -> tuple[Worker, Worker]:
    """The first leads and has `a`, the second has `b`."""
    names = ("a", "b")
    one = group.join("a", knows=names, **settings)
    other = group.join("b", knows=names, **settings)
    one.membership.leader_url = other.membership.leader_url = one.url
    deadline = time.monotonic() + 60
    # A job is made by a thread of the connector's own.
    while not (one.managers.made and other.managers.made):
        assert time.monotonic() < deadline, "the connectors did not start"
        time.sleep(0.01)
    return one, other


def test_the_page_of_a_connector_that_runs_elsewhere_is_whole(group: Group) -> None:
    one, other = two(group)
    other.managers.latest("b").advance(Progress(lag=5, rows=10, batches=1))
    other.service.history.batch("b", BatchRecord("b1", 1, Outcome.COMMITTED, read=10))
    other.service.history.sample("b", 5, 1.0, 100)
    found = one.ask("GET", "connector", params={"connector": "b"}).json()
    assert (found["state"], found["progress"]["lag"]) == ("RUNNING", 5)
    assert f"http://{found['worker']}" == other.url
    batches = one.ask("GET", "batches", params={"connector": "b"}).json()["batches"]
    assert [batch["id"] for batch in batches] == ["b1"]
    history = one.ask("GET", "history", params={"connector": "b", "range": "15m"}).json()
    assert history["series"]["lag"][-1] == 5
    assert one.ask("GET", "connector", params={"connector": "c"}).status_code == 404


def test_an_owner_that_is_gone_is_one_sentence(group: Group) -> None:
    one, other = two(group)
    other.server.stop()
    answer = one.ask("GET", "connector", params={"connector": "b"})
    assert answer.status_code == 503
    message = answer.json()["message"]
    assert f"Connector 'b' is on the worker at {other.url}, which does not answer" in message


def test_changes_are_the_leaders(group: Group) -> None:
    one, other = two(group)
    assert other.ask("PUT", "pause", params={"connector": "a"}).status_code == 202
    assert one.ask("GET", "connector", params={"connector": "a"}).json()["state"] == "PAUSED"


def test_requests_do_not_go_round_and_round(group: Group) -> None:
    one, other = two(group)
    # Each takes the other for the owner.
    one.membership.group = {one.url: frozenset(), other.url: frozenset("b")}
    other.membership.group = {one.url: frozenset("b"), other.url: frozenset()}
    answer = one.ask("GET", "connector", params={"connector": "b"})
    assert answer.status_code == 409 and "sharing out" in answer.json()["message"]
    one.membership.leader_url, other.membership.leader_url = other.url, one.url
    assert one.ask("PUT", "pause", params={"connector": "b"}).status_code == 409


@pytest.mark.parametrize(
    ("text", "hops"), [("1", 1), ("2", 2), ("0", None), ("3", None), ("-1", None), ("x", None)]
)
def test_only_workers_count_hops(group: Group, text: str, hops: int | None) -> None:
    assert hops_of({"x-icestream-hops": text}) == hops
    assert hops_of({}) == 0


def test_a_marker_that_no_worker_sends_is_refused(group: Group) -> None:
    one, _ = two(group)
    answer = one.ask("GET", "connector", params={"connector": "b"}, headers={"x-icestream-hops": "-100"})
    assert answer.status_code == 400
    # It can only keep a request here.
    last = one.ask("GET", "connector", params={"connector": "b"}, headers={"x-icestream-hops": "2"})
    assert last.status_code == 409


@pytest.mark.parametrize(
    "address",
    ["http://user@127.0.0.1:1", "ftp://127.0.0.1", "127.0.0.1:1", "http://", "file:///etc/passwd"],
)
def test_addresses_that_are_none_are_not_asked(group: Group, address: str) -> None:
    one, _ = two(group)
    one.membership.group = {one.url: frozenset("a"), address: frozenset("b")}
    assert one.ask("GET", "connector", params={"connector": "b"}).status_code == 409
    assert one.row("b")["age_ms"] > 0


@pytest.mark.parametrize(
    "name", ["http://127.0.0.1:1/", "b&connector=a", "b HTTP/1.1\r\nHost: x", "../../connectors"]
)
def test_names_lead_nowhere_else(group: Group, name: str) -> None:
    one = group.join("a", knows=("a", name))
    other = group.join(name, knows=("a", name))
    found = one.ask("GET", "connector", params={"connector": name}).json()
    assert (found["name"], f"http://{found['worker']}") == (name, other.url)


def test_the_login_is_passed_on(group: Group, tmp_path: Path) -> None:
    users = tmp_path / "users.properties"
    users.write_text("alice=wonder\n")
    settings = {
        "rest.extension.classes": "org.apache.kafka.connect.rest.basic.auth.extension"
        ".BasicAuthSecurityRestExtension",
        "icestream.rest.auth.credentials.file": str(users),
    }
    one, _ = two(group, **settings)
    assert one.ask("GET", "connector", params={"connector": "b"}).status_code == 401
    assert one.ask("GET", "connector", params={"connector": "b"}, headers=LOGIN).status_code == 200
    answer = one.ask("GET", "overview", headers=LOGIN).json()
    ages = {row[0]: row[answer["columns"].index("age_ms")] for row in answer["rows"]}
    assert ages["a"] == 0 and ages["b"] < 30_000
    users.write_text("alice=other\n")
    stranger = group.join("c", knows=("c",), **settings)
    refused = one.ask("GET", "connector", params={"connector": "c"}, headers=LOGIN)
    # A 401 would make the browser ask for a password that no worker but that one knows.
    assert refused.status_code == 403 and f"{stranger.url} does not know this login" in refused.text


def test_the_worker_that_answers_allows_no_more_than_the_one_that_was_asked(group: Group) -> None:
    lookout = group.join("a", knows=("a", "b"), **{"icestream.console": "view"})
    editor = group.join("b", knows=("a", "b"))
    asked = {"params": {"connector": "b"}}
    assert editor.ask("GET", "connector", **asked).json()["config"] is not None
    answer = lookout.ask("GET", "connector", **asked)
    assert (answer.status_code, answer.json()["worker"]) == (200, editor.url.removeprefix("http://"))
    assert answer.json()["config"] is None
    # Whoever sends it from outside gets less, never more.
    raised = {"headers": {"X-Icestream-Level": "edit"}}
    assert lookout.ask("GET", "connector", **asked, **raised).json()["config"] is None
    assert lookout.ask("GET", "config", **asked, **raised).status_code == 403
    lowered = {"headers": {"X-Icestream-Level": "view"}}
    assert editor.ask("GET", "config", **asked, **lowered).status_code == 403
    assert editor.ask("GET", "me", headers={"X-Icestream-Level": "all"}).status_code == 400


def test_a_worker_without_a_console_is_not_asked(group: Group) -> None:
    one, other = two(group)
    one.membership.consoles = {other.url: ""}
    found = one.ask("GET", "connector", params={"connector": "b"})
    # What was published of it, which is nothing here.
    assert (found.status_code, found.json()["state"]) == (200, "UNASSIGNED")
    one.membership.leader_url = other.url
    changed = one.ask("PUT", "pause", params={"connector": "b"})
    assert changed.status_code == 503 and "without a console" in changed.json()["message"]


def test_rows_of_the_others_are_in_the_overview(group: Group) -> None:
    one, other = two(group)
    other.managers.latest("b").advance(Progress(lag=5, rows=10, batches=1))
    row = one.row("b")
    assert (row["lag"], row["rows"], row["state"]) == (5, 10, "RUNNING")
    assert f"http://{row['worker']}" == other.url
    assert one.row("a")["age_ms"] == 0
    assert [found[0] for found in one.ask("GET", "overview?local=1").json()["rows"]] == ["a"]


def test_a_worker_that_does_not_answer_is_shown_as_such(group: Group) -> None:
    one, other = two(group)
    other.server.stop()
    row = one.row("b")
    # What was published last, which may be half a minute old.
    assert row["age_ms"] >= 30_000
    found = one.ask("GET", "workers").json()
    members = {member["url"]: member for member in found["members"]}
    assert members[one.url]["answers"] and members[one.url]["is_here"] and members[one.url]["is_leader"]
    assert not members[other.url]["answers"] and "does not answer" in members[other.url]["reason"]
    assert (found["mode"], found["generation"], found["leader"]) == ("distributed", 7, one.url)


def test_rebalances_are_shown_with_what_moved(group: Group) -> None:
    one, other = two(group)
    moved = (Move("b", one.url, other.url), Move("c", "", one.url))
    one.membership.rebalances = [Rebalance(5, 7, 0.25, 2, (other.url,), (), moved, 2)]
    (found,) = one.ask("GET", "workers").json()["rebalances"]
    assert (found["generation"], found["seconds"], found["moves"]) == (7, 0.25, 2)
    assert found["moved"] == [["b", one.url, other.url], ["c", None, one.url]]
    assert (found["gained"], found["lost"], found["joined"]) == (["c"], ["b"], [other.url])
