"""A real API server for all tests of this folder, and a namespace for each of them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kubernetes import binaries, operators
from tests.kubernetes.cluster import Cluster, running_cluster


@pytest.fixture(scope="session")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One for a whole run: etcd, API server, controllers, scheduler, and kwok with one node."""
    with running_cluster(binaries.require(), tmp_path_factory.mktemp("kubernetes")) as cluster:
        yield cluster


@pytest.fixture
def namespace(api_server: Cluster) -> Iterator[str]:
    """A new namespace, which refuses pods that are not "restricted"; what is in it goes with it."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    api_server.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    # Pods are refused until their service account is there.
    api_server.wait_for(
        lambda: api_server.run_kubectl("get", "serviceaccount", "default", "-n", name).returncode == 0,
        f"the default service account of {name}",
    )
    yield name
    api_server.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="session")
def account(api_server: Cluster) -> Path:
    """The kubeconfig of the operator's service account, whose rights are those of k8s/operator."""
    return operators.install(api_server)


@pytest.fixture
def home(api_server: Cluster, account: Path, namespace: str) -> str:
    """A namespace in which the operator has its rights."""
    operators.bind(api_server, namespace)
    return namespace
