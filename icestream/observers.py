"""Tells several observers of batches and events without making a job wait for any of them.

The worker composes them (`cli/worker_process.py`); managers, reconcilers and the service tell. A job in a
process of its own has one whose only observer is the wire to the worker (`jobs/processes/job_process.py`).
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from icestream.api.history import BatchRecord, Event, Observer

_LOG = logging.getLogger(__name__)
_MOST_WAITING: Final = 10_000
"""An observer that is so many calls behind loses what comes next: memory is the job's."""


class Observers:
    """An `Observer` for many threads. Each of those it tells has a thread and hears everything in order."""

    def __init__(self, *observers: Observer, discreet: Callable[[str], str] = str) -> None:
        """`discreet` takes secrets out of what is said."""
        self._discreet = discreet
        self._told = tuple(_Aside(one) for one in observers)

    def add(self, observer: Observer) -> None:
        """From now on this one is told, too."""
        self._told = (*self._told, _Aside(observer))

    def batch(self, connector: str, record: BatchRecord) -> None:
        if record.note:
            record = replace(record, note=self._said(record.note))
        for one in self._told:
            one.tell(lambda observer: observer.batch(connector, record))

    def event(self, connector: str, event: Event) -> None:
        event = replace(event, text=self._said(event.text))
        for one in self._told:
            one.tell(lambda observer: observer.event(connector, event))

    def forget(self, connector: str) -> None:
        for one in self._told:
            one.tell(lambda observer: observer.forget(connector))

    def close(self) -> None:
        """Each hears what it was told until now, and then its thread ends; what comes later is lost."""
        for one in self._told:
            one.close()

    def settle(self, seconds: float) -> bool:
        """Whether all of them have heard everything until now within so many seconds."""
        heard = [one.bell() for one in self._told]
        return all(bell.wait(seconds) for bell in heard)

    def _said(self, text: str) -> str:
        try:
            return self._discreet(text)
        except Exception:  # whoever tells has work to do, and nothing is better than a secret
            _LOG.exception("a sentence cannot be told")
            return ""


class _Aside:
    """One observer, its thread, and what it has not heard yet."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._waiting: queue.SimpleQueue[Callable[[Observer], None] | None] = queue.SimpleQueue()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_behind = False
        self._is_closed = False

    def tell(self, call: Callable[[Observer], None]) -> None:
        if self._waiting.qsize() >= _MOST_WAITING:
            if not self._is_behind:
                self._is_behind = True
                _LOG.warning(
                    "%s is %d calls behind and loses what comes next",
                    type(self._observer).__name__,
                    _MOST_WAITING,
                )
            return
        self._is_behind = False
        try:
            self._put(call)
        except Exception:  # no room for one more thread: it is told when there is
            _LOG.exception("%s was not told", type(self._observer).__name__)

    def bell(self) -> threading.Event:
        """Rings when all has been heard that was told before."""
        bell = threading.Event()
        self._put(lambda observer: bell.set())
        return bell

    def close(self) -> None:
        with self._starting:
            self._is_closed = True
            self._waiting.put(None)

    def _put(self, call: Callable[[Observer], None]) -> None:
        if self._thread is None:
            self._start()
        self._waiting.put(call)

    def _start(self) -> None:
        with self._starting:
            if self._thread is None and not self._is_closed:
                name = f"observer-{type(self._observer).__name__}"
                thread = threading.Thread(target=self._run, name=name, daemon=True)
                thread.start()
                # Not before: one that could not start is tried again.
                self._thread = thread

    def _run(self) -> None:
        while (call := self._waiting.get()) is not None:
            try:
                call(self._observer)
            except Exception:  # an observer's edge: what it cannot keep is lost, and nothing else
                _LOG.exception("%s failed", type(self._observer).__name__)
