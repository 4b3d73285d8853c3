"""Log lines for people: time, level, logger, connector, what happened. Nothing secret is ever in them."""

from __future__ import annotations

import logging
import re
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TextIO

_HIDDEN: Final = "[hidden]"
_SECRET_KEY: Final = re.compile(
    r"passw(or)?d|passphrase|secret|token|credential|jaas|private|certificate[._-]chain|keystore[._-]key"
    r"|(access|api|account|encryption|signing|sas|shared)[._-]?key|apikey|^sasl\.oauthbearer\..*assertion"
    r"|basic[._-]auth[._-]user[._-]info|authorization",
    re.IGNORECASE,
)
_SECRET_IN_VALUE: Final = (
    (re.compile(r"(://[^/\s:@]*:)[^/\s@]+@"), r"\1" + _HIDDEN + "@"),
    (re.compile(r"((?:password|secret|token)=)[^&;\s]+", re.IGNORECASE), r"\1" + _HIDDEN),
)
_SHORTEST_CONCEALED: Final = 4
"""Shorter texts are everywhere: lines without them could not be read."""
_concealed: dict[str, str] = {}
KEPT: Final = "is_kept"
"""A record with this attribute set is never left out as part of a flood."""
_MORE: Final = "more"
_MOST_KINDS: Final = 10_000
_AUDIT: Final = "icestream.audit"
_OF_CLIENTS: Final = ("uvicorn", "asyncio", "icestream.rest", _AUDIT)
_QUIET: Final = ("py4j", "uvicorn", "httpx", "httpcore", "asyncio", "pyiceberg", "urllib3", "botocore")


@dataclass(frozen=True)
class LoggerLevel:
    """The level of a logger, and when somebody last set it, in epoch milliseconds."""

    level: str
    last_modified: int | None = None


def configure(level: str = "INFO", stream: TextIO | None = None) -> None:
    """Send all logs to `stream` (stderr), one line each; full traces where a logger is at DEBUG."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(LineFormatter())
    handler.addFilter(FloodFilter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # Whatever else is quiet, who changed what is told.
    logging.getLogger(_AUDIT).setLevel(min(root.level, logging.INFO))
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


def conceal(secrets: Mapping[str, str]) -> None:
    """From now on, no line shows these secrets; what they map to stands there instead."""
    global _concealed
    more = {secret: shown for secret, shown in secrets.items() if len(secret) >= _SHORTEST_CONCEALED}
    _concealed = _concealed | more


def concealed_in(texts: Iterable[str]) -> dict[str, str]:
    """Of what is concealed here, what stands in these texts: for another process that gets them."""
    known = _concealed.items()
    joined = "\n".join(texts)
    return {secret: shown for secret, shown in known if secret in joined}


def for_connector(logger: logging.Logger, name: str) -> logging.LoggerAdapter[logging.Logger]:
    """The logger whose lines carry the connector's name."""
    return logging.LoggerAdapter(logger, {"connector": name})


class LineFormatter(logging.Formatter):
    """`2026-11-15 10:14:02.123+01:00 INFO    icestream.jobs.manager [orders-sink] message`.

    An exception is its last line.
    """

    def __init__(self, *, traces: bool = False) -> None:
        super().__init__()
        self._traces = traces

    def format(self, record: logging.LogRecord) -> str:
        local = self.converter(record.created)
        moment, zone = time.strftime("%Y-%m-%d %H:%M:%S", local), time.strftime("%z", local)
        connector = getattr(record, "connector", None)
        where = f"[{connector}] " if connector else ""
        message = _one_line(record.getMessage()) + getattr(record, _MORE, "")
        moment = f"{moment}.{int(record.msecs):03d}{zone[:3]}:{zone[3:]}"
        line = f"{moment} {record.levelname:<7} {record.name} {where}{message}"
        if record.exc_info and record.exc_info[1] is not None:
            line += self._trace(record)
        return hidden(line, _concealed)

    def _trace(self, record: logging.LogRecord) -> str:
        assert record.exc_info is not None
        # Asked at each line: levels change while the worker runs.
        if self._traces or logging.getLogger(record.name).isEnabledFor(logging.DEBUG):
            return "\n" + self.formatException(record.exc_info)
        error = record.exc_info[1]
        return f" ({type(error).__name__}: {_one_line(str(error))})"


class FloodFilter(logging.Filter):
    """Lets through so many lines of a kind in so many seconds, and says that there were more.

    Only for what any client of REST can cause; a kind is a logger and a text before its arguments.
    """

    def __init__(self, most: int = 20, seconds: float = 10.0) -> None:
        super().__init__()
        self._most, self._seconds = most, seconds
        self._lock = threading.Lock()
        self._windows: dict[tuple[str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if not record.name.startswith(_OF_CLIENTS) or getattr(record, KEPT, False):
            return True
        # A handler before this one may have left its own here.
        setattr(record, _MORE, "")
        with self._lock:
            count, left_out = self._counted((record.name, str(record.msg)), record.created)
        if left_out:
            setattr(record, _MORE, f" ({left_out:,} more lines like this were left out before)")
        elif count == self._most:
            setattr(record, _MORE, f" (more like this are left out for {self._seconds:g} seconds)")
        return count <= self._most

    def _counted(self, kind: tuple[str, str], now: float) -> tuple[int, int]:
        """How many there were in this window, and how many of the last one were left out if it is over."""
        since, count = self._windows.get(kind, (now, 0))
        if now - since < self._seconds:
            self._windows[kind] = (since, count + 1)
            return count + 1, 0
        if len(self._windows) >= _MOST_KINDS:
            self._windows.clear()
        self._windows[kind] = (now, 1)
        return 1, max(0, count - self._most)


def _one_line(text: str) -> str:
    """Whatever a text holds, it neither begins a line of its own nor moves a terminal's cursor."""
    joined = " ".join(text.splitlines())
    return joined if joined.isprintable() else "".join(map(_visible, joined))


def _visible(character: str) -> str:
    return character if character.isprintable() or character == "\t" else repr(character)[1:-1]


def hidden(text: str, secrets: Mapping[str, str]) -> str:
    """The text with something else for each secret, the longest first: one may be part of another."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, secrets[secret])
    return text


def masked(config: Mapping[str, str]) -> dict[str, str]:
    """The config with passwords, keys, tokens and the like hidden: the only form that may be logged."""
    return {key: _HIDDEN if _SECRET_KEY.search(key) else masked_value(value) for key, value in config.items()}


def masked_value(value: str) -> str:
    """A value with the secrets of URLs and connection strings hidden."""
    for pattern, replacement in _SECRET_IN_VALUE:
        value = pattern.sub(replacement, value)
    return value
