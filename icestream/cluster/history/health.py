"""How well a connector is, in one word and a sentence: the overview of the console sorts by it. One pure
function over what the worker knows; asked by `ConnectorService.connector_health`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import Final

from icestream.api.status import Progress, State, Waiting

LOOK_BACK_SECONDS: Final = 300
"""For how long a lag has to grow, and for how long a reject is news."""
_LATE_INTERVALS: Final = 3
_LEAST_LATE_MS: Final = 30_000
"""A batch may well take longer than a short interval."""
_PARTS: Final = 5
_JUST_NOW_MS: Final = 10_000


class Health(StrEnum):
    """The worst first."""

    FAILED = "failed"
    UNASSIGNED = "unassigned"
    WAITING = "waiting"
    """It runs, and tries again what did not answer."""
    LATE = "late"
    """There are records, and none was committed for three intervals."""
    BEHIND = "behind"
    """Its lag has grown for five minutes."""
    REJECTING = "rejecting"
    """Records were rejected in the last five minutes."""
    PAUSED = "paused"
    STOPPED = "stopped"
    OK = "ok"


@dataclass(frozen=True)
class HealthFacts:
    """What is known of a connector at one moment."""

    now_ms: int
    state: State
    progress: Progress = field(default_factory=Progress)
    trace: str | None = None
    """Why it failed."""
    waiting: Waiting | None = None
    rejected_ms: int | None = None
    """When a batch with rejected records landed last."""
    lags: Sequence[tuple[int, float]] = ()
    """Samples of the last minutes: milliseconds and lag, the oldest first."""
    since_ms: int | None = None
    """Since when this worker has it."""


@dataclass(frozen=True)
class ConnectorHealth:
    health: Health
    reason: str
    """One sentence; empty if there is nothing to say."""
    freshness_ms: int | None
    """How old what readers of the target see is: 0 while nothing is unread, so an idle topic is not stale."""


def health_of(facts: HealthFacts) -> ConnectorHealth:
    found, reason = _found(facts)
    fresh = freshness_ms(facts.progress, facts.now_ms)
    if facts.progress.lag == 0 and facts.state is not State.RUNNING:
        # Nobody looks for it: records may have come since.
        fresh = None
    return ConnectorHealth(found, reason, fresh)


def freshness_ms(progress: Progress, now_ms: int) -> int | None:
    if progress.lag == 0:
        return 0
    through = progress.valid_through_ms or progress.oldest_unread_ms
    return None if progress.lag is None or through is None else max(0, now_ms - through)


def _found(facts: HealthFacts) -> tuple[Health, str]:
    match facts.state:
        case State.FAILED:
            return Health.FAILED, headline(facts.trace)
        case State.UNASSIGNED:
            return Health.UNASSIGNED, "no worker runs it now"
        case State.RESTARTING:
            return Health.WAITING, "it restarts"
        case State.PAUSED:
            return Health.PAUSED, "somebody paused it"
        case State.STOPPED:
            return Health.STOPPED, "somebody stopped it"
    if facts.waiting is not None:
        return Health.WAITING, _waiting_text(facts.waiting)
    late = _late(facts)
    if late:
        return Health.LATE, late
    if _has_grown(facts.lags, window_seconds(facts.progress)):
        first, last = facts.lags[0][1], facts.lags[-1][1]
        return Health.BEHIND, f"its lag grew from {first:,.0f} to {last:,.0f} records in the last minutes"
    if facts.rejected_ms is not None and facts.now_ms - facts.rejected_ms <= LOOK_BACK_SECONDS * 1000:
        return Health.REJECTING, f"records were rejected {_ago(facts.now_ms - facts.rejected_ms)}"
    return Health.OK, facts.progress.waits_for


def _waiting_text(waiting: Waiting) -> str:
    """What is away, and when it is asked again; the moments are in UTC."""
    if waiting.next_ms is None:
        return str(waiting)
    until = "" if waiting.gives_up_ms is None else f", gives up at {_clock(waiting.gives_up_ms)}"
    return f"{waiting.what}; trying again at {_clock(waiting.next_ms)}{until}"


def _clock(ms: int) -> str:
    return f"{dt.datetime.fromtimestamp(ms / 1000, dt.UTC):%H:%M:%S}Z"


def headline(trace: str | None) -> str:
    """What went wrong, of a trace: its last line; before it the note on restarts, if there is one."""
    lines = [line.strip() for line in (trace or "").splitlines() if line.strip()]
    if not lines:
        return "it failed"
    last = lines[-1]
    return f"{last}; {lines[0]}" if lines[0].startswith("restart ") and len(lines) > 1 else last


def _late(facts: HealthFacts) -> str:
    progress = facts.progress
    if not progress.lag or progress.interval_ms is None or progress.waits_for:
        # A job that waits until files are full says so: it is not late.
        return ""
    # Records that have just come are not late, however long ago the last commit was.
    known = (progress.last_commit_ms, progress.oldest_unread_ms, facts.since_ms)
    since = max((moment for moment in known if moment is not None), default=facts.now_ms)
    waited = facts.now_ms - since
    if waited <= max(_LATE_INTERVALS * progress.interval_ms, _LEAST_LATE_MS):
        return ""
    return f"{progress.lag:,} records wait, and nothing was committed for {_span(waited)}"


def window_seconds(progress: Progress) -> int:
    """How far back a growing lag has to be seen: between two commits every lag grows."""
    return max(LOOK_BACK_SECONDS, min(3_600, 3 * (progress.interval_ms or 0) // 1000))


def _has_grown(lags: Sequence[tuple[int, float]], seconds: int) -> bool:
    """Whether the highest lag of each fifth of the time was higher than that of the one before."""
    if len(lags) < _PARTS or lags[-1][0] - lags[0][0] < 800 * seconds:
        # Most of the time has to be known.
        return False
    size = len(lags) / _PARTS
    highest = [max(lag for _, lag in lags[int(at * size) : int((at + 1) * size)]) for at in range(_PARTS)]
    return all(before < after for before, after in pairwise(highest))


def _ago(ms: int) -> str:
    # Rows are sent every ten seconds while only ages change: "0 s ago" would stand for ten.
    return "just now" if ms < _JUST_NOW_MS else f"{_span(ms)} ago"


def _span(ms: int) -> str:
    seconds = ms // 1000
    if seconds < 120:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 7200 else f"{seconds // 3600} h"
