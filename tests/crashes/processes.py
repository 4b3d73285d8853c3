"""Workers and job managers in processes of their own, and how to end, stop and halt them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx

from icestream.embedded import launch
from tests.crashes.faults import Fault
from tests.crashes.pipeline import PATIENCE, Pipeline
from tests.kit.forked import ForkedProcess

_T = TypeVar("_T")
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Halt:
    """Where one Spark task waits for the test: `reading` a slice, or with its files `written`."""

    where: str
    folder: Path

    def pid(self) -> str | None:
        """The process id of the Python worker that waits."""
        note = self.folder / "halted"
        return note.read_text() or None if note.exists() else None

    def go_on(self) -> None:
        (self.folder / "go").touch()


def wait_for(look: Callable[[], _T | None], seconds: float, otherwise: Callable[[], str]) -> _T:
    deadline = time.monotonic() + seconds
    while (found := look()) is None:
        assert time.monotonic() < deadline, otherwise()
        time.sleep(0.02)
    return found


def _parent(pid: int) -> int:
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


class JobProcess:
    """A process that runs a job with its own Spark, in a session of its own; it ends with the tests at last.

    What it prints is in `log`.
    """

    def __init__(self, log: Path, command: Sequence[str], *, with_input: bool = False) -> None:
        self.log = log
        self.process: subprocess.Popen[bytes] | ForkedProcess
        if command[0] == "-m" and not with_input:
            log.write_bytes(b"")
            self.process = ForkedProcess(command[1], command[2:], log, ROOT)
            return
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, launch.__file__, str(os.getpid()), sys.executable, *command],
                cwd=ROOT,
                stdin=subprocess.PIPE if with_input else subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    @property
    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def assert_alive(self) -> None:
        assert self.process.poll() is None, f"ended with {self.process.returncode}:\n{self.text}"

    def wait(self, look: Callable[[], _T | None], otherwise: str) -> _T:
        def look_again() -> _T | None:
            # In this order: what a process did before it ended is found.
            ended = self.process.poll()
            found = look()
            assert found is not None or ended is None, f"{otherwise}, ended with {ended}:\n{self.text}"
            return found

        return wait_for(look_again, PATIENCE, lambda: f"{otherwise}:\n{self.text}")

    def wait_text(self, text: str) -> None:
        self.wait(lambda: True if text in self.text else None, f"no '{text}'")

    def wait_settled(self, pipeline: Pipeline) -> None:
        """Wait until the consumer group is at the end of the topic: nothing is owed."""
        ends = pipeline.topics.ends(pipeline.partitions)
        self.wait(lambda: True if pipeline.group_offsets() == ends else None, "the group is behind")

    def jvm(self) -> int | None:
        """The process id of its Spark, if it has one."""
        return next((pid for pid, name in self._processes() if name == "java"), None)

    def python_workers(self) -> list[int]:
        """The processes that run its Spark tasks: children of Spark's daemon, whose parent is the JVM."""
        parents = {pid: _parent(pid) for pid, _ in self._processes()}
        jvm = self.jvm()
        return [pid for pid, parent in parents.items() if parents.get(parent) == jvm is not None]

    def _processes(self) -> list[tuple[int, str]]:
        """All of its session, with their names."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                name, _, rest = (folder / "stat").read_text().partition("(")[2].rpartition(")")
                state, session = rest.split()[0], int(rest.split()[3])
                if session == self.process.pid and state != "Z":
                    found.append((int(folder.name), name))
        return found

    def wait_stopped(self) -> None:
        """Wait until the process has stopped itself by SIGSTOP."""

        def look() -> bool | None:
            state = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[0]
            return True if state == "T" else None

        self.wait(look, "not stopped")

    def go_on(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)

    def ended(self) -> int:
        """The exit code; negative: the signal."""
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running:\n{self.text}") from None

    def kill(self) -> None:
        """End the process and all that it started, as a power cut would."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        # Alone, if it was too young to lead a group.
        self.process.kill()
        self.process.wait(60)
        if self.process.stdin is not None:
            self.process.stdin.close()


