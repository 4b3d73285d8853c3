"""The process of one job, as its worker sees it: started, asked, watched, ended. Used by `process_manager`.

A thread reads what the process says and asks it now and then whether it lives. One that does not answer in
time is killed: whatever it had begun is refused by the table and by Kafka when the next one has begun.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from icestream.api.status import Waiting
from icestream.jobs.processes.process_wire import Channel, Message, fact, set_levels
from icestream.logs import own_stderr
from icestream.waits import waiting_as

_LOG = logging.getLogger(__name__)
_CLOSE_SECONDS: Final = 10.0
"""How long an orderly end may take."""
_LEFT_SECONDS: Final = 20.0
"""How long what it started may outlive it, and it its own kill."""
_CANCEL_SECONDS: Final = 12.0
"""A turn that was cancelled and goes on for longer hangs; the reconciler would leave its thread after 20."""
_LONGEST_WAIT: Final = 3000.0
"""Every call of a job has a shorter limit of its own; the reconciler would fail the job after an hour."""
_OUT_OF_MEMORY: Final = "; the kernel does that when memory runs out"


class ChildEnded(Exception):
    """The process is gone; the text completes "the process of the job …"."""


@dataclass(frozen=True)
class ChildOptions:
    command: Sequence[str]
    """Ends with the option that takes the number of a file descriptor."""
    heartbeat_seconds: float = 60.0
    """A process that says nothing for so long hangs."""

    @property
    def ask_seconds(self) -> float:
        return min(5.0, self.heartbeat_seconds / 4)


class ChildProcess:
    """Started when it is made. `ask` is called by one thread, everything else by any."""

    def __init__(
        self,
        options: ChildOptions,
        job: Message,
        wake: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
        hear: Callable[[Message], None] = lambda message: None,
    ) -> None:
        """`hear` gets what the job tells of batches and events, from the thread that watches."""
        self._options = options
        self._hear = hear
        self._wake = wake
        self._clock = clock
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = subprocess.Popen(
                    [*options.command, str(theirs.fileno())],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    # It logs by itself, in the form that this log has.
                    stderr=own_stderr(),
                    # A session of its own: Ctrl-C is for the worker, which then ends its jobs in order.
                    start_new_session=True,
                )
            except OSError:
                ours.close()
                raise
        self.pid = self._process.pid
        # Not `select`, which knows the first 1,024 files of a process only.
        self._poll = select.poll()
        self._poll.register(ours, select.POLLIN)
        self._channel = Channel(ours)
        self._changed = threading.Condition()
        self._reply: Message | None = None
        self._is_asked = False
        self._has_spoken = False
        self._heard = self._ask_at = clock()
        self._cancelled_at: float | None = None
        self._levels: dict[str, int] = set_levels()
        self._waiting: Waiting | None = None
        self._killed_for = ""
        self._killed_at: float | None = None
        self.ended: str | None = None
        """How it came to its end, as ChildEnded tells it."""
        self.started_at = self._heard
        threading.Thread(target=self._watch, name=f"job-process-{self.pid}", daemon=True).start()
        self._send({"do": "job", **job, "levels": self._levels})

    def ask(self, what: str) -> Message:
        """Its answer, however long that takes while it lives; ChildEnded if it does not live."""
        with self._changed:
            self._reply, self._is_asked = None, True
        try:
            self._send({"do": what})
            while not self._is_over():
                self._await_reply(self._waiting)
        finally:
            self._is_asked = False
        if self._reply is None:
            raise ChildEnded(self.ended)
        return self._reply

    def _await_reply(self, waiting: Waiting | None) -> None:
        """Until the end, or until it waits for something else; meanwhile this thread waits for the same."""
        with contextlib.nullcontext() if waiting is None else waiting_as(waiting), self._changed:
            self._changed.wait_for(lambda: self._is_over() or self._waiting is not waiting)

    def cancel(self) -> None:
        if self._cancelled_at is None:
            self._cancelled_at = self._clock()
            self._send({"do": "cancel"})

    def allow(self) -> None:
        if self._cancelled_at is not None:
            self._cancelled_at = None
            self._send({"do": "allow"})

    def close(self) -> None:
        """End it in order, or by force after a while. Returns when it is gone."""
        if self.ended is None:
            self._send({"do": "close"})
            if not self._await_end(_CLOSE_SECONDS):
                self.kill("did not end in time")
                self._await_end(_CLOSE_SECONDS)

    def kill(self, reason: str) -> None:
        if self._killed_at is None:
            self._killed_for, self._killed_at = reason, self._clock()
        self._process.kill()

    def _is_over(self) -> bool:
        return self._reply is not None or self.ended is not None

    def _await_end(self, seconds: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self.ended is not None, seconds)

    def _send(self, message: Message) -> None:
        # If nobody reads there any more, the thread that watches says so.
        self._channel.send(message)

    # -- the thread that watches --

    def _watch(self) -> None:
        try:
            while self._look():
                pass
        except Exception:  # the thread's edge: without it nobody would see that the process hangs
            _LOG.exception("the process of a job cannot be watched any more")
            self.kill("could not be watched")
        self._bury()

    def _look(self) -> bool:
        """One message, or one question whether it lives; False when it has closed its end."""
        before = self._clock()
        readable = self._poll.poll(1000 * max(0.0, self._ask_at - before))
        now = self._clock()
        if readable:
            message = self._channel.receive()
            if message is None:
                return False
            self._heard, self._has_spoken = now, True
            self._take(message)
        elif now - before > 2 * self._options.ask_seconds:
            # This worker itself was stopped: who knows what the process would have said meanwhile.
            self._heard = now
        self._kill_if_it_hangs(now)
        if now >= self._ask_at:
            self._ask_at = now + self._options.ask_seconds
            if self._has_spoken:
                # Not before: the first thing that it reads is its job.
                self._ask_for_life()
        return not self._is_beyond_help(now)

    def _ask_for_life(self) -> None:
        levels = set_levels()
        changed = {name: level for name, level in levels.items() if self._levels.get(name) != level}
        # Somebody who sends now and cannot go on is seen by the silence.
        if self._channel.send({"do": "live", "levels": changed}, waits=False):
            self._levels = levels

    def _kill_if_it_hangs(self, now: float) -> None:
        limit = self._options.heartbeat_seconds
        if not self._has_spoken:
            # Python starts slowly on a machine that has much to do.
            limit = max(limit, 60.0)
        cancelled, waiting = self._cancelled_at, self._waiting
        if now - self._heard > limit:
            self.kill(f"did not answer for {limit:.0f} s and was killed")
        elif self._is_asked and cancelled is not None and now - cancelled > _CANCEL_SECONDS:
            self.kill("did not give up its batch and was killed")
        elif waiting is not None and time.time() - waiting.since.timestamp() > _LONGEST_WAIT:
            self.kill(f"was killed, still {waiting}")

    def _is_beyond_help(self, now: float) -> bool:
        """Whether it has outlived its own kill: a disk or a network file that does not answer can do that."""
        return self._killed_at is not None and now - self._killed_at > _LEFT_SECONDS

    def _take(self, message: Message) -> None:
        said = message["said"]
        if said == "wake":
            self._wake()
            return
        if said in ("batch", "event"):
            self._hear(message)
            return
        with self._changed:
            waiting = fact(Waiting, message.get("waiting"))
            if waiting != self._waiting:
                # The same object for as long as it is the same wait: statuses are compared by that.
                self._waiting = waiting
            if said in ("ticked", "failed"):
                self._waiting = None
                self._reply = message
            self._changed.notify_all()

    def _bury(self) -> None:
        code = self._exit_code()
        if code is None:
            self.kill("closed its end and went on")
            code = self._exit_code()
        how = "cannot be killed, which the system does when a disk does not answer"
        with self._changed:
            self.ended = how if code is None else self._killed_for or _how(code)
            self._waiting = None
            self._changed.notify_all()
        # By this thread, which is the one that reads from it.
        self._channel.close()
        self._wake()
        self._end_what_is_left()

    def _exit_code(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(_CLOSE_SECONDS)
        return None

    def _end_what_is_left(self) -> None:
        """Its Spark sees that it is gone, and clears up before it ends; one that is stopped never would."""
        deadline = self._clock() + _LEFT_SECONDS
        with contextlib.suppress(ProcessLookupError, PermissionError):
            while self._clock() < deadline:
                # In a container the worker may be the one that inherits them, and has to bury them.
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(-self.pid, os.WNOHANG)
                os.killpg(self.pid, 0)
                time.sleep(0.2)
            os.killpg(self.pid, signal.SIGKILL)


def _how(code: int) -> str:
    if code >= 0:
        return f"ended by itself with exit code {code}"
    with contextlib.suppress(ValueError):
        number = signal.Signals(-code)
        return f"was killed by {number.name}{_OUT_OF_MEMORY if number is signal.SIGKILL else ''}"
    return f"was killed by signal {-code}"
