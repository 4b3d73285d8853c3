"""The manager of a job that runs in a process of its own (`icestream.job.manager=process`). Made by
`jobs.build`; the reconciler of the connector drives it like any other.

Each turn is a question to the process. A process that ended or hung is an outage of the job, and the next
turn starts another one: what it needs to go on is in the tables and in Kafka.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Final

from icestream.api.config import Config
from icestream.api.connector import ConnectorPlugin
from icestream.api.errors import Cancelled, EngineUnavailable
from icestream.api.history import BatchRecord, Event, NobodyLooks, Observer, Outcome
from icestream.api.sink import SinkPlugin
from icestream.api.status import Progress
from icestream.jobs.processes.child_process import ChildEnded, ChildOptions, ChildProcess
from icestream.jobs.processes.job_place import JobPlace
from icestream.jobs.processes.process_wire import Message, fact, raised_error
from icestream.logs import concealed_in, configured, for_connector
from icestream.resilience.backoff import exponential

_LOG = logging.getLogger(__name__)
COMMAND: Final = (sys.executable, "-P", "-m", "icestream.cli.main", "job-manager", "--channel")
"""-P: the worker's current folder is nobody's package."""
_PLACE: Final = "icestream.job.manager"
_NOT_FOR_JOBS: Final = (
    *(_PLACE, "listeners", "rest.", "admin.listeners", "response.http.", "access.control."),
    *("icestream.rest.", "icestream.audit.", "config.providers"),
)
_STEADY_SECONDS: Final = 60.0
"""A process that lived for so long had no trouble with its start."""
_LONGEST_PAUSE: Final = 30.0


@dataclass(frozen=True)
class JobOrder:
    """A job for a process. Not in the repr: passwords."""

    name: str
    config: Mapping[str, str] = field(repr=False)
    worker: Mapping[str, str] = field(repr=False)

    def message(self) -> Message:
        return {
            "name": self.name,
            "config": dict(self.config),
            "worker": dict(self.worker),
            "logging": asdict(configured()),
            "concealed": concealed_in([*self.config.values(), *self.worker.values()]),
        }


def job_order(
    name: str, plugin: ConnectorPlugin, config: Config, worker: Config, place: JobPlace
) -> JobOrder:
    """The configs as the process needs them: it runs the job in a thread, and has neither REST nor config
    providers. It starts Spark only for a job that uses it."""
    uses_spark = isinstance(plugin, SinkPlugin) and plugin.uses_spark
    left_out = (*_NOT_FOR_JOBS, *(() if uses_spark else ("spark.",)))
    kept = {key: value for key, value in worker.items() if not key.startswith(left_out)}
    if uses_spark and place.driver_memory:
        kept["spark.driver.memory"] = place.driver_memory
    own = {key: value for key, value in config.items() if not key.startswith(_PLACE)}
    return JobOrder(name, own, kept)


class Places:
    """How many jobs of a worker may have a process of their own."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken = 0
        self._lock = threading.Lock()

    def take(self) -> None:
        with self._lock:
            if self._taken >= self._most:
                raise EngineUnavailable(
                    f"{self._taken} jobs of this worker have processes of their own already; stop one, or "
                    "raise 'icestream.job.manager.processes.max' of the worker"
                )
            self._taken += 1

    def leave(self) -> None:
        with self._lock:
            self._taken -= 1


@dataclass
class StartDamper:
    """When the next process may start: at once, unless the last ones ended soon."""

    failures: int = 0
    not_before: float = 0.0

    def ended(self, started: float, now: float) -> None:
        self.failures = 1 if now - started > _STEADY_SECONDS else self.failures + 1
        # The first one may have been bad luck.
        pause = 0.0 if self.failures == 1 else exponential(1.0, _LONGEST_PAUSE, self.failures - 1)
        self.not_before = now + pause

    def pause(self, now: float) -> float:
        return max(0.0, self.not_before - now)


