"""The routes that change something, and what they show before: configs, offsets, dead letters, verify."""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from icestream.api.errors import IcestreamError, PreconditionError
from icestream.api.offset_admin import OffsetEntry, PartitionPosition
from icestream.api.offsets import Partition
from icestream.cluster.inspection import Inspection
from icestream.jobs.audits.verdicts import TargetVerdict
from icestream.jobs.letters.desk import LetterPage, ReplayPlan, ReplayProgress
from icestream.jobs.letters.replay import Request, Selection
from icestream.jobs.publishing.dead_letters import DeadLetter, DeadLetterFilter

from .conftest import CONFIG, World

SECRET = CONFIG["iceberg.catalog.password"]


def changed(world: World, changes: dict[str, str | None], version: str | None = None, **query: str) -> Any:
    headers = {} if version is None else {"if-match": f'"{version}"'}
    params = {"connector": "sink", **query}
    return world.ask("PATCH", "config", params=params, json=changes, headers=headers)


def test_an_editor_begins_with_masks_and_a_version(world: World) -> None:
    world.create("sink", **{"iceberg.catalog.uri": "http://bob:hunter22@cat", "unknown.key": "kept"})
    answer = world.ask("GET", "config", params={"connector": "sink"})
    assert SECRET not in answer.text and "hunter22" not in answer.text
    found = answer.json()
    assert found["config"]["iceberg.catalog.password"] == "[hidden]"
    assert found["masked"] == ["iceberg.catalog.password", "iceberg.catalog.uri"]
    assert found["version"] == world.service.config_version("sink")
    assert found["config"]["unknown.key"] == "kept"


def test_only_changed_keys_travel_and_all_others_survive(world: World) -> None:
    world.create("sink", **{"unknown.key": "kept"})
    version = world.service.config_version("sink")
    answer = changed(world, {"tasks.max": "3", "topics": "a"}, version)
    assert answer.status_code == 200 and SECRET not in answer.text
    stored = world.service.config("sink")
    assert stored == {**CONFIG, "name": "sink", "unknown.key": "kept", "tasks.max": "3", "topics": "a"}
    assert answer.json()["version"] != version
    assert changed(world, {"unknown.key": None}, answer.json()["version"]).status_code == 200
    assert "unknown.key" not in world.service.config("sink")


def test_a_change_needs_the_version_that_it_was_made_to(world: World) -> None:
    world.create("sink")
    assert changed(world, {"tasks.max": "3"}).status_code == 400
    version = world.service.config_version("sink")
    changed(world, {"topics": "theirs"}, version)
    answer = changed(world, {"topics": "mine"}, version)
    assert answer.status_code == 409 and SECRET not in answer.text
    found = answer.json()
    assert found["conflict"] is True
    assert found["now"]["config"]["topics"] == "theirs"
    assert found["now"]["version"] == world.service.config_version("sink")
    assert world.service.config("sink")["topics"] == "theirs"


def test_a_mask_is_refused_at_its_key(world: World) -> None:
    world.create("sink")
    version = world.service.config_version("sink")
    answer = changed(world, {"iceberg.catalog.password": "[hidden]"}, version)
    assert answer.status_code == 400
    assert "stands for a secret" in answer.json()["errors"]["iceberg.catalog.password"][0]
    assert world.service.config("sink")["iceberg.catalog.password"] == SECRET


def test_errors_of_a_save_are_at_their_keys(world: World) -> None:
    world.create("sink")
    answer = changed(world, {"tasks.max": "none"}, world.service.config_version("sink"))
    assert answer.status_code == 400
    assert "Not a number" in answer.json()["errors"]["tasks.max"][0]


def test_errors_do_not_quote_secrets(world: World) -> None:
    world.create("sink")
    wrong = {"errors.tolerance": "http://bob:hunter22@h", "tasks.max": f"x {SECRET}"}
    version = world.service.config_version("sink")
    new = {**CONFIG, **wrong}
    for answer in (
        changed(world, {**wrong}, version),
        world.ask("POST", "validate", params={"connector": "sink"}, json=wrong),
        world.ask("POST", "validate", json=new),
        world.ask("POST", "create", json={"name": "other", "config": new}),
    ):
        assert "Invalid value" in answer.text
        assert SECRET not in answer.text and "hunter22" not in answer.text


