"""The number of workers follows the connectors that they tell of, turn by turn: an API server in memory, and
workers that answer on loopback."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from icestream.embedded import ports
from icestream.operator.dispatcher import Turn
from icestream.operator.keys import Key
from icestream.operator.kinds import DEPLOYMENT, ICESTREAM_CLUSTER, SCALED_OBJECT, Kind
from icestream.operator.known_resources import KnownResources
from icestream.operator.reconcilers import Policy, Reconcilers
from icestream.operator.references import References
from icestream.operator.resync import ServedKinds
from tests.counted_workers import Workers

NAMESPACE, NAME = "streams", "my"
WORKERS = f"kafka-connect-workers-{NAME}"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
AUTOSCALER = "HorizontalPodAutoscaler"
SCALING = {"workers": {"min": 2, "max": 12, "connectorsPerWorker": 10}, "cooldownSeconds": 300, "step": 4}


class MemoryServer:
    """Objects by kind and name. Every pod of a Deployment is available at once."""

    def __init__(self, missing: frozenset[str] = frozenset({SCALED_OBJECT.name})) -> None:
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}
        self.missing = missing
        self._version = 0

    def get(self, kind: Kind, namespace: str, name: str) -> dict[str, Any] | None:
        return copy.deepcopy(self.objects.get((kind.name, name)))

    def list(
        self, kind: Kind, namespace: str | None, labels: Mapping[str, str] | None = None
    ) -> Sequence[dict[str, Any]] | None:
        if kind.name in self.missing:
            return None
        return [copy.deepcopy(each) for (name, _), each in self.objects.items() if name == kind.name]

    def apply(self, kind: Kind, manifest: Mapping[str, Any]) -> dict[str, Any]:
        self._version += 1
        made = copy.deepcopy(dict(manifest))
        before = self.objects.get((kind.name, str(made["metadata"]["name"])), {})
        made["metadata"]["resourceVersion"] = str(self._version)
        if kind == DEPLOYMENT:
            made["spec"].setdefault("replicas", before.get("spec", {}).get("replicas", 1))
            made["status"] = {"availableReplicas": made["spec"]["replicas"]}
        self.objects[kind.name, str(made["metadata"]["name"])] = made
        return copy.deepcopy(made)

    def apply_status(
        self, kind: Kind, namespace: str, name: str, uid: str, status: Mapping[str, Any]
    ) -> None:
        self.objects[kind.name, name]["status"] = json.loads(json.dumps(status))

    def merge(self, kind: Kind, namespace: str, name: str, patch: Mapping[str, Any]) -> dict[str, Any]:
        raise AssertionError("no turn of these tests patches")

    create = replace = apply

    def delete(self, kind: Kind, namespace: str, name: str) -> None:
        self.objects.pop((kind.name, name), None)


@dataclass
class Scene:
    workers: Workers
    server: MemoryServer = field(default_factory=MemoryServer)
    now: datetime = NOON
    address: str = ""

    def declare(self, replicas: int = 1, scaling: Mapping[str, Any] | None = SCALING) -> None:
        spec = {"kafka": {"bootstrapServers": "kafka:9092"}, "workers": {"replicas": replicas}}
        before = self.server.objects.get((ICESTREAM_CLUSTER.name, NAME), {})
        self.server.objects[ICESTREAM_CLUSTER.name, NAME] = {
            "apiVersion": ICESTREAM_CLUSTER.api_version,
            "kind": ICESTREAM_CLUSTER.name,
            "metadata": {"name": NAME, "namespace": NAMESPACE, "uid": "u", "generation": 1},
            "spec": {**spec, **({"scaling": dict(scaling)} if scaling else {})},
            "status": before.get("status", {}),
        }

    def turn(self, seconds: float = 30.0) -> Turn:
        """So much later, by an operator that has just been started: all it knows is in the API server."""
        self.now += timedelta(seconds=seconds)
        policy = Policy(connect_to={"*": self.address or self.workers.address})
        reconcilers = Reconcilers(
            self.server,
            KnownResources(),
            References(self.server),
            ServedKinds(),
            policy,
            wake=lambda key: None,
            wrote=lambda kind, verb: None,
            now=lambda: self.now,
        )
        return reconcilers.turn(Key(ICESTREAM_CLUSTER.name, NAMESPACE, NAME))

    def turns(self, count: int, seconds: float = 30.0) -> list[int]:
        numbers = []
        for _ in range(count):
            self.turn(seconds)
            numbers.append(self.replicas)
        return numbers

    @property
    def replicas(self) -> int:
        return int(self.deployment["spec"]["replicas"])

    @property
    def deployment(self) -> dict[str, Any]:
        return self.server.objects[DEPLOYMENT.name, WORKERS]

    @property
    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.server.objects[ICESTREAM_CLUSTER.name, NAME]["status"]
        return found

    def scale_by_hand(self, replicas: int) -> None:
        self.deployment["spec"]["replicas"] = replicas
        self.deployment["status"]["availableReplicas"] = replicas


@pytest.fixture
def scene() -> Iterator[Scene]:
    workers = Workers()
    made = Scene(workers)
    made.declare()
    yield made
    workers.close()


def test_workers_follow_their_connectors_up_in_steps_and_down_once_after_the_cool_down(scene: Scene) -> None:
    scene.workers.have(95)
    assert scene.turn().again_after == 30.0
    assert scene.replicas == 2, "as the resource says, within the limits"
    assert scene.turns(4) == [6, 10, 10, 10]
    assert (scene.status["scaling"]["workers"], scene.status["scaling"]["connectors"]) == (10, 95)
    scene.workers.have(31)
    assert scene.turns(12) == [10] * 10 + [4] * 2
    assert "lessSince" not in scene.status["scaling"]


def test_turns_in_a_row_make_one_step(scene: Scene) -> None:
    """Every pod that comes up wakes its cluster."""
    scene.turn()
    scene.workers.have(1000)
    assert scene.turns(40, seconds=1.0)[29:31] == [6, 6]
    assert scene.replicas == 6
    assert scene.turns(3)[-1] == 12, "the limit"


def test_a_status_without_news_is_not_written_again(scene: Scene) -> None:
    scene.workers.have(20)
    scene.turns(2)
    before = scene.status
    scene.turns(5)
    assert scene.status is before


@pytest.mark.parametrize("answer", [None, {"error_code": 500}, "nonsense"])
def test_workers_that_cannot_be_asked_change_nothing_and_fail_nothing(scene: Scene, answer: Any) -> None:
    scene.workers.have(60)
    assert scene.turns(3)[-1] == 6
    scene.workers.answer = answer
    assert scene.turns(15) == [6] * 15
    assert scene.status["scaling"]["connectors"] == 60
    scene.address = f"{ports.HOST}:{ports.free_port()}"
    assert scene.turns(3) == [6] * 3


def test_new_limits_hold_at_once_even_where_no_worker_answers(scene: Scene) -> None:
    scene.workers.have(60)
    scene.turns(3)
    scene.workers.answer = None
    scene.declare(scaling={"workers": {"min": 2, "max": 3}})
    assert scene.turns(1, seconds=1.0) == [3]


def test_what_somebody_scales_by_hand_holds_for_a_cool_down_and_within_the_limits(scene: Scene) -> None:
    scene.workers.have(20)
    scene.turns(20)
    scene.scale_by_hand(7)
    assert scene.turns(12) == [7] * 10 + [2] * 2
    scene.scale_by_hand(50)
    assert scene.turns(1) == [12]
    scene.scale_by_hand(0)
    assert scene.turns(1) == [2]
    scene.workers.have(60)
    scene.turns(2)
    scene.scale_by_hand(3)
    assert scene.turns(2) == [3, 6], "more is needed"


def test_an_autoscaler_decides_alone(scene: Scene) -> None:
    scene.workers.have(90)
    scene.turns(2)
    manager = {"manager": "kube-controller-manager", "fieldsV1": {"f:spec": {"f:replicas": {}}}}
    scene.deployment["metadata"]["managedFields"] = [manager]
    scene.scale_by_hand(5)
    scene.server.objects[AUTOSCALER, "theirs"] = {
        "metadata": {"name": "theirs"},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": WORKERS}},
    }
    asked = scene.workers.asked
    assert scene.turns(5) == [5] * 5
    assert scene.workers.asked == asked
    assert "scaling" not in scene.status
    del scene.server.objects[AUTOSCALER, "theirs"]
    assert scene.turns(2) == [5, 9], "from where it was"


def test_keda_decides_where_it_is_and_knows_a_prometheus(scene: Scene) -> None:
    scene.server.missing = frozenset()
    scene.workers.have(90)
    scene.declare(scaling={**SCALING, "keda": {"prometheus": "http://prometheus:9090"}})
    scene.turns(3)
    assert (SCALED_OBJECT.name, WORKERS) in scene.server.objects
    assert (scene.workers.asked, "scaling" in scene.status) == (0, False)


def test_a_cluster_of_zero_replicas_is_switched_off(scene: Scene) -> None:
    scene.workers.have(90)
    scene.declare(replicas=0)
    assert scene.turns(3) == [0] * 3
    scene.declare(replicas=1)
    assert scene.turns(3) == [2, 6, 9]


def test_a_cluster_without_scaling_is_as_its_resource_says_and_nobody_is_asked(scene: Scene) -> None:
    scene.workers.have(90)
    scene.turns(3)
    asked = scene.workers.asked
    scene.declare(replicas=3, scaling=None)
    assert scene.turns(3) == [3] * 3
    assert (scene.workers.asked, "scaling" in scene.status) == (asked, False)


@pytest.mark.parametrize(
    "status", ["nonsense", {"workers": 8, "changedAt": "soon", "lessSince": 3, "lessNeeds": "x"}, []]
)
def test_a_status_that_cannot_be_read_begins_the_cool_down_anew(scene: Scene, status: Any) -> None:
    scene.workers.have(80)
    assert scene.turns(4)[-1] == 8
    scene.workers.have(0)
    scene.turns(9)
    scene.status["scaling"] = status
    assert scene.turns(12) == [8] * 10 + [2] * 2


def test_a_clock_that_was_put_back_does_not_stop_scaling(scene: Scene) -> None:
    scene.workers.have(80)
    scene.turns(4)
    scene.workers.have(0)
    scene.turn()
    scene.turn(seconds=-86_400.0)
    assert scene.turns(11)[-1] == 2
