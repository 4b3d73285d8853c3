"""`${secrets:namespace/name:key}` and `${configmaps:…}`: values of Secrets and ConfigMaps, asked of the API
server. They have the names of Strimzi's providers; `providers` makes those that a worker's config names."""

from __future__ import annotations

import base64
import os
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Self

from icestream.api.config import Config
from icestream.cluster.configs.kubernetes_api import KubernetesApi, NoCluster, api_from
from icestream.cluster.configs.providers import NotAvailable

_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_NAME: Final = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
_FRESH: Final = 5.0
"""Seconds that an answer is good for: the placeholders of one config are one request for each object."""
_MOST_KEPT: Final = 100


@dataclass
class _ObjectProvider(ABC):
    kind: ClassVar[str]
    plural: ClassVar[str]

    open_api: Callable[[], KubernetesApi] = field(default=lambda: api_from(os.environ), repr=False)
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)
    _api: KubernetesApi | None = field(default=None, init=False, repr=False)
    _away: tuple[float, NotAvailable] | None = field(default=None, init=False, repr=False)
    """When the API server could not be asked, and why: each object of a config would wait for it anew."""
    _kept: dict[str, tuple[float, Mapping[str, Any] | NotAvailable]] = field(
        default_factory=dict, init=False, repr=False
    )

    @classmethod
    def configured(cls, parameters: Config, prefix: str) -> Self:
        """Nothing is asked of a cluster before a placeholder needs it."""
        return cls()

    def value(self, path: str, key: str) -> str | None:
        found = self._data(path)
        text = found.get(key)
        return self._text(text, path) if isinstance(text, str) else None

    @abstractmethod
    def _text(self, given: str, path: str) -> str:
        """A value as the object has it, decoded."""

    def _data(self, path: str) -> Mapping[str, Any]:
        now = self.clock()
        kept = self._kept.get(path)
        if kept is None or not kept[0] <= now < kept[0] + _FRESH:
            kept = now, self._answered(path, now)
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[path] = kept
        if isinstance(kept[1], NotAvailable):
            raise kept[1]
        return kept[1]

    def _answered(self, path: str, now: float) -> Mapping[str, Any] | NotAvailable:
        if self._away is not None and self._away[0] <= now < self._away[0] + _FRESH:
            return self._away[1]
        try:
            if self._api is None:
                self._api = self.open_api()
            return self._asked(self._api, path)
        except NoCluster as error:
            # From now on, not from when it was asked: that may be longer ago than an answer is good for.
            self._away = self.clock(), NotAvailable(str(error))
            return self._away[1]
        except NotAvailable as error:
            return error

    def _asked(self, api: KubernetesApi, path: str) -> Mapping[str, Any]:
        namespace, slash, name = path.partition("/")
        if not slash:
            namespace, name = api.namespace, path
        # What a config says becomes part of an address: only names that Kubernetes itself takes.
        if not _NAMESPACE.fullmatch(namespace) or not _NAME.fullmatch(name) or ".." in name:
            raise NotAvailable(f"takes namespace/name, which '{path[:300]}' is not; correct it")
        what = f"{self.kind} {namespace}/{name}"
        answer = api.get(f"/api/v1/namespaces/{namespace}/{self.plural}/{name}")
        if answer.status in (401, 403):
            raise NotAvailable(f"may not read {what}; allow 'get' of it to the worker's service account")
        if answer.status == 404:
            raise NotAvailable(f"finds no {what}; create it")
        if answer.status != 200 or not isinstance(answer.body, Mapping):
            raise NotAvailable(f"got the answer {answer.status} for {what}; look at the API server")
        data = answer.body.get("data")
        return data if isinstance(data, Mapping) else {}


@dataclass
class SecretProvider(_ObjectProvider):
    kind = "Secret"
    plural = "secrets"

    def _text(self, given: str, path: str) -> str:
        try:
            return base64.b64decode(given, validate=True).decode("utf-8")
        except ValueError:
            raise NotAvailable(f"cannot use a value of Secret {path} that is not UTF-8; mount it") from None


@dataclass
class ConfigMapProvider(_ObjectProvider):
    kind = "ConfigMap"
    plural = "configmaps"

    def _text(self, given: str, path: str) -> str:
        return given
