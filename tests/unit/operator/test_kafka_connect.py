"""Every field of Strimzi's KafkaConnect: what it does here, or the warning that says why it does nothing."""

from __future__ import annotations

from typing import Any

import pytest

from icestream.operator.manifests.cluster import Facts, desired
from icestream.operator.manifests.worker_config import settings
from icestream.operator.resources.cluster import parse_cluster
from icestream.operator.resources.cluster_spec import ClusterSpec, Reference
from icestream.operator.resources.invalid import InvalidResource

GROUP = {
    "groupId": "g",
    "configStorageTopic": "c",
    "offsetStorageTopic": "o",
    "statusStorageTopic": "s",
}
CLIENTS = ("", "producer.", "consumer.", "admin.")


def new(spec: dict[str, Any] | None = None, **metadata: Any) -> ClusterSpec:
    whole = {"replicas": 1, "bootstrapServers": "kafka:9092", **GROUP, **(spec or {})}
    named = {"name": "my", "namespace": "ns", **metadata}
    return parse_cluster(
        {"apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaConnect", "metadata": named, "spec": whole}
    )


def old(spec: dict[str, Any] | None = None) -> ClusterSpec:
    return parse_cluster(
        {
            "apiVersion": "kafka.strimzi.io/v1beta2",
            "kind": "KafkaConnect",
            "metadata": {"name": "my", "namespace": "ns"},
            "spec": {"bootstrapServers": "kafka:9092", **(spec or {})},
        }
    )


def made(spec: ClusterSpec, kind: str, facts: Facts | None = None) -> dict[str, Any]:
    found = [one for one in desired(spec, facts or Facts()) if one["kind"] == kind]
    return found[0]


def pod(spec: ClusterSpec, facts: Facts | None = None) -> dict[str, Any]:
    found: dict[str, Any] = made(spec, "Deployment", facts)["spec"]["template"]["spec"]
    return found


def container(spec: ClusterSpec, facts: Facts | None = None) -> dict[str, Any]:
    found: dict[str, Any] = pod(spec, facts)["containers"][0]
    return found


def told(spec: ClusterSpec) -> str:
    return "\n".join(one.message for one in spec.warnings)


def refused(spec: dict[str, Any], version: Any = new) -> str:
    with pytest.raises(InvalidResource) as met:
        version(spec)
    return met.value.message


def test_a_plain_resource_has_no_warnings() -> None:
    assert new().warnings == ()
    assert old().warnings == ()


def test_version_picks_nothing() -> None:
    assert container(new({"version": "3.9.0"}))["image"] == Facts().default_image


def test_an_image_of_ours_is_taken_and_another_one_is_not() -> None:
    ours = "registry.example.com:5000/team/icestream:1.2"
    assert container(new({"image": ours}))["image"] == ours
    theirs = new({"image": "quay.io/strimzi/kafka:1.2.0-kafka-4.3.1"})
    assert container(theirs)["image"] == Facts().default_image
    assert "spec.image is no image of Icestream" in told(theirs)


def test_replicas_are_required_in_v1_and_three_in_v1beta2_and_zero_is_legal() -> None:
    assert made(new({"replicas": 0}), "Deployment")["spec"]["replicas"] == 0
    assert made(old(), "Deployment")["spec"]["replicas"] == 3
    assert refused({"replicas": None}) == "spec.replicas is missing; set it"
    assert "spec.replicas is -1" in refused({"replicas": -1})


@pytest.mark.parametrize("field", [*GROUP, "bootstrapServers"])
def test_what_v1_requires_is_asked_for(field: str) -> None:
    assert refused({field: None}) == f"spec.{field} is missing; set it"


def test_group_and_topics_are_fields_in_v1_and_config_in_v1beta2() -> None:
    spec = new({"config": {"group.id": "other", "config.storage.topic": "other"}})
    assert spec.properties["group.id"] == "g"
    assert spec.storage == ("kafka.ns:9092", "c", "o", "s")
    assert "spec.config.group.id is left out" in told(spec)
    defaults = old().storage
    assert defaults[1:] == ("connect-cluster-configs", "connect-cluster-offsets", "connect-cluster-status")
    assert old({"config": {"group.id": "other"}}).properties["group.id"] == "other"


@pytest.mark.parametrize(
    "key",
    [
        *("ssl.truststore.location", "sasl.mechanism", "security.protocol", "listeners", "plugin.path"),
        *("rest.port", "bootstrap.servers", "consumer.interceptor.classes", "producer.interceptor.classes"),
        "prometheus.metrics.reporter.listener",
    ],
)
def test_forbidden_config_is_left_out_with_a_warning(key: str) -> None:
    spec = new({"config": {key: "mine"}})
    assert "mine" not in settings(spec, Facts()).values()
    assert f"spec.config.{key} is left out" in told(spec)


