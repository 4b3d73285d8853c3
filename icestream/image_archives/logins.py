"""Logins to registries from a Docker `config.json`, as Secrets of type `kubernetes.io/dockerconfigjson` hold
it. Programs that it names (`credHelpers`, `credsStore`) are not run."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from icestream.api.errors import PreconditionError
from icestream.api.nesting import read_json
from icestream.image_archives.references import DOCKER_HUB

_HUB_NAMES: Final = frozenset({"index.docker.io", "registry-1.docker.io", DOCKER_HUB})


@dataclass(frozen=True)
class Login:
    user: str
    password: str = field(repr=False)


def login_for(config: bytes, host: str, repository: str) -> Login | None:
    """The login that the config has for exactly this registry; None: none. An entry with a path is for the
    repositories below it, and goes before one without."""
    best: tuple[int, Mapping[str, Any]] | None = None
    for name, entry in _auths(config).items():
        at, _, path = name.removeprefix("https://").removeprefix("http://").partition("/")
        path = "" if path.strip("/") in ("v1", "v2") else path.strip("/")
        is_below = not path or repository == path or repository.startswith(f"{path}/")
        if _plain(at) == _plain(host) and is_below and (best is None or len(path) > best[0]):
            best = len(path), entry
    return _login(best[1], host) if best else None


def _plain(host: str) -> str:
    return DOCKER_HUB if host.lower() in _HUB_NAMES else host.lower().removesuffix(":443")


def _auths(config: bytes) -> Mapping[str, Mapping[str, Any]]:
    try:
        auths = read_json(config)["auths"]
        if all(isinstance(entry, dict) for entry in auths.values()):
            return dict(auths)
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    raise PreconditionError(
        "the registry's login is no config.json of Docker: `kubectl create secret docker-registry` makes one"
    ) from None


def _login(entry: Mapping[str, Any], host: str) -> Login | None:
    user, password = entry.get("username"), entry.get("password")
    if isinstance(user, str) and isinstance(password, str):
        return _checked(user, password, host)
    packed = entry.get("auth")
    if isinstance(packed, str) and packed:
        try:
            user, colon, password = base64.b64decode(packed, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            colon = ""
        if colon:
            return _checked(str(user), str(password), host)
        raise PreconditionError(f"the login for '{host}' is not the base64 of user:password: make it anew")
    if entry.get("identitytoken") or entry.get("registrytoken"):
        raise PreconditionError(f"the login for '{host}' is a token; only user and password are supported")
    return None


def _checked(user: str, password: str, host: str) -> Login:
    if ":" in user or not (user + password).isprintable():
        raise PreconditionError(f"the login for '{host}' has signs that no login can have: make it anew")
    return Login(user, password)
