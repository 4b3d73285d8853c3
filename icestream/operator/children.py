"""The objects of one cluster in the API server: which are there, which are written, which go. Called by the
reconciliation of a cluster."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from icestream.api.errors import IcestreamError
from icestream.operator.api_server import ApiConflict, ApiServer, Object
from icestream.operator.kinds import BY_NAME, CHILDREN, DEPLOYMENT, Kind
from icestream.operator.replicas import autoscaler_of, replicas_to_apply

_LOG = logging.getLogger(__name__)
_LOOKS: Final = 5
HORIZONTAL_AUTOSCALER: Final = Kind(
    "HorizontalPodAutoscaler", "autoscaling", ("v2",), "horizontalpodautoscalers"
)

Identity = tuple[str, str]
"""Kind and name of a child; its namespace is the owner's."""


class ForeignObject(IcestreamError):
    """An object of a name that we need belongs to somebody else."""


class StillThere(IcestreamError):
    """An object of a deleted namesake of the resource has not been removed yet: try again."""


@dataclass(frozen=True)
class Owner:
    """The resource that the children belong to."""

    kind: str
    namespace: str
    name: str
    uid: str


class Children:
    def __init__(
        self, server: ApiServer, owner: Owner, labels: Mapping[str, str], wrote: Callable[[str, str], None]
    ) -> None:
        self._server = server
        self._owner = owner
        self._labels = labels
        self._wrote = wrote
        self._found: dict[Identity, Object] = {}
        self.missing_kinds: frozenset[str] = frozenset()
        """Kinds that the server does not have, such as those of KEDA."""

    def look(self) -> None:
        """Which children there are: by our label, and owned by this resource and no namesake."""
        missing = set()
        found: dict[Identity, Object] = {}
        for kind in CHILDREN:
            objects = self._server.list(kind, self._owner.namespace, self._labels)
            if objects is None:
                missing.add(kind.name)
                continue
            for each in objects:
                if _controller(each).get("uid") == self._owner.uid:
                    found[kind.name, str(each["metadata"]["name"])] = each
        self._found, self.missing_kinds = found, frozenset(missing)

    def get(self, kind: Kind, name: str) -> Object | None:
        return self._found.get((kind.name, name))

    def of_kind(self, kind: Kind) -> list[Object]:
        return [each for (name, _), each in self._found.items() if name == kind.name]

    def apply(self, manifests: Iterable[Object]) -> None:
        for manifest in manifests:
            if manifest["kind"] not in self.missing_kinds:
                self._apply(manifest)

    def _apply(self, manifest: Object) -> None:
        kind = BY_NAME[str(manifest["kind"])]
        identity = (kind.name, str(manifest["metadata"]["name"]))
        before = self._found.get(identity) or self._unlabelled(kind, identity[1])
        if kind == DEPLOYMENT and manifest["spec"]["strategy"]["type"] != "Recreate":
            after = self._apply_scaled(manifest, before)
        else:
            after = self._server.apply(kind, manifest)
        self._found[identity] = after
        self._tell(kind, before, after)

    def _apply_scaled(self, manifest: Object, before: Object | None) -> Object:
        """A Deployment whose replicas somebody else may own. First it is looked at, then the autoscalers: one
        that comes or acts after that has changed the object, and our write is refused."""
        name, namespace = str(manifest["metadata"]["name"]), self._owner.namespace
        for _ in range(_LOOKS):
            live = self._server.get(DEPLOYMENT, namespace, name) if before is not None else None
            wanted = manifest["spec"].get("replicas")
            is_scaled = wanted is None or self.autoscaler(name) is not None
            replicas = replicas_to_apply(wanted, live, is_scaled)
            try:
                return self._server.apply(DEPLOYMENT, _with_replicas(manifest, replicas, live))
            except ApiConflict as error:
                conflict = error
        raise conflict

    def autoscaler(self, deployment: str) -> str | None:
        """The name of the one that has the Deployment."""
        kinds = (HORIZONTAL_AUTOSCALER, BY_NAME["ScaledObject"])
        found = [self._server.list(kind, self._owner.namespace) or () for kind in kinds]
        return autoscaler_of(deployment, (each for one in found for each in one))

    def _unlabelled(self, kind: Kind, name: str) -> Object | None:
        """One of ours that has lost its label, or none; anything else under this name is refused."""
        found = self._server.get(kind, self._owner.namespace, name)
        if found is None:
            return None
        controller = _controller(found)
        if controller.get("uid") == self._owner.uid or (not controller and self._is_orphan(found)):
            return found
        what = f"{kind.name} {self._owner.namespace}/{name}"
        if (controller.get("kind"), controller.get("name")) == (self._owner.kind, self._owner.name):
            raise StillThere(f"{what} of a deleted {self._owner.kind} of the same name is still there; wait")
        whose = f"{controller['kind']} {controller['name']}" if controller else "nobody that we know"
        raise ForeignObject(
            f"{what} is there already and belongs to {whose}; delete it, or give the {self._owner.kind} "
            "another name"
        )

    def _is_orphan(self, found: Object) -> bool:
        """Whether we made it for a resource of this name, whose deletion has spared it (--cascade=orphan)."""
        labels = found["metadata"].get("labels") or {}
        return all(labels.get(name) == value for name, value in self._labels.items())

    def _tell(self, kind: Kind, before: Object | None, after: Object) -> None:
        if before is None:
            verb = "created"
        elif _version(before) != _version(after):
            verb = "changed"
        else:
            return
        self._wrote(kind.name, verb)
        _LOG.info("%s %s %s/%s", verb, kind.name, self._owner.namespace, after["metadata"]["name"])

    def prune(self, manifests: Sequence[Object]) -> None:
        """Delete what we own and no longer want; last what others lean on."""
        wanted = {(str(each["kind"]), str(each["metadata"]["name"])) for each in manifests}
        surplus = [identity for identity in self._found if identity not in wanted]
        for name, child in reversed(surplus):
            if self._found[name, child]["metadata"].get("deletionTimestamp"):
                continue
            self._server.delete(BY_NAME[name], self._owner.namespace, child)
            self._wrote(name, "deleted")
            _LOG.info("deleted %s %s/%s", name, self._owner.namespace, child)
            del self._found[name, child]


def _with_replicas(manifest: Object, replicas: int | None, live: Object | None) -> dict[str, Any]:
    spec = {key: value for key, value in manifest["spec"].items() if key != "replicas"}
    if replicas is not None:
        spec["replicas"] = replicas
    metadata = dict(manifest["metadata"])
    if live is not None:
        metadata["resourceVersion"] = _version(live)
    return {**manifest, "metadata": metadata, "spec": spec}


def _controller(found: Object) -> Mapping[str, Any]:
    for owner in found["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            return dict(owner)
    return {}


def _version(found: Object) -> str:
    return str(found["metadata"].get("resourceVersion"))
