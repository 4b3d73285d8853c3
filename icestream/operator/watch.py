"""Watches by kopf: every change of a resource, of its children and of what it refers to puts a key into the
queue. kopf keeps no state for us: handlers are `on.event` only, so it writes nothing into users' objects.

A watch may lose events; the resync of the process finds what it missed.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icestream.api.errors import PreconditionError
from icestream.operator.kinds import Kind

if TYPE_CHECKING:
    import kopf
    from lightkube.config.kubeconfig import SingleConfig

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Watched:
    """A kind to watch, and who is told: (object, whether it is gone)."""

    kind: Kind
    told: Callable[[Mapping[str, Any], bool], None]
    labels: str | None = None
    """A selector: other objects of the kind are none of our business."""


async def watch(
    config: SingleConfig, namespaces: Sequence[str], watched: Sequence[Watched], stop: threading.Event
) -> None:
    """Until told to stop. Without namespaces: all of the cluster."""
    import kopf

    # It complains that it gets no signals in a thread; the process has them.
    logging.getLogger("kopf._core.reactor.running").setLevel(logging.ERROR)
    registry = kopf.OperatorRegistry()
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    # With all namespaces, new CRDs of the kinds are noticed; the ClusterRole has the rights for that.
    settings.scanning.disabled = bool(namespaces)
    settings.watching.connect_timeout = 30.0
    kopf.on.login(registry=registry)(lambda **_: connection(config))
    for one in watched:
        kind = one.kind
        if one.labels:
            settings.watching.label_selectors[kind.group, kind.version, kind.plural] = one.labels
        kopf.on.event(kind.group, kind.version, kind.plural, registry=registry, id=f"watch-{kind.plural}")(
            _handler(one)
        )
    await kopf.operator(
        registry=registry,
        settings=settings,
        standalone=True,
        clusterwide=not namespaces,
        namespaces=list(namespaces),
        stop_flag=stop,
    )


def _handler(watched: Watched) -> Any:
    async def handler(event: Mapping[str, Any], **_: Any) -> None:
        try:
            watched.told(dict(event["object"]), event["type"] == "DELETED")
        except (KeyError, TypeError, ValueError) as error:
            _LOG.warning("a %s that makes no sense was left out: %r", watched.kind.name, error)

    return handler


def connection(config: SingleConfig) -> kopf.ConnectionInfo:
    """The same server and the same credentials that lightkube uses; tokens are read anew, for they rotate."""
    import kopf

    cluster, user = config.cluster, config.user
    if user is None or user.exec is not None or user.auth_provider is not None:
        raise PreconditionError(
            "the kubeconfig asks another program for credentials, which the operator does not; "
            "write a token or a certificate into it"
        )
    token = Path(user.token_file).read_text().strip() if user.token_file else user.token
    return kopf.ConnectionInfo(
        server=cluster.server,
        ca_path=_path(config, cluster.certificate_auth),
        ca_data=cluster.certificate_auth_data,
        insecure=cluster.insecure or None,
        username=user.username,
        password=user.password,
        scheme="Bearer" if token else None,
        token=token,
        certificate_path=_path(config, user.client_cert),
        certificate_data=user.client_cert_data,
        private_key_path=_path(config, user.client_key),
        private_key_data=user.client_key_data,
    )


def _path(config: SingleConfig, name: str | None) -> str | None:
    return None if name is None else str(config.abs_file(name))
