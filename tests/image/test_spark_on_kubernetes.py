"""A worker of the image is Spark's driver on Kubernetes: the API server is real, its nodes are not. kwok says
that the executor's pod runs, and this test runs it: the image, with the pod's own arguments and variables."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
import yaml

from icestream.embedded.kafka import Broker
from icestream.embedded.ports import HOST, free_port
from tests.conftest import Produce
from tests.image.container import PATIENCE, Image, running
from tests.image.iceberg_rows import rows_of, sink_config, until_healthy, worker_variables
from tests.kubernetes.cluster import Cluster

# An API server, a driver and an executor beside the image. Its short form: that the image starts an executor
# with the variables of a pod (test_image.py), and what the driver is told (tests/unit/pipeline).
pytestmark = [pytest.mark.slow, pytest.mark.long]

RESTRICTED = {
    "securityContext": {"runAsNonRoot": True, "runAsUser": 185, "seccompProfile": {"type": "RuntimeDefault"}},
}
CONTAINER = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}
TEMPLATE = {
    "apiVersion": "v1",
    "kind": "Pod",
    "spec": {
        **RESTRICTED,
        "containers": [
            {
                "name": "executor",
                "securityContext": CONTAINER,
                "volumeMounts": [
                    {"name": "tmp", "mountPath": "/tmp"},
                    {"name": "home", "mountPath": "/home/icestream"},
                ],
            }
        ],
        "volumes": [{"name": name, "emptyDir": {"sizeLimit": "1Gi"}} for name in ("tmp", "home")],
    },
}
RULES = {
    "pods": ["create", "get", "list", "watch", "patch", "delete", "deletecollection"],
    "configmaps": ["create", "get", "list", "watch", "delete", "deletecollection"],
    "services": ["get", "list", "create", "delete", "deletecollection"],
    "persistentvolumeclaims": ["get", "list", "create", "delete", "deletecollection"],
}


def driver_in(namespace: str) -> list[dict[str, Any]]:
    """The driver's pod, and the account with the rights that docs/deploy/spark-on-kubernetes.md names."""
    account = {"kind": "ServiceAccount", "name": "spark", "namespace": namespace}
    rbac = "rbac.authorization.k8s.io"
    rules = [{"apiGroups": [""], "resources": [kind], "verbs": verbs} for kind, verbs in RULES.items()]
    driver = {"name": "worker", "image": "icestream", "securityContext": CONTAINER}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "spark"}},
        {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": {"name": "spark"}, "rules": rules},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "spark"},
            "subjects": [account],
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "spark"},
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "connect-0"},
            "spec": {**RESTRICTED, "serviceAccountName": "spark", "containers": [driver]},
        },
    ]


