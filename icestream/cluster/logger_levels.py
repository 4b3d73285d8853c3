"""Levels of loggers, seen and set while the worker runs: what `/admin/loggers` shows, over Python's logging.

Names of Java classes are accepted too: dashboards and scripts know no others. Called by the service.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from icestream.api.errors import NotFoundError
from icestream.logs import LoggerLevel
from icestream.plugins import installed

LEVELS: Final[Mapping[str, int]] = {
    "OFF": logging.CRITICAL + 10,
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": 5,
    "ALL": 1,
}
"""Log4j's levels as Python's numbers, the quietest first."""

_ROOT: Final = "root"
_OF_JAVA: Final[Mapping[str, tuple[str, ...]]] = {
    "org.apache.kafka": ("icestream",),
    "org.apache.kafka.clients": ("icestream.kafka",),
    "org.apache.kafka.connect": ("icestream",),
    "org.apache.kafka.connect.cli": ("icestream.cli",),
    "org.apache.kafka.connect.json": ("icestream.converters",),
    "org.apache.kafka.connect.runtime": ("icestream.cluster", "icestream.jobs", "icestream.rest"),
    "org.apache.kafka.connect.runtime.distributed": ("icestream.cluster", "icestream.kafka.group"),
    "org.apache.kafka.connect.runtime.rest": ("icestream.rest",),
    "org.apache.kafka.connect.runtime.standalone": ("icestream.cluster",),
    "org.apache.kafka.connect.runtime.Worker": ("icestream.cluster",),
    "org.apache.kafka.connect.runtime.WorkerConnector": ("icestream.cluster",),
    "org.apache.kafka.connect.runtime.WorkerSinkTask": ("icestream.jobs",),
    "org.apache.kafka.connect.runtime.WorkerSourceTask": ("icestream.jobs",),
    "org.apache.kafka.connect.runtime.WorkerTask": ("icestream.jobs",),
    "org.apache.kafka.connect.storage": ("icestream.cluster",),
    "org.apache.kafka.connect.transforms": ("icestream.transforms",),
    "org.eclipse.jetty": ("uvicorn",),
}
"""Java's loggers and ours that say what they would say; connectors add theirs."""


class LoggerLevels:
    """The levels of this process. A name stands for all that begin with it, as in Kafka Connect."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._changed: dict[str, int] = {}
        self._lock = threading.Lock()

    def levels(self) -> dict[str, LoggerLevel]:
        """All loggers that exist, each with the level that holds for it."""
        with self._lock:
            return {name: self._shown(logger) for name, logger in sorted(_existing().items())}

    def level(self, name: str) -> LoggerLevel:
        """The level of one logger that exists, or of ours that speaks for a known Java class."""
        with self._lock:
            known = _existing()
            logger = known.get(_normal(name))
            targets = _targets(name)
            if logger is None and targets:
                logger = logging.getLogger(targets[0])
            if logger is None:
                raise NotFoundError(f"Logger {name} not found.")
            return self._shown(logger)

    def set_level(self, namespace: str, level: str) -> list[str]:
        """Set a logger and its children; the names of those whose level is another now, sorted."""
        number = level_number(level)
        with self._lock:
            changed = [
                name for name, logger in _family(namespace).items() if logger.getEffectiveLevel() != number
            ]
            for name in changed:
                _logger(name).setLevel(number)
                self._changed[name] = int(self._clock() * 1000)
        return sorted(changed)

    def set_levels(self, named: str) -> None:
        """Set what a list such as `org.apache.kafka=DEBUG,uvicorn=WARN` names, in its order."""
        for item in filter(None, map(str.strip, named.split(","))):
            name, _, level = item.partition("=")
            self.set_level(name.strip(), level.strip())

    def _shown(self, logger: logging.Logger) -> LoggerLevel:
        return LoggerLevel(level_name(logger.getEffectiveLevel()), self._changed.get(logger.name))


def level_number(level: str) -> int:
    """Python's number of a level by Log4j's name."""
    number = LEVELS.get(level.upper())
    if number is None:
        raise NotFoundError(f"invalid log level '{level}'.")
    return number


def levels_problem(named: str) -> str | None:
    """What is wrong with a list of loggers and levels, as a setting's check."""
    for item in filter(None, map(str.strip, named.split(","))):
        name, _, level = item.partition("=")
        if not name.strip() or level.strip().upper() not in LEVELS:
            return f"'{item}' is not logger=level with one of {', '.join(LEVELS)}"
    return None


def level_name(number: int) -> str:
    """Log4j's name for a number: the quietest level that lets through what the number does."""
    return next((name for name, limit in LEVELS.items() if limit <= number), "ALL")


def _existing() -> dict[str, logging.Logger]:
    known = {
        name: logger
        for name, logger in logging.root.manager.loggerDict.copy().items()
        if isinstance(logger, logging.Logger)
    }
    return {**known, _ROOT: logging.root}


def _family(namespace: str) -> dict[str, logging.Logger]:
    """Those that a request about `namespace` is about; the namespace itself comes to be if it is new."""
    if _normal(namespace) == _ROOT:
        return _existing()
    heads = (namespace, *_targets(namespace))
    for head in heads:
        logging.getLogger(head)
    return {name: logger for name, logger in _existing().items() if name != _ROOT and name.startswith(heads)}


def _targets(name: str) -> tuple[str, ...]:
    """Our loggers for a Java name: those of the longest known beginning of it."""
    known: dict[str, Sequence[str]] = dict(_OF_JAVA)
    for plugin in installed().plugins:
        known |= plugin.java_loggers
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        found = known.get(".".join(parts[:end]))
        if found:
            return tuple(found)
    return ()


def _logger(name: str) -> logging.Logger:
    return logging.root if name == _ROOT else logging.getLogger(name)


def _normal(name: str) -> str:
    return _ROOT if name.lower() == _ROOT else name
