"""What this process has done to connectors and the API server may not show yet. One for all reconciliations.

A watch lags, and a write may fail: without it a restart that was made would be made again.
"""

from __future__ import annotations

from icestream.operator.connectors.facts import AutoRestart


class RecentActions:
    """By the uid of a resource. Callers hold the lock of the connector's cluster."""

    def __init__(self) -> None:
        self._answered: dict[tuple[str, str], str] = {}
        self._auto_restarts: dict[str, AutoRestart] = {}

    def has_answered(self, uid: str, annotation: str, value: str) -> bool:
        """Whether it was acted upon, and only its removal is left to do."""
        return self._answered.get((uid, annotation)) == value

    def has_unremoved(self, uid: str, annotation: str) -> bool:
        return (uid, annotation) in self._answered

    def note_answer(self, uid: str, annotation: str, value: str) -> None:
        self._answered[uid, annotation] = value

    def forget_answer(self, uid: str, annotation: str) -> None:
        self._answered.pop((uid, annotation), None)

    def last_auto_restart(self, uid: str, in_status: AutoRestart | None) -> AutoRestart | None:
        """The later of the one that the status tells, and the one that was made here."""
        here = self._auto_restarts.get(uid)
        if here is None or in_status is None:
            return here or in_status
        return max(here, in_status, key=lambda one: one.last_restart)

    def note_auto_restart(self, uid: str, made: AutoRestart) -> None:
        self._auto_restarts[uid] = made

    def forget_auto_restart(self, uid: str) -> None:
        self._auto_restarts.pop(uid, None)

    def forget(self, uid: str) -> None:
        """The resource is gone."""
        self.forget_auto_restart(uid)
        # Connectors of other clusters are noted by other threads meanwhile: a copy is taken at once.
        for key in list(self._answered):
            if key[0] == uid:
                self._answered.pop(key, None)