def test_other_config_is_passed_on_as_java_writes_it() -> None:
    config = {
        "ssl.endpoint.identification.algorithm": "",
        "ssl.protocol": "TLSv1.3",
        "offset.storage.replication.factor": -1,
        "value.converter.schemas.enable": False,
        "icestream.log.format": "json",
        "spark.executor.memory": "2g",
    }
    found = new({"config": config})
    assert {key: found.properties[key] for key in config} == {
        "ssl.endpoint.identification.algorithm": "",
        "ssl.protocol": "TLSv1.3",
        "offset.storage.replication.factor": "-1",
        "value.converter.schemas.enable": "false",
        "icestream.log.format": "json",
        "spark.executor.memory": "2g",
    }
    assert found.warnings == ()
    assert "spec.config.a is a list" in refused({"config": {"a": ["b"]}})


def test_trusted_certificates_are_mounted_and_pointed_to_for_every_client() -> None:
    trusted = [
        {"secretName": "ca", "certificate": "ca.crt"},
        {"secretName": "more", "pattern": "*.crt"},
    ]
    spec = new({"tls": {"trustedCertificates": trusted}})
    facts = Facts(secret_keys={"more": ("b.crt", "a.crt", "key.pem")})
    found = settings(spec, facts)
    expected = "\n".join(
        f"${{strimzidir:/opt/kafka/connect-certs/{place}}}"
        for place in ("ca:ca.crt", "more:a.crt", "more:b.crt")
    )
    for client in CLIENTS:
        assert found[f"{client}security.protocol"] == "SSL"
        assert found[f"{client}ssl.truststore.type"] == "PEM"
        assert found[f"{client}ssl.truststore.certificates"] == expected
    mounted = {one["mountPath"] for one in container(spec)["volumeMounts"]}
    assert {"/opt/kafka/connect-certs/ca", "/opt/kafka/connect-certs/more"} <= mounted
    assert set(spec.references) == {Reference("Secret", "ca"), Reference("Secret", "more")}
    assert "either 'certificate' or 'pattern'" in refused(
        {"tls": {"trustedCertificates": [{"secretName": "a"}]}}
    )


def test_empty_tls_trusts_the_authorities_of_the_system() -> None:
    found = settings(new({"tls": {}}), Facts())
    assert found["security.protocol"] == "SSL"
    assert "ssl.truststore.type" not in found


def test_a_client_certificate_is_a_pem_key_store() -> None:
    pair = {"secretName": "me", "certificate": "user.crt", "key": "user.key"}
    spec = new({"tls": {}, "authentication": {"type": "tls", "certificateAndKey": pair}})
    for client in CLIENTS:
        assert spec.properties[f"{client}ssl.keystore.type"] == "PEM"
        assert (
            spec.properties[f"{client}ssl.keystore.key"]
            == "${strimzidir:/opt/kafka/connect-certs/me:user.key}"
        )
        assert spec.properties[f"{client}security.protocol"] == "SSL"


@pytest.mark.parametrize(
    ("kind", "mechanism", "module"),
    [
        ("plain", "PLAIN", "plain.PlainLoginModule"),
        ("scram-sha-256", "SCRAM-SHA-256", "scram.ScramLoginModule"),
        ("scram-sha-512", "SCRAM-SHA-512", "scram.ScramLoginModule"),
    ],
)
def test_logins_name_the_password_and_never_have_it(kind: str, mechanism: str, module: str) -> None:
    held = {"secretName": "login", "password": "pw"}
    login = {"type": kind, "username": 'a"b', "passwordSecret": held}
    spec = new({"authentication": login})
    for client in CLIENTS:
        assert spec.properties[f"{client}sasl.mechanism"] == mechanism
        assert spec.properties[f"{client}security.protocol"] == "SASL_PLAINTEXT"
        assert spec.properties[f"{client}sasl.jaas.config"] == (
            f"org.apache.kafka.common.security.{module} required "
            'username="a\\"b" password="${strimzidir:/opt/kafka/connect-password/login:pw}";'
        )
    assert new({"authentication": login, "tls": {}}).properties["security.protocol"] == "SASL_SSL"
    assert spec.references == (Reference("Secret", "login"),)
    assert "placeholder" in refused({"authentication": {**login, "username": "${strimzidir:/opt:x}"}})


