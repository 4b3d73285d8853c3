"""The rows of the worker itself: how many connectors and tasks it runs, its group, its client."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from icestream.metrics.dialects import attributes as table
from icestream.metrics.dialects.attributes import Group, Row
from icestream.metrics.dialects.facts import ConnectorFacts, RebalanceFacts, WorkerFacts
from icestream.metrics.dialects.worker_measures import Rebalances, Startups, WorkerMeasures


def worker_rows(
    worker: WorkerFacts, connectors: Sequence[ConnectorFacts], measures: WorkerMeasures, now_ms: int
) -> Iterator[Row]:
    tasks = sum(one.tasks for one in connectors)
    yield Row(table.WORKER, (), "connector-count", len(connectors))
    yield Row(table.WORKER, (), "task-count", tasks)
    yield from _startups("connector", measures.connectors, now_ms)
    yield from _startups("task", measures.tasks, now_ms)
    client = (worker.client_id,)
    yield Row(table.APP_INFO, client, "start-time-ms", worker.started_ms)
    yield Row(table.APP_INFO, client, "version", worker.version)
    yield Row(table.APP_INFO, client, "commit-id", worker.commit_id)
    yield Row(table.ADMIN, client, "connection-count", 1)
    if worker.group is not None:
        yield Row(table.COORDINATOR, client, "assigned-connectors", len(connectors))
        yield Row(table.COORDINATOR, client, "assigned-tasks", tasks)
        yield from _group(client, worker.group, measures.rebalances, now_ms)


def _startups(what: str, startups: Startups, now_ms: int) -> Iterator[Row]:
    for attribute, value in (
        ("attempts-total", startups.attempts),
        ("success-total", startups.successes),
        ("failure-total", startups.failures),
        ("success-percentage", startups.share.success(now_ms)),
        ("failure-percentage", startups.share.failure(now_ms)),
    ):
        yield Row(table.WORKER, (), f"{what}-startup-{attribute}", value)


def _group(
    client: tuple[str, ...], group: RebalanceFacts, rebalances: Rebalances, now_ms: int
) -> Iterator[Row]:
    last = rebalances.last_ms
    times = rebalances.times_ms
    # Before the first one it was infinitely long ago, as Kafka says.
    ago_ms = math.inf if last is None else float(max(0, now_ms - last))
    for attribute, value in (
        ("leader-name", group.leader_url),
        ("connect-protocol", group.protocol),
        ("epoch", group.epoch),
        ("completed-rebalances-total", rebalances.completed),
        ("rebalancing", float(group.is_rebalancing)),
        ("rebalance-max-time-ms", times.largest(now_ms)),
        ("rebalance-avg-time-ms", times.average(now_ms)),
        ("time-since-last-rebalance-ms", ago_ms),
    ):
        yield Row(table.REBALANCE, (), attribute, value)
    counted = {
        **group.coordinator,
        "rebalance-total": rebalances.completed,
        "rebalance-latency-avg": times.average(now_ms),
        "rebalance-latency-max": times.largest(now_ms),
        "last-rebalance-seconds-ago": -1.0 if last is None else ago_ms / 1000,
    }
    yield from _known(table.COORDINATOR, client, counted)
    yield from _known(table.NETWORK, client, group.network)


def _known(group: Group, client: tuple[str, ...], values: Mapping[str, float]) -> Iterator[Row]:
    """Of what a client counts, what Kafka Connect has too."""
    for attribute in group.numbers:
        if attribute in values:
            yield Row(group, client, attribute, values[attribute])
