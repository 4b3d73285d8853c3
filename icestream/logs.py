"""Log lines for people: time, level, connector, what happened. Nothing secret is ever in them."""

from __future__ import annotations

import logging
import re
import sys
import time
from collections.abc import Mapping
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
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


def conceal(secrets: Mapping[str, str]) -> None:
    """From now on, no line shows these secrets; what they map to stands there instead."""
    global _concealed
    more = {secret: shown for secret, shown in secrets.items() if len(secret) >= _SHORTEST_CONCEALED}
    _concealed = _concealed | more


def for_connector(logger: logging.Logger, name: str) -> logging.LoggerAdapter[logging.Logger]:
    """The logger whose lines carry the connector's name."""
    return logging.LoggerAdapter(logger, {"connector": name})


class LineFormatter(logging.Formatter):
    """`2026-11-15 10:14:02.123 INFO  [orders-sink] message`; an exception is its last line."""

    def __init__(self, *, traces: bool = False) -> None:
        super().__init__()
        self._traces = traces

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%d %H:%M:%S", self.converter(record.created))
        connector = getattr(record, "connector", None)
        where = f"[{connector}] " if connector else ""
        message = " ".join(record.getMessage().splitlines())
        line = f"{moment}.{int(record.msecs):03d} {record.levelname:<7} {where}{message}"
        if record.exc_info and record.exc_info[1] is not None:
            line += self._trace(record)
        return hidden(line, _concealed)

    def _trace(self, record: logging.LogRecord) -> str:
        assert record.exc_info is not None
        # Asked at each line: levels change while the worker runs.
        if self._traces or logging.getLogger(record.name).isEnabledFor(logging.DEBUG):
            return "\n" + self.formatException(record.exc_info)
        error = record.exc_info[1]
        return f" ({type(error).__name__}: {' '.join(str(error).splitlines())})"


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
