"""The rows of a connector that runs on this worker, from its facts and its measures.

A connector is one job: all its tasks have its state. What is counted for the whole job stands on task 0, and
the other tasks have 0, so that sums over tasks are right; ratios, times and sizes stand on every task.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from icestream.api.status import State
from icestream.metrics.dialects import attributes as table
from icestream.metrics.dialects.attributes import Group, Row
from icestream.metrics.dialects.facts import ConnectorFacts
from icestream.metrics.dialects.job_measures import JobMeasures
from icestream.metrics.dialects.windows import Window

_COUNTED_STATES = (State.RUNNING, State.PAUSED, State.FAILED, State.UNASSIGNED, State.RESTARTING)


def job_rows(
    facts: ConnectorFacts, measures: JobMeasures, now_ms: int, *, shows_partitions: bool = False
) -> Iterator[Row]:
    yield from _connector(facts)
    if not facts.tasks:
        return
    yield from _of(table.WORKER_CONNECTOR, (facts.name,), _states(facts))
    shared = _on_every_task(measures, now_ms)
    texts = _texts(facts)
    errors = _errors(facts, measures)
    kind, counts, times = _of_kind(facts, measures, now_ms)
    for number in range(facts.tasks):
        tags = (facts.name, str(number))
        yield from _of(table.TASK, tags, shared)
        yield from _of(table.TASK, tags, texts)
        yield from _of(table.TASK_ERROR, tags, _on_the_first(errors, number))
        if kind is not None:
            yield from _of(kind, tags, _on_the_first(counts, number))
            yield from _of(kind, tags, times)
        if kind is table.SINK_TASK:
            share = _share(len(facts.lags), facts.tasks, number)
            yield Row(table.SINK_TASK, tags, "partition-count", share)
        yield from _used(tags, facts)
    yield from _clients(facts, measures, now_ms, shows_partitions=shows_partitions)


def _of(group: Group, tags: tuple[str, ...], values: Mapping[str, float | str]) -> Iterator[Row]:
    return (Row(group, tags, attribute, value) for attribute, value in values.items())


def _on_the_first(counts: Mapping[str, float | str], number: int) -> Mapping[str, float | str]:
    return counts if number == 0 else dict.fromkeys(counts, 0.0)


def _share(total: int, parts: int, number: int) -> int:
    """How much of the total the part with this number has, as evenly as it goes."""
    return total // parts + (1 if number < total % parts else 0)


def _connector(facts: ConnectorFacts) -> Iterator[Row]:
    return _of(
        table.CONNECTOR,
        (facts.name,),
        {
            "status": facts.state.lower(),
            "connector-type": facts.kind,
            "connector-class": facts.connector.name,
            "connector-version": facts.connector.version,
        },
    )


def _states(facts: ConnectorFacts) -> dict[str, float | str]:
    counts: dict[str, float | str] = {"connector-total-task-count": facts.tasks}
    for state in _COUNTED_STATES:
        counts[f"connector-{state.lower()}-task-count"] = facts.tasks if state is facts.state else 0
    counts["connector-destroyed-task-count"] = 0
    return counts


def _texts(facts: ConnectorFacts) -> dict[str, float | str]:
    texts: dict[str, float | str] = {
        # A task has no such state: it ends.
        "status": State.UNASSIGNED.lower() if facts.state is State.STOPPED else facts.state.lower(),
        "connector-class": facts.connector.name,
        "connector-type": facts.kind,
        "connector-version": facts.connector.version,
        "task-class": facts.task.name,
        "task-version": facts.task.version,
    }
    for role, used in facts.converters.items():
        texts[f"{role}-converter-class"] = used.name
        texts[f"{role}-converter-version"] = used.version
    return texts


def _used(tags: tuple[str, ...], facts: ConnectorFacts) -> Iterator[Row]:
    for alias, used in facts.transforms.items():
        yield Row(table.TRANSFORM, (*tags, alias), "transform-class", used.name)
        yield Row(table.TRANSFORM, (*tags, alias), "transform-version", used.version)
    for alias, used in facts.predicates.items():
        yield Row(table.PREDICATE, (*tags, alias), "predicate-class", used.name)
        yield Row(table.PREDICATE, (*tags, alias), "predicate-version", used.version)


def _on_every_task(measures: JobMeasures, now_ms: int) -> dict[str, float | str]:
    return {
        "running-ratio": measures.states.share(State.RUNNING, now_ms),
        "pause-ratio": measures.states.share(State.PAUSED, now_ms),
        "batch-size-max": measures.batch_sizes.largest(now_ms),
        "batch-size-avg": measures.batch_sizes.average(now_ms),
        "offset-commit-max-time-ms": measures.commit_ms.largest(now_ms),
        "offset-commit-avg-time-ms": measures.commit_ms.average(now_ms),
        "offset-commit-success-percentage": measures.commit_share.success(now_ms),
        "offset-commit-failure-percentage": measures.commit_share.failure(now_ms),
    }


def _errors(facts: ConnectorFacts, measures: JobMeasures) -> dict[str, float | str]:
    totals = measures.totals
    return {
        "total-record-failures": totals.rejected,
        "total-record-errors": totals.rejected,
        "total-records-skipped": totals.rejected if facts.tolerates_all else 0,
        "total-retries": totals.retries,
        "total-errors-logged": totals.rejected if facts.logs_errors else 0,
        "deadletterqueue-produce-requests": totals.letters + totals.lost_letters,
        "deadletterqueue-produce-failures": totals.lost_letters,
        "last-error-timestamp": totals.last_error_ms,
    }


def _of_kind(
    facts: ConnectorFacts, measures: JobMeasures, now_ms: int
) -> tuple[Group | None, dict[str, float | str], dict[str, float | str]]:
    """The group of sinks or of sources; what is on the first task; what is on each."""
    if facts.kind == "sink":
        counts, times = _sink(measures, now_ms)
        return table.SINK_TASK, counts, times
    if facts.kind == "source":
        counts, times = _source(measures, now_ms)
        if facts.is_exactly_once_source:
            times |= {
                "transaction-size-min": measures.batch_sizes.smallest(now_ms),
                "transaction-size-max": measures.batch_sizes.largest(now_ms),
                "transaction-size-avg": measures.batch_sizes.average(now_ms),
            }
        return table.SOURCE_TASK, counts, times
    return None, {}, {}


def _sink(measures: JobMeasures, now_ms: int) -> tuple[dict[str, float | str], dict[str, float | str]]:
    totals = measures.totals
    counts: dict[str, float | str] = {
        "sink-record-read-rate": measures.read.rate(now_ms),
        "sink-record-read-total": totals.read,
        "sink-record-send-rate": measures.sent.rate(now_ms),
        "sink-record-send-total": totals.sent,
        **_active("sink", measures, now_ms),
        "offset-commit-completion-rate": measures.completed.rate(now_ms),
        "offset-commit-completion-total": totals.commits,
        "offset-commit-skip-rate": measures.refused.rate(now_ms),
        "offset-commit-skip-total": totals.refused,
        "offset-commit-seq-no": totals.attempts,
    }
    return counts, _times("put", measures.stage_ms, now_ms)


def _source(measures: JobMeasures, now_ms: int) -> tuple[dict[str, float | str], dict[str, float | str]]:
    totals = measures.totals
    counts: dict[str, float | str] = {
        "source-record-poll-rate": measures.read.rate(now_ms),
        "source-record-poll-total": totals.read,
        "source-record-write-rate": measures.written.rate(now_ms),
        "source-record-write-total": totals.written,
        **_active("source", measures, now_ms),
    }
    return counts, _times("poll", measures.read_ms, now_ms)


def _active(kind: str, measures: JobMeasures, now_ms: int) -> dict[str, float]:
    stem = f"{kind}-record-active-count"
    return {
        stem: measures.active_count,
        f"{stem}-max": measures.active.largest(now_ms),
        f"{stem}-avg": measures.active.average(now_ms),
    }


def _times(what: str, window: Window, now_ms: int) -> dict[str, float | str]:
    return {
        f"{what}-batch-max-time-ms": window.largest(now_ms),
        f"{what}-batch-avg-time-ms": window.average(now_ms),
    }


def _clients(
    facts: ConnectorFacts, measures: JobMeasures, now_ms: int, *, shows_partitions: bool
) -> Iterator[Row]:
    """The job's clients, as if they were those of Connect's task 0. Bytes are those of keys and values."""
    is_up = float(facts.state is State.RUNNING)
    totals = measures.totals
    producer = (f"connector-producer-{facts.name}-0",)
    if facts.kind == "source":
        sent = {
            "connection-count": is_up,
            "outgoing-byte-total": float(totals.bytes),
            "incoming-byte-total": 0.0,
        }
        yield from _of(table.PRODUCER, producer, sent)
    if facts.kind != "sink":
        return
    consumer = (f"connector-consumer-{facts.name}-0",)
    received = {
        "connection-count": is_up,
        "incoming-byte-total": float(totals.bytes),
        "outgoing-byte-total": 0.0,
    }
    yield from _of(table.CONSUMER, consumer, received)
    yield from _of(
        table.FETCH,
        consumer,
        {
            "records-lag-max": max((float(lag.lag) for lag in facts.lags), default=float("nan")),
            "records-consumed-rate": measures.read.rate(now_ms),
            "records-consumed-total": totals.read,
            "bytes-consumed-rate": measures.bytes.rate(now_ms),
            "bytes-consumed-total": totals.bytes,
        },
    )
    if shows_partitions:
        for lag in facts.lags:
            tags = (*consumer, lag.topic, str(lag.partition))
            yield Row(table.FETCH_PARTITION, tags, "records-lag", lag.lag)
