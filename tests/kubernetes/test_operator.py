"""The operator against a real API server, as a process with the rights of its service account."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes import operators
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.operators import Operator, a_cluster, conditions, found, is_ready

CHILDREN = "deployment,service,configmap,serviceaccount,poddisruptionbudget,networkpolicy,role,rolebinding"
OURS = ("-l", "app.kubernetes.io/managed-by=icestream-operator")


@pytest.fixture
def operator(api_server: Cluster, account: Path, home: str, tmp_path: Path) -> Iterator[Operator]:
    with operators.running(api_server, account, home, tmp_path) as running:
        yield running


def children(cluster: Cluster, namespace: str) -> dict[tuple[str, str], dict[str, Any]]:
    objects = cluster.objects(CHILDREN, namespace, *OURS)
    return {(each["kind"], each["metadata"]["name"]): each for each in objects}


def test_a_cluster_gets_its_objects_and_is_ready_and_its_deletion_leaves_nothing(
    api_server: Cluster, home: str, operator: Operator
) -> None:
    api_server.apply(a_cluster(replicas=2), namespace=home)
    api_server.wait_for(lambda: is_ready(api_server, home), "a ready cluster")
    made = children(api_server, home)
    assert {
        ("Deployment", "my-connect"),
        ("Service", "my-connect-api"),
        ("Service", "my-connect"),
        ("ConfigMap", "my-connect-config"),
        ("ServiceAccount", "my-connect"),
        ("PodDisruptionBudget", "my-connect"),
    } <= set(made)
    resource = found(api_server, home, "kafkaconnect", "my")
    assert resource is not None
    assert resource["status"]["replicas"] == 2
    assert resource["status"]["url"] == f"http://my-connect-api.{home}.svc:8083"
    # Nothing of ours is in the user's resource, and nothing would hold back its end.
    assert "finalizers" not in resource["metadata"]
    assert set(resource["metadata"]["annotations"]) == {"icestream.dev/managed"}
    for child in made.values():
        (owner,) = child["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"]) == (resource["metadata"]["uid"], True)
    api_server.kubectl("delete", "kafkaconnect", "my", "-n", home)
    api_server.wait_for(lambda: not children(api_server, home), "no objects")
    api_server.wait_for(lambda: not api_server.objects("pods", home), "no pods")


def test_what_somebody_else_changes_or_deletes_is_put_right(
    api_server: Cluster, home: str, operator: Operator
) -> None:
    api_server.apply(a_cluster(), namespace=home)
    api_server.wait_for(lambda: is_ready(api_server, home), "a ready cluster")
    api_server.kubectl("delete", "service", "my-connect-api", "-n", home)
    api_server.kubectl("scale", "deployment", "my-connect", "--replicas=3", "-n", home)
    api_server.kubectl("set", "image", "deployment/my-connect", "my-connect=other:1", "-n", home)
    patch = '{"data": {"kafka-connect.properties": "nonsense"}}'
    api_server.kubectl("patch", "configmap", "my-connect-config", "-n", home, "--type=merge", "-p", patch)

    def is_right() -> bool:
        made = children(api_server, home)
        spec = made["Deployment", "my-connect"]["spec"]
        return (
            ("Service", "my-connect-api") in made
            and spec["replicas"] == 1
            and "other:1" not in spec["template"]["spec"]["containers"][0]["image"]
            and "nonsense" not in str(made["ConfigMap", "my-connect-config"]["data"])
        )

    api_server.wait_for(is_right, "the declared state")


def test_a_changed_config_and_a_changed_secret_roll_the_pods_and_nothing_else_does(
    api_server: Cluster, home: str, operator: Operator
) -> None:
    api_server.kubectl("create", "secret", "generic", "kafka", "--from-literal=password=one", "-n", home)
    login = {"type": "scram-sha-512", "username": "me"}
    secret = {"passwordSecret": {"secretName": "kafka", "password": "password"}}
    resource = a_cluster(authentication={**login, **secret})
    api_server.apply(resource, namespace=home)
    api_server.wait_for(lambda: is_ready(api_server, home), "a ready cluster")

    def template() -> Any:
        return children(api_server, home)["Deployment", "my-connect"]["spec"]["template"]["metadata"]

    def versions() -> dict[tuple[str, str], str]:
        return {
            which: each["metadata"]["resourceVersion"] for which, each in children(api_server, home).items()
        }

    first, before = template(), versions()
    turns = operator.number("icestream_operator_reconciliations_total")
    # Many turns later nothing has been written: no hash, no time and no default of the server rolls pods.
    api_server.wait_for(
        lambda: operator.number("icestream_operator_reconciliations_total") > turns + 5, "more turns"
    )
    assert versions() == before
    patch = '{"stringData": {"password": "two"}}'
    api_server.kubectl("patch", "secret", "kafka", "-n", home, "--type=merge", "-p", patch)
    api_server.wait_for(lambda: bool(template() != first), "a roll for the secret")
    second = template()
    resource["spec"]["config"] = {"offset.flush.interval.ms": 5000}
    api_server.apply(resource, namespace=home)
    api_server.wait_for(lambda: bool(template() != second), "a roll for the config")
    api_server.wait_for(lambda: is_ready(api_server, home), "a ready cluster again")


def test_an_operator_that_was_away_catches_up(api_server: Cluster, home: str, operator: Operator) -> None:
    api_server.apply(a_cluster("stays"), a_cluster("goes"), namespace=home)
    for name in ("stays", "goes"):
        api_server.wait_for(lambda name=name: is_ready(api_server, home, name), f"{name} to be ready")
    assert operator.end() == 0
    api_server.kubectl("delete", "kafkaconnect", "goes", "-n", home)
    api_server.kubectl("delete", "service", "stays-connect-api", "-n", home)
    api_server.apply(a_cluster("stays", replicas=2), a_cluster("comes"), namespace=home)
    operator.start()
    for name in ("stays", "comes"):
        api_server.wait_for(lambda name=name: is_ready(api_server, home, name), f"{name} to be ready")
    made = children(api_server, home)
    assert made["Deployment", "stays-connect"]["spec"]["replicas"] == 2
    assert ("Service", "stays-connect-api") in made
    api_server.wait_for(
        lambda: not any("goes" in name for _, name in children(api_server, home)),
        "nothing of the deleted one",
    )


def test_two_operators_do_not_fight(
    api_server: Cluster, account: Path, home: str, operator: Operator, tmp_path: Path
) -> None:
    with operators.running(api_server, account, home, tmp_path, name="other") as other:
        api_server.apply(a_cluster(), namespace=home)
        api_server.wait_for(lambda: is_ready(api_server, home), "a ready cluster")

        def versions() -> list[str]:
            objects = [*children(api_server, home).values(), found(api_server, home, "kafkaconnect", "my")]
            return [each["metadata"]["resourceVersion"] for each in objects if each is not None]

        before = versions()
        starts = {each: each.number("icestream_operator_reconciliations_total") for each in (operator, other)}
        api_server.wait_for(
            lambda: all(
                each.number("icestream_operator_reconciliations_total") > turns + 3
                for each, turns in starts.items()
            ),
            "turns of both",
        )
        assert versions() == before


def test_of_two_operators_with_a_lease_one_works_and_the_other_takes_over(
    api_server: Cluster, account: Path, home: str, tmp_path: Path
) -> None:
    options = ("--connect-to", operators.NOWHERE, "--leader-elect", "--lease-namespace", operators.HOME)
    with operators.running(api_server, account, home, tmp_path, *options) as first:
        second = Operator(api_server, account, home, tmp_path / "second.log", options)
        try:
            second.start(wait=False)
            api_server.wait_for(lambda: second.answer("/healthz") is not None, "a second operator that waits")
            assert not second.is_ready()
            first.end(signal.SIGKILL)
            api_server.wait_for(second.is_ready, "the second operator to work")
            api_server.apply(a_cluster(), namespace=home)
            api_server.wait_for(lambda: is_ready(api_server, home), "a ready cluster")
            assert second.end() == 0
        finally:
            second.end(signal.SIGKILL)


def test_only_what_is_ours_is_touched_and_what_cannot_be_followed_says_why(
    api_server: Cluster, home: str, operator: Operator
) -> None:
    strimzis = a_cluster("strimzis")
    del strimzis["metadata"]["annotations"]
    paused = a_cluster("paused")
    paused["metadata"]["annotations"]["strimzi.io/pause-reconciliation"] = "true"
    wrong = a_cluster("wrong", tls=7)
    first = a_cluster("first")
    api_server.apply(strimzis, paused, wrong, first, namespace=home)
    api_server.wait_for(lambda: is_ready(api_server, home, "first"), "a ready cluster")
    twin = a_cluster("twin")
    twin["spec"] = first["spec"]
    api_server.apply(twin, namespace=home)

    def told(name: str) -> dict[str, str]:
        return conditions(found(api_server, home, "kafkaconnect", name))

    api_server.wait_for(lambda: "ReconciliationPaused" in told("paused"), "a paused cluster")
    api_server.wait_for(lambda: "tls" in told("wrong").get("NotReady", ""), "a refusal that names the field")
    api_server.wait_for(
        lambda: f"KafkaConnect {home}/first" in told("twin").get("NotReady", ""),
        "a refusal that names the first",
    )
    assert told("strimzis") == {}
    assert {name for _, name in children(api_server, home)} == {
        "first-connect",
        "first-connect-api",
        "first-connect-config",
    }
    # The second one has the topics when the first is gone.
    api_server.kubectl("delete", "kafkaconnect", "first", "-n", home)
    api_server.wait_for(lambda: is_ready(api_server, home, "twin"), "the second one")


def test_an_object_of_somebody_else_is_not_taken(api_server: Cluster, home: str, operator: Operator) -> None:
    api_server.kubectl("create", "configmap", "my-connect-config", "--from-literal=a=b", "-n", home)
    api_server.apply(a_cluster(), namespace=home)

    def message() -> str:
        return conditions(found(api_server, home, "kafkaconnect", "my")).get("NotReady", "")

    api_server.wait_for(lambda: "my-connect-config" in message(), "a refusal that names the object")
    foreign = found(api_server, home, "configmap", "my-connect-config")
    assert foreign is not None
    assert foreign["data"] == {"a": "b"}
    assert "ownerReferences" not in foreign["metadata"]
    api_server.kubectl("delete", "configmap", "my-connect-config", "-n", home)
    api_server.wait_for(lambda: is_ready(api_server, home), "a ready cluster")


def test_pods_are_rolled_by_hand_once_and_the_annotation_goes(
    api_server: Cluster, home: str, operator: Operator
) -> None:
    api_server.apply(a_cluster(), namespace=home)
    api_server.wait_for(lambda: is_ready(api_server, home), "a ready cluster")

    def pods() -> set[str]:
        return {each["metadata"]["name"] for each in api_server.objects("pods", home)}

    before = pods()
    roll = ("strimzi.io/manual-rolling-update=true", "-n", home)
    api_server.kubectl("annotate", "deployment", "my-connect", *roll)
    api_server.wait_for(lambda: len(pods()) == 1 and not pods() & before, "another pod")
    deployment = children(api_server, home)["Deployment", "my-connect"]
    assert "strimzi.io/manual-rolling-update" not in deployment["metadata"].get("annotations", {})
    generation = deployment["metadata"]["generation"]
    api_server.wait_for(lambda: is_ready(api_server, home), "a ready cluster")
    (second,) = pods()
    api_server.kubectl("annotate", "pod", second, *roll)
    api_server.wait_for(lambda: len(pods()) == 1 and second not in pods(), "another pod again")
    after = children(api_server, home)["Deployment", "my-connect"]
    assert after["metadata"]["generation"] == generation


def test_an_autoscaler_has_the_replicas_and_nobody_else(
    api_server: Cluster, home: str, operator: Operator
) -> None:
    api_server.apply(a_cluster(replicas=2), namespace=home)
    api_server.wait_for(lambda: is_ready(api_server, home), "a ready cluster")

    def replicas() -> int:
        return int(children(api_server, home)["Deployment", "my-connect"]["spec"]["replicas"])

    def more_turns() -> None:
        turns = operator.number("icestream_operator_reconciliations_total")
        api_server.wait_for(
            lambda: operator.number("icestream_operator_reconciliations_total") > turns + 3, "more turns"
        )

    api_server.kubectl(
        "autoscale", "deployment", "my-connect", "--min=2", "--max=5", "--cpu-percent=50", "-n", home
    )
    more_turns()
    # Ours alone until then: left out at once, the server would set it to 1.
    assert replicas() == 2
    api_server.kubectl("scale", "deployment", "my-connect", "--replicas=4", "-n", home)
    more_turns()
    assert replicas() == 4
    api_server.kubectl("delete", "hpa", "my-connect", "-n", home)
    api_server.wait_for(lambda: replicas() == 2, "the replicas of the resource")


def test_the_operator_may_not_do_what_it_need_not(api_server: Cluster, account: Path, home: str) -> None:
    def may(*asked: str, where: str = home) -> bool:
        return (
            api_server.kubectl("auth", "can-i", *asked, "-n", where, as_file=account, check=False).strip()
            == "yes"
        )

    api_server.wait_for(lambda: may("patch", "deployments.apps"), "its rights")
    assert may("get", "secrets")
    for verb, what in (
        ("list", "secrets"),
        ("watch", "secrets"),
        ("create", "secrets"),
        ("delete", "secrets"),
        ("get", "nodes"),
        ("delete", "namespaces"),
        ("delete", "kafkaconnects.kafka.strimzi.io"),
        ("update", "kafkaconnects.kafka.strimzi.io"),
        ("impersonate", "users"),
        ("escalate", "roles.rbac.authorization.k8s.io"),
    ):
        assert not may(verb, what), f"it may {verb} {what}"
    assert not may("create", "pods", "--subresource=exec")
    assert not may("get", "secrets", where="default")
