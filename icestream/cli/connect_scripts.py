"""`connect-standalone` and `connect-distributed`: the start commands of Kafka Connect, so that scripts and
images that call them start our workers.

Kafka's scripts take flags of their own before the files: `-daemon` leaves the worker in the background with
its output in `$LOG_DIR` (`logs` where it is not set), `-name NAME` names that file, `-loggc` is about Java's
memory and says nothing to us.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from icestream.api.errors import PreconditionError


@dataclass(frozen=True)
class Start:
    """What a start command was asked for."""

    name: str
    """Of the file with the output of a daemon."""
    arguments: tuple[str, ...]
    daemon: bool = False


def parse(name: str, arguments: Sequence[str]) -> Start:
    """Kafka's flags come first; everything from the first other word on is the worker's."""
    rest, daemon = list(arguments), False
    while rest and rest[0] in ("-daemon", "-loggc", "-name"):
        flag = rest.pop(0)
        daemon = daemon or flag == "-daemon"
        if flag == "-name":
            if not rest:
                raise PreconditionError("-name is the last word; give a name after it")
            name = rest.pop(0)
    if Path(name).name != name or name in ("", ".", ".."):
        raise PreconditionError(f"-name {name!r} is no name of a file; leave out slashes")
    return Start(name, tuple(rest), daemon)


def standalone() -> None:
    """`connect-standalone [-daemon] WORKER.properties [CONNECTOR.properties …]`."""
    sys.exit(_run("standalone", "connectStandalone"))


def distributed() -> None:
    """`connect-distributed [-daemon] WORKER.properties`."""
    sys.exit(_run("distributed", "connectDistributed"))


def _run(mode: str, name: str) -> int:
    try:
        asked = parse(name, sys.argv[1:])
        if asked.daemon:
            return _leave_in_background(mode, asked, os.environ)
    except PreconditionError as error:
        print(f"icestream: {error}", file=sys.stderr)
        return 1
    from icestream.cli.main import run

    return run([mode, *asked.arguments])


def _leave_in_background(mode: str, asked: Start, environ: Mapping[str, str]) -> int:
    folder = Path(environ.get("LOG_DIR") or "logs")
    output = folder / f"{asked.name}.out"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with output.open("ab") as log:
            worker = subprocess.Popen(
                [sys.executable, "-m", "icestream.cli.main", mode, *asked.arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
    except OSError as error:
        raise PreconditionError(
            f"{output} cannot be written ({error.strerror}); point LOG_DIR to a folder that can"
        ) from error
    print(f"{mode} worker started (pid {worker.pid}), its output is in {output}")
    return 0
