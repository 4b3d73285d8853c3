"""A distributed worker's membership: joins the group, takes the connectors it is given, leads when chosen.

`turn` is one step of its thread. Rebalances leave jobs alone that do not move.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from icestream import __version__
from icestream.api.errors import IcestreamError, NotLeader, NotReadyError
from icestream.api.status import Outage
from icestream.cluster.group.membership import GroupView, Move, Peer, Rebalance, assign
from icestream.kafka.group import Joined

_LOG = logging.getLogger(__name__)
_POLL_SECONDS: Final = 0.2
_STOP_SECONDS: Final = 30.0
_AGAIN_SECONDS: Final = 1.0
_END_SECONDS: Final = 5.0
_MOST_REBALANCES: Final = 50
_MOST_MOVES: Final = 200
_OUTAGE_SECONDS: Final = 90.0
"""Twice what it takes to open Spark again on a busy machine."""


class Member(Protocol):
    """`icestream.kafka.group.GroupMember` is the real one."""

    def poll(self, seconds: float) -> Joined | None: ...

    def rejoin(self) -> None: ...

    def leave(self) -> None: ...

    @property
    def is_cut_off(self) -> bool: ...

    def close(self) -> None: ...


class SharedStore(Protocol):
    """`icestream.cluster.stores.kafka_store.KafkaStore` is the real one."""

    def load(self) -> Mapping[str, Any]: ...

    @property
    def can_write(self) -> bool: ...

    def lead(self) -> None: ...

    def follow(self) -> None: ...


class Jobs(Protocol):
    """The connectors of this process. `connector_registry.ConnectorRegistry` is the real one."""

    def running(self) -> frozenset[str]:
        """Connectors whose jobs have not ended."""

    def ownership_changed(self) -> None: ...


@dataclass(frozen=True)
class Assignment:
    """What the leader tells a member; `known` is every connector that the leader knew of."""

    leader: str
    leader_url: str
    mine: frozenset[str]
    known: frozenset[str]
    peers: tuple[Peer, ...] = ()
    """All members; empty if the leader is of a version that tells nobody."""

    def to_bytes(self) -> bytes:
        body = {
            "leader": self.leader,
            "leader_url": self.leader_url,
            "connectors": sorted(self.mine),
            "known": sorted(self.known),
            "members": {
                peer.url: {
                    "connectors": sorted(peer.connectors),
                    "console": peer.console,
                    "version": peer.version,
                }
                for peer in self.peers
            },
        }
        return json.dumps(body).encode()

    @classmethod
    def from_bytes(cls, text: bytes) -> Assignment:
        body = json.loads(text)
        return cls(
            body["leader"],
            body["leader_url"],
            frozenset(body["connectors"]),
            frozenset(body["known"]),
            tuple(_peer(url, said) for url, said in body.get("members", {}).items()),
        )


def _peer(url: str, said: Mapping[str, Any]) -> Peer:
    return Peer(url, frozenset(said["connectors"]), said.get("console", ""), said.get("version", ""))


NOTHING: Final = Assignment("", "", frozenset(), frozenset())


class Coordinator:
    """`Membership` for the service, `Rules` for the group."""

    def __init__(
        self,
        url: str,
        store: SharedStore,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        outage: Callable[[], Outage | None] = lambda: None,
        console_url: str = "",
        wall_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        rebalanced: Callable[[float], None] = lambda seconds: None,
    ) -> None:
        """`console_url` is where this worker's console is, without its path; empty: nowhere."""
        self.own_url = url
        self._console_url = console_url
        self._wall_ms = wall_ms
        self._past: deque[Rebalance] = deque(maxlen=_MOST_REBALANCES)
        self._last_peers: tuple[Peer, ...] = ()
        """Of the last assignment, also while there is none: what moves is seen against it."""
        self._store = store
        self._clock = clock
        self._sleep = sleep
        self._outage = outage
        self._rebalanced = rebalanced
        self._away_since: float | None = None
        self._has_left = False
        self._jobs: Jobs | None = None
        self._member: Member | None = None
        self._assignment = NOTHING
        self._claimed = frozenset[str]()
        self._leads = False
        self._must_lead = False
        self._complained = ""
        self._closing = threading.Event()
        self._idle = threading.Event()
        self._idle.set()
        self._last_turn: float | None = None
        self._rebalances = 0
        self.generation = 0
        self.is_shared = True

    def join(self, member: Member, jobs: Jobs) -> None:
        """From here on `turn` does something."""
        self._member = member
        self._jobs = jobs

    # Membership

    @property
    def is_well(self) -> bool:
        return self._member is None or not (self._member.is_cut_off or self._has_left)

    @property
    def has_joined(self) -> bool:
        """Whether this worker has its share, and knows who leads."""
        return self._assignment is not NOTHING and not self._must_lead

    @property
    def silent_for(self) -> float | None:
        return None if self._last_turn is None else self._clock() - self._last_turn

    @property
    def leader_url(self) -> str:
        return self._assignment.leader_url

    @property
    def peers(self) -> Sequence[Peer]:
        return self._assignment.peers

    @property
    def rebalances(self) -> Sequence[Rebalance]:
        return tuple(self._past)

    def owns(self, name: str) -> bool:
        return name in self._assignment.mine

    def require_leader(self) -> None:
        if self._leads and self.is_well:
            return
        if self._must_lead or not self._assignment.leader_url or not self.is_well:
            raise NotReadyError(
                "Cannot complete request momentarily due to no known leader URL, "
                "likely because a rebalance was underway."
            )
        raise NotLeader(self._assignment.leader_url)

    def view(self) -> GroupView:
        return GroupView(self._leads, self._assignment.leader_url, self.generation, self._rebalances)

    # Rules

    def introduction(self) -> bytes:
        running = self._jobs.running() if self._jobs else frozenset[str]()
        self._claimed = running | self._assignment.mine
        said = {"url": self.own_url, "connectors": sorted(self._claimed)}
        return json.dumps({**said, "console": self._console_url, "version": __version__}).encode()

    def assignments(self, leader: str, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
        told = {member: json.loads(text) for member, text in members.items()}
        known = frozenset(self._store.load())
        shares = assign(known, {member: said["connectors"] for member, said in told.items()})
        url = told[leader]["url"]
        peers = tuple(
            _peer(told[member]["url"], {**told[member], "connectors": share})
            for member, share in shares.items()
        )
        return {
            member: Assignment(leader, url, share, known, peers).to_bytes()
            for member, share in shares.items()
        }

    # One step

    def turn(self) -> None:
        assert self._member is not None
        if self._has_long_outage():
            self._leave_group()
            self._sleep(_POLL_SECONDS)
            return
        self._has_left = False
        try:
            joined = self._member.poll(_POLL_SECONDS)
            self._complained = ""
            if joined is not None:
                self._take(joined)
            if self._leads and not self._store.can_write:
                self._leads, self._must_lead = False, True
            if self._must_lead:
                self._begin_to_lead()
        except IcestreamError as error:
            self._complain(str(error))
            self._sleep(_AGAIN_SECONDS)
        except Exception as error:  # the group's edge: whatever this is, jobs must end when Kafka is lost
            self._complain(f"the group could not be followed: {type(error).__name__}: {error}")
            self._sleep(_AGAIN_SECONDS)
        if self._member.is_cut_off:
            self._give_up()
        elif self._is_chosen and frozenset(self._store.load()) != self._assignment.known:
            # Only the leader: to others, who have nothing new to say, Kafka repeats the last answer at once.
            self._member.rejoin()

    def run(self) -> None:
        """Turn until closed. A worker that Kafka refuses says so and has no connectors."""
        self._idle.clear()
        while not self._closing.is_set():
            self._last_turn = self._clock()
            try:
                self.turn()
            except Exception:  # the thread's edge: without it the worker would look alive and follow nobody
                _LOG.exception("a turn of the group failed")
                self._sleep(_AGAIN_SECONDS)
        self._last_turn = None
        self._idle.set()

    def close(self) -> None:
        """Leave the group; the jobs have ended by then."""
        self._closing.set()
        # A turn that is under way could join again what has just been left.
        self._idle.wait(_END_SECONDS)
        self._leads = self._must_lead = False
        self._assignment = NOTHING
        if self._member is not None:
            self._member.close()

    # How

    def _has_long_outage(self) -> bool:
        """Whether what the jobs need has been away for so long that others should run them."""
        if self._outage() is None:
            self._away_since = None
            return False
        if self._away_since is None:
            self._away_since = self._clock()
        return self._clock() - self._away_since > _OUTAGE_SECONDS

    def _leave_group(self) -> None:
        """Leave the group until the outage is over: a worker that cannot run jobs must not hold them."""
        assert self._member is not None and self._jobs is not None
        if self._has_left:
            return
        mine = self._assignment.mine
        _LOG.error(
            "%s; %d connector(s) stop here, this worker leaves the group until that is over",
            self._outage(),
            len(mine),
        )
        self._has_left = True
        self._forget_assignment()
        self._wait_for_the_end_of(mine)
        self._member.leave()

    def _forget_assignment(self) -> None:
        assert self._jobs is not None
        self._assignment = NOTHING
        self._leads = self._must_lead = False
        self._jobs.ownership_changed()
        self._store.follow()

    @property
    def _is_chosen(self) -> bool:
        """Whether this worker leads, or is about to."""
        return self._leads or self._must_lead

    def _take(self, joined: Joined) -> None:
        assert self._member is not None and self._jobs is not None
        before = self._assignment.mine
        self._assignment = Assignment.from_bytes(joined.assignment)
        self.generation = joined.generation
        self._rebalances += 1
        self._rebalanced(joined.seconds)
        leads = self._assignment.leader == joined.member_id
        if leads and not self._leads:
            self._must_lead = True
        if not leads:
            self._leads = self._must_lead = False
            self._store.follow()
        mine = self._assignment.mine
        _LOG.info(
            "rebalanced: %d connector(s) here, %d came, %d left, %s",
            len(mine),
            len(mine - before),
            len(before - mine),
            "this worker leads" if leads else f"{self._assignment.leader_url} leads",
        )
        self._jobs.ownership_changed()
        begun, at_ms = self._clock(), self._wall_ms()
        # Also what was only ending here when we joined: if the leader took it from us, nobody has it.
        if self._wait_for_the_end_of((before | self._claimed) - mine):
            self._member.rejoin()
        self._note_rebalance(at_ms, joined.seconds + self._clock() - begun)

    def _note_rebalance(self, at_ms: int, seconds: float) -> None:
        before, after = self._last_peers, self._assignment.peers
        self._last_peers = after
        moves = _moves(before, after) if before else []
        urls = {peer.url for peer in before}, {peer.url for peer in after}
        self._past.append(
            Rebalance(
                at_ms,
                self.generation,
                seconds,
                len(after),
                tuple(sorted(urls[1] - urls[0])),
                tuple(sorted(urls[0] - urls[1])),
                tuple(moves[:_MOST_MOVES]),
                len(moves),
            )
        )

    def _wait_for_the_end_of(self, revoked: frozenset[str]) -> bool:
        """Whether there was anything that others wait for."""
        assert self._jobs is not None
        others = revoked & frozenset(self._store.load())
        deadline = self._clock() + _STOP_SECONDS
        while others & self._jobs.running() and self._clock() < deadline:
            self._sleep(0.05)
        return bool(others)

    def _begin_to_lead(self) -> None:
        self._store.lead()
        self._leads, self._must_lead = True, False

    def _give_up(self) -> None:
        """Kafka has not heard of us for a session: others run our connectors by now, or soon."""
        assert self._jobs is not None and self._member is not None
        if self._assignment is NOTHING:
            return
        mine = len(self._assignment.mine)
        _LOG.warning("cut off from Kafka: %d connector(s) stop here, other workers take them", mine)
        self._forget_assignment()
        # If it was Kafka that hung, it takes the next heartbeat for that of a member that was never away, and
        # asks nobody to join again: this worker would have no connectors for ever.
        self._member.rejoin()

    def _complain(self, message: str) -> None:
        """Once per reason: it comes back at every turn."""
        if message != self._complained:
            _LOG.warning("%s", message)
            self._complained = message


def _moves(before: Sequence[Peer], after: Sequence[Peer]) -> list[Move]:
    """Connectors whose worker is another one than before, by name."""
    old = {name: peer.url for peer in before for name in peer.connectors}
    new = {name: peer.url for peer in after for name in peer.connectors}
    return [
        Move(name, old.get(name, ""), new.get(name, ""))
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)
    ]
