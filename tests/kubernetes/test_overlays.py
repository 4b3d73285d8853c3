"""The overlays of `k8s/overlays`: what they promise, and that a real API server takes them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from icestream.cli.topics_of_worker import worker_from_environment
from icestream.cluster.settings.worker_config import parse_distributed
from icestream.cluster.topics_file import read_topics_file, rules_for
from tests.kubernetes.cluster import PATIENCE_S, Cluster
from tests.kubernetes.manifests import ROOT, check_hardened, containers, one, quantity, rendered

_NAME = "kafka-s3-connector"
_SIZES = {
    "dev": (1, ("200m", "512Mi"), ("1000m", "2Gi")),
    "staging": (2, ("750m", "1.5Gi"), ("3000m", "6Gi")),
    "prod": (3, ("1000m", "2Gi"), ("4000m", "8Gi")),
}
_VARIABLES = {
    "KAFKA_BOOTSTRAP_SERVERS": "localhost:9092",
    "S3_BUCKET_NAME": "test-data-lake",
    "S3_REGION": "us-east-1",
    "S3_ENDPOINT_URL": "",
    "CONNECT_GROUP_ID": "kafka-s3-connect-cluster",
    "BATCH_SIZE": "1000",
    "FLUSH_INTERVAL": "60",
}


@pytest.fixture
def nothing_applied(api_server: Cluster) -> Iterator[None]:
    """The overlays name their namespace, so that tests have it one after the other."""
    yield
    # Pods first: a namespace that still has some when it goes waits for half of their time to end.
    api_server.kubectl("delete", "deployment", "--all", "-n", _NAME)
    api_server.wait_for(lambda: not api_server.objects("pods", _NAME), "no pods")
    api_server.kubectl("delete", "namespace", _NAME, "--ignore-not-found", "--wait", "--timeout=200s")


@pytest.mark.parametrize("overlay", _SIZES)
@pytest.mark.usefixtures("nothing_applied")
def test_an_overlay_is_what_was_promised_and_its_pods_become_ready(api_server: Cluster, overlay: str) -> None:
    replicas, requests, limits = _SIZES[overlay]
    objects = rendered(api_server.binaries, f"k8s/overlays/{overlay}")
    check_hardened(objects)
    check_names(objects)
    [(_, container)] = containers(objects)
    for kind, wanted in (("requests", requests), ("limits", limits)):
        said = container["resources"][kind]
        assert (said["cpu"], said["memory"]) == wanted
    api_server.kubectl("apply", "-k", ROOT / f"k8s/overlays/{overlay}")
    # A second time changes nothing, though kubectl says of some that they are "configured".
    api_server.kubectl("apply", "-k", ROOT / f"k8s/overlays/{overlay}")
    assert one(api_server.objects("deployments", _NAME), "Deployment")["metadata"]["generation"] == 1
    api_server.kubectl("rollout", "status", f"deployment/{_NAME}", "-n", _NAME, f"--timeout={PATIENCE_S}s")
    pods = api_server.objects("pods", _NAME)
    assert [pod["status"]["phase"] for pod in pods] == ["Running"] * replicas
    held = pods[0]["spec"]["containers"][0]["resources"]
    assert quantity(held["requests"]["memory"]) == quantity(requests[1])
    assert quantity(held["limits"]["cpu"]) == quantity(limits[0])


def check_names(objects: list[dict[str, Any]]) -> None:
    assert {it["metadata"].get("namespace", _NAME) for it in objects} == {_NAME}
    labels = one(objects, "Namespace", _NAME)["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    deployment = one(objects, "Deployment", _NAME)["spec"]
    assert deployment["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    [container] = deployment["template"]["spec"]["containers"]
    assert container["lifecycle"] == {"preStop": {"sleep": {"seconds": 5}}}
    assert {it["containerPort"] for it in container["ports"]} == {8083, 8081}
    ports = one(objects, "Service", _NAME)["spec"]["ports"]
    assert {it["name"]: it["port"] for it in ports} == {"rest-api": 8083, "actuator": 8081}
    assert one(objects, "PodDisruptionBudget", _NAME)["spec"]["maxUnavailable"] == 1
    ingress = one(objects, "NetworkPolicy", _NAME)["spec"]["ingress"]
    assert [it["ports"][0]["port"] for it in ingress] == ["rest-api", "actuator"]
    assert all(it["from"] for it in ingress)
    assert not [it for it in objects if it["kind"] in ("Role", "ClusterRole", "RoleBinding")]


@pytest.mark.usefixtures("nothing_applied")
def test_workers_are_scaled_by_hand_and_drained_one_by_one(api_server: Cluster) -> None:
    api_server.kubectl("apply", "-k", ROOT / "k8s/overlays/dev")
    api_server.kubectl("scale", "deployment", _NAME, "--replicas=4", "-n", _NAME)
    api_server.kubectl("rollout", "status", f"deployment/{_NAME}", "-n", _NAME, f"--timeout={PATIENCE_S}s")
    listed = api_server.kubectl("get", "pods", "-n", _NAME, "--no-headers").splitlines()
    assert len(listed) == 4
    assert all("Running" in line for line in listed)

    def may_go() -> int:
        budget = one(api_server.objects("poddisruptionbudgets", _NAME), "PodDisruptionBudget")
        return int(budget.get("status", {}).get("disruptionsAllowed", 0))

    api_server.wait_for(lambda: may_go() == 1, "one pod that may go")
    refused = api_server.kubectl(
        "auth",
        "can-i",
        "list",
        "pods",
        "-n",
        _NAME,
        "--as",
        f"system:serviceaccount:{_NAME}:{_NAME}",
        check=False,
    )
    assert refused.strip() == "no"


@pytest.mark.parametrize("overlay", _SIZES)
def test_the_variables_of_an_overlay_make_a_worker(api_server: Cluster, overlay: str, tmp_path: Path) -> None:
    objects = rendered(api_server.binaries, f"k8s/overlays/{overlay}")
    [(pod, container)] = containers(objects)
    maps = {it["metadata"]["name"]: it["data"] for it in objects if it["kind"] == "ConfigMap"}
    variables = maps[container["envFrom"][0]["configMapRef"]["name"]]
    assert variables == _VARIABLES
    own = {it["name"]: it.get("value", "10.0.0.7") for it in container["env"]}
    environ = {**variables, **{name: value.replace("$(POD_IP)", "10.0.0.7") for name, value in own.items()}}
    volume = pod["volumes"][0]["configMap"]
    file = mounted(tmp_path, maps[volume["name"]], volume["items"])
    worker = worker_from_environment(file, environ, has_peers=True)
    parsed = parse_distributed(worker)
    assert parsed.group == "kafka-s3-connect-cluster"
    assert worker["bootstrap.servers"] == "localhost:9092"
    assert worker["rest.advertised.host.name"] == "10.0.0.7"
    assert worker["icestream.actuator.listeners"] == "http://:8081"
    connectors = {it.name: it.config for it in read_topics_file(file, rules_for(environ))}
    assert set(connectors) == {"user-events", "order-events"}
    assert connectors["user-events"]["s3.bucket.name"] == "test-data-lake"
    assert connectors["user-events"]["flush.size"] == "1000"
    assert "user_id" in connectors["user-events"]["value.schema.inline"]


def mounted(folder: Path, data: dict[str, str], items: list[dict[str, str]]) -> Path:
    """As a kubelet lays out a ConfigMap: links to links, so that a change is one rename."""
    (folder / "..2026").mkdir()
    os.symlink("..2026", folder / "..data")
    for item in items:
        target = folder / "..2026" / item["path"]
        target.parent.mkdir(exist_ok=True)
        target.write_text(data[item["key"]])
        first = Path(item["path"]).parts[0]
        os.symlink(f"..data/{first}", folder / first)
    return folder / "application.yml"


@pytest.mark.parametrize(
    ("component", "kinds"),
    [
        ("spark", {"Role", "RoleBinding", "NetworkPolicy"}),
        ("keda", {"ScaledObject"}),
        ("monitoring", {"PodMonitor"}),
    ],
)
def test_a_component_adds_to_an_overlay(
    api_server: Cluster, component: str, kinds: set[str], tmp_path: Path
) -> None:
    plain = rendered(api_server.binaries, "k8s/overlays/dev")
    # kustomize takes no absolute paths.
    base, with_it = (
        os.path.relpath(ROOT / "k8s" / it, tmp_path) for it in ("overlays/dev", f"components/{component}")
    )
    (tmp_path / "kustomization.yaml").write_text(
        f"namespace: {_NAME}\nresources: ['{base}']\ncomponents: ['{with_it}']\n"
    )
    more = rendered(api_server.binaries, tmp_path)
    added = [it for it in more if name_of(it) not in [name_of(other) for other in plain]]
    assert {it["kind"] for it in added} == kinds
    assert {it["metadata"]["namespace"] for it in added} == {_NAME}
    [(pod, container)] = containers(more)
    said = {it["name"]: it.get("value") for it in container["env"]}
    if component == "spark":
        assert said["CONNECT_SPARK_MASTER"] == "k8s://https://kubernetes.default.svc:443"
        assert pod["automountServiceAccountToken"] is True
        # Kubernetes replaces only what was named before.
        order = list(said)
        assert order.index("POD_IP") < order.index("CONNECT_SPARK_DRIVER_HOST")
        assert order.index("POD_IP") < order.index("CONNECT_REST_ADVERTISED_HOST_NAME")
        assert order.index("POD_NAME") < order.index("CONNECT_SPARK_KUBERNETES_DRIVER_POD_NAME")


def name_of(it: dict[str, Any]) -> tuple[str, str]:
    return it["kind"], it["metadata"]["name"]
