"""Pages of the documentation that tests run as they stand: their files, their commands, a terminal."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx

from icestream.embedded.kafka import Broker
from icestream.embedded.ports import free_port
from tests.kit.programs import require_programs

PATIENCE: Final = 180.0
_DOCS: Final = Path(__file__).parents[2] / "docs"


def section(page: str, title: str) -> str:
    return (_DOCS / page).read_text().split(f"\n## {title}")[1].split("\n## ")[0]


def files(text: str) -> dict[str, str]:
    """The files that a section shows, by the name in the line above each."""
    return dict(re.findall(r"`([\w.-]+)`:\n\n```properties\n(.*?)```", text, re.DOTALL))


def commands(text: str) -> list[str]:
    return re.findall(r"^    \$ (.+)$", text, re.MULTILINE)


class Terminal:
    """Runs the commands of a section in a folder, with the ports of this run instead of those on the page."""

    def __init__(self, folder: Path, broker: Broker) -> None:
        self._folder = folder
        self._ports = {port: str(free_port()) for port in ("8083", "8084", "8085")}
        self._bootstrap = broker.bootstrap
        self._environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "ICESTREAM_URL": f"http://127.0.0.1:{self._ports['8083']}",
        }
        self._running: list[subprocess.Popen[bytes]] = []

    def write(self, name: str, text: str) -> None:
        (self._folder / name).write_text(self._here(text))

    def run(self, command: str) -> str:
        command = self._here(command)
        if command.startswith("export "):
            key, _, value = command.removeprefix("export ").partition("=")
            self._environment[key] = value
            return ""
        if command.endswith("&"):
            self._start(command.removesuffix("&").split())
            return ""
        return self._until_it_works(command)

    def close(self) -> None:
        for process in self._running:
            process.send_signal(signal.SIGTERM)
        for process in self._running:
            process.wait(90)

    def _start(self, command: list[str]) -> None:
        with (self._folder / "workers.log").open("ab") as log:
            self._running.append(
                subprocess.Popen(command, cwd=self._folder, env=self._environment, stdout=log, stderr=log)
            )
        port = list(self._ports.values())[self._which(command)]
        deadline = time.monotonic() + PATIENCE
        while not self._is_ready(port):
            assert time.monotonic() < deadline, (self._folder / "workers.log").read_text()
            time.sleep(0.2)

    def _which(self, command: list[str]) -> int:
        """Which of the page's three workers a command starts."""
        return 0 if "standalone" in command else 1 if len(command) == 3 else 2

    def _is_ready(self, port: str) -> bool:
        try:
            return httpx.get(f"http://127.0.0.1:{port}/health", trust_env=False).status_code == 200
        except httpx.HTTPError:
            return False

    def _until_it_works(self, command: str) -> str:
        """Run it until it succeeds: a group that has just got a member may still be rebalancing."""
        if command.startswith("curl "):
            require_programs("curl")
        deadline = time.monotonic() + PATIENCE
        while True:
            done = subprocess.run(
                command, shell=True, cwd=self._folder, env=self._environment, capture_output=True, text=True
            )
            if done.returncode == 0:
                return done.stdout
            assert time.monotonic() < deadline, (command, done.stdout, done.stderr)
            time.sleep(0.5)

    def _here(self, text: str) -> str:
        text = text.replace("localhost:9092", self._bootstrap)
        for port, own in self._ports.items():
            text = text.replace(f"127.0.0.1:{port}", f"127.0.0.1:{own}")
        return text


@contextmanager
def open_terminal(folder: Path, broker: Broker) -> Iterator[Terminal]:
    """With the broker at the page's localhost:9092."""
    terminal = Terminal(folder, broker)
    try:
        yield terminal
    finally:
        terminal.close()
