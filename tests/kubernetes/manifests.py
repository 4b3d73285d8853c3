"""What the files of `k8s/` say, for tests that compare it with what was promised."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import yaml

from tests.kubernetes.binaries import Binaries

ROOT: Final = Path(__file__).parents[2]
_SUFFIXES: Final = {"m": Decimal("0.001"), "Mi": Decimal(2**20), "Gi": Decimal(2**30), "": Decimal(1)}


def rendered(binaries: Binaries, folder: str | Path) -> list[dict[str, Any]]:
    """The objects of an overlay, by kubectl's own kustomize."""
    ran = subprocess.run(
        [binaries.program("kubectl"), "kustomize", str(ROOT / folder)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    return list(yaml.safe_load_all(ran.stdout))


def one(objects: Sequence[dict[str, Any]], kind: str, name: str | None = None) -> dict[str, Any]:
    found = [it for it in objects if it["kind"] == kind and name in (None, it["metadata"]["name"])]
    assert len(found) == 1, f"{len(found)} of {kind} {name}"
    return found[0]


def containers(objects: Sequence[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each container with the pod that has it."""
    for it in objects:
        if it["kind"] == "Deployment":
            pod = it["spec"]["template"]["spec"]
            yield from ((pod, container) for container in pod["containers"])


def quantity(text: str | int) -> Decimal:
    """`1.5Gi` and `1536Mi` are the same."""
    number = str(text).rstrip("miGM")
    return Decimal(number) * _SUFFIXES[str(text)[len(number) :]]


def check_hardened(objects: Sequence[dict[str, Any]]) -> None:
    """Limits, probes, an end in order, no rights, only own folders to write on; no secret inside."""
    assert not [it for it in objects if it["kind"] == "Secret"]
    found = list(containers(objects))
    assert found
    for pod, container in found:
        name = container["name"]
        for kind in ("requests", "limits"):
            assert set(container["resources"][kind]) == {"cpu", "memory"}, name
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            assert container[probe]["httpGet"]["path"] in ("/live", "/ready"), name
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] == 185
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert pod["enableServiceLinks"] is False
        assert pod["automountServiceAccountToken"] is False
        assert pod["terminationGracePeriodSeconds"] == 60
        empty = {volume["name"] for volume in pod["volumes"] if "emptyDir" in volume}
        writable = {mount["name"] for mount in container["volumeMounts"] if not mount.get("readOnly")}
        assert writable == empty
        assert all(volume["emptyDir"]["sizeLimit"] for volume in pod["volumes"] if "emptyDir" in volume)
