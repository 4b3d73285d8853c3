"""Names of images: `registry.example.com:5000/team/worker:1.0`. Used by the operator and `icestream image`.

Only what registries allow is taken: names go into addresses of HTTP requests and into pods.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from icestream.api.errors import PreconditionError

DOCKER_HUB: Final = "docker.io"
_HUB_API: Final = "registry-1.docker.io"
_HOST: Final = re.compile(
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*"
    r"|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?"
)
_PART: Final = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REPOSITORY: Final = re.compile(rf"{_PART}(?:/{_PART})*")
_TAG: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_LONGEST: Final = 255
LATEST: Final = "latest"


@dataclass(frozen=True)
class Target:
    """Where an image goes."""

    host: str
    """With its port."""
    repository: str
    tag: str
    is_plain_http: bool = False

    @property
    def api_host(self) -> str:
        """Who answers requests: Docker Hub has another host for them than in names."""
        return _HUB_API if self.host.lower() in (DOCKER_HUB, f"index.{DOCKER_HUB}") else self.host

    def by_digest(self, digest: str) -> str:
        """What pods name: tags move, digests do not."""
        return f"{self.host}/{self.repository}@{digest}"

    def __str__(self) -> str:
        return f"{self.host}/{self.repository}:{self.tag}"


def target_in(registry: str | None, name: str, *, is_insecure: bool) -> Target:
    """The place of an image in a registry. `registry` may have a scheme and a path; without it, the name has
    the host."""
    scheme, address = _scheme(registry or "")
    if scheme == "http" and not is_insecure:
        raise PreconditionError(
            f"the registry '{registry}' is reached by plain HTTP, which has to be asked for: set insecure"
        )
    host, _, path = address.partition("/")
    first, _, rest = name.partition("/")
    names_host = bool(rest) and (bool(re.search(r"[.:\[]", first)) or first == "localhost")
    if not host:
        if not names_host:
            raise PreconditionError(f"'{name}' names no registry: write it as registry.example.com/{name}")
        host, name = first, rest
    elif names_host:
        if first.lower() != host.lower():
            raise PreconditionError(f"'{name}' is not in the registry '{host}', which the images go to")
        name = rest
        if path and name.startswith(f"{path}/"):
            path = ""
    repository, _, tag = name.partition(":")
    repository = f"{path}/{repository}" if path else repository
    if not _HOST.fullmatch(host) or "@" in name:
        raise PreconditionError(
            f"'{host}/{name}' is no name for an image: registry.example.com/worker:1.0 is"
        )
    if len(repository) > _LONGEST or not _REPOSITORY.fullmatch(repository):
        raise PreconditionError(
            f"'{repository[:100]}' is no name of a repository: small letters, digits, and . _ - between them"
        )
    tag = tag or LATEST
    if not _TAG.fullmatch(tag):
        raise PreconditionError(f"'{tag[:100]}' is no tag: letters, digits, and . _ -, up to 128 of them")
    return Target(host, repository, tag, is_plain_http=is_insecure and scheme != "https")


def _scheme(registry: str) -> tuple[str, str]:
    scheme, separator, rest = registry.partition("://")
    if not separator:
        return "", registry.strip("/")
    if scheme not in ("http", "https"):
        raise PreconditionError(
            f"'{registry[:100]}' is no address of a registry: https://registry.example.com is"
        )
    return scheme, rest.strip("/")


def is_same_image(one: str, other: str) -> bool:
    """Whether two tags of archives mean one image: engines write the registry or leave it out."""
    return _plain(one) == _plain(other)


def _plain(tag: str) -> str:
    for start in (f"{DOCKER_HUB}/library/", f"{DOCKER_HUB}/", "localhost/"):
        tag = tag.removeprefix(start)
    return tag if ":" in tag.rpartition("/")[2] or "@" in tag else f"{tag}:{LATEST}"
