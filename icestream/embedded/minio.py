"""MinIO: the program, found or built, and the command of one node of a cluster. Started by the stack."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from icestream.api.errors import PreconditionError
from icestream.embedded.home import home, require_space
from icestream.embedded.ports import HOST

MODULE: Final = "github.com/minio/minio@latest"
HOW_TO_GET_IT: Final = (
    "put `minio` on the PATH, or install Go and start with --build-minio, which takes about ten minutes once"
)
_BUILD_S: Final = 3600
_BUILD_MB: Final = 3000
_TOPICS: Final = {"API": "api", "ERROR": "error", "AUDIT": "audit"}


@dataclass(frozen=True)
class Login:
    user: str
    password: str = field(repr=False)


@dataclass(frozen=True)
class LogTargets:
    """Where a source cluster sends its logs: topics by kind, `api`, `error` and `audit`."""

    brokers: str
    topics: Mapping[str, str]
    sends_community_audit: bool = False
    """Community MinIO knows no other target than the audit's, and writes records of an older form there."""

    def environment(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for name, kind in _TOPICS.items():
            prefix = f"MINIO_LOG_{name}_KAFKA"
            found |= {
                f"{prefix}_ENABLE": "on",
                f"{prefix}_BROKERS": self.brokers,
                f"{prefix}_TOPIC": self.topics[kind],
            }
        if self.sends_community_audit:
            prefix = "MINIO_AUDIT_KAFKA"
            found |= {
                f"{prefix}_ENABLE": "on",
                f"{prefix}_BROKERS": self.brokers,
                f"{prefix}_TOPIC": self.topics["audit"],
            }
        return found


def minio(environ: Mapping[str, str] = os.environ) -> str | None:
    """The path of the program: one on the PATH, or the one that was built here."""
    return shutil.which("minio", path=environ.get("PATH")) or shutil.which("minio", path=str(_folder()))


def build(say: Callable[[str], None]) -> str:
    """Build the newest MinIO with Go, into our own folder; minutes, so it says how it goes."""
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if go is None:
        raise PreconditionError(
            "there is no `go` to build MinIO with; install it (Debian: apt-get install golang)"
        )
    require_space(home(), _BUILD_MB)
    folder = _folder()
    folder.mkdir(exist_ok=True)
    log = home() / "minio-build.log"
    # The last step of the build is one rename: half a program is never found.
    say(f"building MinIO with {go} (once, about ten minutes; its output is in {log})")
    with log.open("wb") as output:
        running = subprocess.Popen(
            [go, "install", "-trimpath", MODULE],
            env={**os.environ, "GOBIN": str(folder), "CGO_ENABLED": "0"},
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )
    try:
        _wait(running, say)
    finally:
        if running.poll() is None:
            running.terminate()
            running.wait(30)
    if running.returncode != 0:
        raise PreconditionError(f"MinIO could not be built; see {log}, or {HOW_TO_GET_IT}")
    return str(folder / "minio")


def _wait(running: subprocess.Popen[bytes], say: Callable[[str], None]) -> None:
    started = time.monotonic()
    while time.monotonic() - started < _BUILD_S:
        try:
            running.wait(60)
        except subprocess.TimeoutExpired:
            say(f"  still building MinIO, {(time.monotonic() - started) / 60:.0f} min")
        else:
            return


def _folder() -> Path:
    return home() / "bin"


@dataclass(frozen=True)
class Node:
    """One of the nodes of a cluster on this machine: each has ports and a folder of its own."""

    port: int
    console_port: int
    data: Path


def node_command(program: str, node: Node, nodes: Sequence[Node]) -> list[str]:
    members = [f"http://{HOST}:{one.port}{one.data}" for one in nodes]
    listen = ["--address", f"{HOST}:{node.port}", "--console-address", f"{HOST}:{node.console_port}"]
    return [program, "server", *listen, *members]


def node_environment(node: Node, login: Login, logs: LogTargets | None) -> dict[str, str]:
    return {
        "MINIO_ROOT_USER": login.user,
        "MINIO_ROOT_PASSWORD": login.password,
        # Folders on the disk of the system will do: these nodes are for one machine.
        "MINIO_CI_CD": "1",
        # In a container it would wait for its own address to be another than loopback.
        "_MINIO_SERVER_LOCAL": f"{HOST}:{node.port}",
        "MINIO_BROWSER": "on",
        "MINIO_UPDATE": "off",
        **(logs.environment() if logs else {}),
    }
