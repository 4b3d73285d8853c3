"""docs/operations.md is true: its commands run, and its worker configs are understood."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from icestream.api.errors import ConfigError
from icestream.cluster.configs.properties import parse_properties
from icestream.cluster.settings.worker_config import parse_standalone
from icestream.embedded.kafka import running_broker
from icestream.embedded.ports import free_port
from tests.integration.pages import PATIENCE, Terminal, commands, files, open_terminal, section

PAGE = "operations.md"


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    # A broker of its own: the page's topics and groups have the names that everybody takes.
    with (
        running_broker(tmp_path / "kafka", free_port()) as broker,
        open_terminal(tmp_path, broker) as terminal,
    ):
        yield terminal


@pytest.mark.skipif(
    shutil.which("curl") is None,
    reason="the commands of the page need curl; on Debian: apt-get install curl",
)
def test_both_modes_as_the_page_shows_them(terminal: Terminal, tmp_path: Path) -> None:
    standalone = section(PAGE, "Standalone")
    for name, text in files(standalone).items():
        terminal.write(name, text)
    assert len(commands(standalone)) == 5
    shown = [terminal.run(command) for command in commands(standalone)]
    assert "local-file-source" in shown[2] and "local-file-sink" in shown[2]
    deadline = time.monotonic() + PATIENCE
    while (copied := terminal.run("cat test.sink.txt")) != "foo\nbar\n":
        assert time.monotonic() < deadline, copied + (tmp_path / "workers.log").read_text()
        time.sleep(0.2)

    distributed = section(PAGE, "Distributed")
    for name, text in files(distributed).items():
        terminal.write(name, text)
    shown = [terminal.run(command) for command in commands(distributed)]
    assert "RUNNING" in shown[-3] and "local-file-sink" in shown[-2]
    assert json.loads(shown[-1])["status"] == "alive"


def test_every_worker_config_of_the_page_is_understood(tmp_path: Path) -> None:
    base = parse_properties(files(section(PAGE, "Standalone"))["worker.properties"])
    titles = ("Secrets", "Kafka with TLS and a login", "REST with TLS and users")
    blocks = [re.findall(r"```properties\n(.*?)```", section(PAGE, title), re.DOTALL) for title in titles]
    assert all(blocks)
    for block in (one for found in blocks for one in found):
        try:
            parse_standalone({**base, **parse_properties(block)})
        except ConfigError as error:
            # The files that the page names are not on this machine; that is all that may be wrong.
            assert all("/etc/icestream/" in str(problem) for problem in error.problems), error
