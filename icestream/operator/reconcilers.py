"""Puts the parts of a reconciliation together: which resources are ours, what their objects shall be, where
their workers answer. The process makes one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit

from icestream.operator.api_server import ApiServer, Object
from icestream.operator.cluster_turn import ClusterReconciler, ClusterTools, Surroundings
from icestream.operator.connector_turn import ConnectorReconciler, ConnectorTools
from icestream.operator.connectors.rest import workers_at
from icestream.operator.dispatcher import Turn
from icestream.operator.image_fetching import ImageFetching
from icestream.operator.keys import Key
from icestream.operator.kinds import OUR_GROUP, POD_MONITOR, SCALED_OBJECT
from icestream.operator.known_resources import KnownResources
from icestream.operator.manifests.cluster import desired
from icestream.operator.manifests.facts import DEFAULT_IMAGE, Facts
from icestream.operator.references import References
from icestream.operator.resources.cluster import parse_cluster
from icestream.operator.resources.cluster_spec import MANAGED, ClusterSpec, Reference
from icestream.operator.resync import ServedKinds
from icestream.operator.worker_scaling import connectors_of

ANY_HOST: Final = "*"


@dataclass(frozen=True)
class Policy:
    """What the one who runs the operator decides."""

    takes_all: bool = False
    """Strimzi's resources without our annotation, too."""
    default_image: str = DEFAULT_IMAGE
    connect_to: Mapping[str, str] = field(default_factory=dict)
    """`host:port` of a Service (or `*`) → where it is reached instead, for an operator outside of the
    cluster."""

    def is_managed(self, resource: Object) -> bool:
        if self.takes_all or str(resource.get("apiVersion", "")).startswith(f"{OUR_GROUP}/"):
            return True
        annotations = resource["metadata"].get("annotations") or {}
        return str(annotations.get(MANAGED, "")).lower() == "true"

    def reached_at(self, url: str) -> str:
        address = urlsplit(url).netloc
        other = self.connect_to.get(address) or self.connect_to.get(ANY_HOST)
        return url if other is None else f"http://{other}"


class Reconcilers:
    def __init__(
        self,
        server: ApiServer,
        known: KnownResources,
        references: References,
        kinds: ServedKinds,
        policy: Policy,
        wake: Callable[[Key], None],
        wrote: Callable[[str, str], None],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._policy = policy
        self._connectors = ConnectorReconciler(
            ConnectorTools(
                server=server,
                kinds=kinds,
                is_managed=policy.is_managed,
                parse=parse_cluster,
                workers=lambda url: workers_at(policy.reached_at(url)),
                wake=wake,
            )
        )
        images = ImageFetching(server)
        self._clusters = ClusterReconciler(
            ClusterTools(
                server=server,
                known=known,
                references=references,
                kinds=kinds,
                is_managed=policy.is_managed,
                parse=parse_cluster,
                desired=self._desired,
                images=images.turn,
                forget_images=images.forget,
                connectors=lambda spec, is_new: self._connectors.of_cluster(spec, is_new=is_new),
                count_connectors=lambda spec: connectors_of(
                    workers_at(policy.reached_at(spec.rest_url)), spec
                ),
                wrote=wrote,
                now=now,
            )
        )

    def turn(self, key: Key) -> Turn:
        """One reconciliation; in a thread, under the lock of the cluster."""
        return self._connectors.turn(key) if key.is_connector else self._clusters.turn(key)

    def _desired(self, spec: ClusterSpec, around: Surroundings) -> Sequence[dict[str, Any]]:
        facts = Facts(
            images=around.images,
            default_image=self._policy.default_image,
            hashes={Reference(*which): content for which, content in around.contents.hashes.items()},
            secret_keys={name: tuple(sorted(data)) for name, data in around.contents.data.items()},
            replicas=around.replicas,
            has_keda=SCALED_OBJECT.name not in around.missing_kinds,
            has_pod_monitors=POD_MONITOR.name not in around.missing_kinds,
        )
        return desired(spec, facts)
