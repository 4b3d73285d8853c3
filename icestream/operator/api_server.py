"""The Kubernetes API server as the operator uses it: plain objects in and out, by lightkube.

A missing object or a kind that the server does not have is None; whatever else goes wrong is one of the
errors below. Used by the reconcilers, the lease and the watch.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from icestream.api.errors import IcestreamError, PreconditionError
from icestream.operator.kinds import Kind

if TYPE_CHECKING:
    from lightkube.config.kubeconfig import SingleConfig
    from lightkube.core.client import Client

FIELD_MANAGER: Final = "icestream-operator"
_PAGE: Final = 500

Object = Mapping[str, Any]
T = TypeVar("T")


class ApiError(IcestreamError):
    """The API server refuses, or does not answer."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code
        """HTTP's; 0: no answer."""


class ApiConflict(ApiError):
    """The object is no longer as it was when it was looked at: look again."""


class ApiServer(Protocol):
    def get(self, kind: Kind, namespace: str, name: str) -> Object | None: ...

    def list(
        self, kind: Kind, namespace: str | None, labels: Mapping[str, str] | None = None
    ) -> Sequence[Object] | None:
        """All of a namespace, or of all; None: the server has no such kind."""
        ...

    def apply(self, kind: Kind, manifest: Object) -> Object:
        """Server-side apply by our field manager. With a `metadata.resourceVersion` or `uid` in it, only onto
        the object that was looked at."""
        ...

    def apply_status(self, kind: Kind, namespace: str, name: str, uid: str, status: Object) -> None:
        """Server-side apply of the status, onto the object of this uid and no namesake."""
        ...

    def merge(self, kind: Kind, namespace: str, name: str, patch: Object) -> Object: ...

    def create(self, kind: Kind, manifest: Object) -> Object: ...

    def replace(self, kind: Kind, manifest: Object) -> Object: ...

    def delete(self, kind: Kind, namespace: str, name: str) -> None:
        """Gone already is as good."""
        ...


