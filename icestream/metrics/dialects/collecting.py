"""Brings Kafka Connect's metrics to the scrape: hears of batches, startups and rebalances, asks for the
facts, and says all of it in the dialects that the worker's config names. An `Observer`, and a part of the
registry's collector.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from icestream.api.history import BatchRecord, Event
from icestream.metrics.dialects.confluent import confluent_shapes
from icestream.metrics.dialects.facts import ConnectorFacts, WorkerFacts
from icestream.metrics.dialects.families import Shapes, families
from icestream.metrics.dialects.job_measures import JobMeasures
from icestream.metrics.dialects.job_rows import job_rows
from icestream.metrics.dialects.strimzi import strimzi_shapes
from icestream.metrics.dialects.windows import WindowSize
from icestream.metrics.dialects.worker_measures import WorkerMeasures
from icestream.metrics.dialects.worker_rows import worker_rows

if TYPE_CHECKING:
    from prometheus_client import Metric

    from icestream.metrics.dialects.attributes import Row

_LOG = logging.getLogger(__name__)
_MANY_TASKS: Final = 200
_SERIES_OF_TASK: Final = 80
"""Of a sink, in both dialects; a test counts them."""
DIALECTS: Final[Mapping[str, Shapes]] = {"strimzi": strimzi_shapes, "confluent": confluent_shapes}


class Facts(Protocol):
    """`worker_facts.FactsOfWorker` is the real one."""

    def worker(self) -> WorkerFacts: ...

    def connectors(self) -> Sequence[ConnectorFacts]: ...


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


class ConnectMetrics:
    """Told by many threads, collected by one at a time."""

    def __init__(
        self,
        facts: Facts,
        dialects: Sequence[str] = tuple(DIALECTS),
        size: WindowSize | None = None,
        *,
        shows_partitions: bool = False,
        clock_ms: Callable[[], int] = _wall_ms,
    ) -> None:
        self._facts = facts
        self._dialects = [DIALECTS[name] for name in dialects]
        self._size = size or WindowSize()
        self._shows_partitions = shows_partitions
        self._clock_ms = clock_ms
        # Guards all that follows.
        self._lock = threading.Lock()
        self._jobs: dict[str, JobMeasures] = {}
        self._worker = WorkerMeasures(self._size)
        self._has_warned = False

    # What the worker tells

    def batch(self, connector: str, record: BatchRecord) -> None:
        with self._lock:
            self._measures(connector).batch(record, self._clock_ms())

    def event(self, connector: str, event: Event) -> None:
        pass

    def forget(self, connector: str) -> None:
        """Its series are gone already: they are there only while the facts name it."""
        with self._lock:
            self._jobs.pop(connector, None)

    def started(self, tasks: int, *, is_success: bool) -> None:
        """A connector started with so many tasks, or failed to."""
        with self._lock:
            now = self._clock_ms()
            self._worker.connectors.record(1, is_success=is_success, now_ms=now)
            self._worker.tasks.record(tasks, is_success=is_success, now_ms=now)

    def rebalanced(self, seconds: float) -> None:
        with self._lock:
            self._worker.rebalances.record(seconds, self._clock_ms())

    # The scrape

    def collect(self) -> Iterator[Metric]:
        if not self._dialects:
            return
        rows = self.rows()
        for shapes in self._dialects:
            yield from families(rows, shapes)

    def rows(self) -> list[Row]:
        """The table as it is now."""
        worker, connectors = self._facts.worker(), self._facts.connectors()
        self._warn_of_many(sum(one.tasks for one in connectors))
        with self._lock:
            now = self._clock_ms()
            # What came in late, of jobs that have left.
            for gone in self._jobs.keys() - {one.name for one in connectors}:
                del self._jobs[gone]
            rows = list(worker_rows(worker, connectors, self._worker, now))
            for facts in connectors:
                measures = self._measures(facts.name)
                measures.states.enter(facts.state, now)
                rows += job_rows(facts, measures, now, shows_partitions=self._shows_partitions)
            return rows

    def _measures(self, connector: str) -> JobMeasures:
        measures = self._jobs.get(connector)
        if measures is None:
            measures = self._jobs[connector] = JobMeasures(self._size)
        return measures

    def _warn_of_many(self, tasks: int) -> None:
        if tasks > _MANY_TASKS and len(self._dialects) > 1 and not self._has_warned:
            self._has_warned = True
            _LOG.warning(
                "%d tasks have about %d series in two dialects; name the one that is needed in "
                "icestream.metrics.dialects",
                tasks,
                tasks * _SERIES_OF_TASK,
            )
