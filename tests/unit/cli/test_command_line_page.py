"""docs/command-line.md tells the truth: its session is run, and prints what the page says."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from icestream.api.offset_admin import OffsetEntry
from icestream.api.status import Progress, State
from icestream.cli import main
from icestream.cli.connector import connector
from icestream.cli.live import Clock

PAGE = (Path(__file__).parents[3] / "docs" / "command-line.md").read_text()
CONFIG = {
    "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
    "tasks.max": "1",
    "topics": "apilogs",
    "iceberg.tables": "streaming.apilogs",
    "iceberg.catalog.type": "rest",
    "iceberg.catalog.uri": "http://localhost:8181",
    "iceberg.catalog.s3.secret-access-key": "hush",
    "errors.tolerance": "all",
}
WRONG = {**CONFIG, "tasks.max": "0", "iceberg.tabels": "streaming.apilogs"}


def session() -> list[tuple[list[str], list[str]]]:
    """The commands of the page, each with the lines that it prints."""
    commands: list[tuple[list[str], list[str]]] = []
    for line in PAGE.splitlines():
        if line.startswith("    $ icestream "):
            commands.append((shlex.split(line)[2:], []))
        elif line.startswith("    ") and commands:
            commands[-1][1].append(line[4:])
    return commands


def agree(shown: list[str], printed: list[str]) -> bool:
    """`…` stands for the rest of a line, or as a line of its own for the rest of the output."""
    squeezed = [" ".join(line.split()) for line in printed]
    for number, line in enumerate(shown):
        if line == "…":
            return len(printed) > number
        pattern = re.escape(" ".join(line.split())).replace("…", ".*")
        if number >= len(printed) or not re.fullmatch(pattern, squeezed[number]):
            return False
    return len(shown) == len(printed)


def test_the_session_prints_what_the_page_says(
    cli: Callable[..., Any], worker: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sink.json").write_text(json.dumps({"name": "apilogs", "config": CONFIG}))
    Path("wrong.json").write_text(json.dumps({"name": "apilogs", "config": WRONG}))
    worker.status_store.use_topic("apilogs", "apilogs")
    worker.offsets.entries = [
        OffsetEntry({"kafka_topic": "apilogs", "kafka_partition": number}, {"kafka_offset": 60_000})
        for number in (0, 1)
    ]
    progress = Progress(lag=0, rows=119_997, rejected=3, last_commit_ms=996_000)
    for arguments, shown in session():
        ran = cli(*arguments, obj=Clock(lambda: 1000.0, lambda _: None))
        assert ran.code == (1 if "wrong.json" in arguments else 0), (arguments, ran.err)
        assert agree(shown, ran.out.splitlines()), (arguments, ran.out)
        for name in worker.service.names():
            if worker.service.status(name).state is State.RUNNING:
                worker.managers.latest(name).advance(progress)


@pytest.mark.parametrize("name", [*connector.commands, "connectors", "plugins", "loggers", "completion"])
def test_every_command_is_on_the_page(name: str) -> None:
    assert name in main.COMMANDS or name in connector.commands
    assert re.search(rf"icestream (connector )?{name}\b", PAGE)


def test_no_line_of_the_page_is_idle() -> None:
    assert len(session()) > 15
    assert not agree(["a", "…"], ["a"])
    assert not agree(["a"], ["a", "b"])
    assert agree(["a  b…"], ["a b c"])
