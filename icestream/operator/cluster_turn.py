"""One reconciliation of one cluster: from its resource to objects in the API server, and to its status.

The dispatcher calls `turn` in a thread, under the lock of the cluster. It may be killed at any line: whatever
it does can be done again, and what it decides by is in the API server, not in memory.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from icestream.api.errors import IcestreamError
from icestream.operator.api_server import ApiConflict, ApiError, ApiServer, Object
from icestream.operator.children import Children, Owner
from icestream.operator.cluster_status import Report, status_of
from icestream.operator.conditions import (
    IMAGES_READY,
    PAUSED,
    Condition,
    merged,
    not_ready,
    ready,
    warning,
)
from icestream.operator.connector_turn import ClusterConnectors
from icestream.operator.dispatcher import Turn
from icestream.operator.keys import Key, key_of
from icestream.operator.kinds import DEPLOYMENT, SCALED_OBJECT
from icestream.operator.known_resources import KnownResources
from icestream.operator.manifests.labels import label_selector, owned
from icestream.operator.manual_rolls import roll_annotated
from icestream.operator.references import Contents, References
from icestream.operator.resources.cluster_spec import ClusterSpec
from icestream.operator.resources.invalid import InvalidResource
from icestream.operator.resync import ServedKinds
from icestream.operator.rollout import available, unfinished
from icestream.operator.twins import first_with_same_storage
from icestream.operator.worker_scaling import INTERVAL, Scaled, scaled, scales_itself

if TYPE_CHECKING:
    from icestream.operator.images import ImagesOutcome

_LOG = logging.getLogger(__name__)
_SOON: Final = 15.0


@dataclass(frozen=True)
class Surroundings:
    """What the desired objects depend on besides the resource."""

    images: Mapping[str, str]
    """Role → reference by digest, of images that came from archives."""
    contents: Contents
    missing_kinds: frozenset[str]
    replicas: int | None = None
    """Of workers, where our own scaling decides; None: as the resource says."""


@dataclass(frozen=True)
class ClusterTools:
    """Everything that a turn reaches for; tests bring their own."""

    server: ApiServer
    known: KnownResources
    references: References
    kinds: ServedKinds
    """Of clusters and connectors, in the version that the server has."""
    is_managed: Callable[[Object], bool]
    parse: Callable[[Object], ClusterSpec]
    desired: Callable[[ClusterSpec, Surroundings], Sequence[Object]]
    images: Callable[[ClusterSpec, Mapping[str, Any], Contents, bool], ImagesOutcome | None]
    forget_images: Callable[[Key], None]
    """Of a cluster that is gone."""
    connectors: Callable[[ClusterSpec, bool], ClusterConnectors | None]
    """After the pods, if resources rule over connectors; the flag says that the cluster was not ready
    before. None: the workers do not answer."""
    count_connectors: Callable[[ClusterSpec], int | None]
    """How many the workers have; None: they do not answer."""
    wrote: Callable[[str, str], None]
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


class ClusterReconciler:
    def __init__(self, tools: ClusterTools) -> None:
        self._tools = tools

    def turn(self, key: Key) -> Turn:
        resource = self._tools.server.get(self._tools.kinds[key.kind], key.namespace, key.name)
        if resource is None:
            # Its children go by their owner references.
            self._tools.references.forget(key)
            self._tools.forget_images(key)
            return Turn()
        if resource["metadata"].get("deletionTimestamp") or not self._tools.is_managed(resource):
            return Turn()
        return self._told(resource)

    def _told(self, resource: Object) -> Turn:
        """Whatever goes wrong is in the status, before it is tried again."""
        try:
            report, again = self._work(resource)
        except InvalidResource as error:
            report, again = Report((not_ready(error.reason, error.message),)), None
        except IcestreamError as error:
            # A conflict is no news for users: it is looked at again at once.
            if not isinstance(error, ApiConflict):
                with suppress(ApiError):
                    self._write(resource, Report((not_ready(type(error).__name__, str(error)),)))
            raise
        self._write(resource, report)
        return Turn(again, is_ready=any(each.type == "Ready" for each in report.conditions))

    def _write(self, resource: Object, report: Report) -> None:
        """Only if it is news."""
        previous = resource.get("status") or {}
        conditions = merged(previous.get("conditions") or (), report.conditions, self._tools.now())
        status = status_of(resource, report, conditions)
        if status == previous:
            return
        key = key_of(resource)
        kind = self._tools.kinds[key.kind]
        self._tools.server.apply_status(
            kind, key.namespace, key.name, str(resource["metadata"]["uid"]), status
        )

    def _work(self, resource: Object) -> tuple[Report, float | None]:
        annotations = resource["metadata"].get("annotations") or {}
        if str(annotations.get("strimzi.io/pause-reconciliation", "")).lower() == "true":
            return Report((Condition(PAUSED),), keeps_details=True), None
        spec = self._tools.parse(resource)
        twin = first_with_same_storage(spec, resource, self._tools)
        if twin is not None:
            message = (
                f"{twin} has the same bootstrap servers and the same topics; "
                "give one of them other topics, or their connectors would mix"
            )
            return Report((not_ready("InvalidResourceException", message),)), 2 * _SOON
        return self._reconcile(resource, spec)

    def _reconcile(self, resource: Object, spec: ClusterSpec) -> tuple[Report, float | None]:
        tools, previous = self._tools, resource.get("status") or {}
        owner = Owner(spec.kind, spec.namespace, spec.name, spec.uid)
        children = Children(tools.server, owner, owned(spec), tools.wrote)
        children.look()
        contents = tools.references.read(
            key_of(resource), [(each.kind, each.name) for each in spec.references]
        )
        is_forced = self._wants_rebuild(resource, children)
        images = tools.images(spec, previous.get("images") or {}, contents, is_forced)
        held = _held(spec, images, contents)
        scaling = None if held is not None else self._scaled(spec, children, previous.get("scaling"))
        manifests = tools.desired(
            spec,
            Surroundings(
                {} if images is None else images.references,
                contents,
                children.missing_kinds,
                None if scaling is None else scaling.replicas,
            ),
        )
        children.apply(each for each in manifests if held is None or each["kind"] != DEPLOYMENT.name)
        children.prune(manifests)
        rolling = roll_annotated(tools.server, children, spec)
        if is_forced:
            self._forget_rebuild(resource, children)
        was_ready = any(each.get("type") == "Ready" for each in previous.get("conditions") or ())
        report, again = self._report(spec, children, manifests, held, was_ready)
        details: dict[str, Any] = {}
        if images is not None:
            status = "True" if images.is_ready else "False"
            condition = Condition(IMAGES_READY, status, images.reason, images.message)
            report = report.adding(condition)
            details["images"] = dict(images.status)
            again = min(images.look_again, again or images.look_again)
        if scaling is not None:
            details["scaling"] = dict(scaling.status)
            again = min(INTERVAL, again or INTERVAL)
        elif held is not None and "scaling" in previous:
            details["scaling"] = previous["scaling"]
        report = report.adding(*(warning(each.reason, each.message) for each in spec.warnings))
        if rolling:
            again = min(_SOON, again or _SOON)
        return report.with_details(details), again

    def _scaled(self, spec: ClusterSpec, children: Children, remembered: object) -> Scaled | None:
        """None: how many workers there are is said by the resource, or by an autoscaler."""
        tools, name = self._tools, spec.names.workers
        if not scales_itself(spec, has_keda=SCALED_OBJECT.name not in children.missing_kinds):
            return None
        if children.autoscaler(name) is not None:
            return None
        connectors = tools.count_connectors(spec) if available(children.get(DEPLOYMENT, name)) > 0 else None
        # Looked at last: somebody may have scaled it while the workers were asked.
        live = tools.server.get(DEPLOYMENT, spec.namespace, name)
        return scaled(spec, live, remembered, connectors, tools.now())

    def _report(
        self,
        spec: ClusterSpec,
        children: Children,
        manifests: Sequence[Object],
        held: Condition | None,
        was_ready: bool,
    ) -> tuple[Report, float | None]:
        workers = children.get(DEPLOYMENT, spec.names.workers)
        first = held or self._progress(children, manifests)
        details: dict[str, Any] = {
            "url": spec.rest_url,
            "replicas": available_or_asked(workers),
            "labelSelector": label_selector(spec),
        }
        again: float | None = None
        warnings: Sequence[Condition] = ()
        if spec.uses_connector_resources and workers is not None and available(workers) > 0:
            found = self._tools.connectors(spec, not was_ready)
            if found is None:
                again = _SOON
            else:
                warnings = found.warnings
                details["connectorPlugins"] = [dict(each) for each in found.plugins or ()]
        return Report((first, *warnings), details), again

    def _progress(self, children: Children, manifests: Sequence[Object]) -> Condition:
        for manifest in manifests:
            if manifest["kind"] != DEPLOYMENT.name:
                continue
            live = children.get(DEPLOYMENT, str(manifest["metadata"]["name"]))
            missing = "it is not there yet" if live is None else unfinished(live)
            if missing is not None:
                return not_ready("Rolling", missing)
        return ready()

    def _wants_rebuild(self, resource: Object, children: Children) -> bool:
        places = [resource, *children.of_kind(DEPLOYMENT)]
        return any(_has_annotation(each, "strimzi.io/force-rebuild") for each in places)

    def _forget_rebuild(self, resource: Object, children: Children) -> None:
        patch = {"metadata": {"annotations": {"strimzi.io/force-rebuild": None}}}
        if _has_annotation(resource, "strimzi.io/force-rebuild"):
            key = key_of(resource)
            self._tools.server.merge(self._tools.kinds[key.kind], key.namespace, key.name, patch)
        for each in children.of_kind(DEPLOYMENT):
            if _has_annotation(each, "strimzi.io/force-rebuild"):
                metadata = each["metadata"]
                self._tools.server.merge(DEPLOYMENT, metadata["namespace"], metadata["name"], patch)


def _held(spec: ClusterSpec, images: ImagesOutcome | None, contents: Contents) -> Condition | None:
    """Why pods must not be made or changed now: those that run go on as they are."""
    if contents.missing:
        return not_ready(
            "MissingReference", f"{', '.join(contents.missing)} is not there, and pods need it; create it"
        )
    if images is not None and any(role not in images.references for role in _roles(spec)):
        return not_ready(images.reason or "ImagesNotReady", images.message)
    return None


def _roles(spec: ClusterSpec) -> list[str]:
    """Those whose images come from archives."""
    return [] if spec.archives is None else [each.role for each in spec.archives.images]


def _has_annotation(found: Object, name: str) -> bool:
    return str((found["metadata"].get("annotations") or {}).get(name, "")).lower() == "true"


def available_or_asked(workers: Object | None) -> int:
    return 0 if workers is None else int((workers.get("status") or {}).get("replicas", 0))
