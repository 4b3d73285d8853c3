"""What the operator makes of `k8s/examples`, as text; run as a program, it writes the golden files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml

from icestream.operator.manifests.cluster import Facts, desired
from icestream.operator.manifests.yaml_text import as_yaml
from icestream.operator.resources.cluster import parse_cluster

EXAMPLES: Final = Path(__file__).parents[3] / "k8s" / "examples"
GOLDEN: Final = Path(__file__).parent / "golden_files"
CLUSTERS: Final = ("cluster-from-s3", "job", "strimzi-v1", "strimzi-v1beta2")
_PUSHED: Final = {
    "worker": f"registry.lake.svc:5000/icestream/worker@sha256:{'1' * 64}",
    "coordinator": f"registry.lake.svc:5000/icestream/coordinator@sha256:{'2' * 64}",
}


def resource(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text())
    return found


def objects_of(name: str) -> list[dict[str, Any]]:
    spec = parse_cluster(resource(name))
    images = _PUSHED if spec.archives else {}
    default = f"icestream/icestream@sha256:{'0' * 64}"
    return list(desired(spec, Facts(images=images, default_image=default, has_pod_monitors=True)))


def rendered(name: str) -> str:
    return as_yaml(objects_of(name))


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for one in CLUSTERS:
        (GOLDEN / f"{one}.yaml").write_text(rendered(one))
