"""Secrets and ConfigMaps that clusters refer to: what is in them, as a hash, and whom a change concerns.

ConfigMaps are watched. Secrets are asked for by name, at every turn of their cluster and every few seconds by
`changed_secrets`: to watch them, the operator would need the right to read all Secrets at once.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from icestream.operator.api_server import ApiError, ApiServer, Object
from icestream.operator.keys import Key
from icestream.operator.kinds import BY_NAME, SECRET

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Named:
    """An object that somebody refers to."""

    kind: str
    namespace: str
    name: str


@dataclass(frozen=True)
class Contents:
    """What a cluster's references hold."""

    hashes: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """By kind and name; those that are missing are not in it."""
    data: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    """Of Secrets, by name, in base64 as the API server tells it."""
    missing: tuple[str, ...] = ()
    """`Secret x`, for people."""


class References:
    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._lock = threading.Lock()
        self._of_key: dict[Key, frozenset[Named]] = {}
        self._versions: dict[Named, str] = {}

    def read(self, key: Key, references: Iterable[tuple[str, str]]) -> Contents:
        """What the cluster refers to now (kind and name); from here on, its changes concern this key."""
        named = frozenset(Named(kind, key.namespace, name) for kind, name in references)
        with self._lock:
            self._of_key[key] = named
        hashes, data, missing = {}, {}, []
        for each in sorted(named, key=lambda one: (one.kind, one.name)):
            found = self._read(each)
            if found is None:
                missing.append(f"{each.kind} {each.name}")
                continue
            hashes[each.kind, each.name] = content_hash(found)
            if each.kind == SECRET.name:
                data[each.name] = dict(found.get("data") or {})
        return Contents(hashes, data, tuple(missing))

    def _read(self, named: Named) -> Object | None:
        found = self._server.get(BY_NAME[named.kind], named.namespace, named.name)
        with self._lock:
            self._versions[named] = _version(found)
        return found

    def forget(self, key: Key) -> None:
        with self._lock:
            self._of_key.pop(key, None)

    def concerned(self, named: Named) -> list[Key]:
        """The keys that refer to it: nobody else is woken by its change."""
        with self._lock:
            return [key for key, all_of_it in self._of_key.items() if named in all_of_it]

    def changed_secrets(self) -> set[Key]:
        """Ask for every Secret once more; the keys that refer to one that has changed since it was read."""
        with self._lock:
            secrets = {each for named in self._of_key.values() for each in named if each.kind == SECRET.name}
            self._versions = {
                named: version
                for named, version in self._versions.items()
                if any(named in all_of_it for all_of_it in self._of_key.values())
            }
        changed: set[Key] = set()
        for each in secrets:
            try:
                found = self._server.get(SECRET, each.namespace, each.name)
            except ApiError as error:
                # One that may not be read must not hide the changes of the others.
                _LOG.warning("%s", error)
                continue
            with self._lock:
                is_new = self._versions.get(each) != _version(found)
            if is_new:
                changed.update(self.concerned(each))
        return changed


def content_hash(found: Mapping[str, Any]) -> str:
    """Of what is in it, and of nothing else: labels and annotations do not roll pods."""
    content = {"data": found.get("data") or {}, "binaryData": found.get("binaryData") or {}}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def _version(found: Object | None) -> str:
    return "" if found is None else str(found["metadata"].get("resourceVersion"))
