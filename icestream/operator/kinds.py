"""The kinds of Kubernetes objects that the operator reads and writes, in one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Kind:
    """How the API server calls one kind of object."""

    name: str
    group: str
    """Empty: the core group."""
    versions: tuple[str, ...]
    """Those that we read; the first is the one that we write."""
    plural: str
    is_namespaced: bool = True

    @property
    def version(self) -> str:
        return self.versions[0]

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def api_versions(self) -> tuple[str, ...]:
        return tuple(f"{self.group}/{one}" if self.group else one for one in self.versions)


STRIMZI_GROUP: Final = "kafka.strimzi.io"
OUR_GROUP: Final = "icestream.dev"

KAFKA_CONNECT: Final = Kind("KafkaConnect", STRIMZI_GROUP, ("v1", "v1beta2"), "kafkaconnects")
KAFKA_CONNECTOR: Final = Kind("KafkaConnector", STRIMZI_GROUP, ("v1", "v1beta2"), "kafkaconnectors")
ICESTREAM_CLUSTER: Final = Kind("IcestreamCluster", OUR_GROUP, ("v1alpha1",), "icestreamclusters")

CONFIG_MAP: Final = Kind("ConfigMap", "", ("v1",), "configmaps")
SECRET: Final = Kind("Secret", "", ("v1",), "secrets")
SERVICE: Final = Kind("Service", "", ("v1",), "services")
SERVICE_ACCOUNT: Final = Kind("ServiceAccount", "", ("v1",), "serviceaccounts")
POD: Final = Kind("Pod", "", ("v1",), "pods")
DEPLOYMENT: Final = Kind("Deployment", "apps", ("v1",), "deployments")
ROLE: Final = Kind("Role", "rbac.authorization.k8s.io", ("v1",), "roles")
ROLE_BINDING: Final = Kind("RoleBinding", "rbac.authorization.k8s.io", ("v1",), "rolebindings")
NETWORK_POLICY: Final = Kind("NetworkPolicy", "networking.k8s.io", ("v1",), "networkpolicies")
DISRUPTION_BUDGET: Final = Kind("PodDisruptionBudget", "policy", ("v1",), "poddisruptionbudgets")
SCALED_OBJECT: Final = Kind("ScaledObject", "keda.sh", ("v1alpha1",), "scaledobjects")
POD_MONITOR: Final = Kind("PodMonitor", "monitoring.coreos.com", ("v1",), "podmonitors")

CLUSTERS: Final = (KAFKA_CONNECT, ICESTREAM_CLUSTER)
"""What users declare clusters with."""

CHILDREN: Final = (
    SERVICE_ACCOUNT,
    ROLE,
    ROLE_BINDING,
    CONFIG_MAP,
    SERVICE,
    NETWORK_POLICY,
    DISRUPTION_BUDGET,
    DEPLOYMENT,
    POD_MONITOR,
    SCALED_OBJECT,
)
"""What `desired` makes, in the order in which it is applied. Secrets are only ever referred to."""

OPTIONAL: Final = (POD_MONITOR, SCALED_OBJECT)
"""Kinds that a server may not have."""

_ALL: Final = (*CLUSTERS, KAFKA_CONNECTOR, *CHILDREN, SECRET, POD)
BY_NAME: Final[Mapping[str, Kind]] = {kind.name: kind for kind in _ALL}
