"""`k8s/deploy-job-manager.sh` and `k8s/kafka-connect-workers.yaml` on a real API server."""

from __future__ import annotations

import base64
import os
import subprocess
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kubernetes.cluster import PATIENCE_S, Cluster
from tests.kubernetes.manifests import ROOT, check_hardened, one

_SCRIPT = ROOT / "k8s" / "deploy-job-manager.sh"
_SEED = {
    "KAFKA_BOOTSTRAP_SERVERS": "kafka:9092",
    "CONNECT_GROUP_ID": "my-iceberg-job",
    "CONTROL_TOPIC": "iceberg-control-topic",
    "CATALOG_NAME": "iceberg_catalog",
    "CATALOG_CATALOG_IMPL": "org.apache.iceberg.jdbc.JdbcCatalog",
    "CATALOG_URI": "jdbc:postgresql://postgres:5432/iceberg",
    "CATALOG_JDBC_USER": "iceberg",
    "CATALOG_JDBC_PASSWORD": "password",
    "CATALOG_WAREHOUSE": "s3://iceberg-warehouse/",
}
_HOSTILE = {
    "CATALOG_WAREHOUSE": 's3://a"b\\c: {d}\n  evil: true\t$(touch x) `y` # z',
    "CATALOG_JDBC_PASSWORD": "p'\"\\ : - {$(x)}\nnew line",
    "CATALOG_USER_NAME": "ünïcode – 漢字",
}