class ProcessManager:
    """`tick` and `close` are called by one thread, as of every manager."""

    def __init__(
        self,
        order: JobOrder,
        options: ChildOptions,
        wake: Callable[[], None],
        places: Places | None = None,
        clock: Callable[[], float] = time.monotonic,
        observer: Observer | None = None,
    ) -> None:
        self._observer = observer or NobodyLooks()
        self._under_way: BatchRecord | None = None
        self._order = order
        self._options = options
        self._wake = wake
        self._clock = clock
        self._places = places or Places(1)
        self._places.take()
        self._log = for_connector(_LOG, order.name)
        self._child: ChildProcess | None = None
        self._last_end = ""
        self._damper = StartDamper()
        self._is_cancelled = False
        self._is_closed = False
        self.progress = Progress()

    def tick(self) -> float:
        child = self._living()
        try:
            reply = child.ask("tick")
        except ChildEnded as ended:
            raise self._lost(child, str(ended)) from None
        told: Progress = fact(Progress, reply["progress"])
        if "partitions" not in reply["progress"]:
            told = replace(told, partitions=self.progress.partitions)
        self.progress = told
        if reply["said"] == "failed":
            raise raised_error(reply["error"])
        return float(reply["pause"])

    def cancel(self) -> None:
        self._is_cancelled = True
        if (child := self._child) is not None:
            child.cancel()

    def allow(self) -> None:
        self._is_cancelled = False
        if (child := self._child) is not None:
            child.allow()

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        try:
            if (child := self._child) is not None:
                child.close()
        finally:
            self._places.leave()

    def _living(self) -> ChildProcess:
        if (child := self._child) is not None:
            if child.ended is None:
                return child
            # It ended between two turns.
            raise self._lost(child, child.ended)
        self._refuse_cancelled()
        if pause := self._damper.pause(self._clock()):
            raise EngineUnavailable(
                f"the process of the job {self._last_end}, as {self._damper.failures} times in a row; "
                f"another one is started in {pause:.0f} s"
            )
        return self._started()

    def _started(self) -> ChildProcess:
        try:
            child = ChildProcess(self._options, self._order.message(), self._wake, hear=self._hear)
        except OSError as error:
            reason = error.strerror or str(error)
            raise EngineUnavailable(f"a process for the job cannot be started: {reason}") from error
        self._log.info("runs in process %d", child.pid)
        self._child = child
        # It has told no partitions yet, and those of the one before are not as they were.
        self.progress = replace(self.progress, partitions=())
        if self._is_cancelled:
            # It came between the question and the start, and found no process.
            child.cancel()
        return child

    def _hear(self, message: Message) -> None:
        """What the job in the process tells of itself, in its order. Harms nobody: who watches the process
        would end it for an error."""
        try:
            self._pass_on(message)
        except Exception:  # an observer's edge
            self._log.exception("what the process of the job told was not understood")

    def _pass_on(self, message: Message) -> None:
        if message["said"] == "event":
            self._observer.event(self._order.name, fact(Event, message["event"]))
            return
        record: BatchRecord = fact(BatchRecord, message["record"])
        self._under_way = None if record.is_over else record
        self._observer.batch(self._order.name, record)

    def _lost(self, child: ChildProcess, how: str) -> Exception:
        self._child = None
        child.close()
        under_way, self._under_way = self._under_way, None
        if under_way is not None:
            outcome = Outcome.CANCELLED if self._is_cancelled else Outcome.UNAVAILABLE
            note = f"the process of the job {how}; if it had committed, the next one finds it"
            self._observer.batch(self._order.name, replace(under_way, outcome=outcome, note=note))
        self._last_end = how
        self._damper.ended(child.started_at, self._clock())
        if self._is_cancelled:
            return Cancelled(f"the process of the job {how}")
        return EngineUnavailable(f"the process of the job {how}; another one is started")

    def _refuse_cancelled(self) -> None:
        if self._is_cancelled:
            raise Cancelled("the batch was given up")