def test_the_log_tells_no_more_of_a_config_than_the_console(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO"):
        world.create("sink", **{"unknown.key": "sqlserver://h;pwd=hunter22;", "other": "https://tok3n@h/"})
    assert "config {" in caplog.text
    assert all(secret not in caplog.text for secret in (SECRET, "hunter22", "tok3n"))


def test_validate_merges_changes_with_what_is_stored_and_hides_it(world: World) -> None:
    world.create("sink")
    params = {"connector": "sink", "deep": "false"}
    answer = world.ask(
        "POST", "validate", params=params, json={"iceberg.tables": None, "iceberg.tabels": "x"}
    )
    found = answer.json()
    assert SECRET not in answer.text and found["deep"] is False
    values = {one["value"]["name"]: one["value"] for one in found["configs"]}
    assert values["iceberg.tabels"]["recommended_values"] == ["iceberg.tables"]
    assert "iceberg.catalog.password" in found["secrets"]
    assert found["others"]["iceberg.catalog.type"] == "sql"


def test_a_config_without_a_known_class_is_validated_too(world: World) -> None:
    found = world.ask("POST", "validate", json={"connector.class": "Nope"}).json()
    (only,) = found["configs"]
    assert only["value"]["name"] == "connector.class" and only["value"]["errors"]


@pytest.mark.parametrize("state", ["RUNNING", "PAUSED", "STOPPED"])
def test_a_connector_is_created_in_the_state_that_was_asked_for(world: World, state: str) -> None:
    body = {"name": "new", "config": CONFIG, "initial_state": state}
    answer = world.ask("POST", "create", json=body)
    assert answer.status_code == 201 and SECRET not in answer.text
    assert world.ask("GET", "config", params={"connector": "new"}).json()["state"] == state


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"name": " ", "config": CONFIG}, 400),
        ({"name": "n", "config": {**CONFIG, "iceberg.catalog.password": "[hidden]"}}, 400),
        ({"name": "n", "config": CONFIG, "initial_state": "DANCING"}, 400),
        ({"name": "n", "config": CONFIG, "more": 1}, 400),
        ({"name": "n", "config": {}}, 400),
    ],
)
def test_a_connector_that_cannot_be_is_not_created(world: World, body: Any, code: int) -> None:
    assert world.ask("POST", "create", json=body).status_code == code
    assert world.service.names() == []


def letter(offset: int, value: bytes | None, reason: str = "value 7 of 'a' is bad") -> DeadLetter:
    context = {"topic": "t", "partition": "0", "offset": str(2**60 + offset), "stage": "VALUE_CONVERTER"}
    return DeadLetter(
        Partition("q", 0),
        offset,
        {**context, "exception.message": reason},
        b"key",
        value,
        [("own", b"\xff\x00")],
        1_000 + offset,
    )


@dataclass
class FakeDesk:
    letters: list[DeadLetter] = field(default_factory=list)
    asked: list[DeadLetterFilter] = field(default_factory=list)
    sent: list[Request] = field(default_factory=list)
    problem: str | None = None

    def page(self, name: str, config: Any, wanted: DeadLetterFilter, cursor: str | None) -> LetterPage:
        assert SECRET in config.values()
        self.asked.append(wanted)
        found = [(one, one.offset == 0) for one in self.letters if wanted.takes(one)]
        return LetterPage("q", found, len(self.letters), "0:17", False)

    def letter(self, name: str, config: Any, partition: int, offset: int) -> tuple[DeadLetter, bool]:
        return self.letters[offset], False

    def plan(self, name: str, config: Any, request: Request) -> ReplayPlan:
        found = Selection()
        for one in self.letters:
            if request.takes(one):
                found.add(one)
        return ReplayPlan(found, ["t"], self.problem)

    def replay(self, name: str, config: Any, request: Request) -> ReplayProgress:
        self.sent.append(request)
        return ReplayProgress(len(self.letters))

    def progress(self, name: str) -> ReplayProgress | None:
        return ReplayProgress(9, 4) if self.sent else None