def run(variables: Mapping[str, str], *options: str, path: str = "") -> subprocess.CompletedProcess[str]:
    plain = {"PATH": path or os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    return subprocess.run(
        [str(_SCRIPT), *options],
        env={**plain, **variables},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


def deploy(cluster: Cluster, variables: Mapping[str, str], *options: str) -> str:
    there = cluster.environment()
    known = {name: there[name] for name in ("KUBECONFIG", "KUBECACHEDIR")}
    ran = run({**variables, **known}, *options, path=there["PATH"])
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def documents(variables: Mapping[str, str]) -> list[dict[str, Any]]:
    ran = run(variables, "--dry-run")
    assert ran.returncode == 0, ran.stderr
    return list(yaml.safe_load_all(ran.stdout))


def test_a_dry_run_prints_all_but_the_passwords() -> None:
    ran = run(_SEED, "--dry-run")
    assert "password" not in ran.stdout.replace("CATALOG_JDBC_PASSWORD", "").lower().replace("passwords", "")
    assert "Secret iceberg-job-manager-my-iceberg-job, not printed, with CATALOG_JDBC_PASSWORD" in ran.stdout
    objects = documents(_SEED)
    assert {it["kind"] for it in objects} == {"ConfigMap", "Service", "Deployment"}
    check_hardened(objects)
    assert {it["metadata"]["namespace"] for it in objects} == {"default"}
    for it in objects:
        labels = it["metadata"]["labels"]
        assert (labels["app"], labels["job"]) == ("iceberg-job-manager", "my-iceberg-job")
    wanted = {name: value for name, value in _SEED.items() if name != "CATALOG_JDBC_PASSWORD"}
    assert one(objects, "ConfigMap")["data"] == {**wanted, "HTTP_HOST": "0.0.0.0", "HTTP_PORT": "8080"}
    spec = one(objects, "Deployment")["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})


def test_what_is_missing_or_wrong_is_named() -> None:
    nothing = run({}, "--dry-run")
    assert nothing.returncode == 1
    for name in ("KAFKA_BOOTSTRAP_SERVERS", "CONNECT_GROUP_ID", "CONTROL_TOPIC", "CATALOG_NAME"):
        assert name in nothing.stderr
    for wrong in ({"JOB_NAME": "a: b"}, {"NAMESPACE": "x\ny"}, {"IMAGE": "a b"}, {"CATALOG_X": "a\x01b"}):
        ran = run({**_SEED, **wrong}, "--dry-run")
        assert ran.returncode == 1, ran.stdout
        assert next(iter(wrong)) in ran.stderr


def test_without_a_cluster_it_says_where_kubectl_looks_for_one(tmp_path: Path) -> None:
    (tmp_path / "kubectl").write_text("#!/bin/sh\ncat >/dev/null\necho connection refused >&2\nexit 1\n")
    (tmp_path / "kubectl").chmod(0o755)
    ran = run(_SEED, path=f"{tmp_path}:{os.environ['PATH']}")
    assert ran.returncode == 1 and not ran.stdout
    *said, advice = ran.stderr.splitlines()
    assert said == ["connection refused"]
    for step in ("kubectl cluster-info", "KUBECONFIG", "--dry-run"):
        assert step in advice


@pytest.mark.parametrize("group", ["My_Job!", "a" * 200, "漢字", "-", "two words\nand lines"])
def test_a_group_of_any_name_makes_a_job(group: str) -> None:
    job = one(documents({**_SEED, "CONNECT_GROUP_ID": group}), "Deployment")["metadata"]
    assert len(job["name"]) <= 63
    assert job["name"] == f"iceberg-job-manager-{job['labels']['job']}"


def test_groups_that_look_alike_are_two_jobs() -> None:
    names = {
        one(documents({**_SEED, "CONNECT_GROUP_ID": group}), "Deployment")["metadata"]["name"]
        for group in ("my.job", "my_job", "my-job", "MY-JOB")
    }
    assert len(names) == 4


def test_the_job_manager_is_deployed_changed_and_cleaned_up(api_server: Cluster, namespace: str) -> None:
    variables = {**_SEED, **_HOSTILE, "NAMESPACE": namespace}
    said = deploy(api_server, variables, "--wait")
    assert f"kubectl logs -n {namespace} -l job=my-iceberg-job -f" in said
    name = "iceberg-job-manager-my-iceberg-job"
    data = one(api_server.objects("configmaps", namespace, "-l", "job=my-iceberg-job"), "ConfigMap")["data"]
    assert data["CATALOG_WAREHOUSE"] == _HOSTILE["CATALOG_WAREHOUSE"]
    assert data["CATALOG_USER_NAME"] == _HOSTILE["CATALOG_USER_NAME"]
    assert "evil" not in data
    secret = one(api_server.objects("secrets", namespace), "Secret", name)
    held = {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}
    assert held == {"CATALOG_JDBC_PASSWORD": _HOSTILE["CATALOG_JDBC_PASSWORD"]}
    assert "last-applied" not in str(secret["metadata"])

    def generation() -> int:
        found = one(api_server.objects("deployments", namespace), "Deployment", name)
        return int(found["metadata"]["generation"])

    before = generation()
    deploy(api_server, variables)
    assert generation() == before
    deploy(api_server, {**variables, "CATALOG_JDBC_PASSWORD": "another"})
    assert generation() == before + 1
    deploy(api_server, {**variables, "CATALOG_JDBC_PASSWORD": "another", "COMMIT_THREADS": "8"})
    assert generation() == before + 2
    api_server.kubectl("delete", "deployment,service,configmap", "-n", namespace, "-l", "job=my-iceberg-job")
    api_server.wait_for(lambda: not api_server.objects("pods", namespace), "no pods")
    api_server.wait_for(lambda: not api_server.objects("secrets", namespace), "no secret")


def test_workers_of_one_file_become_ready_and_go(api_server: Cluster) -> None:
    file = ROOT / "k8s" / "kafka-connect-workers.yaml"
    objects = list(yaml.safe_load_all(file.read_text()))
    check_hardened(objects)
    assert one(objects, "Service", "kafka-connect-service")["spec"]["ports"][0]["port"] == 8083
    data = one(objects, "ConfigMap")["data"]
    for kind in ("OFFSET", "CONFIG", "STATUS"):
        assert data[f"CONNECT_{kind}_STORAGE_TOPIC"] in (
            "connect-offsets",
            "connect-configs",
            "connect-status",
        )
    api_server.kubectl("apply", "-f", file)
    workers = ("-n", "default", "-l", "app=kafka-connect-workers")
    api_server.kubectl(
        "rollout", "status", "deployment/kafka-connect-workers", "-n", "default", f"--timeout={PATIENCE_S}s"
    )
    assert len(api_server.objects("pods", "default", "-l", "app=kafka-connect-workers")) == 3
    api_server.kubectl("delete", "-f", file)
    api_server.wait_for(lambda: not api_server.kubectl("get", "pods", *workers, "-o", "name"), "no pods")


def test_a_name_of_a_job_may_be_chosen() -> None:
    chosen = f"job-{uuid.uuid4().hex[:6]}"
    objects = documents({**_SEED, "JOB_NAME": chosen, "IMAGE": "registry.test:5000/a/b@sha256:" + "0" * 64})
    assert one(objects, "Deployment")["metadata"]["labels"]["job"] == chosen
    image = one(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]["image"]
    assert image.startswith("registry.test:5000/a/b@sha256:")


@pytest.mark.parametrize("name", ["null", "true", "1e3", "0123"])
def test_names_that_yaml_takes_for_something_else_stay_names(name: str) -> None:
    objects = documents({**_SEED, "NAMESPACE": name, "IMAGE": name})
    assert {it["metadata"]["namespace"] for it in objects} == {name}
    (container,) = one(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["image"] == name


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("CATALOG_HEADER_AUTHORIZATION", "Basic hunter2"),
        ("CATALOG_JDBC_PWD", "hunter2"),
        ("CATALOG_URI", "jdbc:postgresql://ann:with/hunter2@postgres:5432/iceberg"),
        ("CATALOG_URI", "jdbc:x://y?pwd=hunter2"),
    ],
)
def test_no_password_is_printed_wherever_it_stands(variable: str, value: str) -> None:
    ran = run({**_SEED, variable: value}, "--dry-run")
    assert ran.returncode == 0, ran.stderr
    assert "hunter2" not in ran.stdout
    assert variable in ran.stdout.splitlines()[-1]
