"""What a resource asks for, whichever kind it is: KafkaConnect of either version, or IcestreamCluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from icestream.operator.images import ImagesWanted
from icestream.operator.resources.names import full_address
from icestream.operator.scaling import ScalingSpec

USE_CONNECTOR_RESOURCES: Final = "strimzi.io/use-connector-resources"
PAUSE_RECONCILIATION: Final = "strimzi.io/pause-reconciliation"
MANAGED: Final = "icestream.dev/managed"

Tree = Mapping[str, Any]
"""A piece of an object of Kubernetes, as it stands in YAML."""


@dataclass(frozen=True)
class Reference:
    """A Secret or ConfigMap of the same namespace that pods use: a change of its content rolls them."""

    kind: str
    name: str


@dataclass(frozen=True)
class Notice:
    """Something of the resource that has no effect, or another one than in Strimzi: a condition Warning."""

    reason: str
    message: str


@dataclass(frozen=True)
class ChildNames:
    """What the objects of one cluster are called."""

    workers: str
    """Deployment, service account, budget and policy."""
    container: str
    config: str
    """The ConfigMap with the worker's properties."""
    service: str
    headless: str
    role: str
    role_binding: str
    executors: str
    """The ConfigMap with the template of Spark's executors."""


@dataclass(frozen=True)
class Probe:
    path: str
    initial_delay: int = 0
    period: int = 10
    timeout: int = 5
    failures: int = 3
    successes: int = 1


@dataclass(frozen=True)
class PodTemplate:
    """What users add to the pods that we make; everything has been looked at, nothing weakens them."""

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    settings: Tree = field(default_factory=dict)
    """Fields of the pod's spec: affinity, tolerations, imagePullSecrets …"""
    pod_security: Tree = field(default_factory=dict)
    container_security: Tree = field(default_factory=dict)
    grace_seconds: int = 60
    tmp_size: str = "2Gi"
    env: tuple[Tree, ...] = ()
    env_from: tuple[Tree, ...] = ()
    volumes: tuple[Tree, ...] = ()
    mounts: tuple[Tree, ...] = ()


@dataclass(frozen=True)
class Metadata:
    """Labels and annotations that users want on one of our objects."""

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TrustedCertificates:
    """Keys of one Secret that hold certificates: one by name, or all whose names fit a pattern."""

    secret: str
    certificate: str = ""
    pattern: str = ""


@dataclass(frozen=True)
class Job:
    """A job manager in a pod of its own."""

    name: str
    env: tuple[Tree, ...] = ()
    env_from: tuple[Tree, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    """Variables with plain values, which go into a ConfigMap."""
    resources: Tree = field(default_factory=dict)
    references: tuple[Reference, ...] = ()


@dataclass(frozen=True)
class Executors:
    """Spark's executors in pods of their own, with the worker as their driver."""

    instances: int = 2
    cores: int = 1
    memory: str = "1g"
    memory_overhead: str = "1g"
    template: PodTemplate = PodTemplate()


@dataclass(frozen=True)
class Scaling:
    """How the number of workers and executors follows the work."""

    limits: ScalingSpec
    scales_workers: bool = False
    scales_executors: bool = False
    prometheus: str = ""
    """Where KEDA asks for the lag; empty: the operator itself counts connectors."""


@dataclass(frozen=True)
class ClusterSpec:
    """One cluster of workers, as its resource declares it."""

    kind: str
    api_version: str
    name: str
    namespace: str
    uid: str
    generation: int
    names: ChildNames
    replicas: int
    properties: Mapping[str, str] = field(repr=False)
    """Of the worker, Kafka's connection included; secrets are placeholders."""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    worker_image: str = ""
    """A reference that the user has written; empty: an archive's, or the operator's default."""
    coordinator_image: str = ""
    archives: ImagesWanted | None = None
    """Images that come from S3."""
    pull_secrets: tuple[str, ...] = ()
    resources: Tree = field(default_factory=dict)
    liveness: Probe = Probe("/live", timeout=10)
    readiness: Probe = Probe("/ready")
    template: PodTemplate = PodTemplate()
    env: tuple[Tree, ...] = ()
    volumes: tuple[Tree, ...] = ()
    mounts: tuple[Tree, ...] = ()
    """Beside those of the template: of `externalConfiguration`."""
    service: Metadata = Metadata()
    service_account: Metadata = Metadata()
    budget: Metadata = Metadata()
    max_unavailable: int = 1
    trusted: tuple[TrustedCertificates, ...] = ()
    secret_mounts: Mapping[str, str] = field(default_factory=dict)
    """Path in the container → the Secret that is mounted there."""
    metrics_port: int | None = None
    has_pod_monitor: bool = False
    needs_token: bool = False
    """Whether workers ask the API server: Spark on Kubernetes, config providers."""
    allowed_peers: tuple[Tree, ...] | None = None
    """Who may reach REST besides workers and operator; None: everybody, there is no policy."""
    executors: Executors | None = None
    jobs: tuple[Job, ...] = ()
    scaling: Scaling | None = None
    references: tuple[Reference, ...] = ()
    """Secrets and ConfigMaps that pods use, of workers and of jobs."""
    warnings: tuple[Notice, ...] = ()

    worker_references: tuple[Reference, ...] = ()
    """Those of the workers alone: what only a job uses rolls only that job."""

    @property
    def uses_connector_resources(self) -> bool:
        return self.annotations.get(USE_CONNECTOR_RESOURCES) == "true"

    @property
    def is_paused(self) -> bool:
        return self.annotations.get(PAUSE_RECONCILIATION) == "true"

    @property
    def storage(self) -> tuple[str, ...]:
        """Kafka and the topics there: two clusters with the same ones would mix their connectors."""
        topics = ("config.storage.topic", "offset.storage.topic", "status.storage.topic")
        servers = sorted(
            full_address(part.strip(), self.namespace)
            for part in self.properties["bootstrap.servers"].split(",")
        )
        return (",".join(servers), *(self.properties[topic] for topic in topics))

    @property
    def rest_url(self) -> str:
        return f"http://{self.names.service}.{self.namespace}.svc:8083"
