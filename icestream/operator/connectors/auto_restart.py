"""When a failed connector is restarted by itself: n² + n minutes after the n-th time, at most an hour.

Pure; used by the reconciliation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from icestream.operator.connectors.facts import AutoRestart, AutoRestartPolicy

_LONGEST: Final = timedelta(minutes=60)
_SKEW: Final = timedelta(minutes=1)


@dataclass(frozen=True)
class Decision:
    """What `status.autoRestart` will be, and whether that is a restart that has to be made."""

    next: AutoRestart | None
    is_due: bool = False
    wait: timedelta | None = None
    """Until there is something to decide again."""


def interval(count: int) -> timedelta:
    """From the restart number `count` to the next, or to a fresh start of the count."""
    few = min(count, 60)
    return min(timedelta(minutes=few * few + few), _LONGEST)


def decide(
    policy: AutoRestartPolicy | None, last: AutoRestart | None, has_failed: bool, now: datetime
) -> Decision:
    if policy is None:
        return Decision(None)
    if last is not None and (left := _left(last, now)):
        return Decision(last, wait=left)
    if not has_failed:
        return Decision(None)
    count = last.count if last else 0
    if policy.most is not None and count >= policy.most:
        return Decision(last)
    return Decision(AutoRestart(count + 1, now), is_due=True, wait=interval(count + 1))


def _left(last: AutoRestart, now: datetime) -> timedelta:
    """Of the interval. A time to come is a clock's mistake: it must not keep a connector down for years."""
    end = last.last_restart + interval(last.count)
    return end - now if now < end and last.last_restart <= now + _SKEW else timedelta()


def from_status(status: Mapping[str, Any]) -> AutoRestart | None:
    """What a status tells; None if that cannot be understood: anybody may write a status."""
    told = status.get("autoRestart")
    if not isinstance(told, Mapping):
        return None
    count, text = told.get("count"), told.get("lastRestartTimestamp")
    if not isinstance(count, int) or isinstance(count, bool) or count < 1 or not isinstance(text, str):
        return None
    try:
        last = datetime.fromisoformat(text)
        return AutoRestart(count, last.astimezone(UTC) if last.tzinfo else last.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        return None


def in_status(auto_restart: AutoRestart) -> dict[str, Any]:
    last = auto_restart.last_restart.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return {"count": auto_restart.count, "lastRestartTimestamp": last}
