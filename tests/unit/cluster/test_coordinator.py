"""The distributed worker's place in its group, turn by turn, with a fake group and a fake store."""

from __future__ import annotations

import datetime as dt
import json
import threading
from dataclasses import dataclass, field

import pytest

from icestream.api.errors import Fenced, NotLeader, NotReadyError, PreconditionError, SourceUnavailable
from icestream.api.status import Outage
from icestream.cluster.group.coordinator import Assignment, Coordinator
from icestream.cluster.group.membership import Move, Peer
from icestream.kafka.group import Joined


@dataclass
class FakeMember:
    joins: list[Joined | Exception] = field(default_factory=list)
    rejoins: int = 0
    is_cut_off: bool = False
    left: int = 0

    def leave(self) -> None:
        self.left += 1

    def poll(self, seconds: float) -> Joined | None:
        event = self.joins.pop(0) if self.joins else None
        if isinstance(event, Exception):
            raise event
        return event

    def rejoin(self) -> None:
        self.rejoins += 1

    def close(self) -> None:
        pass


@dataclass
class FakeShared:
    names: set[str] = field(default_factory=set)
    calls: list[str] = field(default_factory=list)
    can_write: bool = False

    def load(self) -> dict[str, object]:
        return dict.fromkeys(self.names)

    def lead(self) -> None:
        self.calls.append("lead")
        self.can_write = True

    def follow(self) -> None:
        self.calls.append("follow")
        self.can_write = False


@dataclass
class FakeJobs:
    coordinator: Coordinator
    names: frozenset[str] = frozenset()
    slow_to_end: frozenset[str] = frozenset()

    def running(self) -> frozenset[str]:
        seen = self.names | self.slow_to_end
        self.slow_to_end = frozenset()
        return seen

    def ownership_changed(self) -> None:
        known = frozenset("abcd")
        self.names = frozenset(name for name in known if self.coordinator.owns(name))


class Bench:
    def __init__(self, *names: str) -> None:
        self.store = FakeShared(set(names))
        self.coordinator = Coordinator("http://me:1", self.store, sleep=lambda seconds: None)
        self.member = FakeMember()
        self.jobs = FakeJobs(self.coordinator)
        self.coordinator.join(self.member, self.jobs)

    def joined(self, mine: str, leader: str = "other", known: str = "ab") -> None:
        told = Assignment(leader, f"http://{leader}:1", frozenset(mine), frozenset(known))
        self.member.joins.append(Joined(7, "me", told.to_bytes()))
        self.coordinator.turn()


def test_takes_what_it_is_given_and_sends_requests_to_the_leader() -> None:
    bench = Bench("a", "b")
    with pytest.raises(NotReadyError):
        bench.coordinator.require_leader()
    bench.joined("a")
    assert bench.jobs.names == {"a"} and bench.coordinator.generation == 7
    with pytest.raises(NotLeader) as told:
        bench.coordinator.require_leader()
    assert told.value.url == "http://other:1"
    assert bench.member.rejoins == 0


def test_leads_when_chosen_and_only_then_writes() -> None:
    bench = Bench("a", "b")
    bench.joined("a", leader="me")
    assert bench.store.calls == ["lead"]
    bench.coordinator.require_leader()
    bench.joined("a", leader="me")
    assert bench.store.calls == ["lead"], "a leader that stays leader fences nobody"
    bench.joined("a")
    assert bench.store.calls == ["lead", "follow"]


def test_what_is_taken_away_is_announced_when_its_job_has_ended() -> None:
    bench = Bench("a", "b")
    bench.joined("ab")
    bench.jobs.slow_to_end = frozenset("b")
    bench.joined("a")
    assert bench.jobs.names == {"a"}
    assert bench.member.rejoins == 1


def test_a_deleted_connector_asks_for_no_second_rebalance() -> None:
    bench = Bench("a", "b")
    bench.joined("ab")
    bench.store.names = {"a"}
    bench.joined("a", known="a")
    assert bench.member.rejoins == 0


@pytest.mark.parametrize(("leader", "rejoins"), [("me", 1), ("other", 0)])
def test_for_a_new_connector_the_leader_asks_for_a_rebalance(leader: str, rejoins: int) -> None:
    bench = Bench("a", "b")
    bench.joined("a", leader=leader)
    bench.store.names.add("c")
    bench.coordinator.turn()
    assert bench.member.rejoins == rejoins


def test_cut_off_it_stops_its_jobs_and_leads_no_more() -> None:
    bench = Bench("a", "b")
    bench.joined("ab", leader="me")
    bench.member.joins.append(SourceUnavailable("away"))
    bench.member.is_cut_off = True
    bench.coordinator.turn()
    assert bench.jobs.names == frozenset()
    assert not bench.coordinator.is_well
    with pytest.raises(NotReadyError):
        bench.coordinator.require_leader()
    bench.member.is_cut_off = False
    assert bench.member.rejoins == 1, "a Kafka that hung, and goes on, asks nobody to join"
    bench.joined("a")
    assert bench.jobs.names == {"a"} and bench.coordinator.is_well


def test_the_leader_shares_out_what_the_store_knows() -> None:
    bench = Bench("a", "b")
    bench.joined("a", leader="me")
    other = b'{"url": "http://other:1", "connectors": []}'
    shares = bench.coordinator.assignments("me", {"me": bench.coordinator.introduction(), "other": other})
    told = {member: Assignment.from_bytes(text) for member, text in shares.items()}
    assert told["me"].mine == {"a"} and told["other"].mine == {"b"}
    assert told["other"].leader_url == "http://me:1" and told["other"].known == {"a", "b"}


