"""A worker with two connectors, as facts, for tests of the dialects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from icestream.api.history import PartitionLag
from icestream.api.status import State
from icestream.metrics.dialects.facts import ConnectorFacts, RebalanceFacts, UsedClass, WorkerFacts

T0 = 1_700_000_000_000
_JSON = UsedClass("org.apache.kafka.connect.json.JsonConverter", "4.3.1")

GROUP = RebalanceFacts(
    "http://leader:8083/",
    "icestream-v1",
    7,
    is_rebalancing=False,
    coordinator={"heartbeat-rate": 0.3, "nobody-knows-it": 1.0},
    network={"connection-count": 2.0, "request-rate": 1.5},
)
WORKER = WorkerFacts("connect-here:8083", "4.3.1-icestream", "abc", T0 - 60_000, GROUP)


def connector(name: str = "orders", kind: str = "sink", tasks: int = 2, **more: Any) -> ConnectorFacts:
    given: dict[str, Any] = {
        "state": State.RUNNING,
        "converters": dict.fromkeys(("key", "value", "header"), _JSON),
        "lags": tuple(PartitionLag(name, number, 10, 10 + number) for number in range(3)),
        **more,
    }
    return ConnectorFacts(
        name,
        kind,
        UsedClass(f"org.example.{kind.title()}Connector", "2.0"),
        UsedClass(f"org.example.{kind.title()}Task", "2.0"),
        tasks=tasks,
        **given,
    )


@dataclass
class FixedFacts:
    """What a worker would say."""

    running: Sequence[ConnectorFacts] = field(default_factory=lambda: [connector()])
    identity: WorkerFacts = WORKER

    def worker(self) -> WorkerFacts:
        return self.identity

    def connectors(self) -> Sequence[ConnectorFacts]:
        return self.running
