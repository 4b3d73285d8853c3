"""The stack in containers: `docker compose` as a process, on the files of `deploy/compose`. Chosen by
`icestream stack` where Docker is; `processes` is the other back end."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from icestream.api.errors import IcestreamError, PreconditionError
from icestream.stack.backend import Endpoints, PartStatus, Say
from icestream.stack.settings import Settings, variables

FILE: Final = "docker-compose.yaml"
INIT: Final = "kafka-iceberg-init"
PARTS: Final = (
    "kafka",
    *(f"minio-source{number}" for number in range(1, 5)),
    "nginx-source",
    *(f"minio-dest{number}" for number in range(1, 5)),
    "nginx-dest",
    "kafka-connect",
    "trino",
)
"""What runs, in the order in which it starts. The container that initialises does its steps and ends."""
_STATES: Final = {"exited": "stopped", "created": "stopped", "dead": "stopped"}


def find_compose(environ: Mapping[str, str] = os.environ) -> tuple[str, ...] | None:
    """The command of Docker Compose whose engine answers; None where there is none."""
    docker = shutil.which("docker", path=environ.get("PATH"))
    if docker is None or _silent([docker, "info"]) != 0:
        return None
    if _silent([docker, "compose", "version"]) == 0:
        return (docker, "compose")
    old = shutil.which("docker-compose", path=environ.get("PATH"))
    return (old,) if old else None


def compose_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """`deploy/compose` of the repository that this package is in, or the folder in ICESTREAM_COMPOSE."""
    named = environ.get("ICESTREAM_COMPOSE")
    folder = Path(named) if named else Path(__file__).parents[2] / "deploy" / "compose"
    if not (folder / FILE).is_file():
        raise PreconditionError(
            f"{folder} has no {FILE}; clone the repository and point ICESTREAM_COMPOSE to its deploy/compose"
        )
    return folder


class ComposeBackend:
    """A `Backend`. Settings reach Compose as variables, never as arguments that others can read."""

    def __init__(self, settings: Settings, folder: Path, compose: Sequence[str]) -> None:
        self._settings = settings
        self._folder = folder
        self._compose = (*compose, "--file", str(folder / FILE))

    @property
    def name(self) -> str:
        return "compose"

    def start(self, say: Say) -> Endpoints:
        if not self._settings.minio_license:
            raise PreconditionError("MINIO_LICENSE is empty; set it in .env, or start the stack as processes")
        ran = {part.name for part in self.status() if part.state == "running"}
        say(f"starting {len(PARTS)} containers")
        try:
            self._run("up", "--detach", "--wait", *PARTS)
        except (IcestreamError, KeyboardInterrupt):
            started = [part for part in PARTS if part not in ran]
            if started:
                self._quiet("stop", *started)
            raise
        return self._endpoints()

    def initialise(self, say: Say) -> None:
        """The steps in a container beside the others: connectors and Trino know these by their names there,
        not by the addresses on this machine."""
        say(f"initialising by {INIT}")
        self._run("run", "--rm", INIT)

    def stop(self, say: Say) -> bool:
        running = [part.name for part in self.status() if part.state == "running"]
        if not running:
            return False
        say(f"stopping {len(running)} containers")
        self._run("stop")
        return True

    def clean(self, say: Say) -> None:
        say("removing containers and their volumes")
        self._run("down", "--volumes", "--remove-orphans")

    def status(self) -> Sequence[PartStatus]:
        found = {
            str(entry.get("Service", "")): entry
            for entry in _entries(self._output("ps", "--all", "--format", "json"))
        }
        return [_status(name, found.get(name)) for name in PARTS]

    def endpoints(self) -> Endpoints | None:
        return self._endpoints() if any(part.state == "running" for part in self.status()) else None

    def logs(self, part: str | None, follow: bool, write: Say) -> None:
        if part is not None and part not in (*PARTS, INIT):
            raise PreconditionError(f"the stack has no part '{part}'; its parts are {', '.join(PARTS)}")
        command = [*self._compose, "logs", *(["--follow"] if follow else []), *([part] if part else [])]
        with subprocess.Popen(
            command,
            cwd=self._folder,
            env=self._environment(),
            stdout=subprocess.PIPE,
            text=True,
            errors="replace",
        ) as process:
            try:
                for line in process.stdout or ():
                    write(line.rstrip("\n"))
            finally:
                process.terminate()

    def _endpoints(self) -> Endpoints:
        its = self._settings
        destination = f"http://localhost:{its.destination_port}"
        return Endpoints(
            bootstrap=f"localhost:{its.kafka_port}",
            worker=f"http://localhost:{its.worker_port}",
            source=f"http://localhost:{its.source_port}",
            destination=destination,
            catalog=f"{destination}/_iceberg",
            trino=f"http://localhost:{its.trino_port}",
            source_console=f"http://localhost:{its.source_console_port}",
            destination_console=f"http://localhost:{its.destination_console_port}",
        )

    def _environment(self) -> dict[str, str]:
        """Every variable as this command has read it: Compose need not read a `.env` of its own."""
        its = {
            name: str(value) for name, value in zip(variables(), vars(self._settings).values(), strict=True)
        }
        # Compose refuses every command where a required variable is empty; only `start` needs it.
        return {**os.environ, **its, "MINIO_LICENSE": self._settings.minio_license or "none"}

    def _run(self, *arguments: str) -> None:
        ran = subprocess.run(
            [*self._compose, *arguments], cwd=self._folder, env=self._environment(), check=False
        )
        if ran.returncode:
            raise IcestreamError(_failed(arguments[0], ran.returncode, ""))

    def _quiet(self, *arguments: str) -> None:
        subprocess.run([*self._compose, *arguments], cwd=self._folder, env=self._environment(), check=False)

    def _output(self, *arguments: str) -> str:
        ran = subprocess.run(
            [*self._compose, *arguments],
            cwd=self._folder,
            env=self._environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if ran.returncode:
            raise IcestreamError(_failed(arguments[0], ran.returncode, ran.stderr))
        return ran.stdout


def _failed(verb: str, code: int, said: str) -> str:
    last = said.strip().splitlines()[-1:] or [f"exit code {code}"]
    return f"'docker compose {verb}' failed ({last[0][:300]}); see `icestream stack logs`, then try again"


def _entries(text: str) -> Iterator[Mapping[str, Any]]:
    """One object a line, as Compose prints since 2.21, or one list, as before."""
    for line in text.splitlines():
        if line.strip():
            parsed = json.loads(line)
            yield from parsed if isinstance(parsed, list) else [parsed]


def _status(name: str, entry: Mapping[str, Any] | None) -> PartStatus:
    if entry is None:
        return PartStatus(name, "stopped", "-")
    state = str(entry.get("State") or "stopped")
    ports = [
        str(port["PublishedPort"]) for port in entry.get("Publishers") or () if port.get("PublishedPort", 0)
    ]
    address = f"localhost:{', '.join(sorted(set(ports), key=int))}" if ports else "-"
    return PartStatus(name, _STATES.get(state, state), str(entry.get("Health") or "-"), address)


def _silent(command: Sequence[str]) -> int:
    try:
        return subprocess.run(command, capture_output=True, timeout=30, check=False).returncode
    except (OSError, subprocess.TimeoutExpired):
        return 1
