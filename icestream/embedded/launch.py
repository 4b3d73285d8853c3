"""Run as a script by `process.spawn`: leaves the terminal's session, then becomes the given program.

Arguments: the pid of the parent to die with, or 0; then the command. A script, because Python's own
`preexec_fn` is not safe in a process with threads, and Kafka's client has threads.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(parent: int, command: list[str]) -> None:
    os.setsid()
    os.closerange(3, 4096)
    if parent and sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        # The parent may have died before the call above; then nobody would send the signal.
        if os.getppid() != parent:
            sys.exit(1)
    os.execv(command[0], command)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
