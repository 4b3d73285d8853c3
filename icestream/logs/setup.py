"""Where the lines of a process go, and in which form. Called by the commands at their start."""

from __future__ import annotations

import logging
import sys
from dataclasses import dataclass
from typing import Final, TextIO

from icestream.logs import context
from icestream.logs.flood import AUDIT, FloodFilter
from icestream.logs.lines import JSON, TEXT, formatter_of
from icestream.logs.stderr import take_stderr

_QUIET: Final = (
    *("py4j", "uvicorn", "httpx", "httpx2", "httpcore", "asyncio", "pyiceberg", "urllib3", "botocore"),
    "kopf",
)
_form = TEXT


@dataclass(frozen=True)
class LoggerLevel:
    """The level of a logger, and when somebody last set it, in epoch milliseconds."""

    level: str
    last_modified: int | None = None


@dataclass(frozen=True)
class Logging:
    """How a process logs: what a worker tells the processes of its jobs."""

    form: str = TEXT
    worker: str = ""


class LineHandler(logging.StreamHandler[TextIO]):
    """Where the log itself cannot be written, there is nobody to tell: what Python would print of that may
    come back here as a line."""

    def handleError(self, record: logging.LogRecord) -> None:
        pass


def configure(level: str = "INFO", stream: TextIO | None = None, form: str = TEXT) -> None:
    """Send all logs to `stream` (stderr), one line each."""
    global _form
    _form = form
    handler = LineHandler(stream or sys.stderr)
    handler.setFormatter(formatter_of(form))
    handler.addFilter(FloodFilter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # Whatever else is quiet, who changed what is told.
    logging.getLogger(AUDIT).setLevel(min(root.level, logging.INFO))
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


def configure_process(level: str, logging: Logging) -> None:
    """The same for a process of ours with all that it starts: as JSON, what others write to its stderr is a
    line of the log, too."""
    context.of_worker(logging.worker)
    configure(level, take_stderr() if logging.form == JSON else None, logging.form)


def configured() -> Logging:
    """How this process logs."""
    return Logging(_form, context.worker())


def audit_handler(handler: logging.Handler, most: int) -> logging.Handler:
    """The same handler, with lines of the form that the log has, and so many of a kind in ten seconds."""
    handler.setFormatter(formatter_of(_form))
    handler.addFilter(FloodFilter(most=most))
    return handler