class FakeOffsets:
    def read(self, name: str, config: Any) -> list[OffsetEntry]:
        return [OffsetEntry({"kafka_topic": "t", "kafka_partition": 0}, {"kafka_offset": 2**60})]

    def positions(self, name: str, config: Any, entries: Any = ()) -> list[PartitionPosition]:
        return [PartitionPosition("t", 0, 0, 100, 60, 60, 55, ((0, 60),))]


@pytest.fixture
def desk(world: World) -> Iterator[FakeDesk]:
    before, desk = world.service.inspection, FakeDesk()

    def audit(name: str, config: Any, deep: bool) -> list[TargetVerdict]:
        if deep:
            raise PreconditionError("connector 'sink' is a source")
        return [TargetVerdict("db.t", "3 in the topic.", ["1 row missing"], ["not known: x"])]

    world.service.inspection = Inspection(before.config_of, FakeOffsets(), desk, audit)  # type: ignore[arg-type]
    offsets = world.service._extras
    object.__setattr__(offsets, "offsets", FakeOffsets())
    world.create("sink")
    yield desk
    world.service.inspection = before
    object.__setattr__(offsets, "offsets", None)


def ask(world: World, verb: str, path: str, body: Any = None, **query: str) -> Any:
    server = query.pop("server", None)
    more = {} if body is None else {"json": body}
    return world.ask(verb, path, server=server, params={"connector": "sink", **query}, **more)


def test_dead_letters_are_groups_and_a_group_opens_to_records(world: World, desk: FakeDesk) -> None:
    desk.letters = [letter(0, b"{}"), letter(1, b"x", "value 99 of 'a' is bad"), letter(2, b"", "other")]
    found = ask(world, "GET", "letters").json()
    assert [(one["reason"], one["count"], one["replayed"]) for one in found["groups"]] == [
        ("value … of 'a' is bad", 2, 1),
        ("other", 1, 0),
    ]
    assert (found["queue"], found["cursor"]) == ("q", "0:17")
    records = ask(world, "GET", "letters/records", group=found["groups"][0]["id"], where="topic=t").json()
    assert [one["queue"]["offset"] for one in records["records"]] == ["0", "1"]
    assert records["records"][0]["offset"] == str(2**60)
    assert ask(world, "GET", "letters", where="nonsense").status_code == 400


def test_a_payload_is_json_text_or_bytes_and_whole_only_as_a_download(world: World, desk: FakeDesk) -> None:
    large = b"\xc3\xa4" * 200_000
    desk.letters = [
        letter(0, b'{"a": 1}'),
        letter(1, b"<b>"),
        letter(2, b"\x00\xff"),
        letter(3, b"x" + large),
    ]
    desk.letters += [letter(4, None)]
    found = [ask(world, "GET", "letters/record", offset=str(at)).json() for at in range(5)]
    assert [one["value"] and one["value"]["kind"] for one in found] == ["json", "text", "hex", "text", None]
    assert found[2]["value"]["text"].startswith("00000000  00 ff")
    assert found[3]["value"]["is_cut"] and len(found[3]["value"]["text"].encode()) <= 256 * 1024
    assert found[0]["headers"][0]["value"]["kind"] == "hex"
    whole = ask(world, "GET", "letters/record", offset="3", whole="true").json()
    assert base64.b64decode(whole["value"]["base64"]) == b"x" + large


def test_payloads_are_hidden_where_they_are_switched_off_and_from_who_may_only_look(
    world: World, desk: FakeDesk
) -> None:
    desk.letters = [letter(0, b"the payload", "value 'the payload' of 'amount' does not fit int")]
    for settings in ({"icestream_console_payloads": "false"}, {"icestream_console": "view"}):
        server: Any = world.serve(**settings)
        for path, more in (("letters/records", {}), ("letters/record", {"offset": "0"})):
            for whole in ("false", "true"):
                answer = ask(world, "GET", path, server=server, whole=whole, **more)
                assert answer.status_code == 200
                assert "the payload" not in answer.text
                assert base64.b64encode(b"the payload").decode() not in answer.text


