"""KafkaConnectors in a real API server, carried out on a real worker by an operator that is a process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from icestream.client import ConnectClient
from icestream.embedded.kafka import Broker
from tests.integration.test_file_stream import create, ours, values
from tests.kubernetes import operators
from tests.kubernetes.cluster import Cluster

pytestmark = pytest.mark.slow

OFFSETS = "strimzi.io/connector-offsets"


@dataclass
class World:
    server: Cluster
    namespace: str
    rest: ConnectClient

    def connector(self, name: str = "lines") -> dict[str, Any]:
        found: dict[str, Any] = json.loads(
            self.server.kubectl("get", "kafkaconnector", name, "-n", self.namespace, "-o", "json")
        )
        return found

    def patch(self, **spec: Any) -> None:
        text = json.dumps({"spec": spec})
        where = ("-n", self.namespace, "--type=merge", "-p", text)
        self.server.kubectl("patch", "kafkaconnector", "lines", *where)

    def state(self) -> str | None:
        status = self.connector().get("status", {}).get("connectorStatus", {})
        return str(status.get("connector", {}).get("state"))

    def ask(self, annotation: str, value: str) -> None:
        """Annotate, and wait until the operator has acted and removed it."""
        where = ("-n", self.namespace, f"{annotation}={value}")
        self.server.kubectl("annotate", "kafkaconnector", "lines", *where)
        self.server.wait_for(
            lambda: annotation not in self.connector()["metadata"].get("annotations", {}),
            f"{annotation}={value}",
        )


def kafka_connector(name: str, cluster: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": "KafkaConnector",
        "metadata": {"name": name, "labels": {"strimzi.io/cluster": cluster}},
        "spec": spec,
    }


@pytest.fixture
def world(api_server: Cluster, account: Path, home: str, broker: Broker, tmp_path: Path) -> Iterator[World]:
    (tmp_path / "in.txt").write_bytes(b"one\ntwo\n")
    create(broker, tmp_path.name)
    with ours(tmp_path, broker).running() as rest:
        address = rest.url.removeprefix("http://")
        with operators.running(api_server, account, home, tmp_path, "--connect-to", f"*={address}"):
            yield World(api_server, home, rest)


def test_resources_rule_over_the_connectors_of_a_worker(world: World, broker: Broker, tmp_path: Path) -> None:
    server, topic = world.server, tmp_path.name
    spec = {
        "class": "FileStreamSource",
        "tasksMax": 1,
        "config": {"file": "in.txt", "topic": topic, "batch.size": 100},
        "listOffsets": {"toConfigMap": {"name": "found"}},
        "alterOffsets": {"fromConfigMap": {"name": "found"}},
    }
    cluster = operators.a_cluster()
    cluster["metadata"]["annotations"]["strimzi.io/use-connector-resources"] = "true"
    server.apply(cluster, kafka_connector("lines", "my", spec), namespace=world.namespace)
    server.wait_for(lambda: world.state() == "RUNNING", "the connector runs")
    where = ("-n", world.namespace, "--timeout=240s")
    server.kubectl("wait", "--for=condition=Ready", "kafkaconnector/lines", *where)
    server.wait_for(lambda: len(values(broker, topic)) == 2, "the lines are in Kafka")

    world.patch(config={"batch.size": 50})
    server.wait_for(lambda: world.rest.config("lines")["batch.size"] == "50", "the new config")
    world.rest.create("by-hand", {"connector.class": "FileStreamSource", "file": "x", "topic": topic})
    server.wait_for(lambda: world.rest.names() == ["lines"], "a connector without a resource goes")

    world.patch(state="paused")
    server.wait_for(lambda: world.state() == "PAUSED", "a pause")
    world.patch(state="running")
    server.wait_for(lambda: world.state() == "RUNNING", "an end of the pause")
    world.ask("strimzi.io/restart", "includeTasks")
    world.ask("strimzi.io/restart-task", "0")

    world.patch(state="stopped")
    server.wait_for(lambda: world.state() == "STOPPED", "a stop")
    world.ask(OFFSETS, "list")
    (found,) = (
        one for one in server.objects("configmap", world.namespace) if one["metadata"]["name"] == "found"
    )
    assert [one["offset"] for one in json.loads(found["data"]["offsets.json"])["offsets"]] == [
        {"position": 8}
    ]
    assert [one["name"] for one in found["metadata"]["ownerReferences"]] == ["lines"]
    world.ask(OFFSETS, "reset")
    assert world.rest.offsets("lines") == []
    world.ask(OFFSETS, "alter")
    assert [one["offset"] for one in world.rest.offsets("lines")] == [{"position": 8}]

    server.kubectl("delete", "kafkaconnector", "lines", "-n", world.namespace)
    server.wait_for(lambda: world.rest.names() == [], "the connector goes with its resource")
