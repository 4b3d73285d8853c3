"""Our own kind: names, variables and labels that `kubectl` lines know; images, jobs, Spark, scaling."""

from __future__ import annotations

from typing import Any

import pytest

from icestream.operator.manifests.cluster import Facts, desired, missing_images
from icestream.operator.manifests.worker_config import config_data
from icestream.operator.resources.cluster import parse_cluster
from icestream.operator.resources.cluster_spec import ClusterSpec, Reference
from icestream.operator.resources.invalid import InvalidResource
from tests.unit.operator.golden import resource

VARIABLES = {
    "CONNECT_BOOTSTRAP_SERVERS": "kafka-1:9092,kafka-2:9092",
    "CONNECT_GROUP_ID": "connect-my-cluster",
    "CONNECT_KEY_CONVERTER": "org.apache.kafka.connect.json.JsonConverter",
    "CONNECT_VALUE_CONVERTER": "org.apache.kafka.connect.json.JsonConverter",
    "CONNECT_OFFSET_STORAGE_TOPIC": "connect-offsets",
    "CONNECT_CONFIG_STORAGE_TOPIC": "connect-configs",
    "CONNECT_STATUS_STORAGE_TOPIC": "connect-status",
    "CONNECT_REST_PORT": "8083",
    "CONNECT_PLUGIN_PATH": "/usr/share/java,/usr/share/confluent-hub-components",
    "CONNECT_PRODUCER_ACKS": "all",
    "CONNECT_PRODUCER_ENABLE_IDEMPOTENCE": "true",
    "CONNECT_PRODUCER_MAX_IN_FLIGHT_REQUESTS_PER_CONNECTION": "1",
    "CONNECT_CONSUMER_ENABLE_AUTO_COMMIT": "false",
    "CONNECT_CONSUMER_ISOLATION_LEVEL": "read_committed",
}


def cluster(spec: dict[str, Any] | None = None, name: str = "my-cluster") -> ClusterSpec:
    return parse_cluster(
        {
            "apiVersion": "icestream.dev/v1alpha1",
            "kind": "IcestreamCluster",
            "metadata": {"name": name, "namespace": "ns", "uid": "u"},
            "spec": {"kafka": {"bootstrapServers": "kafka-1:9092,kafka-2:9092"}, **(spec or {})},
        }
    )


def objects(spec: ClusterSpec, facts: Facts | None = None) -> dict[tuple[str, str], dict[str, Any]]:
    found = desired(spec, facts or Facts())
    return {(one["kind"], one["metadata"]["name"]): one for one in found}


def refused(spec: dict[str, Any]) -> str:
    with pytest.raises(InvalidResource) as met:
        cluster(spec)
    return met.value.message


def test_every_variable_of_a_worker_comes_from_the_config_map() -> None:
    spec = cluster()
    found = objects(spec)
    data = found["ConfigMap", "kafka-connect-worker-config-my-cluster"]["data"]
    template = found["Deployment", "kafka-connect-workers-my-cluster"]["spec"]["template"]
    container = template["spec"]["containers"][0]
    env = {one["name"]: one.get("valueFrom", {}) for one in container["env"]}
    held = {name: env[name]["configMapKeyRef"] for name in VARIABLES}
    assert {one["name"] for one in held.values()} == {"kafka-connect-worker-config-my-cluster"}
    assert {name: data[one["key"]] for name, one in held.items()} == VARIABLES
    assert env["CONNECT_REST_ADVERTISED_HOST_NAME"]["fieldRef"]["fieldPath"] == "status.podIP"
    assert container["name"] == "connect-worker"
    assert container["command"] == ["/etc/confluent/docker/run"]
    assert {"name": "rest-api", "containerPort": 8083, "protocol": "TCP"} in container["ports"]
    assert template["metadata"]["labels"]["app"] == "kafka-connect-workers"
    assert found["Service", "kafka-connect-service-my-cluster"]["spec"]["ports"][0]["port"] == 8083
    assert spec.rest_url == "http://kafka-connect-service-my-cluster.ns.svc:8083"


