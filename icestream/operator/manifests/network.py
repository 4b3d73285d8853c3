"""How the workers are reached, by whom, how many of them may be away: services, policy, budget, monitor."""

from __future__ import annotations

from typing import Any

from icestream.operator.kinds import DISRUPTION_BUDGET, NETWORK_POLICY, POD_MONITOR, SERVICE, SERVICE_ACCOUNT
from icestream.operator.manifests import labels
from icestream.operator.manifests.facts import Manifest
from icestream.operator.manifests.objects import object_of
from icestream.operator.manifests.spark import BLOCK_PORT, DRIVER_PORT
from icestream.operator.manifests.worker_config import REST_PORT
from icestream.operator.resources.cluster_spec import ClusterSpec


def service_account(spec: ClusterSpec) -> Manifest:
    body = {"automountServiceAccountToken": False}
    return object_of(SERVICE_ACCOUNT, spec, spec.names.workers, body, extra=spec.service_account)


def services(spec: ClusterSpec) -> list[Manifest]:
    """One for users of REST; one without an address, for workers that look each other up."""
    port = {"name": "rest-api", "port": REST_PORT, "targetPort": "rest-api", "protocol": "TCP"}
    body = {"selector": labels.selector(spec), "ports": [port]}
    headless = {**body, "clusterIP": "None", "publishNotReadyAddresses": True}
    return [
        object_of(
            SERVICE, spec, spec.names.service, {"spec": {**body, "type": "ClusterIP"}}, extra=spec.service
        ),
        object_of(SERVICE, spec, spec.names.headless, {"spec": headless}),
    ]


def network_policy(spec: ClusterSpec) -> Manifest | None:
    if spec.allowed_peers is None:
        return None
    own = {"podSelector": {"matchLabels": labels.selector(spec)}}
    operator = {"namespaceSelector": {}, "podSelector": {"matchLabels": dict(labels.OPERATOR)}}
    peers = [own, operator, *(dict(one) for one in spec.allowed_peers)]
    rules: list[dict[str, Any]] = [{"ports": [_tcp(REST_PORT)], "from": peers}]
    if spec.metrics_port is not None:
        rules.append({"ports": [_tcp(spec.metrics_port)]})
    if spec.executors is not None:
        executors = {"podSelector": {"matchLabels": labels.executors(spec)}}
        rules.append({"ports": [_tcp(DRIVER_PORT), _tcp(BLOCK_PORT)], "from": [executors]})
    body = {
        "podSelector": {"matchLabels": labels.selector(spec)},
        "policyTypes": ["Ingress"],
        "ingress": rules,
    }
    return object_of(NETWORK_POLICY, spec, spec.names.workers, {"spec": body})


def disruption_budget(spec: ClusterSpec, *, is_scaled: bool) -> Manifest | None:
    """None for one worker: a budget would keep its node from being drained for ever."""
    if spec.replicas < 2 and not is_scaled:
        return None
    body = {"maxUnavailable": spec.max_unavailable, "selector": {"matchLabels": labels.selector(spec)}}
    return object_of(DISRUPTION_BUDGET, spec, spec.names.workers, {"spec": body}, extra=spec.budget)


def pod_monitor(spec: ClusterSpec) -> Manifest:
    endpoint = {"port": "tcp-prometheus", "path": "/metrics"}
    body = {"selector": {"matchLabels": labels.selector(spec)}, "podMetricsEndpoints": [endpoint]}
    return object_of(POD_MONITOR, spec, spec.names.workers, {"spec": body})


def _tcp(port: int) -> dict[str, Any]:
    return {"port": port, "protocol": "TCP"}
