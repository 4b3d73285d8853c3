"""Strimzi's KafkaConnect, of both versions: every field has an effect, or a warning that says why not."""

from __future__ import annotations

from typing import Final

from icestream.operator.resources.cluster_spec import ChildNames, ClusterSpec, Probe
from icestream.operator.resources.connection import read_connection
from icestream.operator.resources.draft import DEPRECATED, UNSUPPORTED, Draft
from icestream.operator.resources.executors import executors_of_properties
from icestream.operator.resources.fields import Fields
from icestream.operator.resources.metadata import Header
from icestream.operator.resources.names import dns_label
from icestream.operator.resources.templates import (
    external_volume,
    read_metadata,
    read_template,
    read_variable,
)
from icestream.operator.resources.tuning import (
    read_jvm_options,
    read_logging,
    read_metrics,
    read_probe,
    read_rack,
    read_resources,
)
from icestream.operator.resources.worker_config import GROUP_AND_TOPICS, JSON, add_providers, read_config

EXTERNAL: Final = "/opt/kafka/external-configuration"
_OLD: Final = "v1beta2"
_TOPIC_FIELDS: Final = ("groupId", "configStorageTopic", "offsetStorageTopic", "statusStorageTopic")
_DEFAULTS: Final = {
    "group.id": "connect-cluster",
    "config.storage.topic": "connect-cluster-configs",
    "offset.storage.topic": "connect-cluster-offsets",
    "status.storage.topic": "connect-cluster-status",
}
_READ: Final = (
    *("version", "image", "replicas", "bootstrapServers", "config", "tls", "authentication", "resources"),
    *("livenessProbe", "readinessProbe", "jvmOptions", "logging", "metricsConfig", "rack", "template"),
    *("clientRackInitImage", "build", "plugins", "jmxOptions", "tracing"),
)
_NO_USE: Final = {
    "clientRackInitImage": "no init container reads the rack",
    "jmxOptions": "there is no JMX",
    "tracing": "there is no Java agent; icestream.traces.endpoint in config sends traces by OTLP",
}


def read_kafka_connect(header: Header, spec: Fields) -> ClusterSpec:
    draft = Draft()
    is_old = header.api_version.endswith(_OLD)
    _read_group(spec, draft, is_old=is_old)
    replicas = spec.number("replicas", 3, at_most=10_000) if is_old else _required_replicas(spec)
    read_connection(spec, draft)
    read_config(spec, draft, forbids_topics=not is_old)
    read_jvm_options(spec, draft)
    read_logging(spec, draft)
    read_rack(spec, draft)
    metrics_port = read_metrics(spec, draft)
    template = read_template(spec.map("template"), draft)
    if is_old:
        _read_external(spec, draft)
    _warn(spec, draft, is_old=is_old)
    image = _image(spec, draft)
    executors = executors_of_properties(draft)
    add_providers(draft)
    service = spec.map("template").map("apiService")
    account = spec.map("template").map("serviceAccount")
    budget = spec.map("template").map("podDisruptionBudget")
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
        replicas=replicas,
        properties=draft.properties,
        worker_image=image,
        resources=read_resources(spec),
        liveness=read_probe(spec, "livenessProbe", Probe("/live", timeout=10), draft),
        readiness=read_probe(spec, "readinessProbe", Probe("/ready"), draft),
        template=template,
        env=tuple(draft.env),
        volumes=tuple(draft.volumes),
        mounts=tuple(draft.mounts),
        service=read_metadata(service, draft),
        service_account=read_metadata(account, draft),
        budget=read_metadata(budget, draft),
        max_unavailable=budget.number("maxUnavailable", 1),
        trusted=tuple(draft.trusted),
        secret_mounts=draft.secret_mounts,
        metrics_port=metrics_port,
        needs_token=draft.needs_token,
        allowed_peers=() if header.annotations.get("strimzi.io/use-connector-resources") == "true" else None,
        executors=executors,
        references=draft.references,
        worker_references=draft.references,
        warnings=tuple(draft.warnings),
    )


def _required_replicas(spec: Fields) -> int:
    found = spec.number("replicas", -1, at_most=10_000)
    if found < 0:
        spec.required("replicas")
    return found


def _read_group(spec: Fields, draft: Draft, *, is_old: bool) -> None:
    draft.properties |= {**_DEFAULTS, "key.converter": JSON, "value.converter": JSON}
    if not is_old:
        draft.properties |= {
            key: spec.required(field) for key, field in zip(GROUP_AND_TOPICS, _TOPIC_FIELDS, strict=True)
        }


def _read_external(spec: Fields, draft: Draft) -> None:
    external = spec.map("externalConfiguration")
    if not external.values:
        return
    draft.warn(
        DEPRECATED, f"{external.path} is gone in v1; use template.connectContainer and template.pod.volumes"
    )
    draft.env += [read_variable(one, draft) for one in external.maps("env")]
    for one in external.maps("volumes"):
        volume, mount = external_volume(one, draft, EXTERNAL)
        draft.volumes.append(volume)
        draft.mounts.append(mount)


def _warn(spec: Fields, draft: Draft, *, is_old: bool) -> None:
    for field, why in _NO_USE.items():
        if field in spec:
            draft.warn(UNSUPPORTED, f"{spec.at(field)} has no effect: {why}")
    for field in ("build", "plugins"):
        artifacts = _artifacts(spec, field)
        if artifacts:
            draft.warn(
                UNSUPPORTED,
                f"{spec.at(field)} has no effect: no Java runs here, so {', '.join(artifacts)} cannot be "
                "loaded; connectors whose class is built in work without",
            )
    known = (*_READ, "externalConfiguration") if is_old else (*_READ, *_TOPIC_FIELDS)
    draft.has_no_effect(spec, known)


def _artifacts(spec: Fields, field: str) -> list[str]:
    """What each plug-in consists of, in words."""
    holder = spec.map("build") if field == "build" else spec
    found = []
    for plugin in holder.maps("plugins"):
        parts = [_artifact(one) for one in plugin.maps("artifacts")]
        found.append(f"{plugin.text('name', 'a plug-in')} ({', '.join(parts) or 'nothing'})")
    return found or ([holder.path] if field in spec else [])


def _artifact(fields: Fields) -> str:
    coordinates = [fields.text(part) for part in ("group", "artifact", "version")]
    name = fields.text("url") or fields.text("reference") or ":".join(part for part in coordinates if part)
    # Addresses may carry a login.
    plain = name.split("?")[0]
    scheme, found, rest = plain.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}" if found else plain or fields.text("type", "an artifact")


def _image(spec: Fields, draft: Draft) -> str:
    image = spec.text("image").strip()
    if not image:
        return ""
    repository = image.partition("@")[0].rpartition("/")[2].partition(":")[0]
    if repository.startswith("icestream"):
        return image
    draft.warn(
        UNSUPPORTED,
        f"{spec.at('image')} is no image of Icestream (its name does not begin with 'icestream'); the "
        "operator's own image is used",
    )
    return ""


def _names(name: str) -> ChildNames:
    workers = dns_label(f"{name}-connect")
    return ChildNames(
        workers=workers,
        container=workers,
        config=dns_label(f"{name}-connect-config"),
        service=dns_label(f"{name}-connect-api"),
        headless=workers,
        role=workers,
        role_binding=dns_label(f"{name}-connect-connect-role"),
        executors=dns_label(f"{name}-connect-executors"),
    )