def test_a_job_that_is_still_ending_is_not_given_away() -> None:
    bench = Bench("a", "b")
    bench.jobs.slow_to_end = frozenset("b")
    assert b'"b"' in bench.coordinator.introduction()


def test_a_leader_whose_write_failed_opens_its_writer_anew() -> None:
    bench = Bench("a", "b")
    bench.joined("a", leader="me")
    bench.store.can_write = False
    bench.coordinator.turn()
    assert bench.store.calls == ["lead", "lead"] and bench.store.can_write
    bench.coordinator.require_leader()


@pytest.mark.parametrize(
    "error", [PreconditionError("others are in the group"), RuntimeError("odd"), Fenced("")]
)
def test_whatever_the_group_says_a_worker_that_is_cut_off_stops_its_jobs(error: Exception) -> None:
    bench = Bench("a", "b")
    bench.joined("ab")
    bench.member.joins.append(error)
    bench.member.is_cut_off = True
    bench.coordinator.turn()
    assert bench.jobs.names == frozenset()


def test_it_leaves_the_group_after_its_last_turn() -> None:
    bench = Bench("a")
    in_a_turn, may_end = threading.Event(), threading.Event()
    seen: list[str] = []

    def slow_poll(seconds: float) -> Joined | None:
        in_a_turn.set()
        may_end.wait(60)
        seen.append("turn")
        return None

    bench.member.poll = slow_poll  # type: ignore[method-assign]
    bench.member.close = lambda: seen.append("left")  # type: ignore[method-assign]
    turning = threading.Thread(target=bench.coordinator.run)
    turning.start()
    in_a_turn.wait(60)
    closing = threading.Thread(target=bench.coordinator.close)
    closing.start()
    may_end.set()
    closing.join(60)
    turning.join(60)
    assert seen[-2:] == ["turn", "left"]


def test_what_was_still_ending_when_it_joined_and_went_to_nobody_is_announced() -> None:
    bench = Bench("a", "b")
    bench.joined("ab")
    bench.member.is_cut_off = True
    bench.coordinator.turn()
    bench.member.is_cut_off = False
    bench.jobs.slow_to_end = frozenset("b")
    assert b'"b"' in bench.coordinator.introduction()
    asked = bench.member.rejoins
    bench.joined("a")
    assert bench.member.rejoins == asked + 1, "nobody else would ask for the rebalance that gives b away"


def test_a_worker_that_cannot_run_jobs_leaves_the_group_until_it_can() -> None:
    bench = Bench("a", "b")
    seconds, outages = [0.0], [Outage("Spark", dt.datetime(2026, 1, 1, tzinfo=dt.UTC), "its process ended")]
    coordinator = Coordinator(
        "http://me:1",
        bench.store,
        clock=lambda: seconds[0],
        sleep=lambda _: None,
        outage=lambda: outages[0] if outages else None,
    )
    bench.coordinator = bench.jobs.coordinator = coordinator
    coordinator.join(bench.member, bench.jobs)
    bench.joined("ab")
    assert bench.jobs.names == {"a", "b"}, "a short outage moves nothing"
    assert coordinator.is_well
    seconds[0] = 1000.0
    coordinator.turn()
    coordinator.turn()
    assert bench.member.left == 1
    assert bench.jobs.names == frozenset()
    assert not coordinator.is_well
    outages.clear()
    bench.joined("a")
    assert bench.jobs.names == {"a"}
    assert coordinator.is_well


def test_every_member_hears_of_the_others() -> None:
    bench = Bench("a", "b")
    said = json.loads(bench.coordinator.introduction())
    assert said["url"] == "http://me:1" and said["version"]
    members = {
        "m1": json.dumps({"url": "http://one:1", "connectors": ["a"], "console": "http://one:9"}).encode(),
        # A worker of an older version says less.
        "m2": json.dumps({"url": "http://two:1", "connectors": []}).encode(),
    }
    told = bench.coordinator.assignments("m1", members)
    found = Assignment.from_bytes(told["m2"])
    assert {(peer.url, peer.connectors, peer.console) for peer in found.peers} == {
        ("http://one:1", frozenset("a"), "http://one:9"),
        ("http://two:1", frozenset("b"), ""),
    }
    assert Assignment.from_bytes(found.to_bytes()) == found


def test_an_older_leader_tells_of_nobody() -> None:
    old = {"leader": "m1", "leader_url": "http://one:1", "connectors": ["a"], "known": ["a"]}
    assert Assignment.from_bytes(json.dumps(old).encode()).peers == ()


def test_what_moved_is_noted() -> None:
    bench = Bench("a", "b")
    here, there = "http://me:1", "http://two:1"

    def joined(generation: int, mine: str, theirs: str) -> Joined:
        peers = (Peer(here, frozenset(mine)), Peer(there, frozenset(theirs)))
        given = Assignment("x", there, frozenset(mine), frozenset("ab"), peers)
        return Joined(generation, "me", given.to_bytes())

    bench.member.joins += [joined(1, "ab", ""), joined(2, "a", "b")]
    bench.coordinator.turn()
    bench.coordinator.turn()
    first, second = bench.coordinator.rebalances
    assert (first.generation, first.moves, first.workers) == (1, 0, 2)
    assert (second.generation, second.moved) == (2, (Move("b", here, there),))
    assert [peer.url for peer in bench.coordinator.peers] == [here, there]
    assert bench.coordinator.leader_url == there
