"""What the console's API answers about the worker and its connectors; shapes as in docs/console-api.md."""

from __future__ import annotations

import json

import pytest

from icestream.api.history import BatchRecord, Event, Outcome, PartitionLag, TargetCommit
from icestream.api.status import Progress
from icestream.cluster.configs.masking import masks_of
from icestream.rest.console.overview import COLUMNS
from icestream.rest.console.shapes import progress_json

from .conftest import CONFIG, World

SECRET = CONFIG["iceberg.catalog.password"]
BATCH = BatchRecord(
    "b1",
    1_794_737_645_102,
    Outcome.COMMITTED,
    seconds=1.92,
    read=40_000,
    written=39_999,
    rejected={"VALUE_CONVERTER": 1},
    filtered={"dropOld": 0},
    bytes=34_520_000,
    lag_after=12_480,
    tasks=2,
    longest_task=1.31,
    stages={"plan": 0.03, "read": 0.9},
    targets=(TargetCommit("streaming.apilogs", "7318022946110237001", 39_999, 0.3, (10, 20, 30)),),
)


def row_of(world: World, name: str) -> dict[str, object]:
    answer = world.ask("GET", "overview").json()
    (row,) = [row for row in answer["rows"] if row[0] == name]
    return dict(zip(answer["columns"], row, strict=True))


def test_me(world: World) -> None:
    me = world.ask("GET", "me").json()
    assert me["level"] == "edit" and me["user"] == "" and me["mode"] == "standalone"
    assert (me["worker"], me["cluster_id"], me["off"]) == ("127.0.0.1:8083", "abc", [])
    assert me["health"]["status"] == "healthy"
    assert set(me["versions"]) == {"icestream", "connect"}
    off = world.ask("GET", "me", server=world.serve(icestream_console_payloads="false", admin_listeners=""))
    assert off.json()["off"] == ["loggers", "payloads"]


def test_the_overview_has_a_row_for_each_connector(world: World) -> None:
    world.create("orders")
    world.managers.latest("orders").advance(Progress(lag=5, rows=10, rejected=1, batches=1, topics=("t",)))
    world.service.history.batch("orders", BATCH)
    row = row_of(world, "orders")
    assert list(row) == list(COLUMNS)
    assert (row["type"], row["class"], row["state"]) == ("sink", "IcebergSinkConnector", "RUNNING")
    assert (row["tasks"], row["running"], row["worker"]) == (2, 2, "127.0.0.1:8083")
    assert (row["lag"], row["rows"], row["rejected"], row["age_ms"]) == (5, 10, 1, 0)
    assert (row["topics"], row["tables"]) == (["t"], ["streaming.apilogs"])
    world.managers.latest("orders").fail(f"the catalog refused the login with {SECRET}")
    row = row_of(world, "orders")
    assert (row["health"], row["state"], row["running"]) == ("failed", "FAILED", 0)
    assert "refused the login with [hidden]" in str(row["reason"])
    totals = world.ask("GET", "overview").json()["totals"]
    assert totals == {"failed": 1}


def test_the_overview_of_this_worker_alone(world: World) -> None:
    world.create("orders")
    assert [row[0] for row in world.ask("GET", "overview?local=1").json()["rows"]] == ["orders"]


def test_a_connector_is_shown_without_its_secrets(world: World) -> None:
    world.create("orders", **{"connection.note": f"x {SECRET} y", "iceberg.catalog.token": "${file:/a:b}"})
    world.managers.latest("orders").advance(
        Progress(
            lag=3,
            batches=1,
            partitions=(PartitionLag("t", 0, 2**60, 2**60 + 3, 5),),
            warnings=(f"odd: {SECRET}",),
        )
    )
    world.service.history.batch("orders", BATCH)
    answer = world.ask("GET", "connector", params={"connector": "orders"})
    assert SECRET not in answer.text
    found = answer.json()
    assert found["config"]["iceberg.catalog.password"] == "[hidden]"
    assert found["config"]["iceberg.catalog.token"] == "${file:/a:b}"
    assert found["config"]["connection.note"] == "x [hidden] y"
    assert found["secrets"] == ["iceberg.catalog.password", "iceberg.catalog.token"]
    assert found["config_version"] == world.service.connectors.known["orders"].stored.version
    assert found["partitions"] == [
        {
            "topic": "t",
            "partition": 0,
            "next_offset": str(2**60),
            "end": str(2**60 + 3),
            "lag": "3",
            "newest_ms": 5,
        }
    ]
    assert (found["state"], found["tables"]) == ("RUNNING", ["streaming.apilogs"])
    assert len(found["status"]["tasks"]) == 2


