"""What every object of a cluster has: names, labels, its owner. And which image a role gets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from icestream.operator.kinds import Kind
from icestream.operator.manifests import labels
from icestream.operator.manifests.facts import Facts, Manifest
from icestream.operator.resources.cluster_spec import ClusterSpec, Metadata

_NOTHING = Metadata()


def object_of(
    kind: Kind,
    spec: ClusterSpec,
    name: str,
    body: Mapping[str, Any],
    *,
    with_labels: Mapping[str, str] | None = None,
    extra: Metadata = _NOTHING,
) -> Manifest:
    """An object in the cluster's namespace that goes when its resource goes."""
    own = labels.workers(spec) if with_labels is None else with_labels
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": spec.namespace,
        "labels": {**extra.labels, **own},
    }
    if extra.annotations:
        metadata["annotations"] = dict(extra.annotations)
    if spec.uid:
        metadata["ownerReferences"] = [
            {
                "apiVersion": spec.api_version,
                "kind": spec.kind,
                "name": spec.name,
                "uid": spec.uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, **body}


def image_of(spec: ClusterSpec, facts: Facts, role: str) -> str:
    """What was pushed, what the user named, what the operator has; a coordinator may be a worker's image."""
    named = {"worker": spec.worker_image, "coordinator": spec.coordinator_image}
    own = facts.images.get(role) or named[role]
    if own or role == "worker":
        return own or facts.default_image
    return image_of(spec, facts, "worker")
