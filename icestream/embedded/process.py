"""Background processes that any process can find again by pid. Used by the embedded broker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from icestream.embedded import launch

_POLL_S: Final = 0.05


@dataclass(frozen=True)
class Process:
    """A process on this machine; `started` tells it from a later one that got the same pid."""

    pid: int
    started: str

    def is_alive(self) -> bool:
        _reap(self.pid)
        return start_mark(self.pid) == self.started

    def send(self, number: signal.Signals) -> None:
        """Send a signal, unless the process is gone."""
        if self.is_alive():
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                return

    def wait(self, timeout_s: float) -> bool:
        """True once the process is gone, False if it still lives after the timeout."""
        deadline = time.monotonic() + timeout_s
        while self.is_alive():
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_S)
        return True


def spawn(
    command: Sequence[str],
    *,
    output: Path,
    die_with_parent: bool = False,
    environment: Mapping[str, str] | None = None,
) -> Process:
    """Start a program in a session of its own, with its output in a file and `environment` beside ours.

    With `die_with_parent` it is killed when the calling *thread* ends, however that ends (Linux only).
    """
    parent = os.getpid() if die_with_parent else 0
    argv = [sys.executable, "-I", "-S", launch.__file__, str(parent), *command]
    write = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    pid = os.posix_spawn(
        sys.executable,
        argv,
        {**os.environ, **(environment or {})},
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(output), write, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
    )
    return Process(pid, start_mark(pid) or "gone")


def start_mark(pid: int) -> str | None:
    """A text that is the same for the life of a process; None if it is gone or a zombie."""
    if sys.platform != "linux":
        ran = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True)
        state, _, mark = ran.stdout.strip().partition(" ")
        return mark.strip() if mark and not state.startswith("Z") else None
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name in parentheses may hold spaces; state and start time are fields 1 and 20 after it.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" and not _has_threads(pid) else fields[19]


def _has_threads(pid: int) -> bool:
    # A killed JVM is a zombie at once, but holds its ports until its last thread is gone.
    try:
        return len(os.listdir(f"/proc/{pid}/task")) > 1
    except (FileNotFoundError, ProcessLookupError):
        return False


def _reap(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return
