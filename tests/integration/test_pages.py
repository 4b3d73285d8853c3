"""The examples of docs/transforms.md and docs/converters.md run as they stand and print what they promise."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from icestream.embedded.kafka import Broker
from tests.integration.pages import PATIENCE, Terminal, commands, files, open_terminal, section


@pytest.mark.parametrize("page", ["transforms.md", "converters.md"])
def test_the_example_runs_as_it_stands(page: str, broker: Broker, tmp_path: Path) -> None:
    example = section(page, "An example that runs")
    (promised,) = re.findall(r"```text\n(.*?)```", example, re.DOTALL)
    typed = commands(example)
    with open_terminal(tmp_path, broker) as terminal:
        for name, text in files(example).items():
            terminal.write(name, text)
        reads = [command for command in typed if command.startswith("cat ")]
        for command in typed[: -len(reads)]:
            terminal.run(command)
        assert _shown(terminal, reads, promised) == promised, (tmp_path / "workers.log").read_text()


def _shown(terminal: Terminal, reads: list[str], promised: str) -> str:
    """What the last commands print, once it is what the page says, or when patience ends."""
    deadline = time.monotonic() + PATIENCE
    while True:
        shown = "".join(terminal.run(command) for command in reads)
        if shown == promised or time.monotonic() > deadline:
            return shown
        time.sleep(0.2)
