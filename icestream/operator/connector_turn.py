"""KafkaConnectors, from the loop's side: which cluster one belongs to, and what a cluster does for all of its
own. The work itself is in `connectors`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

from icestream.api.errors import IcestreamError
from icestream.operator.api_server import FIELD_MANAGER, ApiServer, Object
from icestream.operator.conditions import Condition, warning
from icestream.operator.connector_objects import ApiConnectorObjects
from icestream.operator.connectors.borders import ConnectorRest
from icestream.operator.connectors.facts import ConnectorOutcome
from icestream.operator.connectors.placement import cluster_of, unplaced
from icestream.operator.connectors.recent_actions import RecentActions
from icestream.operator.connectors.reconcile import reconcile_connector
from icestream.operator.connectors.statuses import unready_outcome
from icestream.operator.connectors.whole_cluster import delete_surplus
from icestream.operator.dispatcher import Turn
from icestream.operator.keys import CLUSTER_LABEL, Key, key_of
from icestream.operator.kinds import CLUSTERS, KAFKA_CONNECTOR, Kind
from icestream.operator.resources.cluster_spec import ClusterSpec
from icestream.operator.resources.invalid import InvalidResource
from icestream.operator.resync import ServedKinds

_LOG = logging.getLogger(__name__)


class WorkersRest(ConnectorRest, Protocol):
    """What the operator asks of the workers of one cluster."""

    def plugins(self) -> Sequence[Mapping[str, Any]]: ...


@dataclass(frozen=True)
class ConnectorTools:
    server: ApiServer
    kinds: ServedKinds
    is_managed: Callable[[Object], bool]
    parse: Callable[[Object], ClusterSpec]
    workers: Callable[[str], WorkersRest]
    """From the address of a cluster's Service."""
    wake: Callable[[Key], None]
    """Puts a key into the queue; from any thread."""
    recent: RecentActions = field(default_factory=RecentActions)
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


@dataclass(frozen=True)
class ClusterConnectors:
    """What a cluster's turn learns of its connectors."""

    warnings: tuple[Condition, ...] = ()
    plugins: Sequence[Mapping[str, Any]] | None = None


class ConnectorReconciler:
    def __init__(self, tools: ConnectorTools) -> None:
        self._tools = tools
        self._uids: dict[Key, str] = {}
        """Of connectors that were looked at: what was noted of one goes with it."""

    def turn(self, key: Key) -> Turn:
        """One connector. One that is gone is deleted in the turn of its cluster, which its end has woken."""
        kind = self._tools.kinds[KAFKA_CONNECTOR.name]
        resource = self._tools.server.get(kind, key.namespace, key.name)
        self._note_uid(key, None if resource is None else str(resource["metadata"]["uid"]))
        if resource is None or resource["metadata"].get("deletionTimestamp"):
            return Turn()
        outcome = self._outcome(resource, kind)
        if outcome is None:
            return Turn()
        if dict(outcome.status) != (resource.get("status") or {}):
            ApiConnectorObjects(self._tools.server, kind, resource).write_status(outcome.status)
        return Turn(outcome.requeue_after, outcome.is_ready)

    def _note_uid(self, key: Key, uid: str | None) -> None:
        before = self._uids.pop(key, None)
        if before is not None and before != uid:
            self._tools.recent.forget(before)
        if uid is not None:
            self._uids[key] = uid

    def _outcome(self, resource: Object, kind: Kind) -> ConnectorOutcome | None:
        """None: it is not ours, or its cluster is paused."""
        cluster = self._cluster(resource)
        if cluster is None:
            # Of a cluster that is gone, it is not said whose it was; our own word must not stay, though.
            is_ours = self._tools.is_managed(resource) or _has_our_status(resource)
        else:
            is_ours = self._tools.is_managed(cluster)
        if not is_ours:
            return None
        if cluster is not None and _is_paused(cluster):
            return None
        replicas = None if cluster is None else (cluster.get("spec") or {}).get("replicas")
        misplaced = unplaced(resource, cluster, replicas if isinstance(replicas, int) else None)
        if misplaced is not None or cluster is None:
            assert misplaced is not None
            return unready_outcome(resource, misplaced.reason, misplaced.message, self._tools.now())
        try:
            spec = self._tools.parse(cluster)
        except InvalidResource as error:
            message = f"{cluster['kind']} '{spec_name(cluster)}' cannot be used: {error.message}"
            return unready_outcome(resource, error.reason, message, self._tools.now())
        return reconcile_connector(
            resource,
            self._tools.workers(spec.rest_url),
            ApiConnectorObjects(self._tools.server, kind, resource),
            self._tools.recent,
        )

    def _cluster(self, connector: Object) -> Object | None:
        name = cluster_of(connector)
        for kind in CLUSTERS if name else ():
            served = self._tools.kinds.get(kind.name)
            if served is None:
                continue
            found = self._tools.server.get(served, str(connector["metadata"]["namespace"]), str(name))
            if found is not None:
                return found
        return None

    def of_cluster(self, spec: ClusterSpec, *, is_new: bool) -> ClusterConnectors | None:
        """For the turn of a cluster whose workers answer: connectors without a resource go, and those that
        have one are woken where the cluster has become ready. None: no worker answers."""
        kind = self._tools.kinds.get(KAFKA_CONNECTOR.name)
        if kind is None:
            return ClusterConnectors()
        rest = self._tools.workers(spec.rest_url)

        def with_resource() -> set[str]:
            listed = self._tools.server.list(kind, spec.namespace, {CLUSTER_LABEL: spec.name})
            if listed is None:
                raise IcestreamError(f"KafkaConnectors of {spec.namespace} have no list; install their CRD")
            return {str(each["metadata"]["name"]) for each in listed}

        try:
            surplus = delete_surplus(rest, with_resource)
            plugins = rest.plugins()
            if is_new:
                for name in with_resource():
                    self._tools.wake(Key(KAFKA_CONNECTOR.name, spec.namespace, name))
        except IcestreamError as error:
            _LOG.warning("%s %s/%s: %s", spec.kind, spec.namespace, spec.name, error)
            return None
        warnings = tuple(
            warning("DeleteConnector", f"connector {name} has no resource, and cannot be deleted: {reason}")
            for name, reason in surplus.failed.items()
        )
        return ClusterConnectors(warnings, plugins)


def spec_name(resource: Object) -> str:
    return key_of(resource).name


def _has_our_status(resource: Object) -> bool:
    entries = resource["metadata"].get("managedFields") or ()
    return any(
        (each.get("manager"), each.get("subresource")) == (FIELD_MANAGER, "status") for each in entries
    )


def _is_paused(resource: Object) -> bool:
    annotations = resource["metadata"].get("annotations") or {}
    return str(annotations.get("strimzi.io/pause-reconciliation", "")).lower() == "true"