def test_a_user_changes_group_and_topics_in_the_config() -> None:
    spec = cluster({"workers": {"config": {"group.id": "g", "config.storage.topic": "t"}}})
    assert config_data(spec, Facts())["group.id"] == "g"
    assert spec.storage[1] == "t"


def test_keys_with_capitals_are_lines_of_one_variable() -> None:
    spec = cluster({"workers": {"config": {"spark.driver.extraJavaOptions": "-Da=b\\c"}}})
    assert config_data(spec, Facts())["worker.properties"] == "spark.driver.extraJavaOptions=-Da=b\\\\c\n"


def test_a_key_of_the_name_of_that_variables_lines_is_one_of_them() -> None:
    """Else its value would set whatever a resource may not."""
    spec = cluster({"workers": {"config": {"worker.properties": "listeners=http://:1"}}})
    assert config_data(spec, Facts())["worker.properties"] == "worker.properties=listeners=http://:1\n"


def test_archives_are_what_the_images_turn_takes() -> None:
    spec = parse_cluster(resource("cluster-from-s3"))
    assert spec.archives is not None
    assert [one.role for one in spec.archives.images] == ["worker", "coordinator"]
    assert spec.archives.store.credentials_secret == "images-bucket"
    assert spec.archives.registry.url == "registry.lake.svc:5000"
    assert spec.pull_secrets == ("registry-login",)
    assert missing_images(spec, Facts(images={"worker": "a"})) == ("coordinator",)


def test_an_archive_needs_a_bucket_and_a_registry() -> None:
    images = {"worker": {"path": "a.tar"}}
    assert "spec.s3 is missing" in refused({"images": images})
    assert "spec.registry is missing" in refused({"images": images, "s3": {"bucket": "b"}})
    both = {"worker": {"path": "a", "reference": "b"}}
    assert "both 'path' and 'reference'" in refused({"images": both})
    wrong = {"worker": {"path": "a", "sha256": "12"}}
    assert "no SHA-256" in refused({"images": wrong, "s3": {"bucket": "b"}, "registry": {"url": "r"}})


def test_each_job_is_a_deployment_that_is_replaced() -> None:
    spec = parse_cluster(resource("job"))
    found = objects(spec)
    deployment = found["Deployment", "iceberg-job-manager-jobs-my-iceberg-job"]
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}
    assert deployment["spec"]["replicas"] == 1
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert (labels["app"], labels["job"]) == ("iceberg-job-manager", "my-iceberg-job")
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    assert container["command"] == ["icestream", "job-manager"]
    data = found["ConfigMap", "iceberg-job-manager-jobs-my-iceberg-job"]["data"]
    assert data == {
        "KAFKA_BOOTSTRAP_SERVERS": "kafka:9092",
        "JOB_ID": "my-iceberg-job",
        "CONNECT_GROUP_ID": "connect-orders",
        "CONTROL_TOPIC": "control-iceberg",
        "CATALOG_NAME": "lake",
        "CATALOG_TYPE": "rest",
        "CATALOG_URI": "http://catalog.lake.svc:8181",
    }
    env = {one["name"]: one for one in container["env"]}
    assert env["CATALOG_CREDENTIAL"]["valueFrom"]["secretKeyRef"] == {"name": "catalog", "key": "credential"}
    assert Reference("Secret", "catalog") in spec.references
    assert container["image"] == "registry.lake.svc:5000/icestream/worker:1.0"


def test_a_password_in_the_resource_is_told_without_its_value() -> None:
    job = {"name": "j", "env": [{"name": "CATALOG_JDBC_PASSWORD", "value": "hunter2"}]}
    spec = cluster({"jobs": [job]})
    assert [one.reason for one in spec.warnings] == ["SecretInPlainText"]
    assert "hunter2" not in spec.warnings[0].message


