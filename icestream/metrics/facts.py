"""What there is to tell at one moment. Every part of an answer to a scrape is made from the same facts, so
that they agree with each other.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from icestream.api.engine import EngineNumbers
from icestream.api.status import JobStatus
from icestream.cluster.group.membership import GroupView
from icestream.cluster.service import ConnectorService
from icestream.metrics.counters import NOTHING, Counters, Counts


@dataclass(frozen=True)
class JobFacts:
    """A connector that this worker runs, in whatever state."""

    name: str
    status: JobStatus
    counts: Counts = field(default_factory=Counts)
    type: str = "unknown"
    """`sink` or `source`."""
    class_name: str = ""
    """`connector.class`."""
    version: str = "unknown"
    tasks: int = 0


@dataclass(frozen=True)
class WorkerFacts:
    at: float
    """Epoch seconds."""
    jobs: tuple[JobFacts, ...] = ()
    """Of this worker alone: another worker tells of the others."""
    group: GroupView | None = None
    """None of a job that runs on its own."""
    is_healthy: bool | None = None
    engine: EngineNumbers | None = None


Facts = Callable[[], WorkerFacts]


def facts_of(
    service: ConnectorService,
    counters: Counters,
    engine: Callable[[], EngineNumbers | None] = lambda: None,
    wall: Callable[[], float] = time.time,
) -> Facts:
    """Those of a worker, whenever they are asked for."""

    def facts() -> WorkerFacts:
        jobs = service.local_jobs()
        # A connector that leaves has its series no longer than it is ours, though its job still ends here.
        counters.retain({job.name for job in jobs} | service.connectors.running())
        counted = counters.snapshot()
        return WorkerFacts(
            at=wall(),
            jobs=tuple(
                JobFacts(
                    job.name,
                    job.status,
                    counted.get(job.name, NOTHING),
                    job.connector.type,
                    job.connector.config.get("connector.class", ""),
                    job.connector.plugin.version if job.connector.plugin else "unknown",
                    len(job.connector.task_ids),
                )
                for job in jobs
            ),
            group=service.group(),
            is_healthy=service.health().status == "healthy",
            engine=engine(),
        )

    return facts


def facts_of_job(
    name: str,
    status: Callable[[], JobStatus],
    counters: Counters,
    wall: Callable[[], float] = time.time,
) -> Facts:
    """Those of a job that runs on its own."""

    def facts() -> WorkerFacts:
        return WorkerFacts(wall(), (JobFacts(name, status(), counters.snapshot().get(name, NOTHING)),))

    return facts
