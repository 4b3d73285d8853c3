"""What a scrape hears of the connectors of this worker."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from prometheus_client.metrics_core import Metric as Family

from icestream.api.history import MOST_PARTITIONS
from icestream.api.status import State
from icestream.metrics import catalog
from icestream.metrics.catalog import MOST_TOPICS, OTHER, Metric
from icestream.metrics.facts import JobFacts, WorkerFacts
from icestream.metrics.families import add, add_histogram, family_of
from icestream.metrics.histograms import Exemplar, Histogram

Number = Callable[[JobFacts, WorkerFacts], float | None]
"""None: it is not known, and left out."""
ByValue = Callable[[JobFacts], Mapping[str, float]]


def job_families(facts: WorkerFacts) -> Iterator[Family]:
    for metric, number in NUMBERS.items():
        family = family_of(metric)
        for job in facts.jobs:
            if (value := number(job, facts)) is not None:
                add(family, metric, {"connector": job.name}, value)
        yield from _not_empty(family)
    for metric, by_value in BY_VALUE.items():
        family = family_of(metric)
        for job in facts.jobs:
            for labels, value, exemplar in _by_value(metric, job, by_value(job)):
                add(family, metric, labels, value, exemplar)
        yield from _not_empty(family)
    for metric, by_stage in HISTOGRAMS.items():
        family = family_of(metric)
        for job in facts.jobs:
            for stage, histogram in by_stage(job).items():
                # Of what has never happened there would be a dozen series that say nothing.
                if histogram.count:
                    labels = {"connector": job.name} | ({"stage": stage} if stage else {})
                    add_histogram(family, metric, labels, histogram)
        yield from _not_empty(family)
    yield from _circuits(facts.jobs)


def _not_empty(family: Family) -> Iterator[Family]:
    if family.samples:
        yield family


def _by_value(
    metric: Metric, job: JobFacts, found: Mapping[str, float]
) -> Iterator[tuple[dict[str, str], float, Exemplar | None]]:
    """Every value that the catalog lists is there from the start."""
    exemplars = job.counts.rejected_exemplars if metric is catalog.REJECTED else {}
    for value in dict.fromkeys([*metric.values, *found]):
        labels = {"connector": job.name, metric.labels[-1]: value}
        yield labels, found.get(value, 0.0), exemplars.get(value)


# One number of each connector


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


def _lag_seconds(job: JobFacts, facts: WorkerFacts) -> float | None:
    progress = job.status.progress
    if progress.lag == 0:
        return None if _may_have_more(job) else 0.0
    oldest = _seconds(progress.oldest_unread_ms)
    return None if progress.lag is None or oldest is None else max(0.0, facts.at - oldest)


def _may_have_more(job: JobFacts) -> bool:
    """Nobody looks for a job that does not run: that all is in the target was true when it ended. A lag was
    true, too, and is at least as large now."""
    return job.status.progress.lag == 0 and job.status.state is not State.RUNNING


def _most_lag(job: JobFacts, facts: WorkerFacts) -> float | None:
    progress = job.status.progress
    if _may_have_more(job):
        return None
    return max((one.lag for one in progress.partitions), default=progress.lag)


def _last_maintenance(job: JobFacts, facts: WorkerFacts) -> float | None:
    times = [at for run in job.status.progress.maintenance if isinstance(at := run.get("at_ms"), int)]
    return max(times) / 1000 if times else None


NUMBERS: Final[Mapping[Metric, Number]] = {
    catalog.READ: lambda job, _: job.counts.read,
    catalog.WRITTEN: lambda job, _: job.counts.written,
    catalog.BYTES_READ: lambda job, _: job.counts.bytes_read,
    catalog.DEAD_LETTERS: lambda job, _: job.counts.letters,
    catalog.REPLAYED: lambda job, _: job.counts.replayed,
    catalog.UNDER_WAY: lambda job, _: len(job.counts.under_way),
    catalog.LAST_COMMIT: lambda job, _: _seconds(job.status.progress.last_commit_ms),
    catalog.NEXT_COMMIT: lambda job, _: _seconds(job.status.progress.next_commit_in_ms),
    catalog.FILES: lambda job, _: job.counts.files,
    catalog.FILE_BYTES: lambda job, _: job.counts.file_bytes,
    catalog.LAG_MAX: _most_lag,
    catalog.LAG_SECONDS: _lag_seconds,
    catalog.VALID_THROUGH: lambda job, _: _seconds(job.status.progress.valid_through_ms),
    catalog.RESTARTS: lambda job, _: job.counts.restarts,
    catalog.FENCED: lambda job, _: job.counts.fenced,
    catalog.WAITING: lambda job, _: float(job.status.waiting is not None),
    catalog.MAINTENANCE_SECONDS: lambda job, _: job.counts.maintenance_seconds,
    catalog.MAINTENANCE_FILES: lambda job, _: job.counts.maintenance_files,
    catalog.MAINTENANCE_BYTES: lambda job, _: job.counts.maintenance_bytes,
    catalog.LAST_MAINTENANCE: _last_maintenance,
    catalog.TASKS: lambda job, _: job.tasks,
}

# Numbers by the value of one more label


def _states(job: JobFacts) -> Mapping[str, float]:
    return {state.lower(): float(job.status.state is state) for state in State}


def _lag(job: JobFacts) -> Mapping[str, float]:
    progress = job.status.progress
    if _may_have_more(job):
        return {}
    if not progress.partitions:
        # A job in a process of its own tells the sum alone.
        return {} if progress.lag is None else {"": progress.lag}
    by_topic: dict[str, float] = {}
    for one in progress.partitions:
        by_topic[one.topic] = by_topic.get(one.topic, 0.0) + one.lag
    # Of very many partitions the sum knows all, and the list those that are furthest behind.
    rest = (progress.lag or 0) - sum(by_topic.values()) if len(progress.partitions) >= MOST_PARTITIONS else 0
    shown = first_topics(by_topic)
    return {**shown, OTHER: shown.get(OTHER, 0.0) + rest} if rest > 0 else shown


def first_topics(by_topic: Mapping[str, float], most: int = MOST_TOPICS) -> dict[str, float]:
    """The largest of them by name, the others together."""
    if len(by_topic) <= most:
        return dict(by_topic)
    largest = sorted(by_topic, key=lambda topic: (-by_topic[topic], topic))
    shown = {topic: by_topic[topic] for topic in largest[:most]}
    rest = sum(by_topic[topic] for topic in largest[most:])
    return {**shown, OTHER: shown.get(OTHER, 0.0) + rest}


BY_VALUE: Final[Mapping[Metric, ByValue]] = {
    catalog.REJECTED: lambda job: job.counts.rejected,
    catalog.FILTERED: lambda job: job.counts.filtered,
    catalog.BATCHES: lambda job: job.counts.batches,
    catalog.COMMITS: lambda job: job.counts.commits,
    catalog.SCHEMA_CHANGES: lambda job: job.counts.schema_changes,
    catalog.LAG: _lag,
    catalog.RETRIES: lambda job: job.counts.retries,
    catalog.MAINTENANCE_RUNS: lambda job: job.counts.maintenance,
    catalog.STATE: _states,
}

# Histograms, by stage where they have one

HISTOGRAMS: Final[Mapping[Metric, Callable[[JobFacts], Mapping[str, Histogram]]]] = {
    catalog.BATCH_SECONDS: lambda job: {"": job.counts.batch_seconds},
    catalog.STAGE_SECONDS: lambda job: job.counts.stage_seconds,
    catalog.SPARK_JOB_SECONDS: lambda job: {"": job.counts.spark_seconds},
    catalog.COMMIT_SECONDS: lambda job: {"": job.counts.commit_seconds},
    catalog.FILE_SIZES: lambda job: {"": job.counts.file_sizes},
    catalog.END_TO_END: lambda job: {"": job.counts.end_to_end},
}

# Circuit breakers: what a job tells is a plain mapping (`Progress.circuit`)

CIRCUITS: Final = (catalog.CIRCUIT, catalog.CIRCUIT_OPENED)


def _circuits(jobs: Iterable[JobFacts]) -> Iterator[Family]:
    states, opened = family_of(catalog.CIRCUIT), family_of(catalog.CIRCUIT_OPENED)
    for job in jobs:
        circuit = job.status.progress.circuit
        if circuit is None:
            continue
        labels = {"connector": job.name, "target": str(circuit.get("destination", ""))}
        for state in catalog.CIRCUIT_STATES:
            value = float(circuit.get("state") == state)
            add(states, catalog.CIRCUIT, {**labels, "state": state}, value)
        count = circuit.get("opened")
        add(opened, catalog.CIRCUIT_OPENED, labels, float(count) if isinstance(count, int) else 0.0)
    yield from _not_empty(states)
    yield from _not_empty(opened)
