"""What the watch and the lists have told of users' resources: an index to find which ones a change concerns.

It may be behind. A reconciliation reads its own resource from the API server; from here it takes only who
else there is. The watch and the resync write it, in the event loop; reconciliations read it in threads.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from icestream.operator.keys import Key, cluster_label, key_of

Resource = Mapping[str, Any]


class KnownResources:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._resources: dict[Key, Resource] = {}

    def put(self, resource: Resource) -> bool:
        """False: it was known as it is, or is older than what was known."""
        key = key_of(resource)
        with self._lock:
            known = self._resources.get(key)
            if known is not None and _is_older_or_same(resource, known):
                return False
            self._resources[key] = resource
            return True

    def drop(self, resource: Resource) -> None:
        """Unless another one of the same name is known meanwhile."""
        key = key_of(resource)
        with self._lock:
            known = self._resources.get(key)
            if known is not None and known["metadata"].get("uid") == resource["metadata"].get("uid"):
                del self._resources[key]

    def replace(
        self,
        kind: str,
        namespaces: Iterable[str] | None,
        found: Sequence[Resource],
        before: Mapping[Key, Resource],
    ) -> set[Key]:
        """A whole list of a kind, of some namespaces or of all: what is not in it is gone, unless the watch
        has told of it since; `before` is what was known when the list was asked for. The keys of those that
        the watch had not told, whether they came or went."""
        there = {key_of(resource) for resource in found}
        within = None if namespaces is None else set(namespaces)
        with self._lock:
            gone = {
                key
                for key, resource in self._resources.items()
                if key.kind == kind and key not in there and (within is None or key.namespace in within)
                if before.get(key) is resource
            }
            for key in gone:
                del self._resources[key]
        return gone | {key_of(resource) for resource in found if self.put(resource)}

    def all(self) -> Mapping[Key, Resource]:
        with self._lock:
            return dict(self._resources)

    def get(self, key: Key) -> Resource | None:
        with self._lock:
            return self._resources.get(key)

    def of_kinds(self, *kinds: str) -> list[Resource]:
        with self._lock:
            return [resource for key, resource in self._resources.items() if key.kind in kinds]

    def lock_name(self, key: Key) -> tuple[str, str]:
        """Namespace and name of the cluster; a connector belongs to the one that its label names."""
        resource = self.get(key) if key.is_connector else None
        cluster = cluster_label(resource) if resource is not None else None
        return (key.namespace, cluster if cluster is not None else key.name)


def _is_older_or_same(resource: Resource, known: Resource) -> bool:
    if resource["metadata"].get("uid") != known["metadata"].get("uid"):
        return str(resource["metadata"].get("creationTimestamp", "")) < str(
            known["metadata"].get("creationTimestamp", "")
        )
    new, old = resource["metadata"].get("resourceVersion"), known["metadata"].get("resourceVersion")
    if str(new).isdigit() and str(old).isdigit():
        return int(str(new)) <= int(str(old))
    return bool(new == old)
