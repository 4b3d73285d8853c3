"""README.md's "Use it", typed as it stands, but for ports, folders and the catalog, which is the one that it
offers where none is at hand; and the broker of docs/operations.md."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from icestream.embedded.home import home
from icestream.embedded.ports import free_port
from tests.docs_commands import ROOT, commands_run_by

PATIENCE: Final = 240.0
_README: Final = (ROOT / "README.md").read_text()
_CATALOG: Final = re.compile(r'"iceberg\.catalog\.type": "rest".*?"true"\}\}', re.DOTALL)


class Shell:
    """A terminal in a folder that has `.venv`, with a home of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.port = free_port()
        own = folder / "home"
        own.mkdir()
        (home() / "jars").mkdir(parents=True, exist_ok=True)
        (own / "jars").symlink_to(home() / "jars")
        (folder / ".venv").symlink_to(sys.prefix)
        self._environment = {
            **os.environ,
            "PATH": f"{sys.prefix}/bin:{os.environ['PATH']}",
            "ICESTREAM_HOME": str(own),
            "ICESTREAM_URL": f"http://127.0.0.1:{self.port}",
        }
        self._workers: list[subprocess.Popen[bytes]] = []

    def write(self, name: str, text: str) -> None:
        (self._folder / name).write_text(text)

    def run(self, command: str) -> str:
        done = subprocess.run(
            command,
            shell=True,
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr, self.log())
        return done.stdout

    def until(self, command: str, pattern: str) -> str:
        """Run it again until it prints what is expected: a worker starts, a connector commits."""
        deadline = time.monotonic() + PATIENCE
        while True:
            done = subprocess.run(
                command,
                shell=True,
                cwd=self._folder,
                env=self._environment,
                capture_output=True,
                text=True,
                timeout=PATIENCE,
            )
            if done.returncode == 0 and re.search(pattern, done.stdout):
                return done.stdout
            assert time.monotonic() < deadline, (command, done.stdout, done.stderr, self.log())
            time.sleep(1)

    def start(self, command: str) -> None:
        with (self._folder / "worker.log").open("wb") as log:
            self._workers.append(
                subprocess.Popen(
                    command.removesuffix("&").split(),
                    cwd=self._folder,
                    env=self._environment,
                    stdout=log,
                    stderr=log,
                )
            )

    def log(self) -> str:
        log = self._folder / "worker.log"
        return log.read_text()[-5000:] if log.exists() else ""

    def close(self) -> None:
        for worker in self._workers:
            worker.send_signal(signal.SIGTERM)
        for worker in self._workers:
            worker.wait(90)
        subprocess.run(
            "icestream kafka stop", shell=True, cwd=self._folder, env=self._environment, timeout=PATIENCE
        )


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    yield shell
    shell.close()


def shown_file(name: str) -> str:
    """What `cat` prints on the page."""
    below = _README.partition(f"    $ cat {name}\n")[2].partition("\n\n")[0]
    return "".join(f"{line.removeprefix('    ')}\n" for line in below.splitlines())


def with_a_catalog_at_hand(config: str, folder: Path) -> str:
    """The keys that the page offers to those who have no catalog."""
    offered = re.findall(r'`"(iceberg\.catalog\.\w+)": "([^"]+)"`', _README)
    assert [key for key, _ in offered] == [f"iceberg.catalog.{key}" for key in ("type", "uri", "warehouse")]
    keys = ", ".join(f'"{key}": "{value}"' for key, value in offered).replace("/tmp/", f"{folder}/")
    return _CATALOG.sub(f"{keys}}}}}", config)


def test_the_session_of_the_readme_ends_with_every_record_proved(shell: Shell, tmp_path: Path) -> None:
    (start_broker,) = commands_run_by("docs/operations.md", __file__)
    told = shell.run(f"{start_broker} --port {free_port()}")
    (bootstrap,) = re.findall(r"bootstrap.servers=(\S+)", told)
    (load,) = re.findall(r"`(\.venv/bin/icestream load [^`]+)`", _README)
    shell.run(f"{load} --bootstrap-servers {bootstrap}")
    (tmp_path / "catalog.db").touch()

    cat_config, cat_worker, start, connectors, apply, verify, sql = commands_run_by("README.md", __file__)
    shell.write("apilogs.json", with_a_catalog_at_hand(shown_file("apilogs.json"), tmp_path))
    worker = shown_file("worker.properties").replace("localhost:9092", bootstrap)
    worker = worker.replace("/tmp/", f"{tmp_path}/")
    shell.write("worker.properties", f"{worker}listeners=http://127.0.0.1:{shell.port}\n")
    assert "jdbc:sqlite" in shell.run(cat_config)
    assert bootstrap in shell.run(cat_worker)
    shell.start(start)
    shell.until(connectors, r"apilogs +sink +RUNNING +\S+ +0 .* 1,000 ")
    assert "connector apilogs unchanged" in shell.run(apply)
    assert "1,000 in the topic, 1,000 in the table" in shell.run(f"{verify} --bootstrap-servers {bootstrap}")
    assert "1000" in shell.run(sql)
