"""A connector whose resource or cluster is gone."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from icestream.operator.api_server import FIELD_MANAGER
from icestream.operator.connector_turn import ConnectorReconciler, ConnectorTools
from icestream.operator.connectors.facts import RESTART, AutoRestart
from icestream.operator.connectors.recent_actions import RecentActions
from icestream.operator.keys import Key
from icestream.operator.kinds import CLUSTERS, KAFKA_CONNECTOR
from icestream.operator.reconcilers import Policy
from icestream.operator.resources.cluster import parse_cluster
from icestream.operator.resync import ServedKinds

KEY = Key("KafkaConnector", "n", "c")


class _Server:
    """With one connector at most, and no cluster."""

    def __init__(self, connector: dict[str, Any] | None) -> None:
        self.connector = connector
        self.statuses: list[dict[str, Any]] = []

    def get(self, kind: Any, namespace: str, name: str) -> dict[str, Any] | None:
        return self.connector if kind.name == KAFKA_CONNECTOR.name else None

    def apply_status(self, kind: Any, namespace: str, name: str, uid: str, status: dict[str, Any]) -> None:
        self.statuses.append(status)


def _connector(uid: str = "u", **metadata: Any) -> dict[str, Any]:
    own = {"namespace": "n", "name": "c", "uid": uid, "labels": {"strimzi.io/cluster": "gone"}}
    return {
        "apiVersion": KAFKA_CONNECTOR.api_version,
        "kind": "KafkaConnector",
        "metadata": {**own, **metadata},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }


def _reconciler(server: _Server, recent: RecentActions | None = None) -> ConnectorReconciler:
    kinds = ServedKinds()
    for kind in (*CLUSTERS, KAFKA_CONNECTOR):
        kinds.put(kind)
    return ConnectorReconciler(
        ConnectorTools(
            server=server,  # type: ignore[arg-type]
            kinds=kinds,
            is_managed=Policy().is_managed,
            parse=parse_cluster,
            workers=lambda url: None,  # type: ignore[arg-type,return-value]
            wake=lambda key: None,
            recent=recent or RecentActions(),
        )
    )


def test_a_connector_that_was_ours_does_not_stay_ready_when_its_cluster_is_gone() -> None:
    ours = [{"manager": FIELD_MANAGER, "operation": "Apply", "subresource": "status"}]
    server = _Server(_connector(managedFields=ours))
    assert not _reconciler(server).turn(KEY).is_ready
    (status,) = server.statuses
    assert status["conditions"][0]["type"] == "NotReady"
    assert "does not exist in namespace n" in status["conditions"][0]["message"]


def test_a_connector_of_nobody_or_of_another_operator_is_left_alone() -> None:
    others = [{"manager": "strimzi-cluster-operator", "operation": "Update", "subresource": "status"}]
    for fields in ([], others):
        server = _Server(_connector(managedFields=fields))
        _reconciler(server).turn(KEY)
        assert server.statuses == []


def test_what_was_noted_of_a_connector_goes_with_its_resource() -> None:
    for successor in (None, _connector("v")):
        recent, server = RecentActions(), _Server(_connector("u"))
        reconciler = _reconciler(server, recent)
        reconciler.turn(KEY)
        recent.note_answer("u", RESTART, "true")
        recent.note_auto_restart("u", AutoRestart(1, datetime.now(UTC)))
        reconciler.turn(KEY)
        assert recent.has_unremoved("u", RESTART)
        server.connector = successor
        reconciler.turn(KEY)
        assert not recent.has_unremoved("u", RESTART)
        assert recent.last_auto_restart("u", None) is None
