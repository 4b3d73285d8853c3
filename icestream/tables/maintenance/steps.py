"""One step of the maintenance of a table: it is timed, and its failure told rather than raised. Used by the
maintainers of the sinks of tables.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from icestream.api.errors import CommitConflict, PreconditionError
from icestream.api.maintenance import MaintenanceStep

_log = logging.getLogger(__name__)

LEAST_ORPHAN_AGE: Final = dt.timedelta(days=1)
"""Younger files may be of a commit that is under way."""

Work = Callable[[], MaintenanceStep]


@dataclass(frozen=True)
class StepRunner:
    """Runs the steps of one table."""

    table: str
    clock: Callable[[], float]

    def guarded(self, name: str, counted: str, work: Work) -> MaintenanceStep:
        """A step whose failure is told."""
        started = self.clock()
        try:
            return self.timed(name, counted, work)
        except CommitConflict as conflict:
            _log.info("%s of %s gave way to others: %s", name, self.table, conflict)
            error, is_conflict = str(conflict), True
        except Exception as failure:  # the edge of maintenance: nothing depends on it, and it is tried again
            _log.warning("%s of %s failed: %s", name, self.table, failure)
            error, is_conflict = str(failure) or type(failure).__name__, False
        seconds = self.clock() - started
        return MaintenanceStep(name, counted, seconds=seconds, error=error, is_conflict=is_conflict)

    def timed(self, name: str, counted: str, work: Work) -> MaintenanceStep:
        """A step that somebody asked for by hand: its failure is raised."""
        started = self.clock()
        done = work()
        return replace(done, name=name, counted=counted, seconds=self.clock() - started)


def orphan_age(options: Mapping[str, int], default: dt.timedelta) -> dt.timedelta:
    """How old orphans must be that somebody removes by hand. PreconditionError if that is too young."""
    age = options.get("older-than-ms")
    older_than = default if age is None else dt.timedelta(milliseconds=age)
    if older_than < LEAST_ORPHAN_AGE:
        raise PreconditionError(
            "files of less than a day may be of a commit that is under way; name an age of at least 1d"
        )
    return older_than
