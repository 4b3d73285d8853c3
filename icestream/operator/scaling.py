"""How many workers a cluster should have: pure decisions, from the number of connectors.

`worker_scaling` calls `workers_wanted` in the turn of a cluster, and keeps the state that it returns. Where
KEDA is installed and knows a Prometheus, `scaled_object` says the same in its words, and adds the lag.
Executors are Spark's to scale, within the limits that are here.

A number goes up at once, in bounded steps, because work is waiting. It goes down only after the lower need
has lasted for a whole cool-down, and then to the highest need of that time: what comes in waves is not
followed down into every trough.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

Manifest = dict[str, Any]

_BEHIND_PER_WORKER: Final = 4
"""KEDA adds a worker when one in so many of a worker's connectors is behind."""
_METRIC: Final = "icestream_lag_seconds"


@dataclass(frozen=True)
class ScalingSpec:
    """`spec.scaling` of a cluster."""

    min_workers: int = 1
    max_workers: int = 10
    connectors_per_worker: int = 20
    min_executors: int = 0
    """0 is for Spark's dynamic allocation, which asks for one when there is work; else nothing would run."""
    max_executors: int = 8
    """Of one worker."""
    lag_seconds: float = 60.0
    """A connector that is further behind than this counts for KEDA."""
    cool_down_seconds: float = 300.0
    """Between two changes, and for how long a lower need has to last before it is followed."""
    step: int = 4
    """The most workers that are added at once."""


@dataclass(frozen=True)
class ScaleState:
    """What one number remembers between two decisions; times are of any clock that only goes forward."""

    changed_at: float = -math.inf
    low_since: float | None = None
    """Since when less would do; None: it would not."""
    low_need: int = 0
    """The most that was needed since then."""


@dataclass(frozen=True)
class Decision:
    number: int
    state: ScaleState


def workers_wanted(
    spec: ScalingSpec, current: int, connectors: int | None, state: ScaleState, now: float
) -> Decision:
    """`connectors`: how many the workers have; None: no worker could be asked, and nothing changes but what
    the limits forbid."""
    lowest, highest, hold = spec.min_workers, spec.max_workers, spec.cool_down_seconds
    allowed = _within(current, lowest, highest)
    if allowed != current:
        # The limits were changed, or somebody scaled by hand beyond them: no cool-down protects that.
        return Decision(allowed, ScaleState(now))
    if connectors is None:
        return Decision(current, replace(state, low_since=None))
    need = _within(-(-max(connectors, 0) // max(spec.connectors_per_worker, 1)), lowest, highest)
    if need > current:
        return Decision(min(need, current + max(spec.step, 1)), ScaleState(now))
    if need == current:
        return Decision(current, replace(state, low_since=None))
    since = now if state.low_since is None else state.low_since
    most = need if state.low_since is None else max(need, state.low_need)
    if now - since < hold or now - state.changed_at < hold:
        return Decision(current, replace(state, low_since=since, low_need=most))
    return Decision(most, ScaleState(now))


def _within(number: int, lowest: int, highest: int) -> int:
    return max(min(number, highest), lowest)


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
    """The `ScaledObject` of a cluster's workers, for servers that have KEDA. Its HPA grows and shrinks with
    our steps and cool-down."""
    series = f'{_METRIC}{{namespace="{_quoted(target.namespace)}",pod=~"{_quoted(target.name)}-.*"}}'
    by_connector = f"max by (connector) ({series})"
    cool_down = int(min(spec.cool_down_seconds, 3600))
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {
            "name": target.name,
            "namespace": target.namespace,
            "labels": dict(target.labels),
        },
        "spec": {
            "scaleTargetRef": {"apiVersion": target.api_version, "kind": target.kind, "name": target.name},
            "minReplicaCount": max(spec.min_workers, 1),
            "maxReplicaCount": spec.max_workers,
            "pollingInterval": 30,
            "cooldownPeriod": cool_down,
            "advanced": {
                "horizontalPodAutoscalerConfig": {
                    "behavior": {
                        "scaleUp": {
                            "stabilizationWindowSeconds": 0,
                            "policies": [{"type": "Pods", "value": spec.step, "periodSeconds": 60}],
                        },
                        "scaleDown": {
                            "stabilizationWindowSeconds": cool_down,
                            "policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}],
                        },
                    }
                }
            },
            "triggers": [
                _trigger(target, f"count({by_connector}) or vector(0)", spec.connectors_per_worker),
                _trigger(
                    target,
                    f"count({by_connector} > {spec.lag_seconds:g}) or vector(0)",
                    max(spec.connectors_per_worker // _BEHIND_PER_WORKER, 1),
                ),
            ],
        },
    }


def _trigger(target: ScaleTarget, query: str, threshold: int) -> Manifest:
    return {
        "type": "prometheus",
        "metricType": "AverageValue",
        "metadata": {"serverAddress": target.prometheus, "query": query, "threshold": str(threshold)},
    }


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
