"""What Spark tells of itself, for metrics: tasks, executors, memory and garbage collections of its JVM. The
data plane keeps an `EngineWatch`.

Tasks are asked for by PySpark's own status tracker. The rest has no way through it: the beans of the JVM are
reached by its gateway. This is the control path; a batch never comes here.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Final

from pyspark import SparkContext
from pyspark.sql import SparkSession

from icestream.api.engine import EngineNumbers, GarbageCollector, JvmNumbers
from icestream.deadlines import Overdue, started

_FRESH_SECONDS: Final = 5.0
"""Nobody charts these faster, and each look is some thirty questions to the JVM."""
_ANSWER_SECONDS: Final = 2.0


class EngineWatch:
    """Asks at most once at a time: a JVM that does not answer holds up one scrape, for a moment."""

    def __init__(self, ask: Callable[[], EngineNumbers], clock: Callable[[], float] = time.monotonic) -> None:
        self._ask = ask
        self._clock = clock
        self._lock = threading.Lock()
        self._pending: Callable[[float], EngineNumbers] | None = None
        self._found: EngineNumbers | None = None
        self._found_at = 0.0

    def numbers(self) -> EngineNumbers | None:
        """None: it does not answer."""
        with self._lock:
            if self._found is not None and self._clock() - self._found_at < _FRESH_SECONDS:
                return self._found
            seconds = _ANSWER_SECONDS if self._pending is None else 0.0
            self._pending = self._pending or started(self._ask, "spark-numbers")
            self._found = None
            try:
                self._found, self._found_at = self._pending(seconds), self._clock()
            except Overdue:
                # The thread still waits; the next scrape looks whether it has heard something.
                return None
            except Exception:  # whatever the client raises: a JVM that has just ended
                pass
            self._pending = None
            return self._found


def numbers_of(session: SparkSession) -> EngineNumbers:
    """May wait for as long as the JVM lets it."""
    context = SparkContext._active_spark_context
    if context is None:
        # A server elsewhere tells its numbers itself.
        return EngineNumbers(is_up=True)
    return EngineNumbers(True, _tasks(context), _executors(context), _jvm(context))


def _tasks(context: SparkContext) -> dict[str, int]:
    tracker = context.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    known = [stage for stage in stages if stage is not None]
    active = sum(stage.numActiveTasks for stage in known)
    ended = sum(stage.numCompletedTasks + stage.numFailedTasks for stage in known)
    return {"active": active, "queued": max(0, sum(stage.numTasks for stage in known) - active - ended)}


def _executors(context: SparkContext) -> int:
    """The driver is in the list, and does the work itself on this machine alone."""
    found = len(context._jsc.sc().statusTracker().getExecutorInfos())
    return max(1, found - 1) if found else 0


def _jvm(context: SparkContext) -> JvmNumbers:
    beans: Any = context._jvm.java.lang.management.ManagementFactory  # type: ignore[union-attr]
    memory = beans.getMemoryMXBean()
    areas = {"heap": memory.getHeapMemoryUsage(), "nonheap": memory.getNonHeapMemoryUsage()}
    most = {area: int(usage.getMax()) for area, usage in areas.items()}
    return JvmNumbers(
        used={area: int(usage.getUsed()) for area, usage in areas.items()},
        # -1 where there is no limit.
        most={area: value for area, value in most.items() if value >= 0},
        collectors={
            str(one.getName()): GarbageCollector(
                max(0, int(one.getCollectionCount())), max(0, int(one.getCollectionTime())) / 1000
            )
            for one in beans.getGarbageCollectorMXBeans()
        },
        threads=int(beans.getThreadMXBean().getThreadCount()),
    )
