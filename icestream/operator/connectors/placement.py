"""Whether a KafkaConnector has a cluster to run in. Pure; the loop asks before it calls REST."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from icestream.operator.connectors.facts import CLUSTER_LABEL, USE_CONNECTOR_RESOURCES


@dataclass(frozen=True)
class Unplaced:
    """Why not: reason and message as Strimzi's users know them."""

    reason: str
    message: str


def cluster_of(connector: Mapping[str, Any]) -> str | None:
    """The name of the KafkaConnect that it belongs to, in its own namespace."""
    labels = (connector.get("metadata") or {}).get("labels") or {}
    name = labels.get(CLUSTER_LABEL)
    return str(name) if name else None


def uses_connector_resources(cluster: Mapping[str, Any]) -> bool:
    """With this annotation resources rule, and connectors that have none are deleted."""
    annotations = (cluster.get("metadata") or {}).get("annotations") or {}
    return str(annotations.get(USE_CONNECTOR_RESOURCES, "")).lower() == "true"


def unplaced(
    connector: Mapping[str, Any], cluster: Mapping[str, Any] | None, replicas: int | None
) -> Unplaced | None:
    """`cluster` is the resource that the label names; `replicas` are those that it asks for, if known."""
    namespace = (connector.get("metadata") or {}).get("namespace", "")
    name = cluster_of(connector)
    if name is None:
        return Unplaced(
            "InvalidResourceException",
            f"Resource lacks label '{CLUSTER_LABEL}': No connect cluster in which to create this connector.",
        )
    if cluster is None:
        return Unplaced(
            "NoSuchResourceException",
            f"KafkaConnect resource '{name}' identified by label '{CLUSTER_LABEL}' does not exist in "
            f"namespace {namespace}.",
        )
    if not uses_connector_resources(cluster):
        return Unplaced(
            "NoSuchResourceException",
            f"KafkaConnect cluster '{name}' in namespace {namespace} is not configured with annotation "
            f"{USE_CONNECTOR_RESOURCES}",
        )
    if replicas == 0:
        return Unplaced(
            "RuntimeException", f"Kafka Connect cluster '{name}' in namespace {namespace} has 0 replicas."
        )
    return None
