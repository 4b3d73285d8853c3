"""All connectors in few bytes: a row of plain values for each. Shapes: docs/console-api.md.

Rows are made anew only where something has changed, and each knows in which version it did: the stream sends
what is newer than what a page has. Nothing is done while nobody asks.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from icestream.api.errors import NotFoundError
from icestream.api.status import JobStatus, Progress, State
from icestream.cluster.connector_registry import KnownConnector
from icestream.cluster.history.health import ConnectorHealth, HealthFacts, health_of, window_seconds
from icestream.cluster.history.history import Recent
from icestream.cluster.service import ConnectorService
from icestream.cluster.views import ConnectorStatus

COLUMNS: Final = (
    *("name", "type", "class", "health", "state", "tasks", "running", "worker", "rate", "lag"),
    *("fresh_ms", "last_commit_ms", "rows", "rejected", "reason", "age_ms", "topics", "tables"),
)
Row = list[Any]
NAME, HEALTH, STATE, REASON, AGE = (
    COLUMNS.index(name) for name in ("name", "health", "state", "reason", "age_ms")
)
_MOVING: Final = frozenset(COLUMNS.index(name) for name in ("rate", "fresh_ms", "age_ms"))
"""Columns that change by the mere passing of time."""
_RESTING_MS: Final = 10_000
"""A row in which only those have changed is new after so long."""
_PAST_MS: Final = 4_000
_MOST_GONE: Final = 1_000
_MOST_NAMES: Final = 5
_LONGEST_REASON: Final = 300
_LONGEST_NAME: Final = 120
_PUBLISHED_MS: Final = 30_000
"""How old the progress may be that other workers publish."""


@dataclass
class _Kept:
    """A row, the version in which it changed, and what it was made from."""

    row: Row
    version: int
    at_ms: int
    made_from: tuple[object, ...]


@dataclass(frozen=True)
class _Past:
    """What the history says of a connector; asked every few seconds: it takes longer than all the rest."""

    recent: Recent
    rates: tuple[float, float] | None
    at_ms: int


@dataclass(frozen=True)
class OtherRow:
    """A row that another worker told, and when."""

    row: Row
    at_ms: int


@dataclass(frozen=True)
class RowChanges:
    """What is newer than a version; not complete: too much was forgotten, take everything anew."""

    version: int
    rows: list[Row]
    gone: list[str]
    is_complete: bool


@dataclass(frozen=True)
class StateChange:
    connector: str
    state: str
    health: str
    reason: str | None


def short(value: float | None) -> float | int | None:
    """Three digits: what people read of a rate or an age, and what packs well."""
    if value is None:
        return None
    rounded = float(f"{value:.3g}")
    return int(rounded) if rounded.is_integer() else rounded


class Overview:
    """Of one worker; `others` are rows of connectors that run elsewhere, by name."""

    def __init__(
        self,
        service: ConnectorService,
        wall_ms: Callable[[], int],
        others: Callable[[], Mapping[str, OtherRow]] = dict,
    ) -> None:
        self._service = service
        self._wall_ms = wall_ms
        self._others = others
        self._lock = threading.Lock()
        # Higher than any version of an earlier life of this worker: a page may still have one of those.
        self._first = self._version = wall_ms()
        self._rows: dict[str, _Kept] = {}
        self._gone: deque[tuple[int, str]] = deque(maxlen=_MOST_GONE)
        self._states: deque[tuple[int, StateChange]] = deque(maxlen=_MOST_GONE)
        """Whoever looks may find a change; who is told of changes is seldom the one."""
        self._tables: dict[str, tuple[str, ...]] = {}
        self._past: dict[str, _Past] = {}
        self._seen_history = 0

    def all(self) -> dict[str, Any]:
        with self._lock:
            self._refresh()
            return self._answer([kept.row for kept in self._rows.values()])

    def own(self) -> dict[str, Any]:
        owns = self._service.membership.owns
        with self._lock:
            self._refresh()
            return self._answer([kept.row for name, kept in self._rows.items() if owns(name)])

    def changes(self, since: int) -> tuple[RowChanges, list[StateChange]]:
        """Rows that are newer than a version, after a look at all; and the states that were found changed
        since, by any look."""
        with self._lock:
            self._refresh()
            states = [change for version, change in self._states if version > since]
            rows = [kept.row for kept in self._rows.values() if kept.version > since]
            gone = [name for version, name in self._gone if version > since and name not in self._rows]
            is_complete = self._first <= since <= self._version and (
                len(self._gone) < _MOST_GONE or self._gone[0][0] <= since
            )
            return RowChanges(self._version, rows, gone, is_complete), states

    @property
    def version(self) -> int:
        return self._version

    def health(self, name: str, now_ms: int) -> ConnectorHealth:
        """Of one connector, as its row says it."""
        service = self._service
        if service.membership.owns(name):
            job = service.connectors.job_status(name)
            return self._health(name, job.state, job.progress, job.trace, job, now_ms)
        status = service.status(name)
        return self._health(name, status.state, service.progress(name), status.trace, None, now_ms)

    # How: all under the lock

    def _answer(self, rows: list[Row]) -> dict[str, Any]:
        return {
            "version": self._version,
            "at": self._wall_ms(),
            "totals": dict(Counter(row[HEALTH] for row in rows)),
            "columns": list(COLUMNS),
            "rows": rows,
        }

    def _refresh(self) -> None:
        now, known = self._wall_ms(), self._service.connectors.known
        changed = self._note_history()
        others = self._others()
        version = self._version + 1
        for name, connector in known.items():
            try:
                change = self._look_at(name, connector, name in changed, others.get(name), now, version)
            except NotFoundError:
                # Deleted while we looked.
                continue
            if change is not None:
                self._states.append((version, change))
        for name in [name for name in self._rows if name not in known]:
            del self._rows[name]
            self._tables.pop(name, None)
            self._past.pop(name, None)
            self._gone.append((version, name))
            self._version = version

    def _note_history(self) -> frozenset[str]:
        changes = self._service.history.changed_since(self._seen_history)
        for name in changes.names:
            for record in self._service.history.batches(name, self._seen_history).over:
                if record.targets:
                    self._tables[name] = tuple(target.name for target in record.targets[:_MOST_NAMES])
        self._seen_history = changes.version
        return changes.names

    def _look_at(
        self,
        name: str,
        connector: KnownConnector,
        has_news: bool,
        other: OtherRow | None,
        now: int,
        version: int,
    ) -> StateChange | None:
        kept = self._rows.get(name)
        service = self._service
        if service.membership.owns(name):
            job = service.connectors.job_status(name)
            made_from: tuple[object, ...] = (connector, job)
            if kept is not None and not has_news and self._is_still_right(kept, made_from, now):
                return None
            row = self._own_row(name, connector, job, now)
        elif other is not None:
            made_from = (connector, other)
            if kept is not None and self._is_still_right(kept, made_from, now):
                return None
            row = [*other.row]
            row[AGE] = max(0, now - other.at_ms)
        else:
            status = service.status(name)
            progress = service.progress(name)
            made_from = (connector, status, progress)
            row = self._row(name, connector, status, progress, None, now)
            row[AGE] = _PUBLISHED_MS
        return self._keep(name, row, made_from, now, version)

    def _is_still_right(self, kept: _Kept, made_from: tuple[object, ...], now: int) -> bool:
        is_same = all(new is old for new, old in zip(made_from, kept.made_from, strict=False))
        return is_same and len(made_from) == len(kept.made_from) and now - kept.at_ms < _RESTING_MS

    def _keep(
        self, name: str, row: Row, made_from: tuple[object, ...], now: int, version: int
    ) -> StateChange | None:
        kept = self._rows.get(name)
        if kept is not None and not self._is_news(kept, row, now):
            kept.made_from = made_from
            return None
        self._rows[name] = _Kept(row, version, now, made_from)
        self._version = version
        before = (kept.row[STATE], kept.row[HEALTH]) if kept is not None else None
        if before is None or before == (row[STATE], row[HEALTH]):
            return None
        return StateChange(name, row[STATE], row[HEALTH], row[REASON])

    def _is_news(self, kept: _Kept, row: Row, now: int) -> bool:
        differing = {at for at, (new, old) in enumerate(zip(row, kept.row, strict=True)) if new != old}
        if not differing:
            kept.at_ms = now
            return False
        return not differing <= _MOVING or now - kept.at_ms >= _RESTING_MS

    def _own_row(self, name: str, connector: KnownConnector, job: JobStatus, now: int) -> Row:
        version = connector.plugin.version if connector.plugin else "unknown"
        status = ConnectorStatus(
            name, job.state, self._service.worker_id, version, (), connector.type, job.trace
        )
        row = self._row(name, connector, status, job.progress, job, now)
        row[COLUMNS.index("tasks")] = len(connector.task_ids)
        row[COLUMNS.index("running")] = len(connector.task_ids) if job.state is State.RUNNING else 0
        return row

    def _row(
        self,
        name: str,
        connector: KnownConnector,
        status: ConnectorStatus,
        progress: Progress,
        job: JobStatus | None,
        now: int,
    ) -> Row:
        health = self._health(name, status.state, progress, status.trace, job, now)
        rates = self._past_of(name, progress, now).rates if job is not None else None
        reason = self._service.masks(name).text(health.reason)[:_LONGEST_REASON] if health.reason else None
        topics = progress.topics or tuple(
            topic.strip() for topic in connector.config.get("topics", "").split(",") if topic.strip()
        )
        return [
            name,
            connector.type,
            connector.config.get("connector.class", "").rpartition(".")[2][:_LONGEST_NAME],
            health.health.value,
            status.state.value,
            len(status.tasks),
            sum(task.state is State.RUNNING for task in status.tasks),
            status.worker_id,
            None if rates is None else short(rates[1]),
            progress.lag,
            short(health.freshness_ms),
            None if progress.last_commit_ms is None else progress.last_commit_ms // 1000 * 1000,
            progress.rows,
            progress.rejected,
            reason,
            0,
            [topic[:_LONGEST_NAME] for topic in topics[:_MOST_NAMES]],
            [table[:_LONGEST_NAME] for table in self._tables.get(name, ())],
        ]

    def _past_of(self, name: str, progress: Progress, now: int) -> _Past:
        past = self._past.get(name)
        if past is None or not 0 <= now - past.at_ms < _PAST_MS:
            history = self._service.history
            past = _Past(history.recent(name, window_seconds(progress)), history.rates(name), now)
            self._past[name] = past
        return past

    def _health(
        self,
        name: str,
        state: State,
        progress: Progress,
        trace: str | None,
        job: JobStatus | None,
        now: int,
    ) -> ConnectorHealth:
        recent = self._past_of(name, progress, now).recent if job is not None else None
        return health_of(
            HealthFacts(
                now,
                state,
                progress,
                trace,
                job.waiting if job is not None else None,
                recent.rejected_ms if recent else None,
                recent.lags if recent else (),
                recent.since_ms if recent else None,
            )
        )
