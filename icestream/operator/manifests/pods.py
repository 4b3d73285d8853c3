"""Pieces that all our pods share: the restricted profile, folders that can be written, probes, the end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from icestream.operator.resources.cluster_spec import PodTemplate, Probe, Tree

USER: Final = 185
HOME: Final = "/var/lib/icestream"
TOKEN_FOLDER: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_HOME_SIZE: Final = "10Gi"


def pod_security(template: PodTemplate) -> dict[str, Any]:
    return {
        "runAsUser": USER,
        "runAsGroup": 0,
        "fsGroup": 0,
        **template.pod_security,
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def container_security(template: PodTemplate) -> dict[str, Any]:
    return {
        "readOnlyRootFilesystem": True,
        **template.container_security,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def probe(of: Probe, port: str) -> dict[str, Any]:
    return {
        "httpGet": {"path": of.path, "port": port, "scheme": "HTTP"},
        "initialDelaySeconds": of.initial_delay,
        "periodSeconds": of.period,
        "timeoutSeconds": of.timeout,
        "failureThreshold": of.failures,
        "successThreshold": of.successes,
    }


def startup_probe(port: str) -> dict[str, Any]:
    """Whether REST answers at all: Kafka may come later, and is waited for."""
    return probe(Probe("/live", period=5, timeout=5, failures=60), port)


def folders(tmp_size: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Volumes and mounts of all that can be written."""
    volumes = [
        {"name": "tmp", "emptyDir": {"sizeLimit": tmp_size}},
        {"name": "home", "emptyDir": {"sizeLimit": _HOME_SIZE}},
    ]
    return volumes, [{"name": "tmp", "mountPath": "/tmp"}, {"name": "home", "mountPath": HOME}]


def token_volume() -> tuple[dict[str, Any], dict[str, Any]]:
    """The service account's token where clients look for it, without the account giving it to every pod."""
    sources = [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {
            "downwardAPI": {
                "items": [
                    {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
                ]
            }
        },
    ]
    volume = {"name": "api-token", "projected": {"sources": sources, "defaultMode": 0o440}}
    return volume, {"name": "api-token", "mountPath": TOKEN_FOLDER, "readOnly": True}


def of_pod(name: str, field: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": field}}}


def literal(name: str, value: str) -> dict[str, Any]:
    """A variable whose value Kubernetes leaves as it is: `$(…)` would name another variable."""
    return {"name": name, "value": value.replace("$(", "$$(")}


def without_doubles(variables: Iterable[Tree]) -> list[dict[str, Any]]:
    """By name, the first wins: server-side apply refuses a list that has a name twice."""
    found: dict[str, dict[str, Any]] = {}
    for one in variables:
        found.setdefault(str(one["name"]), dict(one))
    return list(found.values())


def pull_secrets(settings: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    given = [one for one in settings.get("imagePullSecrets") or () if isinstance(one, Mapping)]
    found = [*given, *({"name": name} for name in names if {"name": name} not in given)]
    return {"imagePullSecrets": found} if found else {}
