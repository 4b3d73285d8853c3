"""Finds how far a job is in a table, by the table's log. Used by `table`, at every plan and every commit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from deltalake import DeltaTable

from icestream.api.checkpoint import FoundCheckpoint
from icestream.api.errors import LostOffsets
from icestream.connectors.delta.commits.log import TableLog
from icestream.connectors.delta.commits.marks import Walk, checkpoint_from, key_of, walk

RETENTION: Final = "delta.setTransactionRetentionDuration"


@dataclass(frozen=True)
class JobState:
    """What a table says of a job."""

    sequence: int
    """Of the job's transaction: how many commits it has made; 0: none."""
    found: FoundCheckpoint
    version: int = -1
    """Of the table, when it was asked."""


@dataclass(frozen=True)
class _Known:
    table_id: str
    version: int
    state: JobState


class Finder:
    """Remembers what it has found, and reads only what was committed since."""

    def __init__(self, job: str, log: TableLog) -> None:
        self._key = key_of(job)
        self._log = log
        self._known: _Known | None = None

    def find(self, table: DeltaTable) -> JobState:
        version = table.version()
        table_id = str(table.metadata().id)
        state = self._still(table_id, version) or self._anew(table, version)
        state = replace(state, version=version)
        self._known = _Known(table_id, version, state)
        return state

    def _still(self, table_id: str, version: int) -> JobState | None:
        """What was found before, if nothing that has been committed since says otherwise."""
        known = self._known
        if known is None or known.table_id != table_id or known.version > version:
            return None
        since = self._log.entries(version, known.version + 1)
        is_other = any(self._key in entry or entry.get("operation") == "RESTORE" for entry in since)
        return None if is_other else known.state

    def _anew(self, table: DeltaTable, version: int) -> JobState:
        sequence = table.transaction_version(self._key)
        forgets = RETENTION in table.metadata().configuration
        if sequence is None and not forgets:
            return JobState(0, FoundCheckpoint(None))
        looked, oldest = walk(self._log.entries(version), self._key)
        if sequence is None and looked.newest is None:
            return JobState(0, FoundCheckpoint(None))
        return JobState(sequence or 0, self._found(looked, oldest, version))

    def _found(self, looked: Walk, oldest: int | None, version: int) -> FoundCheckpoint:
        if looked.found is not None or (looked.is_restored and oldest == 0):
            return looked.as_found()
        # Log clean-up has taken the marks, and left transactions.
        at = looked.bound if looked.bound is not None else version
        held = checkpoint_from(self._key, self._log.transactions(at))
        if held is None:
            raise LostOffsets(
                "the job has committed to the table before, but its log no longer says how far: neither "
                "commitInfo nor transactions are left; move the offsets by hand"
            )
        return Walk(held, looked.newest or held, looked.bound).as_found()
