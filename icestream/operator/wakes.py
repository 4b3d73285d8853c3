"""Which keys a change concerns: what the watch tells goes into the index, and the keys into the queue."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from icestream.operator.keys import Key, cluster_label, key_of, owner_key
from icestream.operator.kinds import (
    CLUSTERS,
    CONFIG_MAP,
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    NETWORK_POLICY,
    POD,
    ROLE,
    ROLE_BINDING,
    SERVICE,
    SERVICE_ACCOUNT,
)
from icestream.operator.known_resources import KnownResources
from icestream.operator.manifests.labels import MANAGED_BY, OWNER, OWNER_KIND
from icestream.operator.manual_rolls import ANNOTATION
from icestream.operator.references import Named, References
from icestream.operator.resync import RESOURCES, ServedKinds
from icestream.operator.watch import Watched

Object = Mapping[str, Any]
_CLUSTER_KINDS: Final = frozenset(kind.name for kind in CLUSTERS)
_OURS: Final = f"app.kubernetes.io/managed-by={MANAGED_BY}"
_CHILDREN: Final = (
    SERVICE_ACCOUNT,
    ROLE,
    ROLE_BINDING,
    SERVICE,
    NETWORK_POLICY,
    DISRUPTION_BUDGET,
    DEPLOYMENT,
)


class Wakes:
    def __init__(self, known: KnownResources, references: References, wake: Callable[[Key], None]) -> None:
        self._known = known
        self._references = references
        self._wake = wake

    def watched(self, kinds: ServedKinds) -> list[Watched]:
        """Users' ConfigMaps have no label of ours: all of them are looked at. Secrets are not watched."""
        return [
            *(Watched(kinds[kind.name], self.told_resource) for kind in RESOURCES),
            *(Watched(kind, self.told_child, labels=_OURS) for kind in _CHILDREN),
            Watched(POD, self.told_pod, labels=_OURS),
            Watched(CONFIG_MAP, self.told_config_map),
        ]

    def told_resource(self, resource: Object, is_gone: bool) -> None:
        key = key_of(resource)
        before = self._known.get(key)
        if is_gone:
            self._known.drop(resource)
            if key.is_connector:
                self._wake_clusters_of(resource)
        else:
            self._known.put(resource)
            if before is not None and key.is_connector and cluster_label(before) != cluster_label(resource):
                self._wake_clusters_of(before)
        # Our own writes to the status come back as changes; they concern nobody.
        if is_gone or before is None or _asks(before) != _asks(resource):
            self._wake(key)

    def _wake_clusters_of(self, connector: Object) -> None:
        name = cluster_label(connector)
        for kind in CLUSTERS:
            key = Key(kind.name, key_of(connector).namespace, str(name))
            if name and self._known.get(key) is not None:
                self._wake(key)

    def told_child(self, child: Object, is_gone: bool) -> None:
        owner = owner_key(child, _CLUSTER_KINDS)
        if owner is not None:
            self._wake(owner)

    def told_config_map(self, config_map: Object, is_gone: bool) -> None:
        self.told_child(config_map, is_gone)
        metadata = config_map["metadata"]
        named = Named(CONFIG_MAP.name, str(metadata["namespace"]), str(metadata["name"]))
        for key in self._references.concerned(named):
            self._wake(key)

    def told_pod(self, pod: Object, is_gone: bool) -> None:
        """Pods come and go with their Deployment, which tells of it; only their annotation is news."""
        metadata = pod["metadata"]
        labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
        if ANNOTATION not in annotations:
            return
        key = Key(str(labels.get(OWNER_KIND)), str(metadata["namespace"]), str(labels.get(OWNER)))
        if self._known.get(key) is not None:
            self._wake(key)


def _asks(resource: Object) -> tuple[Any, ...]:
    """What users and controllers ask for: everything but the status."""
    metadata = resource["metadata"]
    return (
        metadata.get("uid"),
        metadata.get("generation"),
        metadata.get("labels"),
        metadata.get("annotations"),
        metadata.get("deletionTimestamp"),
        resource.get("spec"),
    )
