"""How many workers and executors a cluster should have: pure decisions, from counts and lag.

The reconciliation of a cluster calls `workers_wanted` and `executors_wanted` with what the workers tell, and
keeps the state that they return. Where KEDA is installed, `scaled_object` says the same in its words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Manifest = dict[str, Any]


@dataclass(frozen=True)
class ScalingSpec:
    """`spec.scaling` of a cluster."""

    min_workers: int = 1
    max_workers: int = 10
    connectors_per_worker: int = 20
    min_executors: int = 0
    max_executors: int = 8
    """Of one connector; never more than its `tasks.max`."""
    lag_seconds: float = 60.0
    """A connector that is further behind than this gets more executors."""
    cool_down_seconds: float = 300.0
    """Between two changes, and for how long a lower need has to last before it is followed."""
    step: int = 4
    """The most workers that are added at once; one is taken away at a time."""


@dataclass(frozen=True)
class ScaleTarget:
    """What KEDA scales, and where it asks."""

    name: str
    namespace: str
    kind: str
    api_version: str
    prometheus: str
    """Address of the Prometheus server that scrapes the workers."""
    labels: Mapping[str, str]


def scaled_object(spec: ScalingSpec, target: ScaleTarget) -> Manifest:
    """The `ScaledObject` of a cluster's workers, for servers that have KEDA."""
    raise NotImplementedError
