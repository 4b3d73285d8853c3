"""How a worker keeps its place in the group. Apart from `group`, so that reading a config loads no client."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """In milliseconds, by the names of Kafka Connect's settings."""

    session_timeout: int = 10_000
    heartbeat_interval: int = 3_000
    rebalance_timeout: int = 60_000
