"""Conditions in the status of a resource, by Strimzi's habit: one of Ready and NotReady is there, with status
"True"; what else there is to say stands beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

READY: Final = "Ready"
NOT_READY: Final = "NotReady"
WARNING: Final = "Warning"
PAUSED: Final = "ReconciliationPaused"
IMAGES_READY: Final = "ImagesReady"

_LONGEST_MESSAGE: Final = 4096


@dataclass(frozen=True)
class Condition:
    type: str
    status: str = "True"
    reason: str = ""
    message: str = ""


def ready() -> Condition:
    return Condition(READY)


def not_ready(reason: str, message: str) -> Condition:
    return Condition(NOT_READY, "True", reason, message)


def warning(reason: str, message: str) -> Condition:
    return Condition(WARNING, "True", reason, message)


def merged(
    previous: Sequence[Mapping[str, Any]], wanted: Iterable[Condition], now: datetime
) -> list[dict[str, str]]:
    """What to write into the status: the time of a condition that was there before stays.

    Conditions of a type that is no longer wanted go. Warnings are told apart by all that they say, others by
    type and status: a new message alone is no transition.
    """
    times = {_identity(one): str(one.get("lastTransitionTime") or "") for one in previous}
    found: dict[tuple[str, ...], dict[str, str]] = {}
    for one in wanted:
        entry = {"type": one.type, "status": one.status}
        if one.reason:
            entry["reason"] = one.reason
        if one.message:
            entry["message"] = one.message[:_LONGEST_MESSAGE]
        identity = _identity(entry)
        entry["lastTransitionTime"] = times.get(identity) or timestamp(now)
        found.setdefault(identity, entry)
    return list(found.values())


def timestamp(now: datetime) -> str:
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _identity(condition: Mapping[str, Any]) -> tuple[str, ...]:
    parts = (
        ("type", "status", "reason", "message") if condition.get("type") == WARNING else ("type", "status")
    )
    return tuple(str(condition.get(part) or "") for part in parts)
