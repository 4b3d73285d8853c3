"""Job managers: for each job a Deployment of one pod, the ConfigMap with its variables, and a Service."""

from __future__ import annotations

from typing import Any, Final

from icestream.operator.kinds import CONFIG_MAP, DEPLOYMENT, SERVICE
from icestream.operator.manifests import labels
from icestream.operator.manifests.facts import Facts, Manifest
from icestream.operator.manifests.objects import image_of, object_of
from icestream.operator.manifests.pods import (
    HOME,
    container_security,
    folders,
    pod_security,
    probe,
    pull_secrets,
    startup_probe,
    without_doubles,
)
from icestream.operator.manifests.workers import CONFIG_HASH, REFERENCES_HASH, RESTARTED, digest
from icestream.operator.resources.cluster_spec import ClusterSpec, Job, PodTemplate, Probe
from icestream.operator.resources.names import dns_label

_PORT: Final = 8080
_HTTP: Final = "http"
_PLAIN: Final = PodTemplate()


def job_objects(spec: ClusterSpec, facts: Facts) -> list[Manifest]:
    return [one for job in spec.jobs for one in _objects(spec, job, facts)]


def _objects(spec: ClusterSpec, job: Job, facts: Facts) -> list[Manifest]:
    name = dns_label(f"{labels.JOB_MANAGERS}-{spec.name}-{job.name}")
    own = labels.job_manager(spec, job.name)
    port = {"name": _HTTP, "port": _PORT, "targetPort": _HTTP, "protocol": "TCP"}
    deployment = {
        # Two alive for a moment would fence each other; one after the other is quicker.
        "replicas": 1,
        "strategy": {"type": "Recreate"},
        "revisionHistoryLimit": 3,
        "selector": {"matchLabels": own},
        "template": {
            "metadata": {"labels": own, "annotations": _hashes(job, facts)},
            "spec": _pod(spec, job, facts, name),
        },
    }
    return [
        object_of(CONFIG_MAP, spec, name, {"data": dict(job.values)}, with_labels=own),
        object_of(SERVICE, spec, name, {"spec": {"selector": own, "ports": [port]}}, with_labels=own),
        object_of(DEPLOYMENT, spec, name, {"spec": deployment}, with_labels=own),
    ]


def _hashes(job: Job, facts: Facts) -> dict[str, str]:
    found = {CONFIG_HASH: digest(dict(job.values))}
    known = sorted((one.kind, one.name, facts.hashes[one]) for one in job.references if one in facts.hashes)
    if known:
        found[REFERENCES_HASH] = digest(known)
    if facts.restarted:
        found[RESTARTED] = facts.restarted
    return found


def _pod(spec: ClusterSpec, job: Job, facts: Facts, name: str) -> dict[str, Any]:
    volumes, mounts = folders(_PLAIN.tmp_size)
    own = [
        {"name": "HOME", "value": HOME},
        {"name": "HTTP_HOST", "value": "0.0.0.0"},
        {"name": "HTTP_PORT", "value": str(_PORT)},
    ]
    from_map = [
        {"name": key, "valueFrom": {"configMapKeyRef": {"name": name, "key": key}}}
        for key in sorted(job.values)
    ]
    container: dict[str, Any] = {
        "name": labels.JOB_MANAGERS,
        "image": image_of(spec, facts, "coordinator"),
        "command": ["icestream", "job-manager"],
        "env": without_doubles([*own, *job.env, *from_map]),
        "ports": [{"name": _HTTP, "containerPort": _PORT, "protocol": "TCP"}],
        "resources": dict(job.resources),
        "startupProbe": startup_probe(_HTTP),
        "livenessProbe": probe(Probe("/live", timeout=10), _HTTP),
        "readinessProbe": probe(Probe("/ready"), _HTTP),
        "securityContext": container_security(_PLAIN),
        "volumeMounts": mounts,
    }
    if job.env_from:
        container["envFrom"] = [dict(one) for one in job.env_from]
    return {
        **pull_secrets({}, spec.pull_secrets),
        "serviceAccountName": spec.names.workers,
        "automountServiceAccountToken": False,
        "securityContext": pod_security(_PLAIN),
        "terminationGracePeriodSeconds": 60,
        "containers": [container],
        "volumes": volumes,
    }