class WorkerProcess(JobProcess):
    """`icestream standalone` with the connector of a pipeline; its state file outlives it."""

    def __init__(
        self,
        pipeline: Pipeline,
        program: Sequence[str] = ("-m", "icestream.cli.main"),
        settings: Mapping[str, str] | None = None,
    ) -> None:
        folder = pipeline.folder
        converter = "org.apache.kafka.connect.json.JsonConverter"
        settings = {
            **pipeline.worker,
            **(settings or {}),
            "listeners": "http://127.0.0.1:0",
            "key.converter": converter,
            "value.converter": converter,
            "value.converter.schemas.enable": "false",
            "offset.storage.file.filename": f"{folder}/offsets",
        }
        properties, connector = folder / "worker.properties", folder / "connector.json"
        properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        connector.write_text(json.dumps({"name": pipeline.name, "config": pipeline.config}))
        number = len(list(folder.glob("worker-*.log")))
        command = [*program, "standalone", str(properties), str(connector)]
        super().__init__(folder / f"worker-{number}.log", command)

    @property
    def url(self) -> str:
        """Where REST answers."""
        return self.wait(lambda: _found(r"REST API on (http://[\w.:]+)", self.text), "no REST")

    def get(self, path: str) -> dict[str, Any]:
        """What REST says, whatever the code."""
        answer: dict[str, Any] = httpx.get(self.url + path, trust_env=False, timeout=30).json()
        return answer

    def state(self, pipeline: Pipeline) -> str:
        return str(self.get(f"/connectors/{pipeline.name}/status")["connector"]["state"])


def _found(pattern: str, text: str) -> str | None:
    match = re.search(pattern, text)
    return match.group(1) if match else None


class CatalogProcess(JobProcess):
    """A REST catalog of a pipeline's tables: `rest_catalog.py`."""

    def __init__(self, folder: Path, port: int) -> None:
        number = len(list(folder.glob("catalog-*.log")))
        command = ["-m", "tests.crashes.rest_catalog", str(port), str(folder)]
        super().__init__(folder / f"catalog-{number}.log", command)
        self.wait_text("serving")


class ManagerProcess(JobProcess):
    """A job manager that does harm to itself: `manager_process.py`."""

    def __init__(
        self,
        pipeline: Pipeline,
        faults: Sequence[Fault] = (),
        halt: Halt | None = None,
        *,
        spark: Mapping[str, str] | None = None,
        on_spark: bool = True,
        waits: bool = False,
    ) -> None:
        number = len(list(pipeline.folder.glob("manager-*.log")))
        spec = pipeline.folder / f"manager-{number}.json"
        content = {
            "name": pipeline.name,
            "config": pipeline.config,
            "worker": {**pipeline.worker, **(spark or {})},
            "faults": [[fault.point, fault.action, fault.turn] for fault in faults],
            "halt": [halt.where, str(halt.folder)] if halt else None,
            "on_spark": on_spark,
            "waits": waits,
        }
        spec.write_text(json.dumps(content))
        command = ["-m", "tests.crashes.manager_process", str(spec)]
        super().__init__(pipeline.folder / f"manager-{number}.log", command, with_input=waits)

    def begin(self) -> None:
        """Let a process that waits, with its Spark at hand, build its manager."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def lines(self) -> list[str]:
        return [line.removeprefix("# ") for line in self.text.splitlines() if line.startswith("# ")]

    def wait_line(self, start: str) -> str:
        def look() -> str | None:
            return next((line for line in self.lines() if line.startswith(start)), None)

        return self.wait(look, f"no line '{start}'")

    def wait_halted(self, halt: Halt) -> int:
        """The process id of the Python worker that waits in the middle of its task."""
        return int(self.wait(halt.pid, f"no task is {halt.where}"))

    def killed_itself(self) -> None:
        assert self.ended() == -signal.SIGKILL, self.text
