"""Keeps a table's log short: a checkpoint of the log every so many commits, and the removal of what is older
than the table keeps. A step of its own after a commit; what fails is tried again after the next one."""

from __future__ import annotations

import logging
from typing import Final

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from icestream.connectors.delta.commits.log import TableLog

_log = logging.getLogger(__name__)

_INTERVAL: Final = 100


class LogCheckpoints:
    """Of one table, which others may write to and make checkpoints of as well."""

    def __init__(self, log: TableLog) -> None:
        self._log = log
        self._last: int | None = None
        """The version of the last one, as far as is known."""

    def after_commit(self, name: str, table: DeltaTable) -> None:
        """`table` is as the commit left it."""
        version = table.version()
        properties = table.metadata().configuration
        try:
            interval = max(1, int(properties.get("delta.checkpointInterval", _INTERVAL)))
        except ValueError:
            interval = _INTERVAL
        try:
            if self._last is None:
                self._last = self._log.last_checkpoint()
            if version // interval <= self._last // interval:
                return
            table.create_checkpoint()
            if properties.get("delta.enableExpiredLogCleanup", "true").lower() != "false":
                table.cleanup_metadata()
        except (DeltaError, OSError) as error:
            _log.warning("no checkpoint of the log of %s at version %s: %s", name, version, error)
            return
        self._last = version
