"""The page on resources: its commands run, and it names every field that is read."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from icestream.cli.main import run

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "deploy" / "operator-resources.md").read_text()
COMMANDS = [
    line
    for block in re.findall(r"<!-- run by: \S*test_page.py -->\n```sh\n(.*?)```", PAGE, re.DOTALL)
    for line in block.splitlines()
]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands_of_the_page_run(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    program, *arguments = shlex.split(command)
    assert program == "icestream"
    assert run(arguments) == 0
    assert "kind: Deployment" in capsys.readouterr().out


def test_the_page_has_commands() -> None:
    assert len(COMMANDS) == 4
