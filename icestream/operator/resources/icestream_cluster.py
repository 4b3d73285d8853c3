"""Our own kind IcestreamCluster: what Strimzi's cannot say. Images from S3, job managers in own pods,
Spark on Kubernetes, scaling. Names, variables and defaults of its workers are those of Confluent's images."""

from __future__ import annotations

import re
from typing import Final

from icestream.operator.images import ArchiveStore, ImagesWanted, ImageWanted, TargetRegistry
from icestream.operator.resources.cluster_spec import ChildNames, ClusterSpec, Probe, Scaling, Tree
from icestream.operator.resources.connection import read_connection
from icestream.operator.resources.draft import Draft, object_name
from icestream.operator.resources.executors import read_executors
from icestream.operator.resources.fields import Fields, tree
from icestream.operator.resources.invalid import InvalidResource
from icestream.operator.resources.jobs import read_jobs
from icestream.operator.resources.metadata import Header
from icestream.operator.resources.names import dns_label
from icestream.operator.resources.templates import read_metadata, read_template
from icestream.operator.resources.tuning import (
    METRICS_PORT,
    read_jvm_options,
    read_logging,
    read_probe,
    read_resources,
)
from icestream.operator.resources.worker_config import JSON, add_providers, read_config
from icestream.operator.scaling import ScalingSpec

_DEFAULTS: Final = {
    "key.converter": JSON,
    "value.converter": JSON,
    "offset.storage.topic": "connect-offsets",
    "config.storage.topic": "connect-configs",
    "status.storage.topic": "connect-status",
    "plugin.path": "/usr/share/java,/usr/share/confluent-hub-components",
    "producer.acks": "all",
    "producer.enable.idempotence": "true",
    "producer.max.in.flight.requests.per.connection": "1",
    "consumer.enable.auto.commit": "false",
    "consumer.isolation.level": "read_committed",
}
_RESOURCES: Final[Tree] = {
    "requests": {"cpu": "500m", "memory": "2Gi"},
    "limits": {"cpu": "2", "memory": "4Gi"},
}
_SPEC: Final = (
    "s3",
    "registry",
    "images",
    "kafka",
    "workers",
    "jobs",
    "spark",
    "scaling",
    "network",
    "monitoring",
)
_WORKERS: Final = (
    *(
        "replicas",
        "resources",
        "config",
        "template",
        "livenessProbe",
        "readinessProbe",
        "jvmOptions",
        "logging",
    ),
)
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


def read_icestream_cluster(header: Header, spec: Fields) -> ClusterSpec:
    draft = Draft()
    workers, kafka = spec.map("workers"), spec.map("kafka")
    draft.has_no_effect(spec, _SPEC)
    draft.has_no_effect(workers, _WORKERS)
    draft.has_no_effect(kafka, ("bootstrapServers", "tls", "authentication"))
    draft.properties |= {"group.id": f"connect-{header.name}", **_DEFAULTS}
    read_connection(kafka, draft)
    read_config(workers, draft, forbids_topics=False)
    draft.properties["metrics.listeners"] = f"http://:{METRICS_PORT}"
    read_jvm_options(workers, draft)
    read_logging(workers, draft)
    template = read_template(workers.map("template"), draft)
    executors = read_executors(spec, draft)
    add_providers(draft)
    archives, references = _read_images(spec, draft)
    of_workers = draft.references
    jobs = read_jobs(spec, draft, draft.properties["bootstrap.servers"])
    part = workers.map("template")
    budget = part.map("podDisruptionBudget")
    return ClusterSpec(
        kind=header.kind,
        api_version=header.api_version,
        name=header.name,
        namespace=header.namespace,
        uid=header.uid,
        generation=header.generation,
        labels=header.labels,
        annotations=header.annotations,
        names=_names(header.name),
        replicas=workers.number("replicas", 1, at_most=10_000),
        properties=draft.properties,
        worker_image=references.get("worker", ""),
        coordinator_image=references.get("coordinator", ""),
        archives=archives,
        pull_secrets=(archives.registry.secret,) if archives and archives.registry.secret else (),
        resources=read_resources(workers) or _RESOURCES,
        liveness=read_probe(workers, "livenessProbe", Probe("/live", timeout=10), draft),
        readiness=read_probe(workers, "readinessProbe", Probe("/ready"), draft),
        template=template,
        service=read_metadata(part.map("apiService"), draft),
        service_account=read_metadata(part.map("serviceAccount"), draft),
        budget=read_metadata(budget, draft),
        max_unavailable=budget.number("maxUnavailable", 1),
        trusted=tuple(draft.trusted),
        secret_mounts=draft.secret_mounts,
        metrics_port=METRICS_PORT,
        has_pod_monitor=spec.map("monitoring").flag("podMonitor", True),
        needs_token=draft.needs_token,
        allowed_peers=_peers(spec),
        executors=executors,
        jobs=jobs,
        scaling=_read_scaling(spec, draft),
        references=draft.references,
        worker_references=of_workers,
        warnings=tuple(draft.warnings),
    )


