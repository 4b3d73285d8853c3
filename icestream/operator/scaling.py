"""How many workers and executors a cluster should have: pure decisions, from counts and lag.

The reconciliation of a cluster calls `workers_wanted` with the number of connectors, and `executors_wanted`
with the lag of each (`icestream_lag_seconds` of the workers' /metrics); it keeps the state that they return.
Where KEDA is installed and knows a Prometheus, `scaled_object` says the same in its words.

A number goes up at once, in bounded steps, because work is waiting. It goes down only after the lower need
has lasted for a whole cool-down, and then to the highest need of that time: what comes in waves is not
followed down into every trough.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

Manifest = dict[str, Any]

_LOWER_LAG: Final = 0.25
"""A connector gives executors back below this part of the lag at which it gets some: what lies between
changes nothing."""
_BEHIND_PER_WORKER: Final = 4
"""KEDA adds a worker when one in so many of a worker's connectors is behind."""
_MOST_REGRETS: Final = 4
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
    """Of one connector; never more than its `tasks.max`."""
    lag_seconds: float = 60.0
    """A connector that is further behind than this gets more executors."""
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
    was_lowered: bool = False
    """The last change was down."""
    regrets: int = 0
    """How often the last lowerings were taken back soon."""


@dataclass(frozen=True)
class Decision:
    number: int
    state: ScaleState


def workers_wanted(
    spec: ScalingSpec, current: int, connectors: int | None, state: ScaleState, now: float
) -> Decision:
    """`connectors`: how many run or should run; None: no worker could be asked, and nothing changes but what
    the limits forbid."""
    if connectors is None:
        return Decision(_within(current, spec.min_workers, spec.max_workers), replace(state, low_since=None))
    need = -(-max(connectors, 0) // max(spec.connectors_per_worker, 1))
    limits = spec.min_workers, spec.max_workers
    return _decided(need, current, limits, spec.step, spec.cool_down_seconds, state, now)


def executors_wanted(
    spec: ScalingSpec,
    current: int,
    lag_seconds: float | None,
    tasks_max: int,
    state: ScaleState,
    now: float,
) -> Decision:
    """Of one connector. Twice as many while it is behind, half as many when it is well ahead: how much faster
    it gets by one more is not known, and the lag tells soon. None: the lag is not known, nothing changes."""
    # More than one executor per task would have nothing to do.
    highest = max(min(spec.max_executors, tasks_max), 0)
    lowest = min(spec.min_executors, highest)
    if lag_seconds is None or math.isnan(lag_seconds):
        return Decision(_within(current, lowest, highest), replace(state, low_since=None))
    need = current
    if lag_seconds > spec.lag_seconds:
        # After a change the lag needs time to tell whether it was enough.
        is_cool = now - state.changed_at >= spec.cool_down_seconds
        need = max(current * 2, 1) if is_cool else current
    elif lag_seconds < spec.lag_seconds * _LOWER_LAG:
        need = current // 2
    # Whether fewer would do is known by trying only: after each that failed, the next waits twice as long.
    hold = spec.cool_down_seconds * 2 ** min(state.regrets, _MOST_REGRETS)
    decided = _decided(need, current, (lowest, highest), spec.max_executors, hold, state, now)
    if decided.number > current:
        return _with_regrets(decided, state.regrets + state.was_lowered)
    return _with_regrets(decided, max(state.regrets - (decided.number < current and state.was_lowered), 0))


def _with_regrets(decided: Decision, regrets: int) -> Decision:
    return replace(decided, state=replace(decided.state, regrets=min(regrets, _MOST_REGRETS)))


def _decided(
    need: int,
    current: int,
    limits: tuple[int, int],
    step: int,
    hold: float,
    state: ScaleState,
    now: float,
) -> Decision:
    lowest, highest = limits
    need = _within(need, lowest, highest)
    allowed = _within(current, lowest, highest)
    if allowed != current:
        # The limits were changed, or somebody scaled by hand beyond them: no cool-down protects that.
        return Decision(allowed, ScaleState(now))
    if need > current:
        return Decision(min(need, current + max(step, 1)), ScaleState(now))
    if need == current:
        return Decision(current, replace(state, low_since=None))
    since = now if state.low_since is None else state.low_since
    most = need if state.low_since is None else max(need, state.low_need)
    low = replace(state, low_since=since, low_need=most)
    if now - since < hold or now - state.changed_at < hold:
        return Decision(current, low)
    return Decision(most, ScaleState(now, was_lowered=True))


def _within(number: int, lowest: int, highest: int) -> int:
    return max(min(number, highest), lowest)


def worst_lags(exposition: Iterable[str]) -> Mapping[str, float]:
    """Connector → `icestream_lag_seconds`, of the texts of all workers' /metrics: the largest of them, since
    a connector may be told by the worker that it just left."""
    from prometheus_client.parser import text_string_to_metric_families

    found: dict[str, float] = {}
    for text in exposition:
        # The parser keeps whole texts; of thousands of families one counts.
        lines = "\n".join(line for line in text.splitlines() if line.startswith(_METRIC))
        for family in text_string_to_metric_families(lines + "\n"):
            for sample in family.samples:
                name = sample.labels.get("connector")
                if sample.name == _METRIC and name is not None and not math.isnan(sample.value):
                    found[name] = max(found.get(name, 0.0), sample.value)
    return found


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
