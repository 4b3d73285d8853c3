"""What /metrics of the operator tells. The process makes one, the dispatcher and the reconcilers tell it."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from icestream.operator.keys import Key

_SECONDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


class OperatorNumbers:
    """Names are in docs/deploy/operator.md."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._turns = Counter(
            "icestream_operator_reconciliations",
            "Reconciliations that came to their end.",
            ["kind", "result"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "icestream_operator_reconciliation_seconds",
            "How long a reconciliation took.",
            ["kind"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._writes = Counter(
            "icestream_operator_writes",
            "Objects that were changed or deleted.",
            ["kind", "verb"],
            registry=self._registry,
        )

    def turned(self, key: Key, seconds: float, result: str) -> None:
        self._turns.labels(key.kind, result).inc()
        self._seconds.labels(key.kind).observe(seconds)

    def wrote(self, kind: str, verb: str) -> None:
        self._writes.labels(kind, verb).inc()

    def gauge(self, name: str, text: str, value: Callable[[], float]) -> None:
        Gauge(name, text, registry=self._registry).set_function(value)

    def exposition(self) -> bytes:
        return generate_latest(self._registry)
