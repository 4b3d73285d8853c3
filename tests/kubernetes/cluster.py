"""A Kubernetes cluster without machines: real etcd, API server, controllers and scheduler; kwok plays nodes.

What it does as a real one: admission (Pod Security too), RBAC, server-side apply, Deployments, disruption
budgets, garbage collection, endpoints, tokens of service accounts. What it does not: no container runs. kwok
says of every pod that it is Ready, gives it an address that leads nowhere, and answers `kubectl logs` and
`kubectl port-forward` as a kubelet would, from a file and to a port of this machine.
"""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from icestream.embedded import ports, process
from tests.kubernetes.binaries import Binaries
from tests.kubernetes.certificates import Authority, Pair, kubeconfig, token_keys

if TYPE_CHECKING:
    from lightkube import Client

PATIENCE_S: Final = 240
_LONGER_S: Final = 30
_KWOK_TYPES: Final = "Stage,PortForward,ClusterPortForward,Logs,ClusterLogs"
_NODE: Final = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-0"}}


@dataclass(frozen=True)
class Cluster:
    """A running cluster, and what tests ask of it."""

    folder: Path
    address: str
    authority: Path
    kubeconfig: Path = field(repr=False)
    """Of an administrator."""

    binaries: Binaries = field(repr=False)

    def kubectl(
        self,
        *arguments: str | Path,
        stdin: str | None = None,
        as_file: Path | None = None,
        check: bool = True,
        timeout_s: float = PATIENCE_S + _LONGER_S,
    ) -> str:
        """What kubectl prints, run as the administrator or with another kubeconfig."""
        ran = self.run_kubectl(*arguments, stdin=stdin, as_file=as_file, timeout_s=timeout_s)
        if check:
            assert ran.returncode == 0, f"kubectl {' '.join(map(str, arguments))}: {ran.stdout}{ran.stderr}"
        return ran.stdout

    def run_kubectl(
        self,
        *arguments: str | Path,
        stdin: str | None = None,
        as_file: Path | None = None,
        timeout_s: float = PATIENCE_S + _LONGER_S,
    ) -> subprocess.CompletedProcess[str]:
        """The same with its exit code and what it complains about."""
        return subprocess.run(
            [self.binaries.program("kubectl"), *map(str, arguments)],
            env=self.environment(as_file),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )

    def environment(self, as_file: Path | None = None) -> dict[str, str]:
        """For processes that look for the cluster: KUBECONFIG, and our kubectl first on the PATH."""
        path = f"{self.binaries.folder}{os.pathsep}{os.environ.get('PATH', '')}"
        # kubectl caches what the server offers: not in the home of whoever runs the tests.
        own = {"KUBECONFIG": str(as_file or self.kubeconfig), "KUBECACHEDIR": str(self.folder / "kubectl")}
        return {**os.environ, **own, "PATH": path}

    def objects(self, kind: str, namespace: str, *more: str) -> list[dict[str, Any]]:
        """All of a kind in a namespace, or those that a selector picks (`-l`, `app=x`)."""
        found: list[dict[str, Any]] = json.loads(
            self.kubectl("get", kind, "-n", namespace, "-o", "json", *more)
        )["items"]
        return found

    def apply(self, *manifests: Mapping[str, Any], namespace: str | None = None) -> None:
        """Server-side, as the administrator."""
        there = ("-n", namespace) if namespace else ()
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)})
        self.kubectl("apply", "--server-side", "--force-conflicts", *there, "-f", "-", stdin=text)

    @contextmanager
    def client(self, namespace: str = "default", as_file: Path | None = None) -> Iterator[Client]:
        """A lightkube client, of the administrator or of who is in a kubeconfig."""
        from lightkube import Client, KubeConfig

        config = KubeConfig.from_file(str(as_file or self.kubeconfig))
        client = Client(config=config, namespace=namespace, trust_env=False)
        try:
            yield client
        finally:
            client.close()

    def service_account(self, namespace: str, name: str) -> Path:
        """A kubeconfig with a token of that service account, so that its rights are tested."""
        self.wait_for(
            lambda: self.run_kubectl("get", "serviceaccount", name, "-n", namespace).returncode == 0,
            f"service account {namespace}/{name}",
        )
        token = self.kubectl("create", "token", name, "-n", namespace, "--duration", "24h").strip()
        file = self.folder / f"kubeconfig-{namespace}-{name}.yaml"
        return kubeconfig(file, self.address, self.authority, token)

    def forward(self, namespace: str, port: int, to: int) -> None:
        """Let `kubectl port-forward` to this port of any pod of a namespace reach a port of this machine."""
        forwards = [{"ports": [port], "target": {"port": to, "address": ports.HOST}}]
        self.apply(
            {
                "apiVersion": "kwok.x-k8s.io/v1alpha1",
                "kind": "ClusterPortForward",
                "metadata": {"name": f"{namespace}-{port}"},
                "spec": {"selector": {"matchNamespaces": [namespace]}, "forwards": forwards},
            }
        )

    def logs_from(self, namespace: str, container: str, file: Path) -> None:
        """Let `kubectl logs` of that container in any pod of a namespace show a file of this machine."""
        logs = [{"containers": [container], "logsFile": str(file), "follow": False}]
        self.apply(
            {
                "apiVersion": "kwok.x-k8s.io/v1alpha1",
                "kind": "ClusterLogs",
                "metadata": {"name": f"{namespace}-{container}"},
                "spec": {"selector": {"matchNamespaces": [namespace]}, "logs": logs},
            }
        )

    def wait_for(self, is_so: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
        deadline = time.monotonic() + patience_s
        while not is_so():
            assert time.monotonic() < deadline, f"{what}: not after {patience_s} s"
            time.sleep(0.2)


@contextmanager
def running_cluster(binaries: Binaries, folder: Path) -> Iterator[Cluster]:
    """Start everything, wait until it answers, and end it by pid."""
    started: list[process.Process] = []

    def start(name: str, *options: str) -> None:
        program = str(binaries.etcd) if name == "etcd" else binaries.program(name)
        running = process.spawn([program, *options], output=folder / f"{name}.log", die_with_parent=True)
        started.append(running)

    try:
        yield _started(binaries, folder, start)
    finally:
        # What writes goes first; the API server waits for its watchers unless it is killed.
        for running in reversed(started):
            running.send(signal.SIGKILL)
        for running in started:
            running.wait(30)


def _started(binaries: Binaries, folder: Path, start: Callable[..., None]) -> Cluster:
    files = folder / "files"
    files.mkdir()
    authority = Authority(files)
    tokens = token_keys(files)
    etcd = _start_etcd(folder, start)
    secure, kubelet = ports.free_port(), ports.free_port()
    address = f"https://{ports.HOST}:{secure}"
    server = authority.issue("server", "kube-apiserver", ["system:masters"])
    admin = authority.issue("admin", "admin", ["system:masters"])
    configs = {
        name: kubeconfig(files / f"{name}.yaml", address, authority.certificate, pair)
        for name, pair in {
            "admin": admin,
            "manager": authority.issue("manager", "system:kube-controller-manager"),
            "scheduler": authority.issue("scheduler", "system:kube-scheduler"),
        }.items()
    }
    start(
        "kube-apiserver",
        f"--etcd-servers={etcd}",
        f"--secure-port={secure}",
        f"--bind-address={ports.HOST}",
        f"--advertise-address={ports.HOST}",
        "--endpoint-reconciler-type=none",
        f"--tls-cert-file={server.certificate}",
        f"--tls-private-key-file={server.key}",
        f"--client-ca-file={authority.certificate}",
        f"--kubelet-client-certificate={server.certificate}",
        f"--kubelet-client-key={server.key}",
        "--kubelet-preferred-address-types=InternalIP",
        f"--service-account-key-file={tokens.certificate}",
        f"--service-account-signing-key-file={tokens.key}",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--authorization-mode=Node,RBAC",
        "--allow-privileged=true",
        "--profiling=false",
        # Debian's etcd is too old for it. Clients that are refused list instead; else kwok asks again,
        # less and less often.
        "--feature-gates=WatchList=false",
    )
    _wait_for_https(f"{address}/readyz", authority.certificate, folder / "kube-apiserver.log")
    cluster = Cluster(folder, address, authority.certificate, configs["admin"], binaries)
    start(
        "kube-controller-manager",
        f"--kubeconfig={configs['manager']}",
        f"--service-account-private-key-file={tokens.key}",
        f"--root-ca-file={authority.certificate}",
        "--use-service-account-credentials=true",
        "--leader-elect=false",
        "--secure-port=0",
        # Tests watch what these do: sooner than on a cluster that people use.
        "--horizontal-pod-autoscaler-sync-period=2s",
        "--namespace-sync-period=10s",
        # A busy machine lets kwok's heartbeats come late; pods that lose Ready by that never get it back.
        "--node-monitor-grace-period=24h",
    )
    start("kube-scheduler", f"--kubeconfig={configs['scheduler']}", "--leader-elect=false", "--secure-port=0")
    _add_node(cluster, binaries, start, kubelet, server)
    return cluster


def _start_etcd(folder: Path, start: Callable[..., None]) -> str:
    client, peer = (f"http://{ports.HOST}:{ports.free_port()}" for _ in range(2))
    start(
        "etcd",
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
    )
    return client


def _add_node(
    cluster: Cluster,
    binaries: Binaries,
    start: Callable[..., None],
    port: int,
    server: Pair,
) -> None:
    cluster.kubectl("apply", "--server-side", "-f", binaries.kwok_types)
    # A type is served a moment after it was accepted.
    cluster.kubectl("wait", "--for=condition=Established", "crd", "--all")
    cluster.wait_for(
        lambda: cluster.run_kubectl("apply", "--server-side", "-f", binaries.kwok_stages).returncode == 0,
        "kwok's stages",
    )
    start(
        "kwok",
        f"--kubeconfig={cluster.kubeconfig}",
        "--manage-all-nodes=true",
        f"--node-ip={ports.HOST}",
        f"--node-port={port}",
        f"--server-address={ports.HOST}:{port}",
        f"--tls-cert-file={server.certificate}",
        f"--tls-private-key-file={server.key}",
        f"--enable-crds={_KWOK_TYPES}",
    )
    cluster.apply(_NODE)
    cluster.kubectl("wait", "--for=condition=Ready", "node/node-0", f"--timeout={PATIENCE_S}s")


def _wait_for_https(url: str, authority: Path, log: Path) -> None:
    context = ssl.create_default_context(cafile=str(authority))
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            with urllib.request.urlopen(url, timeout=10, context=context) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            pass
        assert time.monotonic() < deadline, f"{url} does not answer: {log.read_text()[-2000:]}"
        time.sleep(0.2)
