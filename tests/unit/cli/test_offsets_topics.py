"""`icestream connector offsets …` and `icestream connector topics …`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from icestream.api.offset_admin import OffsetEntry

Cli = Callable[..., Any]


def kafka(topic: str, partition: int, offset: int | None) -> OffsetEntry:
    return OffsetEntry(
        {"kafka_topic": topic, "kafka_partition": partition},
        None if offset is None else {"kafka_offset": offset},
    )


def test_offsets_of_a_sink_are_a_table(cli: Cli, worker: Any) -> None:
    worker.create("sink")
    assert cli("connector", "offsets", "show", "sink").out == "connector sink has no offsets yet\n"
    worker.offsets.entries = [kafka("logs", 10, 7), kafka("logs", 2, 1_000), kafka("a", 0, 3)]
    assert cli("connector", "offsets", "show", "sink").out == (
        "topic  partition  offset\n"
        "a              0       3\n"
        "logs           2    1000\n"
        "logs          10       7\n"
    )
    shown = json.loads(cli("connector", "offsets", "show", "sink", "-o", "json").out)
    assert shown["offsets"][0] == {
        "partition": {"kafka_topic": "logs", "kafka_partition": 10},
        "offset": {"kafka_offset": 7},
    }


def test_offsets_of_a_source_are_what_it_says(cli: Cli, worker: Any) -> None:
    worker.create("source")
    worker.offsets.entries = [OffsetEntry({"filename": "/tmp/ü"}, {"position": 12})]
    assert cli("connector", "offsets", "show", "source").rows == [
        "partition offset",
        '{"filename": "/tmp/ü"} {"position": 12}',
    ]


def test_offsets_are_set_by_arguments(cli: Cli, worker: Any) -> None:
    worker.create("sink")
    worker.service.stop("sink")
    ran = cli("connector", "offsets", "set", "sink", "my.logs:0=1000", "my.logs:1=beginning")
    assert (ran.code, ran.out) == (0, "The offsets for this connector have been altered successfully\n")
    assert worker.offsets.entries == [kafka("my.logs", 0, 1000), kafka("my.logs", 1, None)]


def test_offsets_are_set_by_a_file(cli: Cli, worker: Any, tmp_path: Path) -> None:
    worker.create("sink")
    worker.service.stop("sink")
    worker.offsets.entries = [kafka("logs", 0, 7)]
    shown = cli("connector", "offsets", "show", "sink", "-o", "json").out.replace("7", "5")
    (tmp_path / "offsets.json").write_text(shown)
    ran = cli("connector", "offsets", "set", "sink", "-f", str(tmp_path / "offsets.json"), "-o", "json")
    assert "successfully" in json.loads(ran.out)["message"]
    assert worker.offsets.entries == [kafka("logs", 0, 5)]
    assert cli("connector", "offsets", "set", "sink", "-f", "-", input=shown.replace("5", "6")).code == 0
    assert worker.offsets.entries == [kafka("logs", 0, 6)]


@pytest.mark.parametrize(
    ("arguments", "input", "told"),
    [
        ([], "", "there is nothing to set"),
        (["logs=5"], "", "'logs=5' is not TOPIC:PARTITION=OFFSET"),
        (["logs:0=-5"], "", "'logs:0=-5' is not TOPIC:PARTITION=OFFSET"),
        (["-f", "-"], "{", "stdin is not JSON"),
        (["-f", "-"], "[" * 100_000, "stdin is not JSON"),
        (["-f", "-"], '{"a": 1}', "stdin has no offsets; write"),
    ],
)
def test_offsets_that_are_none_are_exit_code_2(cli: Cli, arguments: list[str], input: str, told: str) -> None:
    ran = cli("connector", "offsets", "set", "sink", *arguments, input=input)
    assert (ran.code, ran.out) == (2, "")
    assert told in ran.err
    assert ran.err.count("\n") == 1


def test_offsets_are_reset(cli: Cli, worker: Any) -> None:
    worker.create("sink")
    worker.service.stop("sink")
    worker.offsets.entries = [kafka("logs", 0, 7)]
    ran = cli("connector", "offsets", "reset", "sink")
    assert (ran.code, ran.out) == (0, "The offsets for this connector have been reset successfully\n")
    assert worker.offsets.entries == []


@pytest.mark.parametrize("arguments", [["set", "sink", "t:0=1"], ["reset", "sink"]])
def test_offsets_of_a_running_connector_stay(cli: Cli, worker: Any, arguments: list[str]) -> None:
    worker.create("sink")
    ran = cli("connector", "offsets", *arguments)
    assert (ran.code, ran.out) == (1, "")
    assert "STOPPED" in ran.err
    assert ran.err.count("\n") == 1


def test_offsets_that_make_no_sense_are_refused(cli: Cli, worker: Any) -> None:
    worker.create("sink")
    worker.service.stop("sink")
    ran = cli("connector", "offsets", "set", "sink", "no:0=1")
    assert (ran.code, ran.err) == (1, "icestream: there is no topic 'no'\n")


def test_topics(cli: Cli, worker: Any) -> None:
    worker.create("a", "b")
    assert cli("connector", "topics", "show", "a").out == "no topics yet\n"
    worker.status_store.use_topic("a", "logs")
    worker.status_store.use_topic("a", "audit")
    worker.status_store.use_topic("b", "logs")
    assert cli("connector", "topics", "show", "*").rows == ["connector topic", "a audit", "a logs", "b logs"]
    assert json.loads(cli("connector", "topics", "show", "b", "-o", "json").out) == {
        "b": {"topics": ["logs"]}
    }
    ran = cli("connector", "topics", "reset", "a")
    assert (ran.code, ran.out) == (0, "connector a topics reset\n")
    assert worker.status_store.topics("a") == []
    assert worker.status_store.topics("b") == ["logs"]