@pytest.mark.parametrize("level", ["view", "operate"])
def test_below_edit_no_value_of_a_config_is_shown(world: World, level: str) -> None:
    world.create("orders")
    server = world.serve(icestream_console=level)
    found = world.ask("GET", "connector", server=server, params={"connector": "orders"}).json()
    assert found["config"] is None
    assert "iceberg.catalog.type" in found["keys"]


def test_a_trace_is_shown_with_its_note_and_without_secrets(world: World) -> None:
    world.create("orders")
    world.managers.latest("orders").fail(f"login with {SECRET} refused")
    answer = world.ask("GET", "connector", params={"connector": "orders"})
    found = answer.json()
    assert SECRET not in answer.text
    assert "login with [hidden] refused" in found["trace"]
    assert found["trace_at_ms"] is not None
    assert (found["health"], found["state"]) == ("failed", "FAILED")


def test_what_holds_a_connector_up_is_told_without_secrets() -> None:
    circuit = {"destination": "db", "state": "open", "failures": 3, "reason": f"login with {SECRET} refused"}
    run = {"target": "t", "problems": [f"http://bob:hunter22@cat says {SECRET}"]}
    told = progress_json(Progress(circuit=circuit, maintenance=(run,)), masks_of(CONFIG))
    assert told["circuit"] == {**circuit, "reason": "login with [hidden] refused"}
    assert told["maintenance"] == [{"target": "t", "problems": ["http://bob:[hidden]@cat says [hidden]"]}]


def test_batches_newest_first_with_the_one_under_way(world: World) -> None:
    world.create("orders")
    history = world.service.history
    history.batch("orders", BATCH)
    history.batch("orders", BatchRecord("b2", 2, Outcome.FAILED, note=f"with {SECRET}"))
    history.batch("orders", BatchRecord("b3", 3, Outcome.UNDER_WAY))
    answer = world.ask("GET", "batches", params={"connector": "orders"})
    assert SECRET not in answer.text
    found = answer.json()["batches"]
    assert [one["id"] for one in found] == ["b3", "b2", "b1"]
    assert found[1]["note"] == "with [hidden]"
    assert found[2]["targets"] == [
        {
            "name": "streaming.apilogs",
            "id": "7318022946110237001",
            "rows": 39_999,
            "seconds": 0.3,
            "files": 3,
            "bytes": 60,
            "outcome": "committed",
        }
    ]
    limited = world.ask("GET", "batches", params={"connector": "orders", "limit": "1"}).json()["batches"]
    assert [one["id"] for one in limited] == ["b3"]
    for wrong in ("-1", "x", "9" * 30, "1e3", "٣"):
        assert world.ask("GET", "batches", params={"connector": "orders", "limit": wrong}).status_code == 400


def test_commits_that_the_targets_do_not_tell_are_those_of_the_batches(world: World) -> None:
    world.create("orders")
    world.service.history.batch("orders", BATCH)
    found = world.ask("GET", "commits", params={"connector": "orders"}).json()
    (commit,) = found["commits"]
    assert (commit["target"], commit["id"]) == ("streaming.apilogs", "7318022946110237001")
    assert (commit["rows"], commit["files"], commit["rejected"]) == (39_999, 3, 1)
    assert commit["commit_id"] == "b1"
    assert "cannot be asked" in found["notes"][0]


