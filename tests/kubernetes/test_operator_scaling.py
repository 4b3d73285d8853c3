"""The operator scales workers in a real API server, by what they answer."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

from tests.counted_workers import Workers
from tests.kubernetes import operators
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.operators import an_icestream_cluster, found

WORKERS = "kafka-connect-workers-my"


def test_workers_follow_their_connectors_across_a_kill_of_the_operator(
    api_server: Cluster, account: Path, home: str, tmp_path: Path
) -> None:
    def replicas() -> int:
        deployment = found(api_server, home, "deployment", WORKERS)
        return 0 if deployment is None else int(deployment["spec"]["replicas"])

    def scaling() -> dict[str, Any]:
        resource = found(api_server, home, "icestreamcluster", "my") or {}
        return dict(resource.get("status", {}).get("scaling", {}))

    workers = Workers()
    workers.have(45)
    resource = an_icestream_cluster("my")
    limits = {"min": 1, "max": 6, "connectorsPerWorker": 10}
    resource["spec"]["scaling"] = {"workers": limits, "cooldownSeconds": 3600}
    try:
        with operators.running(
            api_server, account, home, tmp_path, "--connect-to", f"*={workers.address}"
        ) as operator:
            api_server.apply(resource, namespace=home)
            api_server.wait_for(lambda: replicas() == 5, "a worker for each ten connectors")
            workers.have(0)
            api_server.wait_for(lambda: "lessSince" in scaling(), "a cool-down")
            before = scaling()
            operator.end(signal.SIGKILL)
            operator.start()
            turns = "icestream_operator_reconciliations_total"
            api_server.wait_for(lambda: operator.number(turns) > 3, "turns of the one that came after")
            assert (scaling()["changedAt"], replicas()) == (before["changedAt"], 5)
            # Beyond the limit, which no cool-down protects.
            api_server.kubectl("scale", "deployment", WORKERS, "--replicas=8", "-n", home)
            api_server.wait_for(lambda: replicas() == 6, "the limit")
            api_server.wait_for(lambda: scaling()["changedAt"] > before["changedAt"], "a new cool-down")
            resource["spec"]["scaling"]["cooldownSeconds"] = 1
            api_server.apply(resource, namespace=home)
            api_server.wait_for(lambda: replicas() == 1, "one worker")
            assert scaling()["connectors"] == 0
    finally:
        workers.close()
