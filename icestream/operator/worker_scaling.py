"""How many workers a cluster gets by its own scaling: asks them how many connectors they have, decides, and
keeps what the next decision needs in the status of the resource. The turn of a cluster calls `scaled`.

The number that counts is the Deployment's own. One that somebody else has set (`kubectl scale`) is taken as
if we had decided on it now: within the limits it holds until more is needed, or less for a cool-down.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from icestream.api.errors import IcestreamError
from icestream.operator.conditions import timestamp
from icestream.operator.resources.cluster_spec import ClusterSpec
from icestream.operator.scaling import Decision, ScaleState, ScalingSpec, workers_wanted

_LOG = logging.getLogger(__name__)
INTERVAL: Final = 30.0
"""Seconds between two decisions, and at least between two steps: every new pod wakes its cluster."""

Object = Mapping[str, Any]


class CountsConnectors(Protocol):
    def names(self) -> list[str]: ...


@dataclass(frozen=True)
class Scaled:
    replicas: int
    status: Mapping[str, Any]
    """For `status.scaling`."""


def scales_itself(spec: ClusterSpec, *, has_keda: bool) -> bool:
    """Whether the number of workers is ours to decide. KEDA does where it is and has a Prometheus to ask;
    a resource with 0 replicas is switched off."""
    if spec.scaling is None or not spec.scaling.scales_workers or spec.replicas == 0:
        return False
    return not (has_keda and spec.scaling.prometheus)


def connectors_of(rest: CountsConnectors, spec: ClusterSpec) -> int | None:
    """None: no worker can be asked, which is no reason to change or to fail anything."""
    try:
        return len(rest.names())
    except IcestreamError as error:
        _LOG.warning("%s %s/%s is not scaled: %s", spec.kind, spec.namespace, spec.name, error)
        return None


def scaled(
    spec: ClusterSpec,
    live: Object | None,
    remembered: object,
    connectors: int | None,
    now: datetime,
) -> Scaled:
    """`live` is the Deployment, `remembered` the `status.scaling` of the turn before; `connectors` are None
    if no worker could be asked."""
    assert spec.scaling is not None
    limits, moment = spec.scaling.limits, now.timestamp()
    before = remembered if isinstance(remembered, Mapping) else {}
    if live is None:
        # Nothing runs that could be asked: as the resource says, within the limits.
        first = workers_wanted(limits, spec.replicas, None, ScaleState(), moment)
        return _told(first.number, ScaleState(moment), None)
    current = int((live.get("spec") or {}).get("replicas", 1))
    state = _state(before, moment)
    if current != before.get("workers"):
        state = ScaleState(moment)
    decided = _in_steps(limits, current, connectors, state, moment)
    if decided.number != current:
        what = f"{spec.kind} {spec.namespace}/{spec.name}"
        _LOG.info("%s gets %d workers in place of %d", what, decided.number, current)
    return _told(
        decided.number, decided.state, before.get("connectors") if connectors is None else connectors
    )


def _in_steps(
    limits: ScalingSpec, current: int, connectors: int | None, state: ScaleState, now: float
) -> Decision:
    decided = workers_wanted(limits, current, connectors, state, now)
    is_within = limits.min_workers <= current <= limits.max_workers
    if decided.number > current and is_within and now - state.changed_at < INTERVAL:
        return Decision(current, replace(state, low_since=None))
    return decided


def _told(workers: int, state: ScaleState, connectors: object) -> Scaled:
    status: dict[str, Any] = {"workers": workers}
    if isinstance(connectors, int):
        status["connectors"] = connectors
    if math.isfinite(state.changed_at):
        status["changedAt"] = _text(state.changed_at)
    if state.low_since is not None:
        status |= {"lessSince": _text(state.low_since), "lessNeeds": state.low_need}
    return Scaled(workers, status)


def _text(moment: float) -> str:
    return timestamp(datetime.fromtimestamp(moment, UTC))


def _state(before: Mapping[str, Any], now: float) -> ScaleState:
    """What cannot be read is forgotten; the cool-down then begins anew."""
    changed, low = _moment(before.get("changedAt"), now), _moment(before.get("lessSince"), now)
    need = before.get("lessNeeds")
    if low is None or not isinstance(need, int):
        return ScaleState(now if changed is None else changed)
    return ScaleState(now if changed is None else changed, low_since=low, low_need=need)


def _moment(text: object, now: float) -> float | None:
    """Never in the future: a clock that was put back must not stop scaling until it has caught up."""
    try:
        return min(datetime.fromisoformat(str(text)).timestamp(), now)
    except (ValueError, OverflowError, OSError):
        return None
