"""What Spark tells of itself, for metrics. The data plane asks it; absent while there is no Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class GarbageCollector:
    collections: int
    seconds: float


@dataclass(frozen=True)
class JvmNumbers:
    """Of the process that Spark's driver runs in. Bytes by area, `heap` or `nonheap`."""

    used: Mapping[str, int]
    most: Mapping[str, int]
    """Without those that have no limit."""
    collectors: Mapping[str, GarbageCollector]
    """By name."""
    threads: int


@dataclass(frozen=True)
class EngineNumbers:
    is_up: bool
    tasks: Mapping[str, int] = field(default_factory=dict)
    """`active` and `queued`; empty where it does not tell."""
    executors: int | None = None
    jvm: JvmNumbers | None = None
    """None with a server elsewhere (`spark.remote`)."""
