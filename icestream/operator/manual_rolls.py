"""`strimzi.io/manual-rolling-update` on a Deployment or a pod of a cluster: its pods are replaced, and the
annotation goes. Called by the reconciliation of a cluster."""

from __future__ import annotations

import logging
import uuid
from typing import Final

from icestream.operator.api_server import ApiServer, Object
from icestream.operator.children import Children
from icestream.operator.kinds import DEPLOYMENT, POD
from icestream.operator.manifests.labels import owned
from icestream.operator.resources.cluster_spec import ClusterSpec
from icestream.operator.rollout import unfinished

_LOG = logging.getLogger(__name__)
ANNOTATION: Final = "strimzi.io/manual-rolling-update"
ROLLED: Final = "icestream.dev/rolled"


def roll_annotated(server: ApiServer, children: Children, spec: ClusterSpec) -> bool:
    """Whether pods are still to be rolled: one at a time, and only while all others are there."""
    for deployment in children.of_kind(DEPLOYMENT):
        if _is_asked_for(deployment):
            _roll(server, deployment)
            return True
    pods = [
        pod
        for pod in server.list(POD, spec.namespace, owned(spec)) or ()
        if _is_asked_for(pod) and not pod["metadata"].get("deletionTimestamp")
    ]
    if not pods:
        return False
    if all(unfinished(deployment) is None for deployment in children.of_kind(DEPLOYMENT)):
        name = str(pods[0]["metadata"]["name"])
        _LOG.info("pod %s/%s is replaced, because its annotation asks for it", spec.namespace, name)
        server.delete(POD, spec.namespace, name)
    return True


def _roll(server: ApiServer, deployment: Object) -> None:
    """Both in one write: an operator that dies here has rolled and forgotten, or done neither. Server-side
    apply does not have this annotation of the template, and so leaves it as it is."""
    metadata = deployment["metadata"]
    patch = {
        "metadata": {"annotations": {ANNOTATION: None}, "resourceVersion": metadata["resourceVersion"]},
        "spec": {"template": {"metadata": {"annotations": {ROLLED: uuid.uuid4().hex[:8]}}}},
    }
    server.merge(DEPLOYMENT, metadata["namespace"], metadata["name"], patch)
    _LOG.info("Deployment %s/%s is rolled, as its annotation asks", metadata["namespace"], metadata["name"])


def _is_asked_for(found: Object) -> bool:
    return str((found["metadata"].get("annotations") or {}).get(ANNOTATION, "")).lower() == "true"
