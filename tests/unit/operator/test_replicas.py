"""Who says how many replicas there are."""

from __future__ import annotations

from typing import Any

from icestream.operator.replicas import autoscaler_of, replicas_to_apply


def _live(replicas: int, *managers: tuple[str, str]) -> dict[str, Any]:
    fields = [
        {"manager": manager, "operation": operation, "fieldsV1": {"f:spec": {"f:replicas": {}}}}
        for manager, operation in managers
    ]
    return {"metadata": {"managedFields": fields}, "spec": {"replicas": replicas}}


def test_without_an_autoscaler_the_resource_says_it() -> None:
    assert replicas_to_apply(3, _live(7, ("kubectl", "Update")), is_autoscaled=False) == 3


def test_a_new_deployment_begins_with_the_count_of_the_resource() -> None:
    assert replicas_to_apply(3, None, is_autoscaled=True) == 3


def test_the_count_is_let_go_once_the_autoscaler_has_written_it() -> None:
    live = _live(5, ("icestream-operator", "Apply"), ("kube-controller-manager", "Update"))
    assert replicas_to_apply(3, live, is_autoscaled=True) is None


def test_until_then_it_stays_as_it_is_because_the_server_would_set_it_to_one() -> None:
    assert replicas_to_apply(3, _live(5, ("icestream-operator", "Apply")), is_autoscaled=True) == 5
    assert replicas_to_apply(None, _live(5, ("icestream-operator", "Apply")), is_autoscaled=True) == 5


def test_an_autoscaler_of_another_thing_of_the_same_name_does_not_count() -> None:
    def scaler(target: dict[str, str]) -> dict[str, Any]:
        return {"metadata": {"name": "it"}, "spec": {"scaleTargetRef": target}}

    assert autoscaler_of("my", [scaler({"kind": "StatefulSet", "name": "my"})]) is None
    assert autoscaler_of("my", [scaler({"kind": "Deployment", "name": "other"})]) is None
    assert autoscaler_of("my", [scaler({"name": "my"})]) == "it"