def test_custom_authentication_is_taken_as_it_is_for_all_clients() -> None:
    config = {"sasl.mechanism": "OAUTHBEARER", "ssl.keystore.type": "PEM", "group.id": "no"}
    spec = new({"authentication": {"type": "custom", "sasl": True, "config": config}})
    for client in CLIENTS:
        assert spec.properties[f"{client}sasl.mechanism"] == "OAUTHBEARER"
        assert spec.properties[f"{client}ssl.keystore.type"] == "PEM"
    assert spec.properties["security.protocol"] == "SASL_PLAINTEXT"
    assert "spec.authentication.config.group.id is left out" in told(spec)


def test_oauth_is_refused_and_custom_named() -> None:
    assert "take 'custom'" in refused({"authentication": {"type": "oauth"}}, old)
    assert "none of tls, plain" in refused({"authentication": {"type": "magic"}})


def test_resources_and_probes_are_those_of_the_user() -> None:
    resources = {"requests": {"cpu": "1", "memory": "1.5Gi"}, "limits": {"memory": "2Gi"}}
    probes = {"livenessProbe": {"initialDelaySeconds": 30}, "readinessProbe": {"timeoutSeconds": 7}}
    found = container(new({"resources": resources, **probes}))
    assert found["resources"] == resources
    assert found["livenessProbe"]["initialDelaySeconds"] == 30
    assert found["livenessProbe"]["httpGet"]["path"] == "/live"
    assert found["readinessProbe"]["timeoutSeconds"] == 7
    assert found["startupProbe"]["failureThreshold"] == 60


def test_jvm_options_are_those_of_sparks_driver() -> None:
    jvm = {
        "-Xmx": "2G",
        "-Xms": "512m",
        "-XX": {"UseG1GC": True, "MaxGCPauseMillis": 20},
        "javaSystemProperties": [{"name": "a.b", "value": 'x "y'}],
    }
    found = new({"jvmOptions": jvm}).properties
    assert found["spark.driver.memory"] == "2g"
    options = found["spark.driver.extraJavaOptions"]
    assert options.endswith('-Xms512m -XX:+UseG1GC -XX:MaxGCPauseMillis=20 "-Da.b=x \\"y"')
    assert new({"jvmOptions": {"-Xmx": "1073741824"}}).properties["spark.driver.memory"] == "1048576k"
    own = {"jvmOptions": jvm, "config": {"spark.driver.memory": "3g"}}
    assert new(own).properties["spark.driver.memory"] == "3g"
    assert "write it as 2g" in refused({"jvmOptions": {"-Xmx": "much"}})


def test_levels_of_log4j_become_ours() -> None:
    loggers = {
        "rootLogger.level": "WARN",
        "logger.rest.name": "org.apache.kafka.connect.runtime.rest",
        "logger.rest.level": "DEBUG",
        "log4j.logger.org.reflections": "ERROR",
        "appender.console.type": "Console",
    }
    spec = new({"logging": {"type": "inline", "loggers": loggers}})
    assert spec.properties["icestream.log.level"] == "WARNING"
    assert spec.properties["icestream.log.loggers"] == (
        "org.apache.kafka.connect.runtime.rest=DEBUG,org.reflections=ERROR"
    )
    assert "appender.console.type has no effect" in told(spec)
    external = {"type": "external", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}}
    assert "spec.logging is external" in told(new({"logging": external}))


@pytest.mark.parametrize("kind", ["jmxPrometheusExporter", "strimziMetricsReporter"])
def test_metrics_open_their_port(kind: str) -> None:
    spec = new({"metricsConfig": {"type": kind, "values": {"allowList": ["kafka_.*"]}}})
    assert spec.properties["metrics.listeners"] == "http://:9404"
    ports = {one["name"]: one["containerPort"] for one in container(spec)["ports"]}
    assert ports == {"rest-api": 8083, "tcp-prometheus": 9404}
    assert "spec.metricsConfig" in told(spec)
    assert [one["name"] for one in container(new())["ports"]] == ["rest-api"]


def test_the_rack_comes_from_a_variable_and_not_from_nodes() -> None:
    spec = new({"rack": {"type": "environment-variable", "envVarName": "ZONE"}})
    assert spec.properties["consumer.client.rack"] == "${strimzienv:ZONE}"
    labelled = old({"rack": {"topologyKey": "topology.kubernetes.io/zone"}})
    assert "consumer.client.rack" not in labelled.properties
    assert "spec.rack needs the labels of nodes" in told(labelled)


