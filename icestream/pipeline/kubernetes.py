"""What Spark's driver in a pod needs to be told of that pod; for `session`, where the master is `k8s://…`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

_MASTER: Final = "k8s://"
_DRIVER: Mapping[str, str] = {
    "spark.driver.bindAddress": "0.0.0.0",
    # Fixed, so that a NetworkPolicy can name them.
    "spark.driver.port": "7078",
    "spark.driver.blockManager.port": "7079",
}
_FROM_POD: Mapping[str, str] = {
    # Executors get this pod as their owner: they go when it goes.
    "POD_NAME": "spark.kubernetes.driver.pod.name",
    "POD_IP": "spark.driver.host",
    "POD_NAMESPACE": "spark.kubernetes.namespace",
}
"""Variables by the downward API, under the names that most manifests give them → Spark's settings."""
_NAMESPACE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_WRITTEN: Mapping[str, str] = {
    key.lower(): key
    for key in (
        "spark.driver.bindAddress",
        "spark.driver.blockManager.port",
        "spark.driver.extraJavaOptions",
        "spark.driver.maxResultSize",
        "spark.driver.memoryOverhead",
        "spark.dynamicAllocation.enabled",
        "spark.dynamicAllocation.executorIdleTimeout",
        "spark.dynamicAllocation.initialExecutors",
        "spark.dynamicAllocation.maxExecutors",
        "spark.dynamicAllocation.minExecutors",
        "spark.dynamicAllocation.shuffleTracking.enabled",
        "spark.executor.extraJavaOptions",
        "spark.executor.memoryOverhead",
        "spark.executor.memoryOverheadFactor",
        "spark.kubernetes.authenticate.caCertFile",
        "spark.kubernetes.authenticate.oauthTokenFile",
        "spark.kubernetes.container.image.pullPolicy",
        "spark.kubernetes.container.image.pullSecrets",
        "spark.kubernetes.executor.podNamePrefix",
        "spark.kubernetes.executor.podTemplateContainerName",
        "spark.kubernetes.executor.podTemplateFile",
    )
}


def as_spark_writes(key: str) -> str:
    """A key of Spark's with its capital letters, which it loses on its way through a `CONNECT_*` variable."""
    return _WRITTEN.get(key, key)


def driver_settings(
    given: Mapping[str, str], environ: Mapping[str, str], namespace_file: Path = _NAMESPACE
) -> dict[str, str]:
    """What the pod says of itself, for a driver in it; nothing where another master runs the tasks."""
    if not given.get("spark.master", "").startswith(_MASTER):
        return {}
    pod = {key: environ[name] for name, key in _FROM_POD.items() if environ.get(name)}
    return {**_of_account(namespace_file), **_DRIVER, **pod}


def _of_account(namespace_file: Path) -> dict[str, str]:
    try:
        return {"spark.kubernetes.namespace": namespace_file.read_text().strip()}
    except OSError:
        # Not in a pod, or its account's token is not mounted.
        return {}
