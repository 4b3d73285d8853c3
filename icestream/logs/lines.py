"""A line of the log, as text or as JSON: whatever a name or a message holds, it is one line and shows no
secret."""

from __future__ import annotations

import datetime as dt
import json
import logging
import re
import time
from typing import Final

from icestream.logs.context import Whose, whose
from icestream.logs.flood import MORE
from icestream.logs.secrets import discreet

TEXT: Final = "text"
JSON: Final = "json"
FORMATS: Final = (TEXT, JSON)
TRACE: Final = "trace"
"""Where a record has the trace of something that is not an exception of this process."""
_PLAIN: Final = re.compile(r"[\w.:@/+-]+")
_INDENT: Final = "    "


class LineFormatter(logging.Formatter):
    """`2026-11-15 10:14:02.123+01:00 INFO    icestream.jobs [10.0.0.7:8083|orders|batch-6f…] message`.

    An exception is its last line; where a logger is at DEBUG all of them follow, indented: no line of a trace
    can be taken for one of the log.
    """

    def __init__(self, *, traces: bool = False) -> None:
        super().__init__()
        self._traces = traces

    def format(self, record: logging.LogRecord) -> str:
        local = self.converter(record.created)
        moment, zone = time.strftime("%Y-%m-%d %H:%M:%S", local), time.strftime("%z", local)
        moment = f"{moment}.{int(record.msecs):03d}{zone[:3]}:{zone[3:]}"
        message = one_line(record.getMessage()) + getattr(record, MORE, "")
        line = f"{moment} {record.levelname:<7} {one_line(record.name)} {_bracket(whose(record))}{message}"
        if record.exc_info and record.exc_info[1] is not None:
            line += f" ({_exception(record.exc_info[1])})"
        if trace := self._trace(record):
            line += "".join(f"\n{_INDENT}{one_line(part)}" for part in trace.splitlines())
        return discreet(line)

    def _trace(self, record: logging.LogRecord) -> str:
        # Asked at each line: levels change while the worker runs.
        if not self._traces and not logging.getLogger(record.name).isEnabledFor(logging.DEBUG):
            return getattr(record, TRACE, "")
        return _trace_of(self, record)


class JsonFormatter(logging.Formatter):
    """One JSON object per line, its fields always in this order: time, level, logger, message, worker,
    connector, batch; `exception` of lines that have one; `trace` of errors, and where the logger is at
    DEBUG."""

    def format(self, record: logging.LogRecord) -> str:
        moment = dt.datetime.fromtimestamp(record.created, dt.UTC)
        context = whose(record)
        said = {
            "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage() + getattr(record, MORE, ""),
            "worker": context.worker,
            "connector": context.connector,
            "batch": context.batch,
        }
        if record.exc_info and record.exc_info[1] is not None:
            said["exception"] = _exception(record.exc_info[1])
        if trace := self._trace(record):
            said["trace"] = trace
        # Before they are encoded: a secret with a quotation mark would not be found afterwards.
        return json.dumps({key: discreet(value) for key, value in said.items()}, ensure_ascii=True)

    def _trace(self, record: logging.LogRecord) -> str:
        is_shown = record.levelno >= logging.ERROR
        if is_shown or logging.getLogger(record.name).isEnabledFor(logging.DEBUG):
            return _trace_of(self, record)
        return getattr(record, TRACE, "")


def formatter_of(kind: str) -> logging.Formatter:
    return JsonFormatter() if kind == JSON else LineFormatter()


def one_line(text: str) -> str:
    """Whatever a text holds, it neither begins a line of its own nor moves a terminal's cursor."""
    joined = " ".join(text.splitlines())
    return joined if joined.isprintable() else "".join(map(_visible, joined))


def _visible(character: str) -> str:
    return character if character.isprintable() or character == "\t" else repr(character)[1:-1]


def _bracket(context: Whose) -> str:
    """As Kafka Connect's `[connector|task-0]`, with the worker before. A strange name is in quotation marks:
    it cannot look like another's bracket."""
    batch = f"batch-{context.batch}" if context.batch else ""
    parts = [_quoted(part) for part in (context.worker, context.connector, batch) if part]
    return f"[{'|'.join(parts)}] " if parts else ""


def _quoted(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else json.dumps(name, ensure_ascii=not name.isprintable())


def _exception(error: BaseException) -> str:
    return f"{type(error).__name__}: {one_line(str(error))}"


def _trace_of(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    if record.exc_info and record.exc_info[1] is not None:
        return formatter.formatException(record.exc_info)
    return str(getattr(record, TRACE, ""))
