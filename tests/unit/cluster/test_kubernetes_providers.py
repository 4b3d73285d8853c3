"""Placeholders for values of Secrets and ConfigMaps; tests/kubernetes asks a real API server."""

from __future__ import annotations

import logging
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from icestream.api.errors import ConfigError
from icestream.cluster.configs.kubernetes_api import ApiAnswer, NoCluster, api_from
from icestream.cluster.configs.kubernetes_providers import ConfigMapProvider, SecretProvider
from icestream.cluster.configs.providers import NotAvailable, Providers, providers_from


class Api:
    """An API server that has these objects by path, and is asked."""

    namespace = "mine"

    def __init__(self, **objects: Any) -> None:
        self.objects = objects
        self.asked: list[str] = []

    def get(self, path: str) -> ApiAnswer:
        self.asked.append(path)
        found = self.objects.get(path.rpartition("/")[2])
        return found if isinstance(found, ApiAnswer) else ApiAnswer(200 if found else 404, found)


def secret(**values: str) -> dict[str, Any]:
    return {"data": {key: b64encode(value.encode()).decode() for key, value in values.items()}}


def resolving(api: Api, clock: Callable[[], float] = lambda: 1.0) -> Providers:
    return Providers(
        {
            "secrets": SecretProvider(lambda: api, clock),
            "configmaps": ConfigMapProvider(lambda: api, clock),
        }
    )


def test_values_of_secrets_and_config_maps_are_put_in() -> None:
    api = Api(db=secret(password="s3crét", user="ann"), settings={"data": {"topic": "orders"}})
    config = {
        "url": "jdbc:x?u=${secrets:ns/db:user}&p=${secrets:ns/db:password}",
        "topics": "${configmaps:ns/settings:topic}",
    }
    assert resolving(api).resolved(config) == {"url": "jdbc:x?u=ann&p=s3crét", "topics": "orders"}
    assert api.asked == ["/api/v1/namespaces/ns/secrets/db", "/api/v1/namespaces/ns/configmaps/settings"]


def test_a_name_alone_is_one_of_the_workers_own_namespace() -> None:
    api = Api(db=secret(password="x"))
    assert resolving(api).resolved({"a": "${secrets:db:password}"}) == {"a": "x"}
    assert api.asked == ["/api/v1/namespaces/mine/secrets/db"]


def test_an_answer_is_asked_for_again_after_some_seconds() -> None:
    now = [100.0]
    api = Api(db=secret(password="old"))
    providers = resolving(api, lambda: now[0])
    providers.resolved({"a": "${secrets:db:password}", "b": "${secrets:db:password}"})
    api.objects["db"] = secret(password="new")
    now[0] += 60
    assert providers.resolved({"a": "${secrets:db:password}"}) == {"a": "new"}
    assert len(api.asked) == 2


def test_a_key_that_is_not_there_stays_and_is_told(caplog: pytest.LogCaptureFixture) -> None:
    text = "${secrets:ns/db:pasword}"
    with caplog.at_level(logging.WARNING):
        assert resolving(Api(db=secret(password="hunter2"))).resolved({"a": text}) == {"a": text}
    assert "does not have" in caplog.text
    assert "hunter2" not in caplog.text


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (None, "finds no Secret ns/db; create it"),
        (ApiAnswer(403, {"message": "hunter2"}), "may not read Secret ns/db; allow 'get'"),
        (ApiAnswer(401, None), "may not read Secret ns/db; allow 'get'"),
        (ApiAnswer(500, None), "got the answer 500 for Secret ns/db"),
        (ApiAnswer(200, None), "got the answer 200 for Secret ns/db"),
        ({"data": {"password": "//79"}}, "that is not UTF-8"),
    ],
)
def test_an_object_that_cannot_be_read_is_a_problem_of_the_key(found: Any, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolving(Api(db=found)).resolved({"db.password": "${secrets:ns/db:password}"})
    assert told in str(caught.value)
    assert str(caught.value).startswith("'db.password' cannot be resolved: config provider 'secrets' ")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "path", ["../x", "ns/../x", "ns/a/b", "ns/a?x=1", "ns/a%2Fb", "NS/a", "ns/", "/a", "", "ns/a..b", "é/a"]
)
def test_no_path_leads_anywhere_else(path: str) -> None:
    api = Api()
    with pytest.raises(NotAvailable, match="namespace/name"):
        SecretProvider(lambda: api).value(path, "k")
    assert api.asked == []


def test_an_api_server_that_is_away_is_asked_once_for_a_config() -> None:
    asked = []

    class Away(Api):
        def get(self, path: str) -> ApiAnswer:
            asked.append(path)
            raise NoCluster("cannot reach the Kubernetes API server")

    config = {str(n): "${secrets:ns/db:k}" for n in range(900)}
    with pytest.raises(ConfigError, match="cannot reach"):
        resolving(Away()).resolved(config)
    assert len(asked) == 1


@pytest.mark.parametrize(
    "name", ["KubernetesSecretConfigProvider", "io.strimzi.kafka.KubernetesSecretConfigProvider"]
)
def test_a_worker_switches_them_on_by_strimzis_names(name: str) -> None:
    worker = {"config.providers": "secrets", "config.providers.secrets.class": name}
    assert isinstance(providers_from(worker).by_name["secrets"], SecretProvider)
    theirs = {"config.providers": "e", "config.providers.e.class": "io.strimzi.kafka.EnvVarConfigProvider"}
    assert "e" in providers_from(theirs).by_name


def test_a_config_cannot_name_a_provider_that_the_worker_has_not() -> None:
    text = {"a": "${secrets:ns/db:password}", "config.providers": "secrets"}
    assert providers_from({}).resolved(text) == text


def test_a_machine_without_a_cluster_says_so(tmp_path: Path) -> None:
    with pytest.raises(NoCluster, match="no service account and no kubeconfig"):
        api_from({"HOME": str(tmp_path)}, tmp_path)


@pytest.mark.parametrize(
    "text", ["", "[", "a: b", "contexts: 3\ncurrent-context: x", "current-context: a\ncontexts: []"]
)
def test_a_kubeconfig_that_makes_no_sense_is_one_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(NoCluster, match="cannot understand the kubeconfig"):
        api_from({"KUBECONFIG": str(tmp_path / "config")}, tmp_path / "none")


def test_no_token_is_shown(tmp_path: Path) -> None:
    config = (
        "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
        "clusters: [{name: k, cluster: {server: 'https://k:6443'}}]\n"
        "users: [{name: u, user: {token: t0ken}}]\n"
    )
    (tmp_path / "config").write_text(config)
    api = api_from({"KUBECONFIG": str(tmp_path / "config")}, tmp_path / "none")
    assert "t0ken" not in repr(vars(api))