def _read_images(spec: Fields, draft: Draft) -> tuple[ImagesWanted | None, dict[str, str]]:
    """What is to be fetched, and references that are there already, by role."""
    images = spec.map("images")
    draft.has_no_effect(images, ("worker", "coordinator"))
    wanted, references = [], {}
    for role in ("worker", "coordinator"):
        one = images.map(role)
        draft.has_no_effect(one, ("path", "source", "target", "sha256", "reference"))
        if "reference" in one and "path" in one:
            raise InvalidResource(
                f"{one.path} has both 'path' and 'reference'; an archive or an image, not both"
            )
        if "reference" in one:
            references[role] = one.required("reference")
        elif one.values:
            wanted.append(_wanted(one, role))
    if not wanted:
        return None, references
    for field in ("s3", "registry"):
        if field not in spec:
            raise InvalidResource(
                f"spec.{field} is missing, and spec.images has an archive; say where it {_WHERE[field]}"
            )
    return ImagesWanted(_store(spec.map("s3")), _registry(spec.map("registry")), tuple(wanted)), references


_WHERE: Final = {"s3": "lies", "registry": "goes"}


def _wanted(one: Fields, role: str) -> ImageWanted:
    sha256 = one.text("sha256").lower().removeprefix("sha256:")
    if sha256 and not _SHA256.fullmatch(sha256):
        raise InvalidResource(f"{one.at('sha256')} is no SHA-256; write 64 hexadecimal digits")
    return ImageWanted(
        role=role,
        path=one.required("path"),
        target=one.text("target") or f"icestream/{role}:latest",
        source=one.text("source") or None,
        sha256=sha256 or None,
    )


def _store(s3: Fields) -> ArchiveStore:
    secret = object_name(s3, "credentialsSecret") if "credentialsSecret" in s3 else None
    return ArchiveStore(s3.required("bucket"), s3.text("endpoint") or None, s3.text("region") or None, secret)


def _registry(registry: Fields) -> TargetRegistry:
    secret = object_name(registry, "secret") if "secret" in registry else None
    return TargetRegistry(registry.required("url"), secret, registry.flag("insecure"))


def _peers(spec: Fields) -> tuple[Tree, ...]:
    network = spec.map("network")
    if "allowFrom" not in network:
        return ({"podSelector": {}},)
    return tuple(dict(tree(one.values, one.path)) for one in network.maps("allowFrom"))


def _read_scaling(spec: Fields, draft: Draft) -> Scaling | None:
    scaling = spec.map("scaling")
    if not scaling.values:
        return None
    draft.has_no_effect(scaling, ("workers", "executors", "keda", "cooldownSeconds", "step"))
    usual, workers, executors = ScalingSpec(), scaling.map("workers"), scaling.map("executors")
    draft.has_no_effect(workers, ("min", "max", "connectorsPerWorker"))
    draft.has_no_effect(executors, ("min", "max", "lagSeconds"))
    limits = ScalingSpec(
        min_workers=workers.number("min", usual.min_workers, at_least=1, at_most=1_000),
        max_workers=workers.number("max", usual.max_workers, at_least=1, at_most=1_000),
        connectors_per_worker=workers.number("connectorsPerWorker", usual.connectors_per_worker, at_least=1),
        min_executors=executors.number("min", usual.min_executors, at_most=1_000),
        max_executors=executors.number("max", usual.max_executors, at_least=1, at_most=1_000),
        lag_seconds=float(executors.number("lagSeconds", int(usual.lag_seconds), at_least=1)),
        cool_down_seconds=float(scaling.number("cooldownSeconds", int(usual.cool_down_seconds))),
        step=scaling.number("step", usual.step, at_least=1, at_most=1_000),
    )
    for part, low, high in (
        (workers, limits.min_workers, limits.max_workers),
        (executors, limits.min_executors, limits.max_executors),
    ):
        if low > high:
            raise InvalidResource(f"{part.path} has min {low} above max {high}; mend one of them")
    prometheus = scaling.map("keda").text("prometheus")
    return Scaling(
        limits,
        scales_workers="workers" in scaling,
        scales_executors="executors" in scaling,
        prometheus=prometheus,
    )


def _names(name: str) -> ChildNames:
    workers = dns_label(f"kafka-connect-workers-{name}")
    return ChildNames(
        workers=workers,
        container="connect-worker",
        config=dns_label(f"kafka-connect-worker-config-{name}"),
        service=dns_label(f"kafka-connect-service-{name}"),
        headless=workers,
        role=workers,
        role_binding=workers,
        executors=dns_label(f"kafka-connect-executors-{name}"),
    )
