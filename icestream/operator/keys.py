"""What the operator's queue holds: the names of resources to reconcile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

CLUSTER_LABEL: Final = "strimzi.io/cluster"
CONNECTOR_KIND: Final = "KafkaConnector"


@dataclass(frozen=True, order=True)
class Key:
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"

    @property
    def is_connector(self) -> bool:
        return self.kind == CONNECTOR_KIND


def key_of(resource: Mapping[str, Any]) -> Key:
    metadata = resource["metadata"]
    return Key(str(resource["kind"]), str(metadata["namespace"]), str(metadata["name"]))


def cluster_label(resource: Mapping[str, Any]) -> str | None:
    """The name of the cluster that a connector asks for."""
    labels = resource["metadata"].get("labels") or {}
    found = labels.get(CLUSTER_LABEL)
    return str(found) if found else None


def owner_key(child: Mapping[str, Any], kinds: frozenset[str]) -> Key | None:
    """The resource of one of these kinds that controls a child."""
    metadata = child["metadata"]
    for owner in metadata.get("ownerReferences") or ():
        if owner.get("controller") and owner.get("kind") in kinds:
            return Key(str(owner["kind"]), str(metadata["namespace"]), str(owner["name"]))
    return None
