"""Keeps a table's log short: a checkpoint of the log every so many commits, and the removal of what is older
than the table keeps. A step of its own after a commit; what fails is tried again after the next one."""

from __future__ import annotations

import logging
from typing import Final

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

_log = logging.getLogger(__name__)

_INTERVAL: Final = 100


class LogCheckpoints:
    """Of one table. Knows of the last one only what it has made itself."""

    def __init__(self) -> None:
        self._last: int | None = None

    def after_commit(self, name: str, table: DeltaTable) -> None:
        """`table` is as the commit left it."""
        version = table.version()
        properties = table.metadata().configuration
        try:
            interval = max(1, int(properties.get("delta.checkpointInterval", _INTERVAL)))
        except ValueError:
            interval = _INTERVAL
        if self._last is None:
            # From a multiple of the interval on, as all writers count: then they take turns.
            self._last = version - version % interval if version % interval else version - 1
        if version - self._last < interval and version % interval:
            return
        try:
            table.create_checkpoint()
            if properties.get("delta.enableExpiredLogCleanup", "true").lower() != "false":
                table.cleanup_metadata()
        except (DeltaError, OSError) as error:
            _log.warning("no checkpoint of the log of %s at version %s: %s", name, version, error)
            return
        self._last = version
