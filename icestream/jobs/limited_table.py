"""A table whose every answer has a time limit. Around the real one, for the job manager.

Clients have limits of their own, but not all of them and not for everything: a database that stopped in
mid-query, a proxy that sends a byte a minute. The call that hangs is left behind in its thread, with its
table; if it wakes and commits after all, the compare-and-set has decided by then.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from icestream.api.batch import StagedFile, TableReference
from icestream.api.errors import CommitUnknown, SinkUnavailable
from icestream.api.offsets import Offsets
from icestream.deadlines import Overdue, within
from icestream.jobs.borders import SinkTable

if TYPE_CHECKING:
    from icestream.api.checkpoint import Checkpoint, FoundCheckpoint
    from icestream.connectors.iceberg.stage import TablePlan
    from icestream.connectors.iceberg.table import NewFields, Receipt

_T = TypeVar("_T")
_ANSWER_SECONDS = 300.0
"""Longer than the limits of the clients, with their retries."""


class LimitedTable:
    def __init__(self, make: Callable[[], SinkTable], seconds: float = _ANSWER_SECONDS) -> None:
        self._make = make
        self._seconds = seconds
        self._table = make()

    @property
    def name(self) -> str:
        return self._table.name

    def reference(self, catalog: str) -> TableReference:
        return self._table.reference(catalog)

    def found(self) -> FoundCheckpoint:
        return self._asked(self._table.found, "reading")

    def plan(self, new_fields: NewFields) -> TablePlan:
        table = self._table
        return self._asked(lambda: table.plan(new_fields), "planning files of")

    def commit(
        self,
        files: Sequence[StagedFile],
        checkpoint: Checkpoint,
        *,
        expect: Offsets,
        new_fields: NewFields,
        written_with: TablePlan,
        summary: Mapping[str, str],
    ) -> Receipt:
        table = self._table

        def commit() -> Receipt:
            return table.commit(
                files,
                checkpoint,
                expect=expect,
                new_fields=new_fields,
                written_with=written_with,
                summary=summary,
            )

        try:
            return self._asked(commit, "committing to")
        except _NoAnswer as error:
            raise CommitUnknown(f"{error}; the commit may land all the same") from None

    def discard(self, files: Sequence[StagedFile]) -> None:
        table = self._table
        self._asked(lambda: table.discard(files), "removing files of")

    def sweep(self, landed: str, now: dt.datetime) -> int:
        """May take long; it has a thread of its own, and here a table of its own."""
        return self._make().sweep(landed, now)

    def _asked(self, call: Callable[[], _T], doing: str) -> _T:
        try:
            return within(self._seconds, call, f"catalog or object store: {doing} {self.name}")
        except Overdue:
            # The old one is in the hands of the thread that hangs.
            self._table = self._make()
            raise _NoAnswer(
                f"{doing} {self.name}: no answer of its catalog or object store in {self._seconds:.0f} s"
            ) from None


class _NoAnswer(SinkUnavailable):
    pass
