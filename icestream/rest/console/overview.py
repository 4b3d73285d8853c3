"""All connectors in few bytes: a row of plain values for each. Shapes: docs/console-api.md."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from icestream.api.errors import NotFoundError
from icestream.api.status import State
from icestream.rest.console.exchange import Console

COLUMNS: Final = (
    *("name", "type", "class", "health", "state", "tasks", "running", "worker", "rate", "lag"),
    *("fresh_ms", "last_commit_ms", "rows", "rejected", "reason", "age_ms"),
)
Row = list[Any]
_HEALTH: Final = {State.FAILED: "failed", State.PAUSED: "paused", State.STOPPED: "stopped"}


def overview(console: Console) -> dict[str, Any]:
    rows = []
    for name in console.service.names():
        try:
            rows.append(row_of(console, name))
        except NotFoundError:
            # Deleted while we looked.
            continue
    return {
        "version": 0,
        "at": console.wall_ms(),
        "totals": dict(Counter(row[3] for row in rows)),
        "columns": list(COLUMNS),
        "rows": rows,
    }


def row_of(console: Console, name: str) -> Row:
    service = console.service
    status, progress, config = service.status(name), service.progress(name), service.config(name)
    health = _HEALTH.get(status.state, "ok" if status.state is State.RUNNING else "unassigned")
    running = sum(task.state is State.RUNNING for task in status.tasks)
    reason = status.trace.strip().splitlines()[0] if status.trace and status.trace.strip() else None
    return [
        name,
        status.type,
        config.get("connector.class", "").rpartition(".")[2],
        health,
        status.state.value,
        len(status.tasks),
        running,
        status.worker_id,
        None,
        progress.lag,
        None,
        progress.last_commit_ms,
        progress.rows,
        progress.rejected,
        reason,
        0,
    ]
