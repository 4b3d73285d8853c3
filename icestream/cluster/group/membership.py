"""Which connectors are this worker's, and who leads. The service asks; a standalone worker is alone.

`assign` shares the connectors of a group out: the leader asks it at every rebalance (`coordinator.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class GroupView:
    """The group as one of its workers sees it, for metrics and the console."""

    leads: bool = True
    leader_url: str = ""
    generation: int = 0
    rebalances: int = 0
    """That gave this worker its share, since it started."""


@dataclass(frozen=True)
class Peer:
    """A worker of the group, as the leader told of it."""

    url: str
    connectors: frozenset[str] = frozenset()
    """Those that it was given; one that moves is nobody's for a moment."""
    console: str = ""
    """Where its console is, without `/console/`; empty: nowhere, or nobody knows."""
    version: str = ""


@dataclass(frozen=True)
class Move:
    """A connector that has another worker than before; no address: none."""

    connector: str
    before: str
    after: str


@dataclass(frozen=True)
class Rebalance:
    """What changed when the connectors were shared out anew."""

    at_ms: int
    generation: int
    seconds: float
    """How long this worker took to join, and for the jobs that it gave away to end."""
    workers: int
    joined: tuple[str, ...]
    left: tuple[str, ...]
    moved: tuple[Move, ...]
    moves: int
    """How many there were; `moved` has the first ones."""


class Membership(Protocol):
    @property
    def generation(self) -> int:
        """Which rebalance brought the connectors that this worker has now."""

    @property
    def is_well(self) -> bool:
        """Whether this worker is in touch with the others."""

    @property
    def has_joined(self) -> bool:
        """Whether this worker has its share, and knows who leads."""

    @property
    def silent_for(self) -> float | None:
        """Seconds since the thread that follows the group last moved; None without one."""

    @property
    def is_shared(self) -> bool:
        """Whether a group decides who owns what: a job here is the right one, whoever else runs it."""

    @property
    def own_url(self) -> str:
        """This worker's; empty: it is alone."""

    @property
    def leader_url(self) -> str:
        """Empty while there is none."""

    @property
    def peers(self) -> Sequence[Peer]:
        """All workers of the group, this one too; empty while nobody knows."""

    @property
    def rebalances(self) -> Sequence[Rebalance]:
        """The last ones that this worker saw, the oldest first."""

    def owns(self, name: str) -> bool: ...

    def require_leader(self) -> None:
        """Raise NotLeader with the leader's address, or NotReadyError while there is none."""

    def view(self) -> GroupView: ...


class Alone:
    """The membership of a standalone worker: everything is its own."""

    generation = 0
    is_well = True
    has_joined = True
    silent_for = None
    is_shared = False
    own_url = ""
    leader_url = ""
    peers: Sequence[Peer] = ()
    rebalances: Sequence[Rebalance] = ()

    def owns(self, name: str) -> bool:
        return True

    def require_leader(self) -> None:
        pass

    def view(self) -> GroupView:
        return GroupView()


def assign(connectors: Iterable[str], owned: Mapping[str, Iterable[str]]) -> dict[str, frozenset[str]]:
    """Connectors by member, from what each member runs now.

    They stay where they are as long as the load is even. One that must move is first taken from its owner and
    given to nobody; it gets its new owner in the rebalance that the old one asks for once its job has ended.
    """
    wanted = sorted(set(connectors))
    kept = _kept(wanted, owned)
    free = [name for name in wanted if all(name not in names for names in kept.values())]
    _level(kept, len(wanted))
    for name in free:
        least = min(kept, key=lambda member: (len(kept[member]), member))
        kept[least].append(name)
    return {member: frozenset(names) for member, names in kept.items()}


def _kept(wanted: list[str], owned: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """What each member may keep: connectors that still exist, each with one owner."""
    taken: set[str] = set()
    kept: dict[str, list[str]] = {}
    for member in sorted(owned):
        kept[member] = sorted(name for name in set(owned[member]) if name in wanted and name not in taken)
        taken |= set(kept[member])
    return kept


def _level(kept: dict[str, list[str]], total: int) -> None:
    """Take from members what is above their share; those with most keep the one more that is left over."""
    share, left_over = divmod(total, len(kept))
    for place, member in enumerate(sorted(kept, key=lambda one: (-len(kept[one]), one))):
        del kept[member][share + (1 if place < left_over else 0) :]