def test_external_configuration_is_at_its_path() -> None:
    env = {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "login", "key": "k"}}}
    volumes = [{"name": "db", "secret": {"secretName": "db-login"}}]
    spec = old({"externalConfiguration": {"env": [env], "volumes": volumes}})
    found = container(spec)
    assert env in found["env"]
    assert "/opt/kafka/external-configuration/db" in [one["mountPath"] for one in found["volumeMounts"]]
    assert set(spec.references) == {Reference("Secret", "login"), Reference("Secret", "db-login")}
    assert "gone in v1" in told(spec)
    assert "spec.externalConfiguration is not a field" in told(new({"externalConfiguration": {"env": [env]}}))


def test_templates_are_merged_and_the_rest_is_told() -> None:
    template = {
        "pod": {
            "metadata": {"labels": {"a": "b", "strimzi.io/cluster": "other"}, "annotations": {"c": "d"}},
            "affinity": {"nodeAffinity": {}},
            "imagePullSecrets": [{"name": "pull"}],
            "terminationGracePeriodSeconds": 90,
            "tmpDirSizeLimit": "5Gi",
            "securityContext": {"runAsUser": 1001, "fsGroup": 7, "sysctls": []},
            "volumes": [{"name": "v", "emptyDir": {}}],
            "templatedVolumes": [],
        },
        "connectContainer": {
            "env": [{"name": "A", "value": "$(B)"}, {"name": "POD_IP", "value": "1.2.3.4"}],
            "volumeMounts": [{"name": "v", "mountPath": "/mnt/v"}],
            "securityContext": {"privileged": True, "capabilities": {"drop": ["ALL"]}},
        },
        "apiService": {"metadata": {"annotations": {"lb": "yes"}}},
        "podDisruptionBudget": {"maxUnavailable": 2},
        "serviceAccount": {"metadata": {"annotations": {"role": "lake"}}},
        "podSet": {"metadata": {}},
        "buildPod": {},
    }
    spec = new({"template": template, "replicas": 2})
    metadata = made(spec, "Deployment")["spec"]["template"]["metadata"]
    assert metadata["labels"]["a"] == "b"
    assert metadata["labels"]["strimzi.io/cluster"] == "my"
    assert metadata["annotations"]["c"] == "d"
    found = pod(spec)
    assert found["affinity"] == {"nodeAffinity": {}}
    assert found["imagePullSecrets"] == [{"name": "pull"}]
    assert found["terminationGracePeriodSeconds"] == 90
    assert (found["securityContext"]["runAsUser"], found["securityContext"]["fsGroup"]) == (1001, 7)
    assert {"name": "tmp", "emptyDir": {"sizeLimit": "5Gi"}} in found["volumes"]
    assert {"name": "v", "emptyDir": {}} in found["volumes"]
    own = container(spec)
    assert {"name": "v", "mountPath": "/mnt/v"} in own["volumeMounts"]
    assert next(one for one in own["env"] if one["name"] == "POD_IP").get("valueFrom")
    assert "privileged" not in own["securityContext"]
    assert made(spec, "Service")["metadata"]["annotations"] == {"lb": "yes"}
    assert made(spec, "PodDisruptionBudget")["spec"]["maxUnavailable"] == 2
    assert made(spec, "ServiceAccount")["metadata"]["annotations"] == {"role": "lake"}
    for part in ("podSet", "buildPod", "connectContainer.securityContext.privileged", "pod.templatedVolumes"):
        assert f"spec.template.{part}" in told(spec)


@pytest.mark.parametrize("path", ["/opt/kafka", "/mnt/../etc", "/mntx"])
def test_mounts_are_below_mnt_only(path: str) -> None:
    template = {
        "pod": {"volumes": [{"name": "v", "emptyDir": {}}]},
        "connectContainer": {"volumeMounts": [{"name": "v", "mountPath": path}]},
    }
    assert "mount below /mnt only" in refused({"template": template})


def test_volumes_of_the_node_are_refused() -> None:
    volumes = [{"name": "v", "hostPath": {"path": "/"}}]
    assert "no other is allowed" in refused({"template": {"pod": {"volumes": volumes}}})


def test_artifacts_of_java_are_listed_without_their_logins() -> None:
    artifacts = [
        {"type": "jar", "url": "https://user:secret@files.example.com/a.jar?token=secret"},
        {"type": "maven", "group": "g", "artifact": "a", "version": "1"},
    ]
    spec = new(
        {
            "build": {"output": {"type": "docker"}, "plugins": [{"name": "p", "artifacts": artifacts}]},
            "plugins": [{"name": "q", "artifacts": [{"type": "image", "reference": "r/i:1"}]}],
        }
    )
    assert "p (https://files.example.com/a.jar, g:a:1)" in told(spec)
    assert "q (r/i:1)" in told(spec)
    assert "secret" not in told(spec)


