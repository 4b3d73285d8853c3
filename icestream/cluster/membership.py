"""Which connectors are this worker's, and who leads. The service asks; a standalone worker is alone."""

from __future__ import annotations

from typing import Protocol


class Membership(Protocol):
    @property
    def generation(self) -> int:
        """Which rebalance brought the connectors that this worker has now."""

    @property
    def is_well(self) -> bool:
        """Whether this worker is in touch with the others."""

    @property
    def is_shared(self) -> bool:
        """Whether a group decides who owns what: a job here is the right one, whoever else runs it."""

    def owns(self, name: str) -> bool: ...

    def require_leader(self) -> None:
        """Raise NotLeader with the leader's address, or NotReadyError while there is none."""


class Alone:
    """The membership of a standalone worker: everything is its own."""

    generation = 0
    is_well = True
    is_shared = False

    def owns(self, name: str) -> bool:
        return True

    def require_leader(self) -> None:
        pass
