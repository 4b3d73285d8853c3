"""`icestream connectors`: the table, its JSON, and the same again and again with --watch."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import click
import pytest

from icestream.api.status import Progress
from icestream.cli.connectors import ago, connector_lines, notes, progress_lines, worst_state
from icestream.cli.live import Clock, reason
from icestream.client import ConnectorView, TaskView

Cli = Callable[..., Any]


def stops_after(turns: int, then: Callable[[int], None] = lambda turn: None) -> Clock:
    """A clock that stands still, and presses Ctrl-C after some turns; `then` is called at each."""
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == turns:
            raise KeyboardInterrupt
        then(len(slept))

    return Clock(lambda: 1000.0, sleep)


def test_shows_progress_with_the_time_since_the_commit(cli: Cli, worker: Any) -> None:
    worker.create("iceberg-sink-apilogs")
    worker.managers.latest("iceberg-sink-apilogs").advance(
        Progress(lag=0, rows=120_000, rejected=3, last_commit_ms=996_000)
    )
    ran = cli("connectors", obj=Clock(lambda: 1000.0))
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "connector             type  state    tasks  lag  last commit     rows  rejected\n"
        "iceberg-sink-apilogs  sink  RUNNING    2/2    0      4 s ago  120,000         3\n"
    )


def test_json_is_the_status_of_kafka_connect_with_the_progress(cli: Cli, worker: Any) -> None:
    worker.create("b", "a")
    ran = cli("connectors", "-o", "json")
    first, second = json.loads(ran.out)
    assert [first["name"], second["name"]] == ["a", "b"]
    assert first["connector"]["state"] == "RUNNING"
    assert [task["id"] for task in first["tasks"]] == [0, 1]
    assert first["type"] == "sink"
    assert first["progress"]["rows"] == 0


def test_patterns_choose(cli: Cli, worker: Any) -> None:
    worker.create("iceberg-a", "iceberg-b", "delta")
    assert [row.split()[0] for row in cli("connectors", "iceberg-*").rows[1:]] == ["iceberg-a", "iceberg-b"]
    ran = cli("connectors", "delta", "x*")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "icestream: no connector is called 'x*'; see 'icestream connectors'\n"


def test_no_connectors_is_a_hint(cli: Cli, worker: Any) -> None:
    assert cli("connectors").out == "no connectors; create one with 'icestream connector create -f FILE'\n"
    assert json.loads(cli("connectors", "-o", "json").out) == []


def test_what_failed_says_why_below_the_table(cli: Cli, worker: Any) -> None:
    worker.create("sink", **{"my.note": "x"})
    worker.managers.latest("sink").fail("Traceback\n  File\nValueError: \x1b[31mboom")
    rows = cli("connectors").rows
    assert rows[1].split()[2:4] == ["FAILED", "0/2"]
    assert rows[2] == "sink: ValueError: \\x1b[31mboom"
    assert rows[3].startswith("sink: warning: 'my.note' is not a known configuration")


def test_watch_shows_the_table_again_until_ctrl_c(cli: Cli, worker: Any) -> None:
    worker.create("sink")
    clock = stops_after(2, lambda _: worker.service.pause("sink"))
    ran = cli("connectors", "--watch", obj=clock)
    assert ran.code == 0
    assert [row.split()[2] for row in ran.rows if row.startswith("sink")] == ["RUNNING", "PAUSED"]


def test_watch_as_json_is_one_line_a_turn(cli: Cli, worker: Any) -> None:
    worker.create("sink")
    ran = cli("connectors", "--watch", "-o", "json", obj=stops_after(3))
    assert [json.loads(line)[0]["name"] for line in ran.out.splitlines()] == ["sink"] * 3


def test_watch_outlives_a_worker_that_goes_away(bare_cli: Cli, canned: Any) -> None:
    path = "/connectors?expand=status&expand=progress"
    status = {"name": "sink", "connector": {"state": "RUNNING", "worker_id": "w"}, "tasks": []}
    canned.say("GET", path, 200, {"sink": {"status": status}})
    ran = bare_cli("connectors", "--watch", "--url", canned.url, obj=stops_after(2, lambda _: canned.close()))
    assert ran.code == 0
    assert ran.rows[1] == "sink - RUNNING 0/0 - - - -"
    assert ran.rows[2].startswith(f"no worker answers at {canned.url}")


def test_watch_outlives_a_rebalance(bare_cli: Cli, canned: Any) -> None:
    path = "/connectors?expand=status&expand=progress"
    canned.say("GET", path, 200, {})

    def turn(number: int) -> None:
        busy = {"error_code": 409, "message": "a rebalance\nis in process"}
        canned.say("GET", path, *((409, busy) if number == 1 else (200, {})))

    ran = bare_cli("connectors", "--watch", "--url", canned.url, obj=stops_after(3, turn))
    assert ran.out.splitlines()[1] == "a rebalance is in process"
    assert ran.rows[0] == ran.rows[2]


def test_watch_of_nobody_ends(bare_cli: Cli) -> None:
    assert bare_cli("connectors", "--watch", "--url", "http://127.0.0.1:1", obj=stops_after(1)).code == 3


def test_a_terminal_gets_colours_and_no_more_than_its_width() -> None:
    views = [ConnectorView("sink", "FAILED", "w", None, ())]
    (title, line) = connector_lines(views, 0.0, width=22)
    assert line == "sink       -     \x1b[31m\x1b[1mFAILE\x1b[0m"
    assert title.endswith("state\x1b[0m")


def test_the_terminal_keeps_the_picture_in_place(
    cli: Cli, worker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("icestream.cli.live._screen", lambda: os.terminal_size((26, 3)))
    worker.create("sink-a", "sink-b")
    ran = cli("connectors", "--watch", obj=stops_after(2), color=True)
    one, two = ran.out.split("\x1b[2F")  # up over the two lines of the picture before
    assert one == two
    assert one.endswith("\x1b[K\n\x1b[J")
    assert "sink-a" in one
    assert "\x1b[32m" in one
    assert "sink-b" not in one  # the screen is too low
    assert "lag" not in one  # and too narrow
    plain = cli("connectors", "--watch", obj=stops_after(2), color=True, env={"NO_COLOR": "1"})
    assert "\x1b[2F" in plain.out
    assert "\x1b[32m" not in plain.out


def test_the_table_of_the_demo_is_narrow() -> None:
    progress = Progress(lag=0, rows=119_997, rejected=3, last_commit_ms=996_000)
    lines = progress_lines(
        [ConnectorView("iceberg-sink-auditlogs", "RUNNING", "w", None, (), progress)], 1000.0
    )
    assert [click.unstyle(line) for line in lines] == [
        "connector               state    lag  last commit     rows  rejected",
        "iceberg-sink-auditlogs  RUNNING    0      4 s ago  119,997         3",
    ]


def test_a_failed_task_is_a_failed_connector() -> None:
    view = ConnectorView("a", "RUNNING", "w", None, (TaskView(0, "FAILED", "w", "x"),))
    assert worst_state(view) == "FAILED"
    assert notes(view) == ["a: x"]


@pytest.mark.parametrize(
    ("trace", "gist"),
    [
        ("ValueError: boom", "ValueError: boom"),
        ("Traceback (most recent call last):\n  File …\nValueError: boom\n", "ValueError: boom"),
        (
            "java.lang.A: outer\n\tat x\nCaused by: java.lang.B: inner\n\tat y\n\t... 3 more",
            "java.lang.B: inner",
        ),
        ("Traceback …\nicestream.api.errors.FatalError: no such file; make it", "no such file; make it"),
        (
            "Traceback …\n: java.lang.A: o190.sql\n\tat x\nCaused by: java.lang.B: inner\n\tat y\n\n"
            "Traceback …\nicestream.api.errors.FatalError: Spark lacks a jar; set it",
            "Spark lacks a jar; set it",
        ),
        ("java.lang.A: alone\n\tat x\n\tat y", "java.lang.A: alone"),
    ],
)
def test_the_gist_of_a_trace(trace: str, gist: str) -> None:
    assert reason(ConnectorView("a", "FAILED", "w", trace, ())) == gist


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1, "0 s ago"), (59.9, "59 s ago"), (60, "1 min ago"), (7200, "2 h ago"), (172_800, "2 d ago")],
)
def test_time_as_people_say_it(seconds: float, text: str) -> None:
    assert ago(seconds) == text
