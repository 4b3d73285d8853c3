"""Random wishes, failures, late watches and ends of the operator: what is declared comes true, and no restart
is made twice by an operator that lives on."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from icestream.api.errors import IcestreamError, NotReadyError, WorkerUnreachable
from icestream.operator.connectors import RecentActions
from tests.unit.operator.connectors.fakes import World

RESTART = "strimzi.io/restart"
_READING = ("config", "status", "topics", "offsets")
_CHANGING = ("create", "put_config", "pause", "resume", "stop", "restart")
_API = ("annotation", "remove_annotation", "write_status", "write_config_map_value")


class Chance:
    """A user, a network and a watch, as a seed has it."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.may_end = seed % 2 == 1
        self.world = World(autoRestart={"enabled": True})
        self.asked = 0
        self.ends = 0
        self.views: list[Mapping[str, Any]] = []

    def event(self) -> None:
        events: list[Callable[[], None]] = [
            self.wish_state,
            self.wish_config,
            self.wish_restart,
            self.refuse,
            self.lose_api_server,
            self.find_api_server,
            self.edit_by_rest,
            self.fail,
            self.end_operator,
            lambda: self.world.pass_minutes(self.random.choice([0.1, 3, 70])),
        ]
        self.random.choice(events)()

    def turn(self) -> None:
        """With the resource as it is now, or as it was some time ago."""
        self.views.append(copy.deepcopy(self.world.resource))
        self.views = self.views[-3:]
        self.world.turn(self.random.choice(self.views) if self.random.random() < 0.4 else None)

    def wish_state(self) -> None:
        self.world.resource["spec"]["state"] = self.random.choice(["running", "paused", "stopped"])

    def wish_config(self) -> None:
        self.world.resource["spec"]["config"] = {"topics": f"t{self.random.randrange(5)}"}

    def wish_restart(self) -> None:
        if RESTART not in self.world.annotations:
            self.world.annotations[RESTART] = "true"
            self.asked += 1

    def refuse(self) -> None:
        call = self.random.choice(_READING + _CHANGING)
        kind: type[IcestreamError] = self.random.choice([NotReadyError, WorkerUnreachable, IcestreamError])
        self.world.workers.refusals[call] = [
            kind("no; try again") for _ in range(self.random.randrange(1, 8))
        ]

    def lose_api_server(self) -> None:
        self.world.api.failing = set(self.random.sample(_API, 2))

    def find_api_server(self) -> None:
        self.world.api.failing = set()

    def edit_by_rest(self) -> None:
        if "sink" in self.world.workers.configs:
            self.world.workers.configs["sink"]["by"] = "hand"

    def fail(self) -> None:
        if self.world.workers.states.get("sink") == "RUNNING":
            self.world.workers.tasks["sink"] = ["FAILED"]

    def end_operator(self) -> None:
        if not self.may_end:
            return
        self.world.recent = RecentActions()
        self.ends += 1

    def settle(self) -> None:
        self.world.api.failing = set()
        self.world.workers.refusals.clear()
        for _ in range(4):
            self.world.turn()


@pytest.mark.parametrize("seed", range(60))
def test_whatever_happens_the_declared_state_is_reached(seed: int) -> None:
    chance = Chance(seed)
    for _ in range(80):
        chance.event()
        chance.turn()
    chance.settle()
    world = chance.world
    spec = world.resource["spec"]
    own = {"name": "sink", "connector.class": "C", "tasks.max": "1"}
    assert world.workers.configs["sink"] == {**own, **spec["config"]}
    assert world.workers.states["sink"] == spec.get("state", "running").upper()
    assert RESTART not in world.annotations
    made = world.workers.done.count(("restart", False, False))
    assert chance.asked <= made <= chance.asked + chance.ends
