"""The table of Kafka Connect's JMX metrics: groups, their tags, their attributes. The two dialects give names
to it (`strimzi.py`, `confluent.py`); `job_rows.py` and `worker_rows.py` give it values.

It is that of Kafka Connect 4.3.1, which a test compares with the MBeans of a real one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple


@dataclass(frozen=True, eq=False)
class Group:
    """An MBean type. Numbers and texts are told apart: a text becomes a label. Each exists once."""

    name: str
    tags: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    domain: str = "kafka.connect"

    @property
    def attributes(self) -> tuple[str, ...]:
        return (*self.numbers, *self.texts)


class Row(NamedTuple):
    """One attribute of one MBean."""

    group: Group
    tags: tuple[str, ...]
    """The values of the group's tags."""
    attribute: str
    value: float | str


def _each(stem: str, *endings: str) -> tuple[str, ...]:
    """`stem` with `*` replaced by each ending."""
    return tuple(stem.replace("*", ending) for ending in endings)


_STATES: Final = ("running", "paused", "failed", "unassigned", "destroyed", "restarting")

WORKER: Final = Group(
    "connect-worker-metrics",
    numbers=(
        "connector-count",
        "task-count",
        *_each("connector-startup-*", "attempts-total", "success-total", "failure-total"),
        *_each("task-startup-*", "attempts-total", "success-total", "failure-total"),
        *_each("connector-startup-*-percentage", "success", "failure"),
        *_each("task-startup-*-percentage", "success", "failure"),
    ),
)
WORKER_CONNECTOR: Final = Group(
    "connect-worker-metrics", ("connector",), _each("connector-*-task-count", "total", *_STATES)
)
REBALANCE: Final = Group(
    "connect-worker-rebalance-metrics",
    numbers=(
        "epoch",
        "completed-rebalances-total",
        "rebalancing",
        *_each("rebalance-*-time-ms", "max", "avg"),
        "time-since-last-rebalance-ms",
    ),
    texts=("leader-name", "connect-protocol"),
)
CONNECTOR: Final = Group(
    "connector-metrics",
    ("connector",),
    texts=("status", "connector-type", "connector-class", "connector-version"),
)
TASK: Final = Group(
    "connector-task-metrics",
    ("connector", "task"),
    numbers=(
        "running-ratio",
        "pause-ratio",
        *_each("batch-size-*", "max", "avg"),
        *_each("offset-commit-*-time-ms", "max", "avg"),
        *_each("offset-commit-*-percentage", "success", "failure"),
    ),
    texts=(
        "status",
        *_each("connector-*", "class", "type", "version"),
        *_each("task-*", "class", "version"),
        *_each("key-converter-*", "class", "version"),
        *_each("value-converter-*", "class", "version"),
        *_each("header-converter-*", "class", "version"),
    ),
)
TRANSFORM: Final = Group(
    "connector-transform-metrics",
    ("connector", "task", "transform"),
    texts=_each("transform-*", "class", "version"),
)
PREDICATE: Final = Group(
    "connector-predicate-metrics",
    ("connector", "task", "predicate"),
    texts=_each("predicate-*", "class", "version"),
)
TRANSACTION_SIZES: Final = _each("transaction-size-*", "min", "max", "avg")
"""Only of sources that are exactly-once."""
SOURCE_TASK: Final = Group(
    "source-task-metrics",
    ("connector", "task"),
    numbers=(
        *_each("source-record-poll-*", "rate", "total"),
        *_each("source-record-write-*", "rate", "total"),
        *_each("poll-batch-*-time-ms", "max", "avg"),
        *_each("source-record-active-count*", "", "-max", "-avg"),
        *TRANSACTION_SIZES,
    ),
)
SINK_TASK: Final = Group(
    "sink-task-metrics",
    ("connector", "task"),
    numbers=(
        *_each("sink-record-read-*", "rate", "total"),
        *_each("sink-record-send-*", "rate", "total"),
        *_each("sink-record-active-count*", "", "-max", "-avg"),
        "partition-count",
        "offset-commit-seq-no",
        *_each("offset-commit-completion-*", "rate", "total"),
        *_each("offset-commit-skip-*", "rate", "total"),
        *_each("put-batch-*-time-ms", "max", "avg"),
    ),
)
TASK_ERROR: Final = Group(
    "task-error-metrics",
    ("connector", "task"),
    numbers=(
        *_each("total-*", "record-failures", "record-errors", "records-skipped", "retries", "errors-logged"),
        *_each("deadletterqueue-produce-*", "requests", "failures"),
        "last-error-timestamp",
    ),
)
COORDINATOR: Final = Group(
    "connect-coordinator-metrics",
    ("client-id",),
    numbers=(
        *_each("assigned-*", "connectors", "tasks"),
        *_each("heartbeat-*", "rate", "total", "response-time-max"),
        *_each("join-*", "rate", "total", "time-avg", "time-max"),
        *_each("sync-*", "rate", "total", "time-avg", "time-max"),
        *_each("rebalance-latency-*", "avg", "max", "total"),
        *_each("rebalance-*", "total", "rate-per-hour"),
        *_each("failed-rebalance-*", "total", "rate-per-hour"),
        *_each("last-*-seconds-ago", "heartbeat", "rebalance"),
    ),
)
NETWORK: Final = Group(
    "connect-metrics",
    ("client-id",),
    numbers=(
        "connection-count",
        *_each("connection-creation-*", "rate", "total"),
        *_each("connection-close-*", "rate", "total"),
        *_each("incoming-byte-*", "rate", "total"),
        *_each("outgoing-byte-*", "rate", "total"),
        *_each("network-io-*", "rate", "total"),
        *_each("request-*", "rate", "total"),
        *_each("response-*", "rate", "total"),
        *_each("request-size-*", "avg", "max"),
        *_each("io-*", "ratio", "wait-ratio"),
        *_each("successful-authentication-*", "rate", "total"),
        *_each("failed-authentication-*", "rate", "total"),
    ),
)
APP_INFO: Final = Group("app-info", ("client-id",), ("start-time-ms",), ("version", "commit-id"))
CONSUMER: Final = Group(
    "consumer-metrics",
    ("client-id",),
    ("connection-count", *_each("*-byte-total", "incoming", "outgoing")),
    domain="kafka.consumer",
)
PRODUCER: Final = Group(
    "producer-metrics",
    ("client-id",),
    ("connection-count", *_each("*-byte-total", "incoming", "outgoing")),
    domain="kafka.producer",
)
ADMIN: Final = Group(
    "admin-client-metrics",
    ("client-id",),
    ("connection-count", *_each("*-byte-total", "incoming", "outgoing")),
    domain="kafka.admin.client",
)
FETCH: Final = Group(
    "consumer-fetch-manager-metrics",
    ("client-id",),
    (
        "records-lag-max",
        *_each("records-consumed-*", "rate", "total"),
        *_each("bytes-consumed-*", "rate", "total"),
    ),
    domain="kafka.consumer",
)
FETCH_PARTITION: Final = Group(
    "consumer-fetch-manager-metrics",
    ("client-id", "topic", "partition"),
    ("records-lag",),
    domain="kafka.consumer",
)

GROUPS: Final = (
    *(WORKER, WORKER_CONNECTOR, REBALANCE, CONNECTOR, TASK, TRANSFORM, PREDICATE),
    *(SOURCE_TASK, SINK_TASK, TASK_ERROR, COORDINATOR, NETWORK, APP_INFO),
    *(CONSUMER, FETCH, FETCH_PARTITION, PRODUCER, ADMIN),
)
