"""Labels of all objects of a cluster, and how its pods are found. Every pod has both families of labels: that
of Strimzi, and that of the manifests that people have for Confluent's images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from icestream.operator.kinds import KAFKA_CONNECT
from icestream.operator.resources.cluster_spec import ClusterSpec
from icestream.operator.resources.names import label_value

MANAGED_BY: Final = "icestream-operator"
OWNER: Final = "icestream.dev/cluster"
OWNER_KIND: Final = "icestream.dev/kind"
OPERATOR: Final[Mapping[str, str]] = {"app.kubernetes.io/name": "icestream-operator"}
"""The pods of the operator itself, which may reach REST."""
WORKERS: Final = "kafka-connect-workers"
JOB_MANAGERS: Final = "iceberg-job-manager"
EXECUTORS: Final = "icestream-executors"

_STAY_BEHIND: Final = ("app.kubernetes.io/", "kustomize.toolkit.fluxcd.io/", "helm.toolkit.fluxcd.io/")
_PART_OF: Final = "app.kubernetes.io/part-of"


def owned(spec: ClusterSpec) -> dict[str, str]:
    """On every object that belongs to the cluster; the loop finds by them what is no longer desired."""
    return {
        "app.kubernetes.io/managed-by": MANAGED_BY,
        OWNER: label_value(spec.name),
        OWNER_KIND: spec.kind,
    }


def common(spec: ClusterSpec) -> dict[str, str]:
    """The resource's own labels and those of both families."""
    copied = {
        key: value
        for key, value in spec.labels.items()
        if key == _PART_OF or not key.startswith(_STAY_BEHIND)
    }
    cluster = label_value(spec.name)
    return {
        _PART_OF: label_value(f"strimzi-{spec.name}"),
        **copied,
        "app.kubernetes.io/name": "kafka-connect",
        "app.kubernetes.io/instance": cluster,
        "strimzi.io/kind": spec.kind,
        "strimzi.io/cluster": cluster,
        "strimzi.io/name": label_value(f"{spec.name}-connect"),
        "strimzi.io/component-type": "kafka-connect",
        **owned(spec),
    }


def workers(spec: ClusterSpec) -> dict[str, str]:
    return {**common(spec), "app": WORKERS}


def selector(spec: ClusterSpec) -> dict[str, str]:
    """By which Deployment, services and policies find the workers' pods; it never changes."""
    if spec.kind == KAFKA_CONNECT.name:
        keys = ("strimzi.io/cluster", "strimzi.io/kind", "strimzi.io/name")
    else:
        keys = ("app", OWNER, OWNER_KIND)
    found = workers(spec)
    return {key: found[key] for key in keys}


def label_selector(spec: ClusterSpec) -> str:
    """The same as a text, for `status.labelSelector`."""
    return ",".join(f"{key}={value}" for key, value in sorted(selector(spec).items()))


def job_manager(spec: ClusterSpec, job: str) -> dict[str, str]:
    return {**owned(spec), "app": JOB_MANAGERS, "job": label_value(job)}


def executors(spec: ClusterSpec) -> dict[str, str]:
    return {**owned(spec), "app": EXECUTORS}
