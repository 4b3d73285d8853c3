"""What somebody who may write resources of one namespace can do to the others: nothing."""

from __future__ import annotations

from typing import Any

import pytest

from icestream.operator.api_server import ApiError, LightkubeServer
from icestream.operator.connectors.parse import InvalidConnector, parse_connector
from icestream.operator.keys import Key, key_of
from icestream.operator.kinds import CONFIG_MAP, SECRET
from icestream.operator.known_resources import KnownResources
from icestream.operator.references import References
from icestream.operator.resources.cluster import parse_cluster
from icestream.operator.resources.invalid import InvalidResource
from icestream.operator.twins import first_with_same_storage

ELSEWHERE = "../../other/secrets/password"


def _cluster(namespace: str = "n", uid: str = "u", servers: str = "k:9092", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "icestream.dev/v1alpha1",
        "kind": "IcestreamCluster",
        "metadata": {"name": "a", "namespace": namespace, "uid": uid, "creationTimestamp": uid},
        "spec": {"kafka": {"bootstrapServers": servers}, **spec},
    }


def _with_variable(origin: str, name: str) -> dict[str, Any]:
    variable = {"name": "A", "valueFrom": {origin: {"name": name, "key": "k"}}}
    return _cluster(workers={"template": {"connectContainer": {"env": [variable]}}})


class _Unreachable:
    def __getattr__(self, name: str) -> Any:
        raise AssertionError("no request may be sent")


@pytest.mark.parametrize("name", [ELSEWHERE, "..", ".", "", "a/b", "a%2fb", "a?watch=1"])
def test_no_name_that_is_a_path_gets_into_an_address(name: str) -> None:
    server = LightkubeServer(_Unreachable())  # type: ignore[arg-type]
    with pytest.raises(ApiError, match="no name that an object can have"):
        server.get(SECRET, "n", name)
    with pytest.raises(ApiError, match="no name that an object can have"):
        server.merge(CONFIG_MAP, "n", name, {"data": {}})
    with pytest.raises(ApiError, match="no name that an object can have"):
        server.delete(CONFIG_MAP, "n", name)


@pytest.mark.parametrize("origin", ["secretKeyRef", "configMapKeyRef"])
def test_a_reference_that_leads_to_another_namespace_is_refused(origin: str) -> None:
    with pytest.raises(InvalidResource, match="is no name that a"):
        parse_cluster(_with_variable(origin, ELSEWHERE))


@pytest.mark.parametrize("field", ["secretRef", "configMapRef"])
def test_a_job_cannot_refer_to_another_namespace_either(field: str) -> None:
    with pytest.raises(InvalidResource, match="is no name that a"):
        parse_cluster(_cluster(jobs=[{"name": "j", "envFrom": [{field: {"name": ELSEWHERE}}]}]))


@pytest.mark.parametrize(
    ("verb", "place"), [("listOffsets", "toConfigMap"), ("alterOffsets", "fromConfigMap")]
)
def test_offsets_cannot_come_from_or_go_to_another_namespace(verb: str, place: str) -> None:
    spec = {"class": "c", verb: {place: {"name": "../../other/configmaps/offsets"}}}
    with pytest.raises(InvalidConnector, match="no name that a ConfigMap can have"):
        parse_connector({"metadata": {"name": "c"}, "spec": spec})


def test_a_secret_that_may_not_be_read_does_not_hide_the_changes_of_others() -> None:
    class Server:
        version, refuses = "1", False

        def get(self, kind: Any, namespace: str, name: str) -> dict[str, Any]:
            if self.refuses and namespace == "closed":
                raise ApiError("cannot read it", 403)
            return {"metadata": {"resourceVersion": self.version}}

    server = Server()
    references = References(server)  # type: ignore[arg-type]
    for namespace in ("closed", "open"):
        references.read(Key("KafkaConnect", namespace, "a"), [("Secret", f"s{n}") for n in range(10)])
    server.version, server.refuses = "2", True
    assert references.changed_secrets() == {Key("KafkaConnect", "open", "a")}


def test_a_resource_of_a_megabyte_is_read_at_once_and_has_few_warnings() -> None:
    """Every turn of every cluster reads the others: what takes minutes to read would stop all of them."""
    many = range(40_000)
    mounts = [{"name": "v0", "mountPath": f"/mnt/{n}"} for n in many[:10_000]]
    template = {
        "pod": {"volumes": [{"name": f"v{n}", "emptyDir": {}} for n in many[:10_000]]},
        "connectContainer": {"volumeMounts": mounts},
    }
    workers = {"config": {f"ssl.{n}": "" for n in many}, "template": template}
    found = parse_cluster(_cluster(workers=workers, jobs=[{"name": str(n)} for n in many[:10_000]]))
    assert len(found.warnings) == 51
    assert "39950 more warnings" in found.warnings[-1].message


def test_a_cluster_that_refers_to_hundreds_of_secrets_is_refused() -> None:
    env = [{"secretRef": {"name": f"s{n}"}} for n in range(501)]
    with pytest.raises(InvalidResource, match="more than 500"):
        parse_cluster(_cluster(jobs=[{"name": "j", "envFrom": env}]))


class _Tools:
    def __init__(self, *resources: dict[str, Any]) -> None:
        self.known = KnownResources()
        for each in resources:
            self.known.put(each)

    is_managed = staticmethod(lambda resource: True)
    parse = staticmethod(parse_cluster)


@pytest.mark.parametrize(
    ("older", "newer", "is_same"),
    [
        ("kafka:9092", "kafka:9092", False),
        ("kafka.first:9092", "kafka.first:9092", True),
        ("kafka:9092", "kafka.first.svc:9092", True),
        ("kafka:9092", "kafka.first.svc.cluster.local:9092", True),
        ("kafka.example.com:9092", "Kafka.example.com:9092", True),
        ("kafka.second:9092", "kafka:9092", True),
    ],
)
def test_a_short_name_of_kafka_is_another_kafka_in_another_namespace(
    older: str, newer: str, is_same: bool
) -> None:
    first, second = _cluster("first", "1", older), _cluster("second", "2", newer)
    found = first_with_same_storage(parse_cluster(second), second, _Tools(first, second))
    assert found == (str(key_of(first)) if is_same else None)
