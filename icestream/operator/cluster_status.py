"""The status of a cluster, as a map. Pure; the reconciliation of a cluster writes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from icestream.operator.conditions import Condition

_DETAILS: Final = ("url", "replicas", "labelSelector", "connectorPlugins", "images", "scaling")


@dataclass(frozen=True)
class Report:
    """What a turn found: exactly one of Ready, NotReady and ReconciliationPaused first, others after it."""

    conditions: tuple[Condition, ...]
    details: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the status besides conditions and generation."""
    keeps_details: bool = False
    """Nothing was looked at: what the status says otherwise stays."""

    def adding(self, *conditions: Condition) -> Report:
        return replace(self, conditions=(*self.conditions, *conditions))

    def with_details(self, more: Mapping[str, Any]) -> Report:
        return replace(self, details={**self.details, **more})


def status_of(
    resource: Mapping[str, Any], report: Report, conditions: Sequence[Mapping[str, str]]
) -> dict[str, Any]:
    """The whole status. A turn that ended early keeps what the last one knew of images: they need not be
    fetched again because of a mistake elsewhere."""
    previous = resource.get("status") or {}
    kept = _DETAILS if report.keeps_details or not report.details else ("connectorPlugins", "images")
    return {
        **{name: previous[name] for name in kept if name in previous},
        **report.details,
        "conditions": [dict(each) for each in conditions],
        "observedGeneration": int(resource["metadata"].get("generation", 0)),
    }
