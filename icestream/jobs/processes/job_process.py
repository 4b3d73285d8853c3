"""The job's end: makes the manager of a connector in this process and lets the worker drive it. Called by
`icestream job-manager --channel`.

One thread reads what the worker says, one makes turns, one cancels them. When the worker is gone, so is this
process: nobody would know of it.
"""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import os
import queue
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from icestream import logs
from icestream.api.errors import IcestreamError
from icestream.api.history import BatchRecord, Event, Observer
from icestream.api.manager import MakeManager, Manager
from icestream.api.status import Progress
from icestream.jobs.processes.process_wire import Channel, Message, follow_levels, plain, plain_error
from icestream.observers import Observers
from icestream.waits import oldest_wait

_LOG = logging.getLogger(__name__)
_END_SECONDS: Final = 5.0
_SILENCE_SECONDS: Final = 300.0
"""A worker that asks nothing for so long hangs, or this process was stopped: either way others go on."""
_OOM_SCORE: Final = 500
"""The kernel ends a job before its worker."""

_TELL_SECONDS: Final = 2.0
"""For what the worker has not heard yet of the last batch, at the end."""

PrepareMaker = Callable[[Mapping[str, str], Observer], MakeManager]


def serve_worker(descriptor: int, prepare: PrepareMaker | None = None) -> None:
    """Until the worker has closed the job, or is gone."""
    with socket.socket(fileno=descriptor) as end:
        # Nobody that this process starts may keep it open.
        end.set_inheritable(False)
        _be_the_first_to_go()
        channel = Channel(end)
        order = channel.receive()
        if order is None:
            return
        logs.configure_process("INFO", logs.Logging(**order["logging"]))
        follow_levels(order["levels"])
        logs.conceal(order["concealed"])
        JobProcess(channel, order, prepare or _maker).run()


def _maker(worker: Mapping[str, str], observer: Observer) -> MakeManager:
    from icestream.jobs.build import manager_maker

    return manager_maker(worker, observer=observer)


def _be_the_first_to_go() -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(_OOM_SCORE))


class _Wire:
    """Tells the worker, whose observers hear it. Called aside: a worker that does not listen stops no job."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def batch(self, connector: str, record: BatchRecord) -> None:
        self._channel.send({"said": "batch", "record": plain(record)})

    def event(self, connector: str, event: Event) -> None:
        self._channel.send({"said": "event", "event": plain(event)})

    def forget(self, connector: str) -> None:
        """The worker knows."""


class JobProcess:
    """What this process does until its end."""

    def __init__(self, channel: Channel, order: Message, prepare: PrepareMaker) -> None:
        self._channel = channel
        self._order = order
        self._prepare = prepare
        self._manager: Manager | None = None
        self._observers = Observers(_Wire(channel))
        self._partitions: tuple[object, ...] = ()
        """Those of the last progress that was told."""
        self._turns: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._controls: queue.Queue[str] = queue.Queue()
        self._is_cancelled = False
        self._turning = threading.Thread(target=self._turn_by_turn, name="job", daemon=True)
        threading.Thread(target=self._control, name="control", daemon=True).start()

    def run(self) -> None:
        self._turning.start()
        message: Message | None = {"do": "live"}
        # Nobody would read the last words of a process from a pipe into itself.
        words = logs.own_stderr() or sys.stderr
        while message is not None and message["do"] != "close":
            # Without Python's lock: a process that hangs as a whole tells where, and ends.
            faulthandler.dump_traceback_later(_SILENCE_SECONDS, exit=True, file=words)
            self._take(message)
            message = self._channel.receive()
        faulthandler.dump_traceback_later(2 * _END_SECONDS, exit=True, file=words)
        if message is None:
            _LOG.warning("the worker is gone; the job ends", extra=self._context())
            self._controls.put("cancel")
        self._turns.put("close")
        self._turning.join(_END_SECONDS)
        if self._turning.is_alive():
            os._exit(1)

    def _take(self, message: Message) -> None:
        what = message["do"]
        if what == "live":
            follow_levels(message.get("levels", {}))
            self._say("lives", waiting=plain(oldest_wait(self._turning)))
        elif what == "tick":
            self._turns.put(what)
        elif what in ("cancel", "allow"):
            self._controls.put(what)

    # -- the thread that makes turns --

    def _turn_by_turn(self) -> None:
        with logs.about(self._order["name"]):
            self._turns_until_closed()

    def _turns_until_closed(self) -> None:
        while self._turns.get() == "tick":
            try:
                # A cancel or an allow that came before this turn has its effect first.
                self._controls.join()
                pause = self._ready_manager().tick()
            except Exception as error:  # whatever it is, the worker decides
                if not isinstance(error, IcestreamError):
                    _LOG.error("a turn failed", exc_info=error, extra=self._context())
                self._say("failed", error=plain_error(error), progress=self._told_progress())
            else:
                self._say("ticked", pause=pause, progress=self._told_progress())
        if self._manager is not None:
            try:
                self._manager.close()
            except Exception as error:  # the job has ended anyway
                _LOG.warning("was not closed in order: %s", error, extra=self._context())
        self._observers.settle(_TELL_SECONDS)

    def _ready_manager(self) -> Manager:
        if self._manager is None:
            make = self._prepare(self._order["worker"], self._observers)
            manager = make(self._order["name"], self._order["config"], lambda: self._say("wake"))
            # In this order: whoever cancels from now on finds it, and who did before is seen.
            self._manager = manager
            if self._is_cancelled:
                manager.cancel()
        return self._manager

    def _told_progress(self) -> Message:
        """Without the partitions if they are as they were: there may be a thousand of them."""
        progress = self._progress()
        told: Message = plain(progress)
        if progress.partitions is self._partitions:
            del told["partitions"]
        self._partitions = progress.partitions
        return told

    def _progress(self) -> Progress:
        return self._manager.progress if self._manager is not None else Progress()

    # -- the thread that cancels --

    def _control(self) -> None:
        while True:
            what = self._controls.get()
            self._is_cancelled = what == "cancel"
            manager = self._manager
            try:
                if manager is not None:
                    (manager.cancel if what == "cancel" else manager.allow)()
            except Exception:  # the turn may still end by itself
                _LOG.exception("the turn under way was not cancelled", extra=self._context())
            finally:
                self._controls.task_done()

    def _say(self, what: str, **more: Any) -> None:
        self._channel.send({"said": what, **more})

    def _context(self) -> dict[str, str]:
        return {"connector": self._order["name"]}