def test_who_may_see_no_payloads_cannot_ask_for_them_either(world: World, desk: FakeDesk) -> None:
    desk.letters = [letter(0, b"the payload", "value 'the payload' of 'amount' does not fit int")]
    for settings in ({"icestream_console_payloads": "false"}, {"icestream_console": "view"}):
        server: Any = world.serve(**settings)
        for path in ("letters", "letters/records"):
            found = [
                ask(world, "GET", path, server=server, where=f"reason='{part}'").json()
                for part in ("the pay", "does not fit")
            ]
            told = [len(one.get("groups", one.get("records"))) for one in found]
            assert told == [0, 1]
    silent: Any = world.serve(icestream_console_payloads="false")
    counted = ask(world, "POST", "letters/replay", {"where": "reason='the pay'"}, server=silent).json()
    assert counted["count"] == 0
    assert ask(world, "POST", "letters/replay", {"where": "reason='the pay'"}).json()["count"] == 1


def test_what_a_check_says_and_why_it_cannot_is_told_without_secrets(world: World, desk: FakeDesk) -> None:
    def audit(name: str, config: Any, deep: bool) -> list[TargetVerdict]:
        if deep:
            raise IcestreamError(f"login with {SECRET} at http://bob:hunter22@cat refused")
        return [TargetVerdict("db.t", f"{SECRET} line", [f"{SECRET} problem"], [f"{SECRET} unknown"])]

    world.service.inspection = dataclasses.replace(world.service.inspection, audit=audit)
    desk.problem = f"login with {SECRET} refused"
    for deep in ("true", "false"):
        answer = ask(world, "POST", "verify", deep=deep)
        assert "[hidden]" in answer.text
        assert SECRET not in answer.text and "hunter22" not in answer.text
    assert ask(world, "POST", "letters/replay", {}).json()["problem"] == "login with [hidden] refused"


def test_a_replay_is_counted_first_and_only_then_sent(world: World, desk: FakeDesk) -> None:
    desk.letters = [letter(0, b"{}"), letter(1, b"x")]
    plan = ask(world, "POST", "letters/replay", {}).json()
    assert (plan["count"], plan["topics"], plan["problem"]) == (2, ["t"], None)
    assert desk.sent == [] and ask(world, "GET", "letters/replay").json() == {"replay": None}
    answer = ask(world, "POST", "letters/replay", {"dry_run": False, "where": "topic=t", "group": "abc"})
    assert answer.status_code == 202
    assert desk.sent[0].filter == DeadLetterFilter(topic="t", group="abc")
    assert ask(world, "GET", "letters/replay").json()["replay"]["sent"] == 4
    assert ask(world, "POST", "letters/replay", {"dry_run": "yes"}).status_code == 400
    assert ask(world, "POST", "letters/replay", {"now": True}).status_code == 400


def test_offsets_are_texts_with_what_stands_beside_them(world: World, desk: FakeDesk) -> None:
    found = ask(world, "GET", "offsets").json()
    assert found["offsets"][0]["offset"] == {"kafka_offset": str(2**60)}
    assert found["partitions"] == [
        {
            "topic": "t",
            "partition": 0,
            "beginning": "0",
            "end": "100",
            "resumes": "60",
            "table": "60",
            "group": "55",
        }
    ]


def test_a_preview_tells_what_a_change_and_a_reset_would_do(world: World, desk: FakeDesk) -> None:
    entry = {"partition": {"kafka_topic": "t", "kafka_partition": 0}, "offset": {"kafka_offset": "90"}}
    found = ask(world, "POST", "offsets/preview", {"offsets": [entry]}).json()
    assert found["totals"] == {"again": 0, "skipped": 30, "gone": 0}
    reset = ask(world, "POST", "offsets/preview").json()
    assert (reset["totals"], reset["partitions"][0]["to"]) == ({"again": 60, "skipped": 0, "gone": 0}, "0")


def test_offsets_do_not_change_while_the_connector_runs(world: World, desk: FakeDesk) -> None:
    assert ask(world, "DELETE", "offsets").status_code == 400


def test_verify_tells_the_line_and_the_problems(world: World, desk: FakeDesk) -> None:
    found = ask(world, "POST", "verify").json()
    assert found["holds"] is False
    assert found["targets"][0]["line"] == "3 in the topic."
    assert json.dumps(found).count("1 row missing") == 1
    refused = ask(world, "POST", "verify", deep="true")
    assert (refused.status_code, refused.json()["message"]) == (400, "connector 'sink' is a source")
