"""Which handler answers a path. Paths are matched as they came, so that a name may hold an encoded slash."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final
from urllib.parse import unquote_to_bytes

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope

from icestream.rest.counted_requests import ROUTE
from icestream.rest.exchange import Handler

_AUTHORITY: Final = re.compile(r"^https?://[^/]*(?=/)", re.IGNORECASE)
_NOT_AN_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ENCODED_DOTS: Final = re.compile(r"(?:\.|%2[eE]){1,2}")
# In the order in which Kafka Connect names them.
_VERBS: Final = ("HEAD", "POST", "DELETE", "GET", "OPTIONS", "PUT", "PATCH")


class BadPath(Exception):
    """The path is not one that HTTP allows, or could be read in two ways."""


class PathRoute(Route):
    """One path with all its verbs; `{name}` in it takes one segment."""

    def __init__(
        self, path: str, endpoint: Callable[[Request], Awaitable[Response]], verbs: Sequence[str]
    ) -> None:
        super().__init__(path, endpoint, methods=verbs)
        self._template = path.strip("/").split("/")

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] != "http":
            return Match.NONE, {}
        if b"#" in scope["query_string"]:
            raise BadPath("The query has a '#'; write %23")
        parameters = _parameters(self._template, segments_of(raw_path(scope)))
        if parameters is None:
            return Match.NONE, {}
        child: Scope = {"endpoint": self.endpoint, "path_params": parameters, ROUTE: self.path}
        is_known = self.methods is None or scope["method"] in self.methods
        return (Match.FULL if is_known else Match.PARTIAL), child


def by_path(table: Mapping[tuple[str, str], Handler]) -> dict[str, dict[str, Handler]]:
    found: dict[str, dict[str, Handler]] = {}
    for (verb, path), handler in table.items():
        found.setdefault(path, {})[verb] = handler
    return found


def allowed_verbs(verbs: Iterable[str]) -> list[str]:
    """What OPTIONS answers for a path with these verbs."""
    known = {*verbs, "OPTIONS"} | ({"HEAD"} if "GET" in verbs else set())
    return [verb for verb in _VERBS if verb in known]


def raw_path(scope: Scope) -> str:
    """The path as it was sent, still encoded."""
    raw: bytes = scope["raw_path"]
    # A whole URL is how one speaks to a proxy, and allowed everywhere.
    return _AUTHORITY.sub("", raw.decode("ascii", errors="replace"))


def segments_of(raw_path: str) -> list[str]:
    """The parts between the slashes, decoded; a trailing slash and `;name=value` do not count."""
    if "#" in raw_path:
        # What comes after it is for browsers alone; a path that two readers cut in two places is an attack.
        raise BadPath("The path has a '#'; write %23")
    if not raw_path.startswith("/"):
        # Put behind the address of another worker, it would be part of its port or of its host.
        raise BadPath("The path does not begin with a slash")
    raw = raw_path.removeprefix("/").removesuffix("/")
    if not raw:
        if raw_path.startswith("//"):
            raise BadPath("The path has an empty segment")
        return [""]
    return [_decoded(segment) for segment in raw.split("/")]


def _decoded(raw: str) -> str:
    if not raw:
        raise BadPath("The path has an empty segment")
    if _ENCODED_DOTS.fullmatch(raw) and "%" in raw:
        raise BadPath(f"The path has the ambiguous segment '{raw}'")
    if "\\" in raw or _NOT_AN_ESCAPE.search(raw):
        raise BadPath(f"The path has a character that must be encoded in '{raw}'")
    try:
        text = unquote_to_bytes(raw.partition(";")[0]).decode()
    except UnicodeDecodeError:
        raise BadPath(f"The path is not UTF-8 in '{raw}'") from None
    if any(ord(character) < 32 or ord(character) == 127 for character in text):
        raise BadPath(f"The path has a control character in '{raw}'")
    return text


def _parameters(template: Sequence[str], segments: Sequence[str]) -> dict[str, str] | None:
    if len(template) != len(segments):
        return None
    parameters: dict[str, str] = {}
    for part, segment in zip(template, segments, strict=True):
        if part.startswith("{"):
            parameters[part.strip("{}")] = segment
        elif part != segment:
            return None
    return parameters
