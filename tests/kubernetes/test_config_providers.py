"""Placeholders for Secrets and ConfigMaps, asked of a real API server as a service account."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from icestream.api.errors import ConfigError
from icestream.cluster.configs.kubernetes_api import api_from
from icestream.cluster.configs.kubernetes_providers import ConfigMapProvider, SecretProvider
from icestream.cluster.configs.providers import Providers, providers_from
from tests.kubernetes.certificates import Authority, kubeconfig
from tests.kubernetes.cluster import Cluster

ACCOUNT = "my-connect"
NOWHERE = Path("/nowhere")


@pytest.fixture
def world(api_server: Cluster, namespace: str) -> str:
    """The namespace of a service account that may read one of two Secrets, and one ConfigMap."""
    rules = [
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["db", "absent"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["settings"], "verbs": ["get"]},
    ]
    rbac = "rbac.authorization.k8s.io"
    api_server.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}},
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "db"},
            "stringData": {"password": "s3crét"},
        },
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "other"},
            "stringData": {"key": "hunter2"},
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "settings"},
            "data": {"topic": "orders"},
        },
        {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": {"name": ACCOUNT}, "rules": rules},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": ACCOUNT},
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": ACCOUNT},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}],
        },
        namespace=namespace,
    )
    # The API server learns of a new role by a watch of its own.
    account = f"system:serviceaccount:{namespace}:{ACCOUNT}"
    for what in ("secret/db", "configmap/settings"):
        api_server.wait_for(
            lambda what=what: (
                api_server.run_kubectl(
                    "auth", "can-i", "get", what, "-n", namespace, "--as", account
                ).returncode
                == 0
            ),
            f"the right to read {what}",
        )
    return namespace


def resolving(variables: Mapping[str, str], account: Path = NOWHERE) -> Providers:
    return Providers(
        {
            "secrets": SecretProvider(lambda: api_from(variables, account)),
            "configmaps": ConfigMapProvider(lambda: api_from(variables, account)),
        }
    )


def test_values_are_read_with_the_token_of_a_pod(api_server: Cluster, world: str, tmp_path: Path) -> None:
    token = api_server.kubectl("create", "token", ACCOUNT, "-n", world)
    (tmp_path / "token").write_text(token)
    (tmp_path / "ca.crt").write_bytes(api_server.authority.read_bytes())
    (tmp_path / "namespace").write_text(world)
    address = urlsplit(api_server.address)
    in_pod = {"KUBERNETES_SERVICE_HOST": str(address.hostname), "KUBERNETES_SERVICE_PORT": str(address.port)}
    config = {"a": f"x-${{secrets:{world}/db:password}}", "b": "${configmaps:settings:topic}"}
    assert resolving(in_pod, tmp_path).resolved(config) == {"a": "x-s3crét", "b": "orders"}


def test_values_are_read_by_a_kubeconfig_with_a_token(
    api_server: Cluster, world: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(api_server.service_account(world, ACCOUNT)))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    worker = {
        "config.providers": "secrets",
        "config.providers.secrets.class": "io.strimzi.kafka.KubernetesSecretConfigProvider",
    }
    config = {"a": f"${{secrets:{world}/db:password}}"}
    assert providers_from(worker).resolved(config) == {"a": "s3crét"}


def test_values_are_read_by_a_kubeconfig_with_a_certificate(api_server: Cluster, world: str) -> None:
    providers = resolving({"KUBECONFIG": str(api_server.kubeconfig)})
    assert providers.resolved({"a": f"${{secrets:{world}/other:key}}"}) == {"a": "hunter2"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("${secrets:NAMESPACE/other:key}", "may not read Secret NAMESPACE/other; allow 'get'"),
        (
            "${configmaps:NAMESPACE/kube-root-ca.crt:ca.crt}",
            "may not read ConfigMap NAMESPACE/kube-root-ca.crt",
        ),
        ("${secrets:kube-system/db:password}", "may not read Secret kube-system/db"),
        ("${secrets:NAMESPACE/absent:key}", "finds no Secret NAMESPACE/absent; create it"),
    ],
)
def test_what_the_account_may_not_read_is_one_sentence(
    api_server: Cluster, world: str, text: str, told: str
) -> None:
    providers = resolving({"KUBECONFIG": str(api_server.service_account(world, ACCOUNT))})
    with pytest.raises(ConfigError) as caught:
        providers.resolved({"a": text.replace("NAMESPACE", world)})
    assert told.replace("NAMESPACE", world) in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_an_api_server_of_another_authority_is_not_trusted(
    api_server: Cluster, world: str, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path).certificate
    file = kubeconfig(tmp_path / "config", api_server.address, stranger, "t0ken")
    with pytest.raises(ConfigError, match="cannot reach the Kubernetes API server") as caught:
        resolving({"KUBECONFIG": str(file)}).resolved({"a": f"${{secrets:{world}/db:password}}"})
    assert "t0ken" not in str(caught.value)