class LightkubeServer:
    """Calls block; any thread may make them."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        what = f"{kind.name} {namespace}/{name}"
        _check_path(namespace, name)
        return _found(
            lambda: dict(self._client.get(_resource(kind), name, namespace=namespace)), f"read {what}"
        )

    def list(
        self, kind: Kind, namespace: str | None, labels: Mapping[str, str] | None = None
    ) -> Sequence[Object] | None:
        def call() -> Sequence[Object]:
            found = self._client.list(
                _resource(kind),
                namespace=namespace or "*",
                labels=dict(labels) if labels else None,
                chunk_size=_PAGE,
            )
            # Lists leave out what kind their items are.
            return [{"apiVersion": kind.api_version, "kind": kind.name, **dict(each)} for each in found]

        return _found(call, f"list {kind.plural} of {namespace or 'all namespaces'}")

    def apply(self, kind: Kind, manifest: Object) -> Object:
        return self._patch(kind, manifest, "APPLY", _resource(kind))

    def apply_status(self, kind: Kind, namespace: str, name: str, uid: str, status: Object) -> None:
        manifest = {
            "apiVersion": kind.api_version,
            "kind": kind.name,
            "metadata": {"namespace": namespace, "name": name, "uid": uid},
            "status": status,
        }
        self._patch(kind, manifest, "APPLY", _status(kind))

    def merge(self, kind: Kind, namespace: str, name: str, patch: Object) -> Object:
        manifest = {**patch, "metadata": {**patch.get("metadata", {}), "namespace": namespace, "name": name}}
        return self._patch(kind, manifest, "MERGE", _resource(kind))

    def _patch(self, kind: Kind, manifest: Object, how: str, resource: Any) -> Object:
        from lightkube.types import PatchType

        namespace, name = _place(manifest)
        return _done(
            lambda: dict(
                self._client.patch(
                    resource,
                    name,
                    dict(manifest),
                    namespace=namespace,
                    patch_type=PatchType[how],
                    field_manager=FIELD_MANAGER,
                    force=True,
                )
            ),
            f"write {kind.name} {namespace}/{name}",
        )

    def create(self, kind: Kind, manifest: Object) -> Object:
        namespace, name = _place(manifest)
        resource = _resource(kind)
        return _done(
            lambda: dict(self._client.create(resource(dict(manifest)), namespace=namespace)),
            f"create {kind.name} {namespace}/{name}",
        )

    def replace(self, kind: Kind, manifest: Object) -> Object:
        namespace, name = _place(manifest)
        resource = _resource(kind)
        return _done(
            lambda: dict(self._client.replace(resource(dict(manifest)), name, namespace=namespace)),
            f"write {kind.name} {namespace}/{name}",
        )

    def delete(self, kind: Kind, namespace: str, name: str) -> None:
        from lightkube.types import CascadeType

        _check_path(namespace, name)
        _found(
            lambda: self._client.delete(
                _resource(kind), name, namespace=namespace, cascade=CascadeType.BACKGROUND
            ),
            f"delete {kind.name} {namespace}/{name}",
        )


def server_from(config: SingleConfig) -> LightkubeServer:
    """The server of a kubeconfig, or of the pod that we run in."""
    from httpx2 import Timeout
    from lightkube.core.client import Client

    return LightkubeServer(Client(config=config, timeout=Timeout(30.0), trust_env=False))


def config_from_environment() -> SingleConfig:
    """The service account of this pod, or the file that $KUBECONFIG names, or ~/.kube/config."""
    from lightkube.config.kubeconfig import KubeConfig
    from lightkube.core.exceptions import ConfigError

    try:
        config = KubeConfig.from_env().get()
    except (ConfigError, OSError, KeyError, TypeError, ValueError) as error:
        raise PreconditionError(
            f"no Kubernetes cluster is configured ({error}); run in a pod, or set KUBECONFIG to a file"
        ) from None
    assert config is not None
    return config


def _place(manifest: Object) -> tuple[str, str]:
    namespace, name = str(manifest["metadata"]["namespace"]), str(manifest["metadata"]["name"])
    _check_path(namespace, name)
    return namespace, name


def _check_path(*parts: str) -> None:
    """The client puts names into addresses as they are: `../..` would lead to another namespace."""
    for part in parts:
        if not part or part in (".", "..") or any(sign in part for sign in "/%?#\\"):
            raise ApiError(f"'{part[:80]}' is no name that an object can have; mend it", 400)


def _found(call: Callable[[], T], what: str) -> T | None:
    try:
        return _done(call, what)
    except ApiError as error:
        if error.code == 404:
            return None
        raise


def _done(call: Callable[[], T], what: str) -> T:
    from httpx2 import HTTPError, HTTPStatusError
    from lightkube.core.exceptions import ApiError as Refusal
    from lightkube.core.exceptions import ConfigError

    try:
        return call()
    except Refusal as error:
        code, message = error.status.code or 0, error.status.message or "no reason given"
        raise _refused(what, code, message) from None
    except HTTPStatusError as error:
        raise _refused(what, error.response.status_code, error.response.reason_phrase) from None
    except (HTTPError, ConfigError, OSError) as error:
        reason = str(error) or type(error).__name__
        raise ApiError(f"cannot {what}: the API server does not answer ({reason})", 0) from None


def _refused(what: str, code: int, message: str) -> ApiError:
    kind = ApiConflict if code == 409 else ApiError
    hint = "; give the operator's service account the right to do so" if code == 403 else ""
    return kind(f"cannot {what}: {message}{hint}", code)


def _resource(kind: Kind) -> Any:
    return _resource_of(kind.group, kind.version, kind.name, kind.plural, "")


def _status(kind: Kind) -> Any:
    return _resource_of(kind.group, kind.version, kind.name, kind.plural, "status")


@functools.cache
def _resource_of(group: str, version: str, kind: str, plural: str, action: str) -> Any:
    """lightkube's class of a kind, of plain dicts. Not by its registry: that has one class per kind, and
    whoever imports its typed ones would get ours."""
    from lightkube.core.resource import ApiInfo, ResourceDef
    from lightkube.generic_resource import GenericNamespacedResource

    verbs = ["delete", "get", "global_list", "list", "patch", "post", "put"]
    definition = ResourceDef(group, version, kind)
    info = (
        ApiInfo(resource=definition, parent=definition, plural=plural, verbs=verbs, action=action)
        if action
        else ApiInfo(resource=definition, plural=plural, verbs=verbs)
    )
    return type(kind, (GenericNamespacedResource,), {"_api_info": info})
