"""Images from S3 (moto) by way of a real registry into the Deployments of an operator that is a process."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest

from tests.images import made
from tests.images.registries import running_registry
from tests.kubernetes import operators
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.operators import an_icestream_cluster, found, is_ready

pytestmark = pytest.mark.slow

KEYS = ("AWS_ACCESS_KEY_ID", "some-key"), ("AWS_SECRET_ACCESS_KEY", "a-secret-of-the-store")


@pytest.fixture
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the operator has its temporary files."""
    folder = tmp_path / "spool"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[str]:
    with running_registry(tmp_path / "registry") as address:
        yield address


class Images:
    """A bucket of archives, and what becomes of them in clusters."""

    def __init__(self, cluster: Cluster, namespace: str, endpoint: str, registry: str) -> None:
        self._cluster, self._namespace = cluster, namespace
        self._endpoint, self._registry = endpoint, registry
        self._bucket = f"images-{uuid.uuid4().hex[:8]}"
        key, secret = (value for _, value in KEYS)
        self._store: Any = boto3.client(
            "s3",
            endpoint_url=endpoint,
            aws_access_key_id=key,
            aws_secret_access_key=secret,
            region_name="us-east-1",
        )
        self._store.create_bucket(Bucket=self._bucket)
        literals = [f"--from-literal={name}={value}" for name, value in KEYS]
        cluster.kubectl("create", "secret", "generic", "store", *literals, "-n", namespace)

    def put(self, path: str, archive: bytes) -> None:
        self._store.put_object(Bucket=self._bucket, Key=path, Body=archive)

    def declare(self, name: str, path: str) -> None:
        resource = an_icestream_cluster(name)
        topics = {f"{kind}.storage.topic": f"{name}-{kind}" for kind in ("offset", "config", "status")}
        resource["spec"] |= {
            "s3": {"bucket": self._bucket, "endpoint": self._endpoint, "credentialsSecret": "store"},
            "registry": {"url": self._registry, "insecure": True},
            "images": {"worker": {"path": path, "target": f"icestream/{name}:1.0"}},
            "workers": {"replicas": 1, "config": topics},
        }
        self._cluster.apply(resource, namespace=self._namespace)

    def condition(self, name: str) -> dict[str, str]:
        """`ImagesReady`; empty: there is none yet."""
        resource = found(self._cluster, self._namespace, "icestreamcluster", name) or {}
        told = resource.get("status", {}).get("conditions", ())
        return next((dict(each) for each in told if each["type"] == "ImagesReady"), {})

    def is_ready(self, name: str) -> bool:
        return is_ready(self._cluster, self._namespace, name, "icestreamcluster")

    def deployment(self, name: str) -> dict[str, Any] | None:
        return found(self._cluster, self._namespace, "deployment", f"kafka-connect-workers-{name}")

    def image(self, name: str) -> str:
        deployment = self.deployment(name)
        assert deployment is not None
        return str(deployment["spec"]["template"]["spec"]["containers"][0]["image"])

    def of_pods(self) -> list[str]:
        pods = self._cluster.objects("pods", self._namespace, "-l", "app=kafka-connect-workers")
        return [str(pod["spec"]["containers"][0]["image"]) for pod in pods]

    def is_in_registry(self, image: str) -> bool:
        repository, _, digest = image.removeprefix(f"{self._registry}/").partition("@")
        url = f"http://{self._registry}/v2/{repository}/manifests/{digest}"
        accepts = "application/vnd.oci.image.manifest.v1+json"
        types = f"{accepts}, application/vnd.docker.distribution.manifest.v2+json"
        return httpx.get(url, headers={"Accept": types}, timeout=60).status_code == 200


def test_archives_become_images_of_pods_and_a_broken_one_is_a_condition(
    api_server: Cluster,
    account: Path,
    home: str,
    s3: dict[str, str],
    registry: str,
    spool: Path,
    tmp_path: Path,
) -> None:
    images = Images(api_server, home, s3["iceberg.catalog.s3.endpoint"], registry)
    images.put("good.tar", made.tar_of(made.docker_files()))
    images.put("broken.tar", made.tar_of(made.docker_files())[:3000])
    with operators.running(api_server, account, home, tmp_path) as operator:
        images.declare("broken", "broken.tar")
        images.declare("good", "good.tar")
        api_server.wait_for(lambda: images.is_ready("good"), "a cluster with the image of its archive")
        first = images.image("good")
        assert first.startswith(f"{registry}/icestream/good@sha256:")
        assert images.is_in_registry(first)
        assert (images.condition("good")["status"], images.condition("good")["reason"]) == (
            "True",
            "ImagesPushed",
        )

        api_server.wait_for(lambda: images.condition("broken").get("status") == "False", "a condition")
        told = images.condition("broken")
        assert told["reason"] == "ImageArchiveError"
        assert "broken.tar" in told["message"]
        assert not images.is_ready("broken")
        # No pod is made of an image that is not there.
        assert images.deployment("broken") is None

        images.put("good.tar", made.tar_of(made.docker_files((made.layer(three="the third"),))))
        images.put("broken.tar", made.tar_of(made.oci_files()))
        api_server.wait_for(lambda: images.image("good") != first, "another image")
        second = images.image("good")
        assert second.startswith(f"{registry}/icestream/good@sha256:")
        assert images.is_in_registry(second)
        api_server.wait_for(lambda: images.is_ready("broken"), "the cluster whose archive was mended")
        api_server.wait_for(
            lambda: sorted(images.of_pods()) == sorted([second, images.image("broken")]), "new pods"
        )
        assert operator.is_ready()
        statuses = str(api_server.objects("icestreamcluster", home))
        assert all(value not in operator.log() + statuses for _, value in KEYS)
        # It did work there, and nothing is left.
        assert list(spool.iterdir())
        assert not [file for file in spool.rglob("*") if file.is_file()]
