"""KafkaConnector resources carried out by a real worker. The API server is tests/kubernetes' business."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from icestream.embedded.kafka import Broker
from icestream.operator.connectors import (
    ConnectorOutcome,
    RecentActions,
    delete_surplus,
    reconcile_connector,
    workers_at,
)
from tests.integration.test_file_stream import Side, create, eventually, ours, values
from tests.unit.operator.connectors.fakes import ApiServer, conditions

pytestmark = pytest.mark.slow

OFFSETS = "strimzi.io/connector-offsets"


class Operator:
    """Turns of the resource `lines`, with a worker that answers at this address."""

    def __init__(self, side: Side, url: str, spec: dict[str, Any]) -> None:
        self.api = ApiServer({"metadata": {"name": "lines", "uid": "u", "annotations": {}}, "spec": spec})
        self.rest = workers_at(url)
        self._side = side
        self._recent = RecentActions()
        self.outcome = ConnectorOutcome()

    @property
    def spec(self) -> dict[str, Any]:
        found: dict[str, Any] = self.api.resource["spec"]
        return found

    @property
    def topic(self) -> str:
        return str(self.spec["config"]["topic"])

    @property
    def state(self) -> str:
        return str(self.outcome.status.get("connectorStatus", {}).get("connector", {}).get("state"))

    @property
    def task_states(self) -> list[str]:
        return [task["state"] for task in self.outcome.status.get("connectorStatus", {}).get("tasks", ())]

    def turn(self) -> ConnectorOutcome:
        self.outcome = reconcile_connector(self.api.resource, self.rest, self.api, self._recent)
        self.api.write_status(self.outcome.status)
        return self.outcome

    def turns_until(self, holds: Callable[[], bool]) -> None:
        eventually(
            lambda: bool(self.turn()) and holds(),
            lambda: f"{json.dumps(self.outcome.status)}\n{self._side.log.read_text()}",
        )

    def answer(self, annotation: str, value: str) -> None:
        """Set the annotation, and take turns until it was acted upon."""
        self.api.annotations[annotation] = value
        self.turns_until(lambda: annotation not in self.api.annotations)


@pytest.fixture
def operator(broker: Broker, tmp_path: Path) -> Iterator[Operator]:
    (tmp_path / "in.txt").write_bytes(b"one\ntwo\n")
    topic = tmp_path.name
    create(broker, topic)
    side = ours(tmp_path, broker)
    config = {"file": "in.txt", "topic": topic, "batch.size": 100}
    spec = {"class": "FileStreamSource", "tasksMax": 1, "config": config, "state": "stopped"}
    with side.running() as client:
        yield Operator(side, client.url, spec)


def test_a_resource_is_created_changed_steered_and_deleted(operator: Operator, broker: Broker) -> None:
    operator.turns_until(lambda: operator.state == "STOPPED")
    assert values(broker, operator.topic) == []
    assert operator.rest.config("lines")["batch.size"] == "100"

    operator.spec["state"] = "running"
    operator.turns_until(lambda: operator.task_states == ["RUNNING"])
    operator.turns_until(lambda: len(values(broker, operator.topic)) == 2)
    assert conditions(operator.turn()) == [("Ready", "")]
    operator.turns_until(lambda: operator.outcome.status.get("topics") == [operator.topic])

    operator.spec["config"]["batch.size"] = 50
    operator.turn()
    assert operator.rest.config("lines")["batch.size"] == "50"
    operator.turns_until(lambda: operator.task_states == ["RUNNING"])
    operator.turn()
    assert operator.outcome.requeue_after is None

    operator.spec["state"] = "paused"
    operator.turns_until(lambda: operator.state == "PAUSED" and operator.task_states == ["PAUSED"])
    operator.spec["state"] = "running"
    operator.turns_until(lambda: operator.state == "RUNNING" and operator.task_states == ["RUNNING"])
    operator.answer("strimzi.io/restart", "includeTasks")
    operator.answer("strimzi.io/restart-task", "0")
    operator.turns_until(lambda: operator.state == "RUNNING" and operator.task_states == ["RUNNING"])

    assert delete_surplus(operator.rest, lambda: {"lines"}).deleted == ()
    assert delete_surplus(operator.rest, set).deleted == ("lines",)
    assert operator.rest.names() == []


def test_offsets_are_listed_altered_and_reset_through_config_maps(operator: Operator, broker: Broker) -> None:
    operator.spec.update(
        {
            "state": "running",
            "listOffsets": {"toConfigMap": {"name": "found"}},
            "alterOffsets": {"fromConfigMap": {"name": "wanted"}},
        }
    )

    def listed() -> list[dict[str, Any]]:
        operator.answer(OFFSETS, "list")
        found: list[dict[str, Any]] = json.loads(operator.api.config_maps["found"]["offsets.json"])["offsets"]
        return found

    eventually(lambda: [one["offset"] for one in listed()] == [{"position": 8}], lambda: str(listed()))
    entry = listed()[0] | {"offset": {"position": 4}}
    operator.api.config_maps["wanted"] = {"offsets.json": json.dumps({"offsets": [entry]})}

    operator.api.annotations[OFFSETS] = "alter"
    assert ("Warning", "AlterOffsets") in conditions(operator.turn())
    operator.spec["state"] = "stopped"
    operator.turns_until(lambda: OFFSETS not in operator.api.annotations)
    assert [one["offset"] for one in listed()] == [{"position": 4}]

    operator.answer(OFFSETS, "reset")
    assert listed() == []
    operator.spec["state"] = "running"
    operator.turns_until(lambda: len(values(broker, operator.topic)) == 4)


def test_a_failed_connector_is_told_and_restarted(operator: Operator) -> None:
    operator.spec.update(
        {
            "class": "FileStreamSink",
            "config": {"file": "no/such/folder/out.txt", "topics": operator.topic},
            "state": "running",
            "autoRestart": {"enabled": True},
        }
    )
    operator.turns_until(lambda: operator.outcome.status.get("autoRestart", {}).get("count") == 1)
    operator.turns_until(lambda: conditions(operator.outcome) == [("NotReady", "Throwable")])
    assert "failed" in operator.outcome.status["conditions"][0]["message"]
    assert operator.outcome.status["autoRestart"]["count"] == 1


def test_what_the_worker_refuses_is_in_the_status(operator: Operator) -> None:
    operator.spec["class"] = "com.example.Unknown"
    operator.turn()
    assert conditions(operator.outcome) == [("NotReady", "ConnectRestException")]
    assert "com.example.Unknown" in operator.outcome.status["conditions"][0]["message"]
