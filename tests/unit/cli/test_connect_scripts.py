"""The flags that Kafka's start scripts take before the files."""

from __future__ import annotations

import sys

import pytest

from icestream.api.errors import PreconditionError
from icestream.cli import connect_scripts
from icestream.cli.connect_scripts import Start, parse


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        (["w.properties", "c.properties"], Start("n", ("w.properties", "c.properties"))),
        (["-daemon", "w.properties"], Start("n", ("w.properties",), daemon=True)),
        (["-name", "mine", "-loggc", "-daemon", "w"], Start("mine", ("w",), daemon=True)),
        (["w.properties", "-daemon"], Start("n", ("w.properties", "-daemon"))),
        ([], Start("n", ())),
    ],
)
def test_flags_of_kafka_come_first_and_the_rest_is_the_workers(arguments: list[str], asked: Start) -> None:
    assert parse("n", arguments) == asked


@pytest.mark.parametrize("arguments", [["-name"], ["-name", "../../etc/passwd"], ["-name", ""]])
def test_a_name_that_is_no_file_is_refused(arguments: list[str]) -> None:
    with pytest.raises(PreconditionError):
        parse("n", arguments)


def test_a_folder_for_logs_that_cannot_be_made_is_one_sentence(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path_factory.mktemp("logs") / "file"
    file.touch()
    monkeypatch.setenv("LOG_DIR", str(file))
    monkeypatch.setattr(sys, "argv", ["connect-standalone", "-daemon", "w.properties"])
    with pytest.raises(SystemExit) as ended:
        connect_scripts.standalone()
    assert ended.value.code == 1
    assert "point LOG_DIR to a folder that can" in capsys.readouterr().err
