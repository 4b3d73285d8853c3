"""A real `icestream operator run` against the test cluster, with the rights of its own service account."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from icestream.embedded import ports
from tests.kubernetes.cluster import Cluster

ROOT: Final = Path(__file__).parents[2]
MANIFESTS: Final = ROOT / "k8s" / "operator"
ACCOUNT: Final = "icestream-operator"
HOME: Final = "icestream"
NOWHERE: Final = "*=127.0.0.1:1"


def install(cluster: Cluster) -> Path:
    """Kinds, rights and service account, as `kubectl apply -k k8s/operator` has them, less the Deployment and
    the rights for all namespaces. The kubeconfig of the account."""
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", MANIFESTS / "crds")
    cluster.kubectl("wait", "--for=condition=Established", "crd", "--all")
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}})
    for file in ("serviceaccount", "clusterrole", "role"):
        cluster.kubectl("apply", "--server-side", "-n", HOME, "-f", MANIFESTS / f"{file}.yaml")
    bind(cluster, HOME, "Role", "icestream-operator-lease")
    return cluster.service_account(HOME, ACCOUNT)


def bind(cluster: Cluster, namespace: str, kind: str = "ClusterRole", role: str = ACCOUNT) -> None:
    """For the operator of one namespace: rights there, and nowhere else."""
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": HOME}
    cluster.apply(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": role, "namespace": namespace},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
            "subjects": [subject],
        }
    )


class Operator:
    def __init__(
        self, cluster: Cluster, account: Path, namespace: str, log: Path, options: Sequence[str]
    ) -> None:
        self._cluster = cluster
        self._account = account
        self._namespace = namespace
        self._log = log
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    def start(self, *, wait: bool = True) -> None:
        self.port = ports.free_port()
        command = [sys.executable, "-m", "icestream.cli.main", "operator", "run"]
        options = ["--namespace", self._namespace, "--port", str(self.port), "--resync", "2"]
        environment = {**self._cluster.environment(self._account), "PYTHONPATH": str(ROOT)}
        environment.pop("KUBERNETES_SERVICE_HOST", None)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, *options, *self._options], env=environment, cwd=ROOT, stdout=log, stderr=log
            )
        if wait:
            self._cluster.wait_for(self.is_ready, "a ready operator")

    def is_ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"the operator has ended: {self.log()[-3000:]}"
        return self.answer("/readyz") is not None

    def answer(self, path: str) -> str | None:
        try:
            with urllib.request.urlopen(f"http://{ports.HOST}:{self.port}{path}", timeout=10) as answer:
                return str(answer.read().decode())
        except (urllib.error.URLError, OSError):
            return None

    def number(self, start: str) -> float:
        """The sum of all samples of /metrics whose lines begin so."""
        lines = (self.answer("/metrics") or "").splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(start))

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def end(self, number: int = signal.SIGTERM) -> int:
        if self._process is None:
            return 0
        if self._process.poll() is None:
            os.kill(self._process.pid, number)
        code = self._process.wait(120)
        self._process = None
        return code


@contextmanager
def running(
    cluster: Cluster, account: Path, namespace: str, folder: Path, *options: str, name: str = "operator"
) -> Iterator[Operator]:
    operator = Operator(
        cluster, account, namespace, folder / f"{name}.log", options or ("--connect-to", NOWHERE)
    )
    try:
        operator.start()
        yield operator
    finally:
        # Shown if the test fails.
        print(cluster.run_kubectl("get", "deployments,pods,events", "-n", namespace).stdout[-6000:])
        print(operator.log()[-6000:])
        operator.end(signal.SIGKILL)


def a_cluster(name: str = "my", replicas: int = 1, **spec: Any) -> dict[str, Any]:
    """A KafkaConnect as Strimzi's users write it, which is ours by its annotation."""
    return {
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": "KafkaConnect",
        "metadata": {"name": name, "annotations": {"icestream.dev/managed": "true"}},
        "spec": {
            "replicas": replicas,
            "bootstrapServers": "kafka:9092",
            "groupId": name,
            "configStorageTopic": f"{name}-configs",
            "offsetStorageTopic": f"{name}-offsets",
            "statusStorageTopic": f"{name}-status",
            **spec,
        },
    }


def found(cluster: Cluster, namespace: str, kind: str, name: str) -> dict[str, Any] | None:
    objects = cluster.objects(kind, namespace, "--field-selector", f"metadata.name={name}")
    return objects[0] if objects else None


def conditions(resource: Mapping[str, Any] | None) -> dict[str, str]:
    """Type → message."""
    status = (resource or {}).get("status", {})
    return {each["type"]: each.get("message", "") for each in status.get("conditions", ())}


def is_ready(cluster: Cluster, namespace: str, name: str = "my", kind: str = "kafkaconnect") -> bool:
    """Ready, of the newest generation."""
    resource = found(cluster, namespace, kind, name)
    if resource is None or "Ready" not in conditions(resource):
        return False
    return bool(resource["status"]["observedGeneration"] == resource["metadata"]["generation"])


def an_icestream_cluster(name: str, *jobs: str) -> dict[str, Any]:
    return {
        "apiVersion": "icestream.dev/v1alpha1",
        "kind": "IcestreamCluster",
        "metadata": {"name": name},
        "spec": {
            "kafka": {"bootstrapServers": "kafka:9092"},
            "workers": {"replicas": 1},
            "jobs": [a_job(each) for each in jobs],
        },
    }


def a_job(name: str) -> dict[str, Any]:
    variables = {"CONTROL_TOPIC": "control", "CATALOG_NAME": "lake", "CATALOG_TYPE": "rest"}
    env = [{"name": key, "value": value} for key, value in variables.items()]
    return {"name": name, "connector": name, "env": env}