def test_history_as_series_of_equal_length(world: World) -> None:
    world.create("orders")
    world.service.history.sample("orders", 7, 1.5, 100)
    found = world.ask("GET", "history", params={"connector": "orders", "range": "15m"}).json()
    assert {len(values) for values in found["series"].values()} == {len(found["times"])}
    assert found["series"]["lag"][-1] == 7
    assert found["step_ms"] == 10_000
    for wrong in ("25h", "0m", "1d", "x", "-1h", ""):
        code = world.ask("GET", "history", params={"connector": "orders", "range": wrong}).status_code
        assert code == (200 if wrong == "" else 400)


def test_the_timeline_of_one_and_of_all(world: World) -> None:
    world.create("orders")
    history = world.service.history
    history.event("orders", Event(1, "state", "it runs"))
    history.event("orders", Event(2, "config", f"changed to {SECRET}", user="alice"))
    answer = world.ask("GET", "timeline", params={"connector": "orders"})
    assert SECRET not in answer.text
    newest = answer.json()["events"][0]
    assert (newest["at_ms"], newest["kind"], newest["user"]) == (2, "config", "alice")
    every = world.ask("GET", "timeline").json()["events"]
    assert {"orders"} == {event["connector"] for event in every}
    assert SECRET not in json.dumps(every)


def test_what_is_asked_of_a_connector_is_done(world: World) -> None:
    world.create("orders")
    named = {"connector": "orders"}
    for verb, path, code, state in (
        ("PUT", "pause", 202, "PAUSED"),
        ("PUT", "resume", 202, "RUNNING"),
        ("PUT", "stop", 204, "STOPPED"),
        ("PUT", "resume", 202, "RUNNING"),
        ("POST", "restart", 204, "RUNNING"),
    ):
        assert world.ask(verb, path, params=named).status_code == code
        assert world.ask("GET", "connector", params=named).json()["state"] == state
    assert world.ask("DELETE", "connector", params=named).status_code == 204
    assert world.ask("GET", "connector", params=named).status_code == 404
    for verb, path in (("PUT", "pause"), ("POST", "restart"), ("DELETE", "connector")):
        assert world.ask(verb, path, params=named).status_code == 404


def test_names_of_all_kinds_work(world: World) -> None:
    for name in ("../x", "a/b", "<img src=x onerror=alert(1)>", "\u202ename", "ü" * 500, "a&b=c#d?e%2e"):
        world.create(name)
        found = world.ask("GET", "connector", params={"connector": name})
        assert found.json()["name"] == name
        assert world.ask("PUT", "pause", params={"connector": name}).status_code == 202
        assert row_of(world, name)["state"] == "PAUSED"
        assert world.ask("DELETE", "connector", params={"connector": name}).status_code == 204


def test_plugins_and_their_settings(world: World) -> None:
    found = world.ask("GET", "plugins").json()["plugins"]
    name = "org.apache.iceberg.connect.IcebergSinkConnector"
    assert name in [one["class"] for one in found]
    settings = world.ask("GET", "plugin", params={"plugin": name}).json()["settings"]
    assert "iceberg.tables" in [one["name"] for one in settings]
    assert world.ask("GET", "plugin", params={"plugin": "../x"}).status_code == 404
    assert world.ask("GET", "plugin").status_code == 400


def test_loggers_are_where_rest_has_them(world: World) -> None:
    level = {"level": "DEBUG"}
    changed = world.ask("PUT", "logger", params={"logger": "icestream.of.this.test"}, json=level)
    assert changed.status_code == 200
    loggers = world.ask("GET", "loggers").json()["loggers"]
    assert loggers["icestream.of.this.test"]["level"] == "DEBUG"
    assert world.ask("PUT", "logger", params={"logger": "x"}, json={"level": "LOUD"}).status_code == 404
    closed = world.serve(admin_listeners="")
    assert world.ask("GET", "loggers", server=closed).status_code == 404
    assert world.ask("PUT", "logger", server=closed, params={"logger": "x"}, json=level).status_code == 404


def test_a_worker_alone(world: World) -> None:
    found = world.ask("GET", "workers").json()
    assert (found["mode"], found["rebalances"]) == ("standalone", [])
    (member,) = found["members"]
    assert (member["worker"], member["is_here"], member["answers"]) == ("127.0.0.1:8083", True, True)