@pytest.mark.parametrize("field", ["jmxOptions", "tracing", "clientRackInitImage"])
def test_what_has_no_use_is_told(field: str) -> None:
    assert f"spec.{field} has no effect" in told(new({field: "x" if field.endswith("Image") else {}}))


def test_a_field_that_nobody_knows_is_told() -> None:
    assert told(new({"replica": 3})) == "spec.replica is not a field that is known here; it has no effect"


def test_objects_have_strimzis_names_labels_and_owner() -> None:
    labels = {"team": "a", "app.kubernetes.io/name": "x", "app.kubernetes.io/part-of": "shop"}
    flux = {"kustomize.toolkit.fluxcd.io/name": "y"}
    spec = new(
        {"replicas": 2},
        uid="u-1",
        labels=labels | flux,
        annotations={"strimzi.io/use-connector-resources": "true"},
    )
    names = [(one["kind"], one["metadata"]["name"]) for one in desired(spec, Facts())]
    assert names == [
        ("ServiceAccount", "my-connect"),
        ("NetworkPolicy", "my-connect"),
        ("Service", "my-connect-api"),
        ("Service", "my-connect"),
        ("ConfigMap", "my-connect-config"),
        ("PodDisruptionBudget", "my-connect"),
        ("Deployment", "my-connect"),
    ]
    metadata = made(spec, "Deployment")["metadata"]
    assert metadata["ownerReferences"][0]["uid"] == "u-1"
    found = metadata["labels"]
    assert found["team"] == "a"
    assert found["app.kubernetes.io/part-of"] == "shop"
    assert found["app.kubernetes.io/name"] == "kafka-connect"
    assert not set(flux) & set(found)
    assert made(spec, "Deployment")["spec"]["selector"]["matchLabels"] == {
        "strimzi.io/cluster": "my",
        "strimzi.io/kind": "KafkaConnect",
        "strimzi.io/name": "my-connect",
    }
    assert container(spec)["name"] == "my-connect"


def test_one_worker_has_no_budget_and_nobody_needs_a_policy_without_connector_resources() -> None:
    kinds = {one["kind"] for one in desired(new(), Facts())}
    assert not {"PodDisruptionBudget", "NetworkPolicy", "Role"} & kinds


def test_a_changed_secret_rolls_the_pods_and_an_unrelated_one_does_not() -> None:
    login = {"type": "plain", "username": "a", "passwordSecret": {"secretName": "login", "password": "pw"}}
    spec = new({"authentication": login})

    def annotations(hashes: dict[Reference, str]) -> dict[str, str]:
        found: dict[str, str] = made(spec, "Deployment", Facts(hashes=hashes))["spec"]["template"][
            "metadata"
        ]["annotations"]
        return found

    before, after = (
        annotations({Reference("Secret", "login"): "1"}),
        annotations({Reference("Secret", "login"): "2"}),
    )
    assert before["strimzi.io/configuration-hash"] == after["strimzi.io/configuration-hash"]
    assert before["strimzi.io/auth-hash"] != after["strimzi.io/auth-hash"]
    assert annotations({Reference("Secret", "login"): "1", Reference("Secret", "other"): "9"}) == before


def test_an_autoscaler_keeps_the_number_of_workers() -> None:
    assert "replicas" not in made(new(), "Deployment", Facts(is_autoscaled=True))["spec"]
    assert made(new(), "Deployment", Facts(replicas=7))["spec"]["replicas"] == 7


def test_a_master_on_kubernetes_makes_the_pod_a_driver() -> None:
    spec = new({"config": {"spark.master": "k8s://https://api:443", "spark.executor.instances": 5}})
    kinds = [one["kind"] for one in desired(spec, Facts())]
    assert {"Role", "RoleBinding"} <= set(kinds)
    found = settings(spec, Facts())
    assert found["spark.executor.instances"] == "5"
    assert found["spark.kubernetes.container.image"] == Facts().default_image
    assert found["spark.driver.host"] == "${strimzienv:POD_IP}"
    assert "api-token" in [one["name"] for one in pod(spec)["volumes"]]
    assert "api-token" not in [one["name"] for one in pod(new())["volumes"]]


def test_a_provider_that_asks_kubernetes_has_a_token() -> None:
    java = "io.strimzi.kafka.KubernetesSecretConfigProvider"
    spec = new({"config": {"config.providers": "secrets", "config.providers.secrets.class": java}})
    assert spec.properties["config.providers"] == "secrets,strimzienv,strimzifile,strimzidir,strimzisecrets"
    assert "api-token" in [one["name"] for one in pod(spec)["volumes"]]
