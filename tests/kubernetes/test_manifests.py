"""What the operator makes of resources, and the definitions of its kinds, before the real API server: every
object passes its validation, and pods its Pod Security."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from icestream.operator.manifests.cluster import Facts, desired
from icestream.operator.manifests.yaml_text import as_yaml
from icestream.operator.resources.cluster import parse_cluster
from tests.kubernetes.cluster import Cluster
from tests.unit.operator.golden import CLUSTERS, EXAMPLES, resource

CRDS = Path(__file__).parents[2] / "k8s" / "operator" / "crds"
DEFINITIONS = sorted(CRDS.glob("*.yaml"))


@pytest.fixture(scope="module")
def kinds(api_server: Cluster) -> Iterator[None]:
    for file in DEFINITIONS:
        api_server.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(file))
    for file in DEFINITIONS:
        name = yaml.safe_load(file.read_text())["metadata"]["name"]
        api_server.kubectl("wait", "--for=condition=Established", "--timeout=120s", f"crd/{name}")
    return


def in_namespace(found: dict[str, Any], namespace: str) -> dict[str, Any]:
    return {**found, "metadata": {**found["metadata"], "namespace": namespace}}


@pytest.mark.parametrize("name", [*CLUSTERS, "connector"])
@pytest.mark.usefixtures("kinds")
def test_the_api_server_takes_the_examples(name: str, api_server: Cluster, namespace: str) -> None:
    assert (EXAMPLES / f"{name}.yaml").exists()
    api_server.apply(in_namespace(resource(name), namespace))
    found = resource(name)
    kept = yaml.safe_load(
        api_server.kubectl(
            "get", found["kind"].lower(), found["metadata"]["name"], "-n", namespace, "-o", "yaml"
        )
    )
    assert kept["spec"] == found["spec"]


@pytest.mark.parametrize("name", CLUSTERS)
def test_every_object_passes_the_validation_of_the_server(
    name: str, api_server: Cluster, namespace: str, tmp_path: Path
) -> None:
    objects = desired(parse_cluster(in_namespace(resource(name), namespace)), Facts())
    file = tmp_path / "objects.yaml"
    file.write_text(as_yaml(objects))
    told = api_server.run_kubectl(
        "apply", "--server-side", "--dry-run=server", "--validate=strict", "-n", namespace, "-f", str(file)
    )
    assert told.returncode == 0, told.stderr
    # What would be refused at the pod only is a warning at its Deployment.
    assert "Warning" not in told.stderr
    assert len(told.stdout.splitlines()) == len(objects)
