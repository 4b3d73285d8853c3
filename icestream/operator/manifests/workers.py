"""The Deployment of the workers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from icestream.operator.kinds import DEPLOYMENT
from icestream.operator.manifests import labels
from icestream.operator.manifests.facts import Facts, Manifest
from icestream.operator.manifests.objects import image_of, object_of
from icestream.operator.manifests.pods import (
    container_security,
    folders,
    pod_security,
    probe,
    pull_secrets,
    startup_probe,
    token_volume,
    without_doubles,
)
from icestream.operator.manifests.spark import BLOCK_PORT, DRIVER_PORT, TEMPLATE_FOLDER, executor_template
from icestream.operator.manifests.worker_config import (
    CONFIG_FILE,
    CONFIG_FOLDER,
    REST_PORT,
    config_data,
    reads_a_file,
    variables,
)
from icestream.operator.resources.cluster_spec import ClusterSpec
from icestream.operator.resources.names import dns_label

_REST: Final = "rest-api"
_METRICS: Final = "tcp-prometheus"
_PRE_STOP_SECONDS: Final = 5
CONFIG_HASH: Final = "strimzi.io/configuration-hash"
REFERENCES_HASH: Final = "strimzi.io/auth-hash"
RESTARTED: Final = "icestream.dev/restarted"


def worker_deployment(spec: ClusterSpec, facts: Facts, *, has_scaler: bool) -> Manifest:
    body: dict[str, Any] = {
        "selector": {"matchLabels": labels.selector(spec)},
        "minReadySeconds": 10,
        "revisionHistoryLimit": 3,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        "template": {
            "metadata": {
                "labels": {**spec.template.labels, **labels.workers(spec)},
                "annotations": {**spec.template.annotations, **_hashes(spec, facts)},
            },
            "spec": _pod(spec, facts),
        },
    }
    if not has_scaler:
        body["replicas"] = spec.replicas if facts.replicas is None else facts.replicas
    return object_of(DEPLOYMENT, spec, spec.names.workers, {"spec": body})


def digest(content: Any) -> str:
    text = json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _hashes(spec: ClusterSpec, facts: Facts) -> Mapping[str, str]:
    """What rolls the pods when it changes though their own spec does not."""
    template = executor_template(spec)["data"] if spec.executors else {}
    found = {CONFIG_HASH: digest([config_data(spec, facts), template])}
    known = sorted(
        (one.kind, one.name, facts.hashes[one]) for one in spec.worker_references if one in facts.hashes
    )
    if known:
        found[REFERENCES_HASH] = digest(known)
    if facts.restarted:
        found[RESTARTED] = facts.restarted
    return found


def _pod(spec: ClusterSpec, facts: Facts) -> dict[str, Any]:
    volumes, mounts = _volumes(spec)
    template = spec.template
    return {
        **template.settings,
        **pull_secrets(template.settings, spec.pull_secrets),
        "serviceAccountName": spec.names.workers,
        "automountServiceAccountToken": False,
        "securityContext": pod_security(template),
        "terminationGracePeriodSeconds": template.grace_seconds,
        "containers": [_container(spec, facts, mounts)],
        "volumes": volumes,
    }


def _container(spec: ClusterSpec, facts: Facts, mounts: list[dict[str, Any]]) -> dict[str, Any]:
    given = (*spec.env, *spec.template.env)
    found: dict[str, Any] = {
        "name": spec.names.container,
        "image": image_of(spec, facts, "worker"),
        "env": without_doubles([*variables(spec, facts), *given]),
        "ports": _ports(spec),
        "startupProbe": startup_probe(_REST),
        "livenessProbe": probe(spec.liveness, _REST),
        "readinessProbe": probe(spec.readiness, _REST),
        "lifecycle": {"preStop": {"sleep": {"seconds": _PRE_STOP_SECONDS}}},
        "securityContext": container_security(spec.template),
        "volumeMounts": mounts,
    }
    if reads_a_file(spec):
        found["command"] = ["icestream", "distributed", f"{CONFIG_FOLDER}/{CONFIG_FILE}"]
    else:
        found["command"] = ["/etc/confluent/docker/run"]
    if spec.resources:
        found["resources"] = dict(spec.resources)
    if spec.template.env_from:
        found["envFrom"] = list(spec.template.env_from)
    return found


def _ports(spec: ClusterSpec) -> list[dict[str, Any]]:
    ports = [(_REST, REST_PORT)]
    if spec.metrics_port is not None:
        ports.append((_METRICS, spec.metrics_port))
    if spec.executors is not None:
        ports += [("driver", DRIVER_PORT), ("blockmanager", BLOCK_PORT)]
    return [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in ports]


def _volumes(spec: ClusterSpec) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    volumes, mounts = folders(spec.template.tmp_size)
    # Below the folder that config providers may read: without a mount in it, it would not exist, and the
    # worker would refuse its config.
    volumes.append({"name": "plugins", "emptyDir": {"sizeLimit": "1Mi"}})
    mounts.append({"name": "plugins", "mountPath": "/opt/kafka/plugins"})
    if reads_a_file(spec):
        volumes.append({"name": "connect-config", "configMap": {"name": spec.names.config}})
        mounts.append({"name": "connect-config", "mountPath": CONFIG_FOLDER, "readOnly": True})
    for path, secret in spec.secret_mounts.items():
        name = dns_label(f"secret-{path.rpartition('/')[0].rpartition('/')[2]}-{secret}")
        volumes.append({"name": name, "secret": {"secretName": secret, "defaultMode": 0o440}})
        mounts.append({"name": name, "mountPath": path, "readOnly": True})
    if spec.executors is not None:
        volumes.append({"name": "executors", "configMap": {"name": spec.names.executors}})
        mounts.append({"name": "executors", "mountPath": TEMPLATE_FOLDER, "readOnly": True})
    if spec.needs_token:
        volume, mount = token_volume()
        volumes.append(volume)
        mounts.append(mount)
    volumes += [dict(one) for one in (*spec.volumes, *spec.template.volumes)]
    mounts += [dict(one) for one in (*spec.mounts, *spec.template.mounts)]
    return without_doubles(volumes), mounts
