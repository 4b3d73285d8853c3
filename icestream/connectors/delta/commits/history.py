"""The last commits of a table, as its log tells them. Used by the table, for the console."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from icestream.api.batch import Counts
from icestream.api.errors import LostOffsets
from icestream.api.history import TableCommit
from icestream.connectors.delta.commits.log import TableLog
from icestream.connectors.delta.commits.marks import checkpoint_of


def last_commits(log: TableLog, version: int, target: str, key: str, most: int) -> list[TableCommit]:
    """The newest first. `key`: of the job's marks; their totals tell what each commit added."""
    found: list[TableCommit] = []
    before: Counts | None = None
    for entry in reversed(log.last_entries(version, most + 1)):
        number = int(entry["version"])
        try:
            mark = checkpoint_of(entry, key)
        except LostOffsets:
            mark = None
        totals = mark.totals if mark is not None else None
        # The first commit of a job has no other before it.
        old = before or (Counts() if mark is not None and mark.previous is None else None)
        sizes = _added(log, number)
        found.append(
            TableCommit(
                target,
                str(number),
                int(entry.get("timestamp", 0)),
                str(entry.get("operation", "")).lower(),
                len(sizes),
                totals.written - old.written if totals and old else None,
                sum(sizes),
                totals.rejected - old.rejected if totals and old else None,
                totals.filtered - old.filtered if totals and old else None,
                commit=mark.commit if mark else "",
                is_ours=mark is not None,
            )
        )
        before = totals or before
    return found[::-1][:most]


def _added(log: TableLog, version: int) -> list[int]:
    """The sizes of the files that a commit added."""
    try:
        actions: Sequence[dict[str, Any]] = log.actions(version, b'"add"')
    except FileNotFoundError:
        return []
    return [int(one["add"].get("size") or 0) for one in actions if "add" in one]
