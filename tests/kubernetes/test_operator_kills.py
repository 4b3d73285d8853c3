"""Random changes with `kill -9` of the operator between and during them end in what is declared."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes import operators
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.operators import Operator, a_cluster, found, is_ready
from tests.long_form import sized

OURS = ("-l", "app.kubernetes.io/managed-by=icestream-operator")
NAMES = ("a", "b", "c")


class Declared:
    """What users have asked for, and the changes that they and others make."""

    def __init__(self, cluster: Cluster, namespace: str, chance: random.Random) -> None:
        self._cluster, self._namespace, self._chance = cluster, namespace, chance
        self.clusters: dict[str, dict[str, Any]] = {}

    def change(self) -> str:
        name = self._chance.choice(NAMES)
        if name not in self.clusters:
            return self._create(name)
        steps = (self._scale, self._config, self._config, self._job, self._delete, self._drift, self._vanish)
        return self._chance.choice(steps)(name)

    def _create(self, name: str) -> str:
        made = operators.an_icestream_cluster(name) if name == "c" else a_cluster(name)
        self.clusters[name] = made
        return self._apply(name, "create")

    def _scale(self, name: str) -> str:
        spec = self.clusters[name]["spec"]
        (spec["workers"] if name == "c" else spec)["replicas"] = self._chance.randrange(3)
        return self._apply(name, "scale")

    def _config(self, name: str) -> str:
        spec = self.clusters[name]["spec"]
        config = {"offset.flush.interval.ms": self._chance.randrange(1000, 9000)}
        (spec["workers"] if name == "c" else spec)["config"] = config
        return self._apply(name, "config")

    def _job(self, name: str) -> str:
        """Job managers come and go; a KafkaConnect has none, and gets metrics instead."""
        if name == "c":
            some = self._chance.sample(("one", "two", "three"), self._chance.randrange(4))
            self.clusters[name]["spec"]["jobs"] = [operators.a_job(each) for each in some]
        return self._apply(name, "jobs")

    def _delete(self, name: str) -> str:
        resource = self.clusters.pop(name)
        self._cluster.kubectl("delete", resource["kind"].lower(), name, "-n", self._namespace)
        return f"delete {name}"

    def _drift(self, name: str) -> str:
        for each in self._cluster.objects("deployment", self._namespace, *OURS):
            patch = '{"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 7}}}}'
            where = ("-n", self._namespace, "--type=merge", "-p", patch)
            self._cluster.run_kubectl("patch", "deployment", each["metadata"]["name"], *where)
        return "drift"

    def _vanish(self, name: str) -> str:
        """Somebody deletes an object that we have made."""
        kind = self._chance.choice(("deployment", "service", "configmap", "serviceaccount"))
        some = self._cluster.objects(kind, self._namespace, *OURS)
        if some:
            child = self._chance.choice(some)["metadata"]["name"]
            self._cluster.run_kubectl("delete", kind, child, "-n", self._namespace, "--wait=false")
        return f"lose a {kind}"

    def _apply(self, name: str, what: str) -> str:
        self._cluster.apply(self.clusters[name], namespace=self._namespace)
        return f"{what} {name}"


def desired(resource: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """What the resource shall become, by the code that is tested without a server."""
    from icestream.operator.manifests.cluster import Facts
    from icestream.operator.manifests.cluster import desired as manifests
    from icestream.operator.resources.cluster import parse_cluster

    return {
        (each["kind"], each["metadata"]["name"]): dict(each)
        for each in manifests(parse_cluster(resource), Facts())
    }


def differences(cluster: Cluster, namespace: str, declared: Declared) -> list[str]:
    kinds = "deployment,service,configmap,serviceaccount,poddisruptionbudget,networkpolicy"
    there = {
        (each["kind"], each["metadata"]["name"]): each for each in cluster.objects(kinds, namespace, *OURS)
    }
    wanted: dict[tuple[str, str], dict[str, Any]] = {}
    told = []
    for name, resource in declared.clusters.items():
        live = found(cluster, namespace, resource["kind"].lower(), name)
        assert live is not None
        wanted.update(desired(live))
        if not is_ready(cluster, namespace, name, resource["kind"].lower()):
            told.append(f"{name} is not ready")
    told += [f"{which} is missing" for which in set(wanted) - set(there)]
    told += [f"{which} is too much" for which in set(there) - set(wanted)]
    for which in set(wanted) & set(there):
        told += [f"{which}: {each}" for each in beside(wanted[which], there[which])]
    return told


def beside(wanted: Any, live: Any, path: str = "") -> list[str]:
    """Where the live object is not what we want; what the server adds does not matter."""
    if isinstance(wanted, dict) and isinstance(live, dict):
        return [at for key, value in wanted.items() for at in beside(value, live.get(key), f"{path}.{key}")]
    if isinstance(wanted, list) and isinstance(live, list) and len(wanted) == len(live):
        pairs = enumerate(zip(wanted, live, strict=True))
        return [at for index, (one, other) in pairs for at in beside(one, other, f"{path}[{index}]")]
    # The server writes quantities in its own way, and leaves out what is empty.
    is_same = wanted == live or str(wanted) == str(live) or (not wanted and not live)
    return [] if is_same or path.rpartition(".")[2] in ("sizeLimit", "cpu", "memory") else [path]


@pytest.mark.parametrize("changes", sized(12, 50))
def test_random_changes_with_kills_between_them_end_in_the_declared_state(
    api_server: Cluster, account: Path, home: str, tmp_path: Path, changes: int
) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    declared = Declared(api_server, home, chance)
    log = tmp_path / "operator.log"
    operator = Operator(api_server, account, home, log, ("--connect-to", operators.NOWHERE))
    try:
        operator.start()
        for _ in range(changes):
            print(declared.change())
            time.sleep(chance.random() * 2)
            if chance.random() < 0.5:
                operator.end(signal.SIGKILL)
                print("kill")
                if chance.random() < 0.3:
                    print(declared.change())
                # Sometimes it is killed again while it starts.
                operator.start(wait=chance.random() < 0.7)
        left: list[str] = []

        def is_as_declared() -> bool:
            left[:] = differences(api_server, home, declared)
            return not left

        try:
            api_server.wait_for(is_as_declared, "the declared state", 400)
        except AssertionError as error:
            raise AssertionError(f"{left}\n{operator.log()[-4000:]}") from error
        for name, resource in list(declared.clusters.items()):
            api_server.kubectl("delete", resource["kind"].lower(), name, "-n", home)
        api_server.wait_for(
            lambda: not api_server.objects("deployment,service,configmap", home, *OURS), "nothing left"
        )
    finally:
        operator.end(signal.SIGKILL)
