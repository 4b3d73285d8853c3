"""Lists all that users have declared, at the start and every two minutes: what a watch has lost is found."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

from icestream.operator.api_server import ApiServer, Object
from icestream.operator.keys import Key, key_of
from icestream.operator.kinds import CLUSTERS, KAFKA_CONNECTOR, Kind
from icestream.operator.known_resources import KnownResources

RESOURCES = (*CLUSTERS, KAFKA_CONNECTOR)


class ServedKinds:
    """Kinds of users' resources that the server has, each in the version to read it in."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kinds: dict[str, Kind] = {}

    def __getitem__(self, name: str) -> Kind:
        """Of a kind that is not there: its newest version; what is asked for is then not found."""
        with self._lock:
            return self._kinds.get(name) or next(kind for kind in RESOURCES if kind.name == name)

    def get(self, name: str) -> Kind | None:
        with self._lock:
            return self._kinds.get(name)

    def put(self, kind: Kind) -> None:
        with self._lock:
            self._kinds[kind.name] = kind


def resync(
    server: ApiServer, namespaces: Sequence[str], kinds: ServedKinds, known: KnownResources
) -> dict[Key, bool]:
    """All keys; True for those that the watch had not told of."""
    keys: dict[Key, bool] = {}
    for kind in RESOURCES:
        before = known.all()
        found = _listed(server, namespaces, kind, kinds)
        if found is None:
            continue
        news = known.replace(kind.name, namespaces or None, found, before)
        keys.update({key_of(each): False for each in found})
        keys.update(dict.fromkeys(news, True))
    return keys


def _listed(
    server: ApiServer, namespaces: Sequence[str], kind: Kind, kinds: ServedKinds
) -> Sequence[Object] | None:
    """None: the server has no version of the kind that we know."""
    for version in kind.versions:
        served = replace(kind, versions=(version,))
        lists = [server.list(served, namespace) for namespace in namespaces or (None,)]
        if all(one is not None for one in lists):
            kinds.put(served)
            return [each for one in lists for each in one or ()]
    return None
