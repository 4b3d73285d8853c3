"""Lines that others write to stderr and stdout, as lines of the log: Spark's JVM and its Python workers, C
libraries, Python's own warnings. For logs as JSON, where every line has to be an object.

Both descriptors become a pipe, and a thread makes records of what comes through it.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import logging
import os
import re
import select
import sys
import threading
from collections.abc import Callable
from typing import Final, TextIO

from icestream.logs.lines import TRACE

NAME: Final = "stderr"
_STDOUT: Final = 1
_STDERR: Final = 2
_LONGEST: Final = 64 * 1024
"""Of one line, and of a trace: what is longer is cut into several."""
_QUIET_SECONDS: Final = 0.2
"""A trace that has come so far has come whole."""
_END_SECONDS: Final = 2.0
_HEAD: Final = re.compile(
    r"(?:\d\d/\d\d/\d\d \d\d:\d\d:\d\d )?(TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL):? +(?:([\w.$]+): )?(.*)"
)
"""As Spark's own Log4j writes it; `WARNING: …` is the JVM itself."""
_CONTINUED: Final = re.compile(r"\s|Caused by: |Suppressed: |[\w.$]+(?:Exception|Error)\b|Traceback |\.\.\. ")
_LEVELS: Final = {
    "TRACE": logging.DEBUG,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "WARNING": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.ERROR,
}

_own: TextIO | None = None


def take_stderr() -> TextIO:
    """From now on, what anybody writes to stderr is a line of the log; returns where the log itself is
    written, which is the stderr that this process was started with."""
    global _own
    if _own is not None:
        return _own
    own = os.fdopen(os.dup(_STDERR), "w", encoding="utf-8", errors="backslashreplace", buffering=1)
    reading, writing = os.pipe()
    for number in (_STDOUT, _STDERR):
        os.dup2(writing, number)
    os.close(writing)
    _own = own
    if faulthandler.is_enabled():
        faulthandler.enable(own)
    thread = threading.Thread(target=_follow, args=[reading], name="stderr-lines", daemon=True)
    thread.start()
    atexit.register(_give_back, own, thread)
    return own


def own_stderr() -> TextIO | None:
    """The stderr that this process was started with, for processes that log by themselves; None if nobody
    took it."""
    return _own


def _give_back(own: TextIO, thread: threading.Thread) -> None:
    """At the end nobody may be left who reads: what comes later goes where it always went."""
    with contextlib.suppress(OSError, ValueError):
        for stream, number in ((sys.stdout, _STDOUT), (sys.stderr, _STDERR)):
            stream.flush()
            os.dup2(own.fileno(), number)
    thread.join(_END_SECONDS)


def _follow(descriptor: int) -> None:
    lines = ForeignLines(_tell)
    rest = b""
    # Whoever still has the other end, such as a JVM that ends later, is not waited for: this is a daemon.
    while True:
        if not select.select([descriptor], [], [], _QUIET_SECONDS)[0]:
            lines.flush()
            continue
        part = os.read(descriptor, _LONGEST)
        if not part:
            break
        *whole, rest = (rest + part).split(b"\n")
        for line in whole:
            lines.take(line.decode(errors="backslashreplace"))
        if len(rest) >= _LONGEST:
            lines.take(rest.decode(errors="backslashreplace"))
            rest = b""
    if rest:
        lines.take(rest.decode(errors="backslashreplace"))
    lines.flush()


class ForeignLines:
    """Puts a line and the trace that follows it into one record."""

    def __init__(self, tell: Callable[[logging.LogRecord], None]) -> None:
        self._tell = tell
        self._record: logging.LogRecord | None = None
        self._trace: list[str] = []
        self._size = 0

    def take(self, line: str) -> None:
        line = line.rstrip("\r")
        if not line.strip():
            return
        if self._record is not None and _CONTINUED.match(line) and self._size + len(line) <= _LONGEST:
            self._trace.append(line)
            self._size += len(line)
            return
        self.flush()
        self._record = _record(line)

    def flush(self) -> None:
        record, self._record = self._record, None
        if record is not None:
            if self._trace:
                setattr(record, TRACE, "\n".join(self._trace))
            self._tell(record)
        self._trace, self._size = [], 0


def _record(line: str) -> logging.LogRecord:
    found = _HEAD.fullmatch(line)
    level, source, text = found.groups() if found else ("INFO", None, line)
    name = f"spark.{source}" if source else NAME
    # The text is no format: what looks like one in it stays as it is.
    return logging.LogRecord(name, _LEVELS[level], "", 0, "%s", (text,), None)


def _tell(record: logging.LogRecord) -> None:
    """Whatever its level: they who wrote it had a level of their own."""
    for handler in logging.getLogger().handlers:
        handler.handle(record)
