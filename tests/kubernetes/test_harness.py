"""That the test cluster does what the tests of this folder rely on, as a real one does."""

from __future__ import annotations

import http.server
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from icestream.embedded import ports
from tests.kubernetes import binaries
from tests.kubernetes.cluster import PATIENCE_S, Cluster

_RESTRICTED = {
    "runAsNonRoot": True,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


def a_deployment(name: str, security: Any = _RESTRICTED) -> dict[str, Any]:
    container = {"name": "it", "image": "some/image:1", "ports": [{"containerPort": 8083}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{**container, "securityContext": security}]},
            },
        },
    }


def test_a_deployment_becomes_ready_and_goes_with_its_pods(api_server: Cluster, namespace: str) -> None:
    api_server.apply(a_deployment("web"), namespace=namespace)
    api_server.kubectl("rollout", "status", "deployment/web", "-n", namespace, f"--timeout={PATIENCE_S}s")
    pods = api_server.objects("pods", namespace, "-l", "app=web")
    assert [pod["status"]["phase"] for pod in pods] == ["Running", "Running"]
    assert {pod["spec"]["nodeName"] for pod in pods} == {"node-0"}
    api_server.kubectl("delete", "deployment", "web", "-n", namespace)
    api_server.wait_for(lambda: not api_server.objects("pods", namespace), "no pods")


def test_a_pod_that_is_not_restricted_is_refused(api_server: Cluster, namespace: str) -> None:
    api_server.apply(a_deployment("web", security={}), namespace=namespace)

    def complaint() -> str:
        sets = api_server.objects("replicasets", namespace)
        return " ".join(it["message"] for one in sets for it in one.get("status", {}).get("conditions", []))

    api_server.wait_for(lambda: "violates PodSecurity" in complaint(), "a refusal")


def test_a_service_account_may_do_what_its_role_says_and_no_more(api_server: Cluster, namespace: str) -> None:
    api_server.kubectl("create", "serviceaccount", "reader", "-n", namespace)
    api_server.kubectl("create", "role", "reads", "--verb=get,list", "--resource=pods", "-n", namespace)
    bound = ("--role=reads", f"--serviceaccount={namespace}:reader")
    api_server.kubectl("create", "rolebinding", "reads", *bound, "-n", namespace)
    file = api_server.service_account(namespace, "reader")
    asked = ("auth", "can-i", "list", "pods", "-n")
    api_server.wait_for(
        lambda: api_server.kubectl(*asked, namespace, as_file=file, check=False).strip() == "yes", "a right"
    )
    assert api_server.kubectl(*asked, "default", as_file=file, check=False).strip() == "no"
    refused = api_server.run_kubectl("get", "secrets", "-n", namespace, as_file=file)
    assert refused.returncode != 0
    assert "forbidden" in refused.stderr


def test_lightkube_sees_what_kubectl_made(api_server: Cluster, namespace: str) -> None:
    from lightkube.resources.core_v1 import ConfigMap

    api_server.kubectl("create", "configmap", "some", "--from-literal=a=b", "-n", namespace)
    with api_server.client(namespace) as client:
        assert client.get(ConfigMap, "some").data == {"a": "b"}


def test_logs_and_ports_of_a_pod_lead_to_this_machine(
    api_server: Cluster, namespace: str, tmp_path: Path
) -> None:
    (tmp_path / "log").write_text("2026-11-18T10:00:00.000000000Z stdout F started\n")
    api_server.apply(a_deployment("web"), namespace=namespace)
    api_server.kubectl("rollout", "status", "deployment/web", "-n", namespace, f"--timeout={PATIENCE_S}s")
    api_server.logs_from(namespace, "it", tmp_path / "log")
    logs = ("logs", "-n", namespace, "-l", "app=web")
    api_server.wait_for(lambda: "started" in api_server.kubectl(*logs, check=False), "the log")
    with a_web_server() as target:
        api_server.forward(namespace, 8083, target)
        api_server.wait_for(lambda: answers_through(api_server, namespace), "an answer from the pod")


@contextmanager
def a_web_server() -> Iterator[int]:
    class Hello(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            # kwok does not pass on that a server hangs up.
            self.send_header("Content-Length", "5")
            self.end_headers()
            self.wfile.write(b"hello")

        def log_message(self, *_: object) -> None:
            return

    with http.server.ThreadingHTTPServer((ports.HOST, 0), Hello) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def answers_through(cluster: Cluster, namespace: str) -> bool:
    local = ports.free_port()
    command = [cluster.binaries.program("kubectl"), "port-forward", "-n", namespace]
    forwarding = subprocess.Popen(
        [*command, "deployment/web", f"{local}:8083"],
        env=cluster.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(50):
            try:
                with urllib.request.urlopen(f"http://{ports.HOST}:{local}/", timeout=5) as answer:
                    return bool(answer.read() == b"hello")
            except (urllib.error.URLError, OSError):
                time.sleep(0.2)
        return False
    finally:
        forwarding.send_signal(signal.SIGTERM)
        forwarding.wait(30)


def test_the_module_file_takes_published_modules_for_the_folders_of_kubernetes() -> None:
    made = binaries.module_file(
        "module k8s.io/kubernetes\n\ngo 1.24.0\n\ngodebug default=go1.24\n\nrequire (\n\tk8s.io/api v0.0.0\n"
        "\tk8s.io/sample-apiserver v0.0.0\n\tgolang.org/x/net v0.38.0\n)\n\nreplace (\n"
        "\tk8s.io/api => ./staging/src/k8s.io/api\n"
        "\tk8s.io/sample-apiserver => ./staging/src/k8s.io/sample-apiserver\n)\n"
    )
    assert "\tk8s.io/api v0.34.4\n" in made
    assert "\tk8s.io/api => k8s.io/api v0.34.4\n" in made
    assert "\tgolang.org/x/net v0.38.0\n" in made
    assert "sample" not in made
    assert "staging" not in made
    assert "godebug default=go1.24" in made
