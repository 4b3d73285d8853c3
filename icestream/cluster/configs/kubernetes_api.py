"""The Kubernetes API server as a pod sees it: single objects, read with the pod's service account.

For config providers only. Outside of a pod, the kubeconfig of whoever runs the worker is used.
"""

from __future__ import annotations

import base64
import os
import ssl
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import yaml

from icestream.api.nesting import read_json
from icestream.bounded_yaml import BoundedLoader
from icestream.named_files import content

if TYPE_CHECKING:
    import httpx

_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_PATIENCE: Final = 10.0
"""Seconds for a whole answer: one that comes byte by byte must not hold the worker up for longer."""
_LARGEST: Final = 2**20
_LARGEST_ANSWER: Final = 4 * 2**20
"""An object has a megabyte at most; base64 and what its managers note of it come on top."""


class NoCluster(Exception):
    """Why the API server cannot be asked, as the end of a sentence."""


@dataclass(frozen=True)
class ApiAnswer:
    status: int
    body: Any
    """Of JSON; None if it is not."""


class KubernetesApi(Protocol):
    namespace: str
    """Where objects are that are named without one."""

    def get(self, path: str) -> ApiAnswer:
        """Raises NoCluster."""


@dataclass(frozen=True)
class Access:
    """How to reach an API server, and as whom."""

    url: str
    tls: ssl.SSLContext = field(repr=False)
    namespace: str = "default"
    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    """Read at each request: the kubelet writes a new one every hour."""


class HttpsApi:
    def __init__(self, access: Access, clock: Callable[[], float] = time.monotonic) -> None:
        self._access = access
        self._clock = clock
        self.namespace = access.namespace

    def get(self, path: str) -> ApiAnswer:
        import httpx

        try:
            with (
                httpx.Client(verify=self._access.tls, timeout=_PATIENCE, trust_env=False) as client,
                client.stream("GET", self._access.url + path, headers=self._headers()) as answer,
            ):
                status, text = answer.status_code, self._body(answer)
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            why = type(error).__name__
            raise NoCluster(
                f"cannot reach the Kubernetes API server at {self._access.url} ({why}); check it"
            ) from None
        try:
            return ApiAnswer(status, read_json(text))
        except ValueError:
            return ApiAnswer(status, None)

    def _body(self, answer: httpx.Response) -> bytes:
        """As it came, never unpacked: a few bytes of gzip may be gigabytes."""
        deadline = self._clock() + _PATIENCE
        body = bytearray()
        for piece in answer.iter_raw():
            body += piece
            if len(body) > _LARGEST_ANSWER or self._clock() > deadline:
                raise NoCluster(
                    f"got more than {_LARGEST_ANSWER:,} bytes, or no end within {_PATIENCE:.0f} s, from the"
                    f" Kubernetes API server at {self._access.url}; look at it"
                )
        return bytes(body)

    def _headers(self) -> dict[str, str]:
        token = self._access.token
        if self._access.token_file is not None:
            token = _text_of(self._access.token_file).strip()
        plain = {"Accept": "application/json", "Accept-Encoding": "identity"}
        return plain | ({"Authorization": f"Bearer {token}"} if token else {})


def api_from(variables: Mapping[str, str], account: Path = _ACCOUNT) -> HttpsApi:
    """The cluster of this pod, or the one of $KUBECONFIG or ~/.kube/config. Raises NoCluster."""
    host = variables.get("KUBERNETES_SERVICE_HOST")
    if host and (account / "token").exists():
        return HttpsApi(_of_pod(host, variables.get("KUBERNETES_SERVICE_PORT", "443"), account))
    named = [Path(one) for one in variables.get("KUBECONFIG", "").split(os.pathsep) if one]
    file = named[0] if named else Path(variables.get("HOME", "/")) / ".kube" / "config"
    if not file.exists():
        raise NoCluster("finds no service account and no kubeconfig; run in a pod that has a token mounted")
    return HttpsApi(_of_kubeconfig(file))


def _of_pod(host: str, port: str, account: Path) -> Access:
    name = f"[{host}]" if ":" in host else host
    namespace = account / "namespace"
    return Access(
        f"https://{name}:{port}",
        _trusting(_text_of(account / "ca.crt")),
        _text_of(namespace).strip() if namespace.exists() else "default",
        token_file=account / "token",
    )


def _of_kubeconfig(file: Path) -> Access:
    try:
        config = yaml.load(_text_of(file), Loader=BoundedLoader)
        context = _named(config["contexts"], config["current-context"])["context"]
        cluster = _named(config["clusters"], context["cluster"])["cluster"]
        user = _named(config["users"], context["user"])["user"]
        url, folder = str(cluster["server"]).rstrip("/"), file.parent
        authority = _material(cluster, "certificate-authority", folder)
        tls = _trusting(authority)
        certificate, key = (_material(user, one, folder) for one in ("client-certificate", "client-key"))
        token_file = folder / user["tokenFile"] if user.get("tokenFile") else None
    except (yaml.YAMLError, KeyError, TypeError, AttributeError, StopIteration, ValueError):
        raise NoCluster(f"cannot understand the kubeconfig {file}; check its current context") from None
    if not url.startswith("https://"):
        raise NoCluster(f"finds no https:// address in the kubeconfig {file}; correct it")
    if certificate and key:
        _present(tls, certificate, key)
    elif not user.get("token") and token_file is None:
        raise NoCluster(f"finds neither a token nor a client certificate in the kubeconfig {file}; add one")
    return Access(url, tls, str(context.get("namespace") or "default"), user.get("token"), token_file)


def _named(entries: Any, name: str) -> Any:
    return next(one for one in entries if one["name"] == name)


def _material(entry: Mapping[str, Any], name: str, folder: Path) -> str | None:
    """PEM that is in the file itself, or that it names."""
    if entry.get(f"{name}-data"):
        return base64.b64decode(entry[f"{name}-data"], validate=True).decode("ascii")
    return _text_of(folder / entry[name]) if entry.get(name) else None


def _trusting(authority: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cadata=authority)
    except (ssl.SSLError, ValueError):
        raise NoCluster("cannot use the certificates of the cluster's authority; check them") from None


def _present(tls: ssl.SSLContext, certificate: str, key: str) -> None:
    """Python takes a key from a file only; nobody else can read this one, and it is gone at once."""
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as pem:
        pem.write(f"{certificate}\n{key}\n")
        pem.flush()
        try:
            tls.load_cert_chain(pem.name)
        except (ssl.SSLError, ValueError):
            raise NoCluster("cannot use the client certificate of the kubeconfig; check it") from None


def _text_of(file: Path) -> str:
    try:
        return content(file, _LARGEST).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        raise NoCluster(f"cannot read {file}; check its permissions") from None
