"""What the rows of the table are made of, besides what is measured: plain facts of a worker and of the
connectors that run on it. `collecting.py` asks the worker for them at each scrape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from icestream.api.history import PartitionLag
from icestream.api.status import State


@dataclass(frozen=True)
class UsedClass:
    """A class of a connector's config, by its Java name."""

    name: str
    version: str


@dataclass(frozen=True)
class ConnectorFacts:
    """A connector that this worker runs."""

    name: str
    kind: str
    """source, sink or unknown."""
    connector: UsedClass
    task: UsedClass
    state: State
    tasks: int
    converters: Mapping[str, UsedClass] = field(default_factory=dict)
    """By key, value and header."""
    transforms: Mapping[str, UsedClass] = field(default_factory=dict)
    """By alias."""
    predicates: Mapping[str, UsedClass] = field(default_factory=dict)
    lags: tuple[PartitionLag, ...] = ()
    tolerates_all: bool = False
    logs_errors: bool = False
    is_exactly_once_source: bool = False


@dataclass(frozen=True)
class RebalanceFacts:
    """The group of a distributed worker."""

    leader_url: str
    protocol: str
    epoch: int
    is_rebalancing: bool
    coordinator: Mapping[str, float] = field(default_factory=dict)
    """Attributes of connect-coordinator-metrics that the group's client counts itself."""
    network: Mapping[str, float] = field(default_factory=dict)
    """Attributes of connect-metrics."""


@dataclass(frozen=True)
class WorkerFacts:
    client_id: str
    version: str
    commit_id: str
    started_ms: int
    group: RebalanceFacts | None = None
    """None: a standalone worker, which Kafka Connect gives no group metrics either."""