def test_jobs_whose_names_look_alike_have_objects_of_their_own() -> None:
    spec = cluster({"jobs": [{"name": "a.b"}, {"name": "a-b"}, {"name": "A-B"}]})
    assert len([one for one in objects(spec) if one[0] == "Deployment"]) == 4
    assert "twice" in refused({"jobs": [{"name": "a"}, {"name": "a"}]})


def test_a_secret_of_one_job_rolls_that_job_alone() -> None:
    env = [{"name": "X", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]
    spec = cluster({"jobs": [{"name": "a", "env": env}, {"name": "b"}]})

    def marks(value: str) -> dict[str, Any]:
        found = objects(spec, Facts(hashes={Reference("Secret", "s"): value}))
        return {
            name: one["spec"]["template"]["metadata"]["annotations"]
            for (kind, name), one in found.items()
            if kind == "Deployment"
        }

    before, after = marks("1"), marks("2")
    changed = [name for name in before if before[name] != after[name]]
    assert changed == ["iceberg-job-manager-my-cluster-a"]


def test_executors_are_scaled_by_spark_within_limits() -> None:
    told = config_data(parse_cluster(resource("cluster-from-s3")), Facts())
    assert "spark.dynamicAllocation.maxExecutors=8\n" in told["worker.properties"]
    assert "spark.dynamicAllocation.shuffleTracking.enabled=true\n" in told["worker.properties"]
    assert "spark.executor.instances" not in told


def test_limits_of_scaling_are_in_order() -> None:
    spec = cluster({"scaling": {"workers": {"min": 2, "max": 5, "connectorsPerWorker": 7}}})
    assert spec.scaling is not None
    assert (spec.scaling.scales_workers, spec.scaling.scales_executors) == (True, False)
    assert (spec.scaling.limits.min_workers, spec.scaling.limits.max_workers) == (2, 5)
    assert "min 6 above max 5" in refused({"scaling": {"workers": {"min": 6, "max": 5}}})


def test_only_named_peers_reach_rest() -> None:
    def peers(spec: ClusterSpec) -> list[Any]:
        policy = objects(spec)["NetworkPolicy", "kafka-connect-workers-my-cluster"]
        found: list[Any] = policy["spec"]["ingress"][0]["from"]
        return found[2:]

    assert peers(cluster()) == [{"podSelector": {}}]
    assert peers(cluster({"network": {"allowFrom": []}})) == []


def test_a_long_name_is_cut_and_stays_unique() -> None:
    names = [name for _, name in objects(cluster(name="a" * 200))]
    others = [name for _, name in objects(cluster(name="a" * 201))]
    assert max(map(len, names)) <= 63
    assert not set(names) & set(others)


def test_a_pod_monitor_is_made_only_where_there_are_such() -> None:
    kinds = [kind for kind, _ in objects(cluster(), Facts(has_pod_monitors=True))]
    assert "PodMonitor" in kinds
    assert "PodMonitor" not in [kind for kind, _ in objects(cluster())]
    quiet = cluster({"monitoring": {"podMonitor": False}})
    assert "PodMonitor" not in [kind for kind, _ in objects(quiet, Facts(has_pod_monitors=True))]


def test_keda_scales_the_workers_where_it_is_and_a_prometheus_is_named() -> None:
    scaling = {"workers": {"min": 2, "max": 5}, "keda": {"prometheus": "http://prometheus:9090"}}
    spec = cluster({"scaling": scaling})
    found = objects(spec, Facts(has_keda=True))
    scaled = found["ScaledObject", "kafka-connect-workers-my-cluster"]
    assert scaled["spec"]["scaleTargetRef"]["name"] == "kafka-connect-workers-my-cluster"
    assert (scaled["spec"]["minReplicaCount"], scaled["spec"]["maxReplicaCount"]) == (2, 5)
    assert scaled["metadata"]["ownerReferences"][0]["uid"] == "u"
    assert "replicas" not in found["Deployment", "kafka-connect-workers-my-cluster"]["spec"]
    assert "ScaledObject" not in [kind for kind, _ in objects(spec)]
