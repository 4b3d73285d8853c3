"""`icestream connector …` over the real REST API: what is printed, what is changed, which exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from icestream.cli.live import Clock

Cli = Callable[..., Any]
CONFIG = {
    "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
    "tasks.max": "2",
    "topics": "t",
    "iceberg.tables": "db.t",
    "iceberg.catalog.type": "sql",
}


class Turns:
    """A clock whose every sleep is a turn, with something to do at some of them."""

    def __init__(self, **at: Callable[[], object]) -> None:
        self.slept = 0.0
        self.turns = 0
        self._at = at

    def sleep(self, seconds: float) -> None:
        self.slept += seconds
        self.turns += 1
        self._at.get(f"turn{self.turns}", lambda: None)()

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.slept, self.sleep)


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., str]:
    def write(name: str, config: dict[str, str] | None = None, **more: str) -> str:
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps({"name": name, "config": CONFIG if config is None else config, **more}))
        return str(path)

    return write


def state(worker: Any, name: str) -> str:
    return str(worker.service.status(name).state)


# create


def test_create(cli: Cli, worker: Any, file: Any) -> None:
    ran = cli("connector", "create", "-f", file("sink"))
    assert (ran.code, ran.out, ran.err) == (0, "connector sink created\n", "")
    assert worker.service.config("sink") == {**CONFIG, "name": "sink"}
    again = cli("connector", "create", "-f", file("sink"))
    assert (again.code, again.out) == (1, "")
    assert again.err == "icestream: Connector sink already exists\n"


def test_create_from_every_form_of_file(cli: Cli, worker: Any, tmp_path: Path) -> None:
    properties = "".join(f"{key}={value}\n" for key, value in CONFIG.items())
    (tmp_path / "a.properties").write_text(f"name=a\n{properties}")
    (tmp_path / "b.json").write_text(json.dumps({**CONFIG, "name": "b", "tasks.max": 1}))
    # As a shell expands `-f *.json *.properties`.
    ran = cli("connector", "create", "-f", str(tmp_path / "a.properties"), str(tmp_path / "b.json"))
    assert ran.out == "connector a created\nconnector b created\n"
    assert cli("connector", "create", "-f", "-", input=json.dumps({"name": "c", "config": CONFIG})).code == 0
    assert cli("connector", "create", "-f", "-", "--name", "d", input=properties).code == 0
    assert cli("connector", "create", "-f", "-", "-n", "e", input=json.dumps(CONFIG)).code == 0
    assert sorted(worker.service.names()) == ["a", "b", "c", "d", "e"]
    assert worker.service.config("b")["tasks.max"] == "1"
    assert worker.service.config("e") == {**CONFIG, "name": "e"}


@pytest.mark.parametrize(
    ("option", "in_file", "expected"),
    [
        (["--state", "stopped"], {}, "STOPPED"),
        ([], {"initial_state": "PAUSED"}, "PAUSED"),
        (["--state", "paused"], {"initial_state": "STOPPED"}, "PAUSED"),
    ],
)
def test_create_in_a_state(
    cli: Cli, worker: Any, file: Any, option: list[str], in_file: dict[str, str], expected: str
) -> None:
    ran = cli("connector", "create", "-f", file("sink", **in_file), *option, "--wait", obj=Turns().clock)
    assert ran.code == 0
    assert state(worker, "sink") == expected


def test_create_as_json_tells_every_result(cli: Cli, worker: Any, file: Any) -> None:
    worker.create("old")
    ran = cli("connector", "create", "-o", "json", "-f", file("old"), "-f", file("new"))
    assert ran.code == 1
    assert json.loads(ran.out) == [
        {"connector": "old", "error": "Connector old already exists"},
        {"connector": "new", "result": "created"},
    ]


def test_a_wrong_config_is_a_line_for_each_error(cli: Cli, worker: Any, file: Any) -> None:
    wrong = {**CONFIG, "tasks.max": "0", "iceberg.tabels": "db.t"}
    ran = cli("connector", "create", "-f", file("sink", wrong))
    assert ran.code == 1
    lines = ran.err.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("icestream: ") for line in lines)
    assert "tasks.max" in ran.err
    assert "iceberg.tables" in ran.err
    assert worker.service.names() == []


def test_no_file_is_sent_if_one_is_wrong(cli: Cli, worker: Any, file: Any, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("{")
    ran = cli("connector", "create", "-f", file("sink"), "-f", str(tmp_path / "bad.json"))
    assert ran.code == 1
    assert "bad.json, line 1: not valid JSON" in ran.err
    assert worker.service.names() == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "Missing option '-f' / '--file'"),
        (["-f", "nowhere.json"], "'nowhere.json': No such file or directory"),
        (["-f", "-", "--timeout", "x"], "'x' is not a valid float range"),
        (["-f", "-", "--state", "gone"], "'gone' is not one of"),
        (["-f", "-", "-o", "yaml"], "'yaml' is not one of"),
        (["-f", "-", "--url", "ftp://x"], "'ftp://x' is not an address; write http://host:port"),
    ],
)
def test_wrong_calls_are_exit_code_2(cli: Cli, arguments: list[str], told: str) -> None:
    ran = cli("connector", "create", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert told in ran.err
    assert ran.err.count("\n") == 1
    assert ran.err.endswith("; see `icestream connector create --help`\n")


def test_two_files_of_one_connector_and_one_name_for_two_files(cli: Cli, worker: Any, file: Any) -> None:
    sink = file("sink")
    assert "two files are of connector 'sink'" in cli("connector", "apply", "-f", sink, "-f", sink).err
    assert cli("connector", "apply", "-f", sink, "-f", sink, "--name", "x").code == 2
    assert worker.service.names() == []


def test_stdin_without_a_name(cli: Cli) -> None:
    ran = cli("connector", "create", "-f", "-", input=json.dumps(CONFIG))
    assert (ran.code, ran.err) == (1, "icestream: stdin: the connector has no 'name'; add one\n")


# apply


def test_apply_creates_configures_and_leaves_alone(cli: Cli, worker: Any, file: Any) -> None:
    assert cli("connector", "apply", "-f", file("sink")).out == "connector sink created\n"
    job = worker.managers.latest("sink")
    assert cli("connector", "apply", "-f", file("sink")).out == "connector sink unchanged\n"
    assert worker.managers.latest("sink") is job
    changed = file("sink", {**CONFIG, "tasks.max": "1"})
    assert cli("connector", "apply", "-f", changed).out == "connector sink configured\n"
    assert worker.service.config("sink")["tasks.max"] == "1"


def test_apply_dry_run_changes_nothing(cli: Cli, worker: Any, file: Any) -> None:
    worker.create("old", "same")
    ran = cli(
        "connector", "apply", "--dry-run", "--wait",
        "-f", file("new"), "-f", file("old", {**CONFIG, "tasks.max": "9"}), "-f", file("same"),
    )  # fmt: skip
    assert ran.out.splitlines() == [
        "connector new created (dry run)",
        "connector old configured (dry run)",
        "connector same unchanged (dry run)",
    ]
    assert worker.service.names() == ["old", "same"]
    assert worker.service.config("old")["tasks.max"] == "2"


def test_a_shown_config_can_be_applied(cli: Cli, worker: Any) -> None:
    worker.create("sink")
    shown = cli("connector", "config", "sink", "-o", "json").out
    assert cli("connector", "apply", "-f", "-", input=shown).out == "connector sink unchanged\n"


def test_apply_waits_for_a_paused_one_as_it_is(cli: Cli, worker: Any, file: Any) -> None:
    worker.create("sink")
    worker.service.pause("sink")
    changed = file("sink", {**CONFIG, "tasks.max": "1"})
    assert cli("connector", "apply", "-f", changed, "--wait", obj=Turns().clock).code == 0
    assert state(worker, "sink") == "PAUSED"


# delete, pause, resume, stop, restart


def test_steering_by_names_and_patterns(cli: Cli, worker: Any) -> None:
    worker.create("iceberg-a", "iceberg-b", "delta")
    ran = cli("connector", "pause", "iceberg-*", "iceberg-a")
    assert ran.out == "connector iceberg-a paused\nconnector iceberg-b paused\n"
    assert [state(worker, name) for name in ("iceberg-a", "iceberg-b", "delta")] == [
        "PAUSED",
        "PAUSED",
        "RUNNING",
    ]
    assert cli("connector", "resume", "iceberg-a").out == "connector iceberg-a resumed\n"
    assert state(worker, "iceberg-a") == "RUNNING"
    assert cli("connector", "stop", "*").code == 0
    assert {state(worker, name) for name in worker.service.names()} == {"STOPPED"}
    assert cli("connector", "delete", "[id]*").out.count("deleted") == 3
    assert worker.service.names() == []


def test_a_pattern_is_first_of_all_a_name(cli: Cli, worker: Any) -> None:
    worker.create("a*", "ab")
    assert cli("connector", "pause", "a*").out == "connector a* paused\n"


@pytest.mark.parametrize("verb", ["pause", "resume", "stop", "restart", "delete"])
def test_one_that_is_missing_does_not_keep_the_others(cli: Cli, worker: Any, verb: str) -> None:
    worker.create("a", "b")
    ran = cli("connector", verb, "a", "no", "b")
    assert ran.code == 1
    assert len(ran.out.splitlines()) == 2
    assert ran.err.count("\n") == 1
    assert "no" in ran.err
    machine = json.loads(cli("connector", verb, "no", "-o", "json").out)
    assert list(machine[0]) == ["connector", "error"]


def test_delete_can_ignore_what_is_missing(cli: Cli, worker: Any) -> None:
    worker.create("a")
    ran = cli("connector", "delete", "a", "no", "--ignore-missing")
    assert (ran.code, ran.out) == (0, "connector a deleted\nconnector no not found\n")
    worker.create("b")
    ran = cli("connector", "delete", "x*", "b*", "--ignore-missing")
    assert (ran.code, ran.out) == (0, "connector b deleted\n")
    assert cli("connector", "delete", "x*").code == 1


def test_odd_names_arrive_whole(cli: Cli, worker: Any) -> None:
    worker.create("a b%c ü?")
    assert cli("connector", "pause", "a b%c ü?").out == "connector a b%c ü? paused\n"
    assert state(worker, "a b%c ü?") == "PAUSED"


def test_restart(cli: Cli, worker: Any) -> None:
    worker.create("sink")
    first = worker.managers.latest("sink")
    ran = cli("connector", "restart", "sink", "--tasks", "--wait", obj=Turns().clock)
    assert (ran.code, ran.out) == (0, "connector sink restarted\n")
    second = worker.managers.latest("sink")
    assert second is not first
    idle = cli("connector", "restart", "sink", "--tasks", "--only-failed")
    assert (idle.code, idle.out) == (0, "connector sink has nothing to restart\n")
    assert worker.managers.latest("sink") is second
    second.fail("boom")
    ran = cli("connector", "restart", "sink", "--tasks", "--only-failed")
    assert (ran.code, ran.out) == (0, "connector sink restarted\n")
    assert worker.managers.latest("sink") is not second


# --wait


def test_wait_returns_when_it_is_there(cli: Cli, worker: Any) -> None:
    worker.create("sink")
    worker.service.pause("sink")
    turns = Turns()
    assert cli("connector", "resume", "sink", "--wait", obj=turns.clock).code == 0
    assert turns.turns >= 1  # what one look alone sees may be of the time before


def test_wait_fails_when_it_fails(cli: Cli, worker: Any, file: Any) -> None:
    turns = Turns(turn1=lambda: worker.managers.latest("sink").fail("Traceback\nValueError: boom"))
    ran = cli("connector", "create", "-f", file("sink"), "--wait", obj=turns.clock)
    assert (ran.code, ran.out) == (1, "connector sink created\n")
    assert ran.err == "icestream: connector 'sink' failed: ValueError: boom\n"


def test_wait_has_an_end(cli: Cli, worker: Any) -> None:
    worker.create("sink")
    turns = Turns(turn1=lambda: worker.service.pause("sink"))
    ran = cli("connector", "resume", "sink", "--wait", "--timeout", "3", obj=turns.clock)
    assert ran.code == 1
    assert ran.err == "icestream: connector 'sink' is PAUSED after 3 s; see 'icestream connector status'\n"
    assert turns.slept == 3.0


def test_a_new_connector_without_a_status_is_waited_for(bare_cli: Cli, canned: Any) -> None:
    running = {"name": "s", "connector": {"state": "RUNNING"}, "tasks": [{"id": 0, "state": "UNASSIGNED"}]}
    started = {**running, "tasks": [{"id": 0, "state": "RUNNING"}]}
    canned.say("POST", "/connectors", 201, {"name": "s"})
    canned.say("GET", "/connectors/s/status", 404, {"error_code": 404, "message": "No status found"})
    turns = Turns(
        turn1=lambda: canned.say("GET", "/connectors/s/status", 200, running),
        turn3=lambda: canned.say("GET", "/connectors/s/status", 200, started),
    )
    arguments = ["connector", "create", "-f", "-", "-n", "s", "--wait", "--url", canned.url]
    assert bare_cli(*arguments, input="a=b", obj=turns.clock).code == 0
    assert turns.turns == 4


# status


def test_status_has_a_row_for_each_task(cli: Cli, worker: Any) -> None:
    worker.create("sink")
    ran = cli("connector", "status", "sink")
    assert (ran.code, ran.out) == (
        0,
        "connector  part       state    worker\n"
        "sink       connector  RUNNING  127.0.0.1:8083\n"
        "sink       task 0     RUNNING  127.0.0.1:8083\n"
        "sink       task 1     RUNNING  127.0.0.1:8083\n",
    )


def test_status_of_what_failed_is_exit_code_1(cli: Cli, worker: Any) -> None:
    worker.create("a", "b")
    worker.managers.latest("b").fail("Traceback\n\tat\nValueError: boom")
    ran = cli("connector", "status")
    assert ran.code == 1
    assert ran.rows[-1] == "b: ValueError: boom"
    assert cli("connector", "status", "a").code == 0
    traced = cli("connector", "status", "b", "--trace")
    lines = traced.out.splitlines()
    assert lines[4:6] == ["b:", "  Traceback (most recent call last):"]
    assert lines[-2:] == ["      at", "  ValueError: boom"]


def test_status_as_json_is_an_object_for_one_name_and_a_list_for_others(cli: Cli, worker: Any) -> None:
    worker.create("a", "b")
    one = json.loads(cli("connector", "status", "a", "-o", "json").out)
    assert (one["name"], one["connector"]["state"]) == ("a", "RUNNING")
    assert [it["name"] for it in json.loads(cli("connector", "status", "a*", "-o", "json").out)] == ["a"]
    assert [it["name"] for it in json.loads(cli("connector", "status", "-o", "json").out)] == ["a", "b"]


def test_status_of_nothing(cli: Cli) -> None:
    assert cli("connector", "status").out == "no connectors\n"
    ran = cli("connector", "status", "no")
    assert (ran.code, ran.err) == (1, "icestream: no connector is called 'no'; see 'icestream connectors'\n")


def test_status_can_be_watched(cli: Cli, worker: Any) -> None:
    worker.create("sink")

    def end() -> None:
        raise KeyboardInterrupt

    turns = Turns(turn1=lambda: worker.service.stop("sink"), turn2=end)
    ran = cli("connector", "status", "sink", "--watch", obj=turns.clock)
    assert ran.code == 0
    assert [row.split()[2] for row in ran.rows if " connector " in row] == ["RUNNING", "STOPPED"]
    machine = cli("connector", "status", "sink", "--watch", "-o", "json", obj=Turns(turn2=end).clock)
    assert [json.loads(line)["name"] for line in machine.out.splitlines()] == ["sink", "sink"]


# config


def test_config_hides_secrets_from_people(cli: Cli, worker: Any) -> None:
    inside = {"iceberg.catalog.uri": "jdbc:sqlserver://db;user=a;pwd=hush-hush"}
    worker.create("sink", **{"iceberg.catalog.s3.secret-access-key": "hush", **inside})
    ran = cli("connector", "config", "sink")
    assert ran.rows[0] == "key value"
    assert "iceberg.catalog.uri jdbc:sqlserver://db;user=a;pwd=[hidden]" in ran.rows
    assert "tasks.max 2" in ran.rows
    assert "iceberg.catalog.s3.secret-access-key [hidden]" in ran.rows
    assert json.loads(cli("connector", "config", "sink", "-o", "json").out) == worker.service.config("sink")
    assert cli("connector", "config", "no").err == "icestream: Connector no not found\n"


def test_config_changes_some_keys(cli: Cli, worker: Any) -> None:
    worker.create("sink", **{"errors.tolerance": "all"})
    ran = cli("connector", "config", "sink", "--set", "tasks.max=4", "--unset", "errors.tolerance")
    assert (ran.code, ran.out) == (0, "connector sink configured\n")
    assert worker.service.config("sink") == {**CONFIG, "name": "sink", "tasks.max": "4"}
    job = worker.managers.latest("sink")
    assert cli("connector", "config", "sink", "--set", "tasks.max=4").out == "connector sink unchanged\n"
    assert worker.managers.latest("sink") is job
    assert cli("connector", "config", "sink", "--set", "tasks.max=0").code == 1
    assert cli("connector", "config", "sink", "--set", "tasks.max").code == 2


# validate


def test_validate_says_that_a_config_is_valid(cli: Cli, worker: Any, file: Any) -> None:
    ran = cli("connector", "validate", "-f", file("sink"))
    assert (ran.code, ran.out) == (0, "connector sink is valid\n")
    assert worker.service.names() == []


def test_validate_has_a_row_for_each_error(cli: Cli, file: Any) -> None:
    wrong = {**CONFIG, "tasks.max": "0", "iceberg.tabels": "db.t", "my.note": "x"}
    ran = cli("connector", "validate", "-f", file("sink", wrong), "-f", file("good"))
    assert ran.code == 1
    assert ran.rows[0] == "key error"
    assert {row.split()[0] for row in ran.rows[1:3]} == {"tasks.max", "iceberg.tabels"}
    assert ran.rows[3].startswith("sink: warning: 'my.note' is not a known configuration")
    assert ran.rows[4:] == ["connector sink has 2 errors", "connector good is valid"]


def test_validate_as_json_is_the_answer_of_the_worker(cli: Cli, file: Any) -> None:
    one = cli("connector", "validate", "-f", file("sink"), "-o", "json")
    assert json.loads(one.out)["error_count"] == 0
    wrong = file("wrong", {**CONFIG, "tasks.max": "0"})
    two = cli("connector", "validate", "-f", file("sink"), "-f", wrong, "-o", "json")
    assert [report["error_count"] for report in json.loads(two.out)] == [0, 1]
    assert two.code == 1


def test_validate_needs_a_class(cli: Cli, file: Any) -> None:
    ran = cli("connector", "validate", "-f", file("sink", {"topics": "t"}))
    assert ran.code == 1
    assert ran.err == "icestream: connector 'sink' has no 'connector.class'; see 'icestream plugins'\n"


# No worker


@pytest.mark.parametrize(
    "arguments",
    [
        ["connectors"],
        ["connector", "create", "-f", "-"],
        ["connector", "apply", "-f", "-"],
        ["connector", "validate", "-f", "-"],
        ["connector", "delete", "a", "b"],
        ["connector", "pause", "a", "b"],
        ["connector", "resume", "a"],
        ["connector", "stop", "a"],
        ["connector", "restart", "a*"],
        ["connector", "status"],
        ["connector", "config", "a"],
        ["connector", "offsets", "show", "a"],
        ["connector", "offsets", "set", "a", "t:0=1"],
        ["connector", "offsets", "reset", "a"],
        ["connector", "topics", "show", "a"],
        ["connector", "topics", "reset", "a"],
        ["plugins"],
        ["plugins", "x"],
        ["loggers"],
        ["loggers", "root", "INFO"],
    ],
)
def test_no_worker_is_exit_code_3_and_one_sentence(bare_cli: Cli, arguments: list[str]) -> None:
    ran = bare_cli(*arguments, "--url", "http://127.0.0.1:1", input="name=a\nconnector.class=x")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err == (
        "icestream: no worker answers at http://127.0.0.1:1; "
        "start one with 'icestream standalone', or set --url\n"
    )


def test_the_user_is_asked_for_the_password(bare_cli: Cli, canned: Any) -> None:
    canned.say("GET", "/connectors?expand=status&expand=progress", 200, {})
    ran = bare_cli("connectors", "--url", canned.url, "--user", "me", input="hush\n")
    assert ran.code == 0
    assert "Password of me" in ran.err
    assert "hush" not in ran.out + ran.err
    bare_cli("connectors", env={"ICESTREAM_URL": canned.url, "ICESTREAM_USER": "me:hush"})
    assert {request.headers["authorization"] for request in canned.requests} == {"Basic bWU6aHVzaA=="}


def test_a_refused_user_is_exit_code_1(bare_cli: Cli, canned: Any) -> None:
    canned.say("GET", "/connectors?expand=status&expand=progress", 401, {"message": "no"})
    ran = bare_cli("connectors", "--url", canned.url, "--user", "me:hush")
    assert (ran.code, ran.err) == (
        1,
        f"icestream: {canned.url} wants another user name or password; set --user\n",
    )
