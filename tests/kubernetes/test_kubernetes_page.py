"""Runs the commands of docs/deploy/kubernetes.md, as they stand there."""

from __future__ import annotations

import re
import subprocess

from tests.kubernetes.cluster import Cluster
from tests.kubernetes.manifests import ROOT

_PAGE = ROOT / "docs" / "deploy" / "kubernetes.md"
_BLOCK = r"<!-- run by: \S*test_kubernetes_page.py -->\n```sh\n(.*?)```"
_BLOCKS = re.findall(_BLOCK, _PAGE.read_text(), re.DOTALL)


def run(cluster: Cluster, commands: str) -> str:
    ran = subprocess.run(
        ["bash", "-euc", commands],
        cwd=ROOT,
        env=cluster.environment(),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_workers_by_overlays(api_server: Cluster) -> None:
    try:
        said = run(api_server, _BLOCKS[0])
    finally:
        api_server.kubectl("delete", "deployment", "--all", "-n", "kafka-s3-connector")
        api_server.wait_for(lambda: not api_server.objects("pods", "kafka-s3-connector"), "no pods")
        api_server.kubectl("delete", "namespace", "kafka-s3-connector", "--wait", "--timeout=200s")
    assert 'deployment "kafka-s3-connector" successfully rolled out' in said
    assert re.search(r"kafka-s3-connector-\S+ +1/1 +Running", said)
    assert said.endswith("4")


def test_a_job_manager_and_workers(api_server: Cluster) -> None:
    said = run(api_server, _BLOCKS[1])
    assert "deployment.apps/kafka-connect-workers" in said
    assert "clean up: kubectl delete deployment,service,configmap -n default -l job=my-iceberg-job" in said


def test_the_page_has_two_blocks_that_are_run() -> None:
    assert len(_BLOCKS) == 2
