"""All objects that a cluster shall have: a function of its resource and of a few facts, without I/O."""

from __future__ import annotations

from collections.abc import Sequence

from icestream.operator.kinds import DEPLOYMENT, SCALED_OBJECT
from icestream.operator.manifests import labels
from icestream.operator.manifests.facts import DEFAULT_IMAGE, Facts, Manifest
from icestream.operator.manifests.jobs import job_objects
from icestream.operator.manifests.network import (
    disruption_budget,
    network_policy,
    pod_monitor,
    service_account,
    services,
)
from icestream.operator.manifests.objects import object_of
from icestream.operator.manifests.spark import driver_rights, executor_template
from icestream.operator.manifests.worker_config import config_map
from icestream.operator.manifests.workers import worker_deployment
from icestream.operator.resources.cluster_spec import ClusterSpec
from icestream.operator.scaling import ScaleTarget, scaled_object


def desired(spec: ClusterSpec, facts: Facts) -> Sequence[Manifest]:
    """In the order in which they are applied; what is not among them shall not be there."""
    scaler = _scaled_object(spec) if facts.has_keda else None
    has_scaler = scaler is not None or facts.is_autoscaled
    is_scaled = has_scaler or (spec.scaling is not None and spec.scaling.scales_workers)
    has_monitor = facts.has_pod_monitors and spec.has_pod_monitor and spec.metrics_port is not None
    found = [
        service_account(spec),
        *(driver_rights(spec) if spec.executors else ()),
        network_policy(spec),
        *services(spec),
        config_map(spec, facts),
        executor_template(spec) if spec.executors else None,
        disruption_budget(spec, is_scaled=is_scaled),
        worker_deployment(spec, facts, has_scaler=has_scaler),
        *job_objects(spec, facts),
        pod_monitor(spec) if has_monitor else None,
        scaler,
    ]
    return [one for one in found if one is not None]


def missing_images(spec: ClusterSpec, facts: Facts) -> tuple[str, ...]:
    """Roles whose image comes from an archive and is not in the registry yet: no pod can be made of it."""
    wanted = spec.archives.images if spec.archives else ()
    return tuple(one.role for one in wanted if one.role not in facts.images)


def _scaled_object(spec: ClusterSpec) -> Manifest | None:
    if spec.scaling is None or not spec.scaling.scales_workers or not spec.scaling.prometheus:
        return None
    target = ScaleTarget(
        name=spec.names.workers,
        namespace=spec.namespace,
        kind=DEPLOYMENT.name,
        api_version=DEPLOYMENT.api_version,
        prometheus=spec.scaling.prometheus,
        labels=labels.workers(spec),
    )
    made = scaled_object(spec.scaling.limits, target)
    body = {key: value for key, value in made.items() if key not in ("apiVersion", "kind", "metadata")}
    return object_of(SCALED_OBJECT, spec, spec.names.workers, body)


__all__ = ["DEFAULT_IMAGE", "Facts", "Manifest", "desired", "missing_images"]
