"""A worker that cannot run jobs leaves the group and comes back, with the real group protocol."""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from icestream.api.status import Outage
from icestream.cluster.group import coordinator
from icestream.cluster.group.coordinator import Coordinator
from icestream.embedded.kafka import Broker
from icestream.kafka.connection import connection_facts
from icestream.kafka.group import GroupMember
from icestream.kafka.timing import Timing

CONNECTORS = frozenset("abcd")
PATIENCE = 120.0


class Store:
    can_write = True

    def load(self) -> dict[str, Any]:
        return dict.fromkeys(CONNECTORS)

    def lead(self) -> None: ...

    def follow(self) -> None: ...


class Member:
    """A worker as far as the group sees it: its jobs start and end at once."""

    def __init__(self, broker: Broker, group: str, number: int) -> None:
        self.outage: Outage | None = None
        self.coordinator = Coordinator(f"http://worker-{number}:8083", Store(), outage=lambda: self.outage)
        facts = connection_facts({"bootstrap.servers": broker.bootstrap})
        timing = Timing(session_timeout=10_000, heartbeat_interval=1_000, rebalance_timeout=30_000)
        self.coordinator.join(GroupMember(group, facts, timing, self.coordinator), self)
        threading.Thread(target=self.coordinator.run, daemon=True).start()

    def running(self) -> frozenset[str]:
        return frozenset(name for name in CONNECTORS if self.coordinator.owns(name))

    def ownership_changed(self) -> None: ...


@pytest.fixture
def members(broker: Broker, group: str) -> Iterator[list[Member]]:
    made = [Member(broker, group, number) for number in range(2)]
    yield made
    for member in made:
        member.coordinator.close()


def wait(holds: Callable[[], bool], otherwise: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, otherwise()
        time.sleep(0.05)


def test_its_connectors_go_to_the_others_until_it_is_back(
    members: list[Member], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator, "_OUTAGE_SECONDS", 0.1)
    unfit, other = members

    def told() -> list[list[str]]:
        return [sorted(member.running()) for member in members]

    wait(lambda: [len(share) for share in told()] == [2, 2], told)
    unfit.outage = Outage("Spark", dt.datetime.now(dt.UTC), "its process ended")
    wait(lambda: other.running() == CONNECTORS and not unfit.running(), told)
    assert not unfit.coordinator.is_well
    assert other.coordinator.is_well
    unfit.outage = None
    wait(lambda: [len(share) for share in told()] == [2, 2], told)
    assert unfit.coordinator.is_well
