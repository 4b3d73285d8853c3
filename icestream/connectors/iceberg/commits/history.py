"""The last commits of a table, as its snapshots tell them. Used by the table, for the console."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

from pyiceberg.table.metadata import TableMetadata

from icestream.api.batch import Counts
from icestream.api.history import TableCommit
from icestream.connectors.iceberg.commits.checkpoint_text import totals_in


def last_commits(metadata: TableMetadata, target: str, key: str, most: int) -> list[TableCommit]:
    """The newest first. `key`: where the job keeps its checkpoint; its totals tell what each commit added."""
    found: list[TableCommit] = []
    before: Counts | None = None
    ordered = sorted(metadata.snapshots, key=lambda one: (one.timestamp_ms, one.sequence_number or 0))
    for snapshot in ordered[-(most + 1) :]:
        said = snapshot.summary.additional_properties if snapshot.summary else {}
        totals, is_first = _totals(said.get(key))
        if is_first:
            before = Counts()
        found.append(
            TableCommit(
                target,
                str(snapshot.snapshot_id),
                snapshot.timestamp_ms,
                snapshot.summary.operation.value if snapshot.summary else "",
                _number(said, "added-data-files"),
                _number(said, "added-records"),
                _number(said, "added-files-size"),
                *_since(totals, before),
                valid_through_ms=_moment(said.get("kafka.connect.valid-through-ts")),
                commit=said.get("kafka.connect.commit-id", ""),
                is_ours=key in said,
            )
        )
        before = totals or before
    return found[::-1][:most]


def _since(totals: Counts | None, before: Counts | None) -> tuple[int | None, int | None]:
    if totals is None or before is None:
        return None, None
    return totals.rejected - before.rejected, totals.filtered - before.filtered


def _totals(text: str | None) -> tuple[Counts | None, bool]:
    try:
        return totals_in(text) if text is not None else (None, False)
    except Exception:  # whatever another version has written: the console shows a dash
        return None, False


def _number(said: Mapping[str, str], name: str) -> int | None:
    text = said.get(name, "")
    return int(text) if text.isdecimal() else None


def _moment(text: str | None) -> int | None:
    try:
        return None if text is None else int(dt.datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        return None
