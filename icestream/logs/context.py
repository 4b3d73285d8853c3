"""Whose work a line is about: the worker, the connector, the batch.

The worker is that of the process. A connector is named by the thread that works for it (`about`), its batch
when it begins and ends (`at_batch`); threads that these start have a copy of their context. A line may name
another connector for itself (`extra={"connector": …}`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

_connector: ContextVar[str] = ContextVar("connector", default="")
_batch: ContextVar[str] = ContextVar("batch", default="")
_worker = ""


@dataclass(frozen=True)
class Whose:
    """Empty where there is none."""

    worker: str
    connector: str
    batch: str


def whose(record: logging.LogRecord) -> Whose:
    """Of a line that this thread writes now."""
    connector = str(getattr(record, "connector", "") or _connector.get())
    batch = str(getattr(record, "batch", "") or "")
    if not batch and connector == _connector.get():
        batch = _batch.get()
    return Whose(_worker, connector, batch)


def of_worker(name: str) -> None:
    """From now on, every line of this process is of this worker."""
    global _worker
    _worker = name


def worker() -> str:
    return _worker


@contextmanager
def about(connector: str) -> Iterator[None]:
    """Every line of this thread in this block is about the connector."""
    token, batch = _connector.set(connector), _batch.set("")
    try:
        yield
    finally:
        _batch.reset(batch)
        _connector.reset(token)


def for_connector(logger: logging.Logger, name: str) -> logging.LoggerAdapter[logging.Logger]:
    """The logger whose lines carry the connector's name, whichever thread writes them."""
    return logging.LoggerAdapter(logger, {"connector": name})


def at_batch(identity: str) -> None:
    """From now on, lines of this thread are about this batch of its connector; empty: about none."""
    _batch.set(identity)
