"""One connector's job, and the thread that brings it where the user wants it. Owned by the worker.

Callers only leave a wish and may wait for it; starting and stopping happen in the slot's own thread, one
after the other, so that no caller ever blocks another and two jobs of one connector never overlap.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from icestream.api.errors import IcestreamError
from icestream.api.status import JobStarter, JobStatus, RunningJob, State
from icestream.cluster.stores import TargetState
from icestream.logs import for_connector
from icestream.traces import shown_trace

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Wish:
    """What a job should be. Another `run` number means another job, even with the same config."""

    run: int
    config: Mapping[str, str]
    target: TargetState
    is_restart: bool = False
    refused: IcestreamError | None = None
    """Why this config cannot run at all: the job fails with this instead of starting."""


class JobSlot:
    def __init__(self, name: str, starter: Callable[[], JobStarter | None]) -> None:
        self.name = name
        self._starter = starter
        self._log = for_connector(_LOG, name)
        self._changed = threading.Condition()
        self._wish: Wish | None = None
        self._settled = True
        self._job: RunningJob | None = None
        self._job_wish: Wish | None = None
        self._failure: tuple[int, str] | None = None
        self._thread: threading.Thread | None = None

    def ask(self, wish: Wish | None) -> None:
        """Leave a wish; None is the wish for no job at all. Returns at once."""
        with self._changed:
            self._wish = wish
            self._go()

    def wake(self) -> None:
        """Look again: the starter may be there by now."""
        with self._changed:
            self._go()

    def _go(self) -> None:
        """Bring the wish about, in a thread that lives until that is done: a worker may have many slots."""
        self._settled = False
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=f"connector-{self.name}", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def wait(self, timeout: float) -> bool:
        """Whether the wish came true (or failed) within the timeout."""
        with self._changed:
            return self._changed.wait_for(lambda: self._settled, timeout)

    def end(self) -> bool:
        """Whether the slot has neither a job nor a wish, so that it may be forgotten."""
        with self._changed:
            return self._wish is None and self._settled

    @property
    def is_busy(self) -> bool:
        """Whether there is a job, or one is about to start."""
        with self._changed:
            return self._job is not None or self._wish is not None or not self._settled

    def status(self) -> JobStatus:
        """The job's own word, or the slot's when there is no job. Never blocks."""
        wish, job, job_wish, failure = self._wish, self._job, self._job_wish, self._failure
        if wish is None:
            return JobStatus(State.UNASSIGNED)
        if job is not None and job_wish is not None:
            status = job.status()
            is_replaced = job_wish.run != wish.run and wish.target is not TargetState.STOPPED
            return replace(status, state=State.RESTARTING, trace=None) if is_replaced else status
        if failure is not None and failure[0] == wish.run:
            return JobStatus(State.FAILED, trace=failure[1])
        if wish.target is TargetState.STOPPED:
            return JobStatus(State.STOPPED)
        return JobStatus(State.RESTARTING if wish.is_restart else State.UNASSIGNED)

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._settled:
                    self._thread = None
                    return
                wish = self._wish
            self.turn(wish)
            with self._changed:
                if wish is self._wish:
                    self._settled = self._is_fulfilled(wish)
                    self._changed.notify_all()
                    if not self._settled:
                        # Nothing starts before the worker has its starter; `wake` comes when it does.
                        self._changed.wait(timeout=0.5)

    def turn(self, wish: Wish | None) -> None:
        """Bring the job to the wish. What goes wrong is the job's failure, never the worker's."""
        try:
            self._stop_if_unwanted(wish)
            if wish is None or wish.target is TargetState.STOPPED:
                self._failure = None
            elif self._job is None:
                self._start(wish)
            else:
                self._pause_or_resume(self._job, wish)
        except Exception as error:  # the worker's edge
            if wish is not None:
                self._failure = (wish.run, shown_trace(error))
            self._log.error("the job failed to start or stop", exc_info=error)

    def _is_fulfilled(self, wish: Wish | None) -> bool:
        if wish is None or wish.target is TargetState.STOPPED:
            return self._job is None
        return self._job is not None or (self._failure is not None and self._failure[0] == wish.run)

    def _stop_if_unwanted(self, wish: Wish | None) -> None:
        if self._job is None or self._job_wish is None:
            return
        if wish is None or wish.target is TargetState.STOPPED or wish.run != self._job_wish.run:
            try:
                self._job.stop()
            finally:
                self._job = self._job_wish = None
            self._log.info("stopped")

    def _start(self, wish: Wish) -> None:
        if self._failure is not None and self._failure[0] == wish.run:
            return
        if wish.refused is not None:
            raise wish.refused
        starter = self._starter()
        if starter is None:
            return
        self._failure = None
        job = starter(self.name, wish.config, paused=wish.target is TargetState.PAUSED)
        self._job_wish, self._job = wish, job
        self._log.info("started%s", ", paused" if wish.target is TargetState.PAUSED else "")

    def _pause_or_resume(self, job: RunningJob, wish: Wish) -> None:
        if self._job_wish is None or wish.target is self._job_wish.target:
            return
        if wish.target is TargetState.PAUSED:
            job.pause()
        else:
            job.resume()
        self._job_wish = wish
        self._log.info("paused" if wish.target is TargetState.PAUSED else "resumed")