def test_an_executor_in_a_pod_of_its_own_lands_records(
    image: Image,
    broker: Broker,
    produce: Produce,
    s3: dict[str, str],
    api_server: Cluster,
    namespace: str,
    tmp_path: Path,
) -> None:
    topic = f"pods-{uuid.uuid4().hex[:8]}"
    produce(topic, [{"id": number} for number in range(300)])
    api_server.apply(*driver_in(namespace), namespace=namespace)
    data = tmp_path / "data"
    data.mkdir()
    (data / "catalog.db").touch()
    token = api_server.kubectl("create", "token", "spark", "-n", namespace, "--duration", "1h").strip()
    (data / "token").write_text(token)
    (data / "ca.crt").write_bytes(api_server.authority.read_bytes())
    (data / "executor.yaml").write_text(yaml.safe_dump(TEMPLATE))
    for each in (data, *data.iterdir()):
        os.chown(each, 185, 0)
    port = free_port()
    url = f"http://{HOST}:{port}"
    env = {
        **worker_variables(broker, port),
        "POD_NAME": "connect-0",
        "POD_IP": HOST,
        "POD_NAMESPACE": namespace,
        "CONNECT_SPARK_MASTER": f"k8s://{api_server.address}",
        "CONNECT_SPARK_KUBERNETES_AUTHENTICATE_CACERTFILE": "/mnt/ca.crt",
        "CONNECT_SPARK_KUBERNETES_AUTHENTICATE_OAUTHTOKENFILE": "/mnt/token",
        "CONNECT_SPARK_KUBERNETES_CONTAINER_IMAGE": "registry.example/icestream@sha256:" + "0" * 64,
        "CONNECT_SPARK_KUBERNETES_EXECUTOR_PODTEMPLATEFILE": "/mnt/executor.yaml",
        "CONNECT_SPARK_EXECUTOR_INSTANCES": "1",
        "CONNECT_SPARK_EXECUTOR_CORES": "1",
        "CONNECT_SPARK_EXECUTOR_MEMORY": "512m",
        "CONNECT_SPARK_EXECUTOR_MEMORYOVERHEAD": "512m",
        # Other tests of this machine may have the fixed ones.
        "CONNECT_SPARK_DRIVER_PORT": str(free_port()),
        "CONNECT_SPARK_DRIVER_BLOCKMANAGER_PORT": str(free_port()),
    }
    with running(image, ["worker"], env=env, data=data, log=tmp_path / "worker.log") as worker:
        selected = ("-l", "spark-role=executor")
        api_server.wait_for(
            lambda: (
                worker.holder.poll() is not None
                or any(
                    pod["status"].get("phase") == "Running"
                    for pod in api_server.objects("pods", namespace, *selected)
                )
            ),
            "a pod of an executor",
            PATIENCE,
        )
        assert worker.holder.poll() is None, worker.output()
        (pod,) = api_server.objects("pods", namespace, *selected)
        check(pod)
        (container,) = pod["spec"]["containers"]
        with running(
            image, container["args"], env=variables_of(pod), data=data, log=tmp_path / "executor.log"
        ) as executor:
            until_healthy(worker, url)
            catalog = {"iceberg.catalog.warehouse": f"s3://warehouse/{topic}", **s3}
            config = sink_config(topic, "jdbc:sqlite:/mnt/catalog.db", catalog)
            answer = httpx.put(f"{url}/connectors/rows/config", json=config, timeout=120)
            assert answer.status_code == 201, answer.text
            outside = {**config, "iceberg.catalog.uri": f"jdbc:sqlite:{data}/catalog.db"}
            deadline = time.monotonic() + PATIENCE
            while rows_of(outside) < 300:
                assert executor.holder.poll() is None, executor.output()
                assert time.monotonic() < deadline, worker.output() + executor.output()
                time.sleep(0.3)
            # The tasks were its own: Python workers are where the executor is, and not beside the driver.
            assert daemons_below(executor.pid) and not daemons_below(worker.pid)
            worker.terminate()
            assert worker.ended() in (0, 143), worker.output()
    assert rows_of(outside) == 300
    # Its process has ended; the pod stays for as long as that of its driver, and goes with it.
    api_server.kubectl("delete", "pod", "connect-0", "-n", namespace, "--wait=false")
    api_server.wait_for(
        lambda: not api_server.objects("pods", namespace, *selected),
        "the end of the executor's pod",
        PATIENCE,
    )


def check(pod: Mapping[str, Any]) -> None:
    """What Spark made of the settings and of the template; the namespace took it as "restricted"."""
    (owner,) = pod["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("Pod", "connect-0")
    (container,) = pod["spec"]["containers"]
    assert container["args"] == ["executor"]
    assert container["image"].startswith("registry.example/icestream@sha256:")
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["resources"]["limits"]["memory"] == "1Gi"
    assert {"/tmp", "/home/icestream"} <= {each["mountPath"] for each in container["volumeMounts"]}


def variables_of(pod: Mapping[str, Any]) -> dict[str, str]:
    """As a kubelet would set them. Address and folder are this machine's: the pod's own exist nowhere."""
    (container,) = pod["spec"]["containers"]
    fields = {"metadata.name": pod["metadata"]["name"], "status.podIP": HOST}
    return {
        each["name"]: each["value"] if "value" in each else fields[each["valueFrom"]["fieldRef"]["fieldPath"]]
        for each in container["env"]
        if "value" in each or "valueFrom" in each
    } | {"SPARK_LOCAL_DIRS": "/tmp"}


def daemons_below(pid: int) -> list[psutil.Process]:
    return [each for each in psutil.Process(pid).children(recursive=True) if _is_daemon(each)]


def _is_daemon(process: psutil.Process) -> bool:
    try:
        return "icestream.pipeline.daemon" in process.cmdline()
    except psutil.NoSuchProcess:  # it has ended: a zombie, or gone
        return False
