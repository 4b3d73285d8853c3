"""Spark on Kubernetes: the worker's pod is the driver, executors are pods of the same image."""

from __future__ import annotations

import json
from typing import Any, Final

from icestream.operator.kinds import CONFIG_MAP, ROLE, ROLE_BINDING
from icestream.operator.manifests import labels
from icestream.operator.manifests.facts import Facts, Manifest
from icestream.operator.manifests.objects import image_of, object_of
from icestream.operator.manifests.pods import container_security, pod_security, pull_secrets
from icestream.operator.resources.cluster_spec import ClusterSpec
from icestream.operator.resources.names import dns_label

DRIVER_PORT: Final = 7078
BLOCK_PORT: Final = 7079
TEMPLATE_FOLDER: Final = "/opt/icestream/executors"
TEMPLATE_FILE: Final = "executor.yaml"
_CONTAINER: Final = "spark-kubernetes-executor"
_RULES: Final = (
    ("pods", ("create", "get", "list", "watch", "patch", "delete", "deletecollection")),
    ("configmaps", ("create", "get", "list", "watch", "delete", "deletecollection")),
    ("services", ("get", "list", "create", "delete", "deletecollection")),
    ("persistentvolumeclaims", ("get", "list", "create", "delete", "deletecollection")),
)


def driver_properties(spec: ClusterSpec, facts: Facts) -> dict[str, str]:
    """What makes a worker the driver of its executors; what users set themselves wins in `settings`."""
    executors = spec.executors
    if executors is None:
        return {}
    wanted = {
        "spark.app.name": dns_label(spec.name, 40),
        "spark.kubernetes.namespace": spec.namespace,
        "spark.kubernetes.container.image": image_of(spec, facts, "worker"),
        "spark.kubernetes.executor.podTemplateFile": f"{TEMPLATE_FOLDER}/{TEMPLATE_FILE}",
        "spark.kubernetes.executor.podTemplateContainerName": _CONTAINER,
        "spark.kubernetes.driver.pod.name": "${strimzienv:POD_NAME}",
        "spark.driver.host": "${strimzienv:POD_IP}",
        "spark.driver.bindAddress": "0.0.0.0",
        "spark.driver.port": str(DRIVER_PORT),
        "spark.driver.blockManager.port": str(BLOCK_PORT),
        "spark.executor.cores": str(executors.cores),
        "spark.executor.memory": executors.memory,
        "spark.executor.memoryOverhead": executors.memory_overhead,
    }
    if spec.scaling is not None and spec.scaling.scales_executors:
        limits = spec.scaling.limits
        wanted |= {
            "spark.dynamicAllocation.enabled": "true",
            "spark.dynamicAllocation.shuffleTracking.enabled": "true",
            "spark.dynamicAllocation.minExecutors": str(limits.min_executors),
            "spark.dynamicAllocation.maxExecutors": str(limits.max_executors),
        }
    else:
        wanted["spark.executor.instances"] = str(executors.instances)
    return {key: value for key, value in wanted.items() if key not in spec.properties}


def executor_template(spec: ClusterSpec) -> Manifest:
    """The ConfigMap with the pod that executors are made from; Spark adds image, resources and arguments."""
    assert spec.executors is not None
    template = spec.executors.template
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "labels": {**template.labels, **labels.executors(spec)},
            "annotations": dict(template.annotations),
        },
        "spec": {
            **template.settings,
            **pull_secrets(template.settings, spec.pull_secrets),
            "automountServiceAccountToken": False,
            "securityContext": pod_security(template),
            "containers": [
                {
                    "name": _CONTAINER,
                    "securityContext": container_security(template),
                    "env": [{"name": "HOME", "value": "/tmp"}, *template.env],
                    "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}, *template.mounts],
                }
            ],
            "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": template.tmp_size}}, *template.volumes],
        },
    }
    # JSON is YAML: nothing that a user wrote can break it.
    text = json.dumps(pod, indent=2, sort_keys=True) + "\n"
    return object_of(CONFIG_MAP, spec, spec.names.executors, {"data": {TEMPLATE_FILE: text}})


def driver_rights(spec: ClusterSpec) -> list[Manifest]:
    rules = [{"apiGroups": [""], "resources": [one], "verbs": list(verbs)} for one, verbs in _RULES]
    return [
        object_of(ROLE, spec, spec.names.role, {"rules": rules}),
        object_of(
            ROLE_BINDING,
            spec,
            spec.names.role_binding,
            {
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "Role",
                    "name": spec.names.role,
                },
                "subjects": [
                    {"kind": "ServiceAccount", "name": spec.names.workers, "namespace": spec.namespace}
                ],
            },
        ),
    ]
