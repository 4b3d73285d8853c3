"""Two clusters that keep their connectors in the same topics of the same Kafka would mix them: the older one
has them, the other one is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from icestream.operator.keys import key_of
from icestream.operator.kinds import CLUSTERS
from icestream.operator.known_resources import KnownResources
from icestream.operator.resources.cluster_spec import ClusterSpec
from icestream.operator.resources.invalid import InvalidResource

Object = Mapping[str, Any]


class _Tools(Protocol):
    @property
    def known(self) -> KnownResources: ...
    @property
    def is_managed(self) -> Callable[[Object], bool]: ...
    @property
    def parse(self) -> Callable[[Object], ClusterSpec]: ...


def first_with_same_storage(spec: ClusterSpec, resource: Object, tools: _Tools) -> str | None:
    """The older resource that has the topics of this one; None: they are its own."""
    for other in tools.known.of_kinds(*(kind.name for kind in CLUSTERS)):
        if other["metadata"].get("uid") == spec.uid or not _is_older(other, resource):
            continue
        # A namesake that was deleted since is not older, it is gone.
        if key_of(other) == key_of(resource) or not tools.is_managed(other):
            continue
        try:
            is_same = tools.parse(other).storage == spec.storage
        except InvalidResource:
            continue
        if is_same:
            return str(key_of(other))
    return None


def _is_older(other: Object, resource: Object) -> bool:
    def age(each: Object) -> tuple[str, str]:
        metadata = each["metadata"]
        return (str(metadata.get("creationTimestamp", "")), str(metadata.get("uid", "")))

    return age(other) < age(resource)
