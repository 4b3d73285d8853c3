"""Processes that begin with everything imported: forks of a server that has imported it once.

A fresh interpreter spends three seconds of CPU on imports before it does anything. The server has no threads,
so a fork of it is as good as a new process.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from multiprocessing import forkserver, get_context
from pathlib import Path
from typing import Final

from tests.kit.leaks import shared

_PR_SET_PDEATHSIG: Final = 1
_CONTEXT: Final = get_context("forkserver")


@functools.cache
def _start_server() -> None:
    """The server of this process, which ends with this process."""
    _CONTEXT.set_forkserver_preload(["tests.kit.imported"])
    with shared():
        forkserver.ensure_running()


class ForkedProcess:
    """`python -m MODULE ARGUMENTS` in a session of its own, its output in a file. It ends with its parent.

    The part of `subprocess.Popen` that tests use.
    """

    stdin = None

    def __init__(self, module: str, arguments: Sequence[str], log: Path, folder: Path) -> None:
        _start_server()
        given = (module, list(arguments), str(log), str(folder), dict(os.environ))
        self._process = _CONTEXT.Process(target=_run, args=given)
        self._process.start()
        self.pid: int = self._process.pid or 0

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _run(module: str, arguments: list[str], log: str, folder: str, environ: Mapping[str, str]) -> None:
    """In the fork: become what a new interpreter would be."""
    os.setsid()
    server = os.getppid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != server:
            os._exit(1)
    output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for descriptor in (1, 2):
        os.dup2(output, descriptor)
    os.close(output)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    sys.path[:0] = [path for path in environ.get("PYTHONPATH", "").split(os.pathsep) if path not in sys.path]
    sys.argv = [module, *arguments]
    # Imported by the server, and run here as the main module.
    sys.modules.pop(module, None)
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
