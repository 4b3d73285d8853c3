"""One KafkaConnector and the ConfigMaps beside it, in the API server: what its reconciliation reads and
writes there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from icestream.operator.api_server import ApiServer, Object
from icestream.operator.kinds import CONFIG_MAP, Kind


class ApiConnectorObjects:
    """Every write is onto the resource of this uid, and onto no namesake."""

    def __init__(self, server: ApiServer, kind: Kind, resource: Mapping[str, Any]) -> None:
        self._server = server
        self._kind = kind
        metadata = resource["metadata"]
        self._namespace, self._name = str(metadata["namespace"]), str(metadata["name"])
        self._uid = str(metadata["uid"])
        self._api_version = str(resource["apiVersion"])

    def annotation(self, name: str) -> str | None:
        found = self._now()
        value = None if found is None else (found["metadata"].get("annotations") or {}).get(name)
        return None if value is None else str(value)

    def remove_annotation(self, name: str, value: str) -> None:
        found = self._now()
        if found is None or (found["metadata"].get("annotations") or {}).get(name) != value:
            return
        # The version makes it fail if somebody has given it another value meanwhile.
        metadata = {
            "uid": self._uid,
            "resourceVersion": found["metadata"]["resourceVersion"],
            "annotations": {name: None},
        }
        self._server.merge(self._kind, self._namespace, self._name, {"metadata": metadata})

    def write_status(self, status: Mapping[str, Any]) -> None:
        self._server.apply_status(self._kind, self._namespace, self._name, self._uid, status)

    def config_map_value(self, name: str, key: str) -> str | None:
        found = self._server.get(CONFIG_MAP, self._namespace, name)
        value = None if found is None else (found.get("data") or {}).get(key)
        return None if value is None else str(value)

    def write_config_map_value(self, name: str, key: str, text: str) -> None:
        owner = {
            "apiVersion": self._api_version,
            "kind": self._kind.name,
            "name": self._name,
            "uid": self._uid,
            "controller": False,
            "blockOwnerDeletion": False,
        }
        found = self._server.get(CONFIG_MAP, self._namespace, name)
        if found is None:
            metadata = {"namespace": self._namespace, "name": name, "ownerReferences": [owner]}
            manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {key: text}}
            self._server.create(CONFIG_MAP, manifest)
            return
        others = [
            each for each in found["metadata"].get("ownerReferences") or () if each.get("uid") != self._uid
        ]
        # With the version, so that an owner that comes meanwhile is not lost.
        metadata = {
            "resourceVersion": found["metadata"]["resourceVersion"],
            "ownerReferences": [*others, owner],
        }
        self._server.merge(CONFIG_MAP, self._namespace, name, {"metadata": metadata, "data": {key: text}})

    def _now(self) -> Object | None:
        found = self._server.get(self._kind, self._namespace, self._name)
        return found if found is not None and found["metadata"].get("uid") == self._uid else None
