"""The console as Starlette's routes: the page, its files, its API. `rest/server.py` adds them to REST's."""

from __future__ import annotations

import functools
import gzip
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import anyio
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Receive, Scope, Send

from icestream.api.errors import NotFoundError, NotLeader
from icestream.cluster.configs.masking import Masks
from icestream.cluster.service import ConnectorService
from icestream.cluster.settings.console_settings import Level
from icestream.cluster.settings.rest_settings import RestConfig
from icestream.rest.answering import Refused, body_of, dumped, in_a_thread, is_readable, original_of
from icestream.rest.audit_log import IN_QUERY, USER
from icestream.rest.console.access import api_refusal, level_refusal, own_names_of, page_refusal
from icestream.rest.console.assets import Assets
from icestream.rest.console.exchange import API, Asked, Console, Route, wall_ms
from icestream.rest.console.overview import Overview
from icestream.rest.console.peers import Peers, hops_of, level_of
from icestream.rest.console.routes import TABLE
from icestream.rest.console.stream import MOST_STREAMS, Streams
from icestream.rest.errors import error_body, error_from
from icestream.rest.exchange import JSON_TYPE, MAX_NAME, Answer, TopicTracking
from icestream.rest.forward import Clients, Original, plain_client
from icestream.rest.headers import NOT_FOR_OTHERS, adding
from icestream.rest.routing import PathRoute, raw_path
from icestream.rest.security import BasicAuthentication

CHALLENGE: Final = 'Basic realm="Icestream", charset="UTF-8"'
_THREADS: Final = 20
_TIMEOUT_S: Final = 90.0
_PACKED_FROM: Final = 1024
"""Bytes: less is not worth packing."""
_PACKING: Final = 5
_FOR_EVER: Final = "public, max-age=31536000, immutable"
_HEADERS: Final[Mapping[str, str]] = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
Endpoint = Callable[[Request], Awaitable[Response]]
Refusal = Callable[[Mapping[str, str], RestConfig, tuple[str, ...]], str | None]


@dataclass(frozen=True)
class SiteOptions:
    """What the worker's REST server knows besides its config."""

    topics: TopicTracking = field(default_factory=TopicTracking)
    clients: Clients = plain_client
    timeout: float = _TIMEOUT_S


class Site:
    """The console of one worker, on whatever listeners it has."""

    def __init__(
        self,
        service: ConnectorService,
        config: RestConfig,
        options: SiteOptions | None = None,
        assets: Assets | None = None,
    ) -> None:
        self._assets = assets or Assets()
        self._config = config
        self._options = options or SiteOptions()
        self._own_names = own_names_of(config)
        self._limiters: dict[str, anyio.CapacityLimiter] = {}
        self._service = service
        # However few connections there may be: most of them are for others.
        self._streams = Streams(lambda: self.console, min(MOST_STREAMS, config.connections.most // 4))

    @functools.cached_property
    def console(self) -> Console:
        """Made when somebody looks."""
        service = self._service
        peers = Peers(service.membership, wall_ms, self._options.clients)
        return Console(
            service,
            Overview(service, wall_ms, peers.rows),
            peers,
            self._config,
            assets_version=lambda: self._assets.version,
            tell=self._streams.tell,
        )

    def close(self) -> None:
        """End all streams: a server that stops waits for its answers."""
        self._streams.close()

    def routes(self) -> list[BaseRoute]:
        """None if the console is switched off."""
        if self._config.console.level is Level.OFF:
            return []
        page = self._guarded("/console", self._page, ["GET", "HEAD"], page_refusal)
        # Outside of the login: a browser that is asked at /console would send its password to all of REST.
        page.app = _Redirect(page.app)
        folders = ("/console/a/{version}/{file}", "/console/a/{version}/{folder}/{file}")
        files = [_ConsoleRoute(path, self._file, ["GET", "HEAD"]) for path in folders]
        by_path: dict[str, dict[str, Route]] = {}
        for (verb, path), known in TABLE.items():
            by_path.setdefault(path, {})[verb] = known
        api = [
            self._guarded(API + path, self._endpoint(verbs), _with_head(verbs), api_refusal)
            for path, verbs in by_path.items()
        ]
        found: list[BaseRoute] = []
        for route in (page, *files, *api):
            route.app = _WithHeaders(route.app)
            found.append(route)
        return found

    def _guarded(self, path: str, endpoint: Endpoint, verbs: list[str], refusal: Refusal) -> PathRoute:
        """What is refused to everybody is refused first: nobody is asked for a password in vain."""
        route = _ConsoleRoute(path, endpoint, verbs)
        if self._config.credentials is not None:
            route.app = BasicAuthentication(route.app, self._config.credentials, CHALLENGE)
        route.app = _Refusing(route.app, lambda headers: refusal(headers, self._config, self._own_names))
        return route

    # The page and its files

    async def _page(self, request: Request) -> Response:
        headers = {"cache-control": "no-cache", "etag": f'"{self._assets.version}"'}
        if request.headers.get("if-none-match") == headers["etag"]:
            return Response(status_code=304, headers=headers)
        return Response(self._assets.index, headers=headers, media_type="text/html")

    async def _file(self, request: Request) -> Response:
        parts = request.path_params
        path = "/".join(parts[key] for key in ("folder", "file") if key in parts)
        asset = self._assets.find(parts["version"], path)
        if asset is None:
            raise Refused(404)
        headers = {"cache-control": _FOR_EVER, "content-type": asset.type, "vary": "accept-encoding"}
        if not _takes_packed(request):
            return Response(asset.plain, headers=headers)
        return Response(asset.packed, headers={**headers, "content-encoding": "gzip"})

    # The API

    def _endpoint(self, verbs: Mapping[str, Route]) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            route = verbs["GET" if request.method == "HEAD" else request.method]
            return await self._respond(route, request)

        return endpoint

    async def _respond(self, route: Route, request: Request) -> Response:
        level = level_of(request.headers, self.console.level)
        if level is None:
            raise Refused(400, "X-Icestream-Level is sent by workers only", is_typed=True)
        refusal = level_refusal(route.level, level)
        if refusal is not None:
            raise Refused(403, refusal, is_typed=True)
        hops = hops_of(request.headers)
        if hops is None:
            raise Refused(400, "X-Icestream-Hops is 1 or 2, and sent by workers only", is_typed=True)
        if route.is_stream:
            return await self._stream(request)
        readable = is_readable(request)
        body = await body_of(request)
        if body and not readable:
            raise Refused(415, is_typed=True)
        original = original_of(request, body)
        asked = Asked(
            {},
            original.query,
            body,
            original.base_url,
            self._options.topics,
            level=level,
            user=request.scope.get(USER, ""),
            headers=dict(request.headers),
            hops=hops,
        )
        return _json(await self._answer(route, asked, original), request)

    async def _stream(self, request: Request) -> Response:
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        connector = request.query_params.get("connector", "")
        if len(connector) > MAX_NAME:
            raise Refused(400, "The name of the connector is too long", is_typed=True)
        opened = await self._streams.open(
            request.headers.get("last-event-id", ""), request.headers.get("authorization", ""), connector
        )
        if isinstance(opened, str):
            raise Refused(503, opened, is_typed=True)
        return opened

    async def _answer(self, route: Route, asked: Asked, original: Original) -> Answer:
        work = functools.partial(self._answer_in_thread, route, asked, original)
        return await in_a_thread(work, self._limiter(route, original.verb), self._options.timeout)

    def _answer_in_thread(self, route: Route, asked: Asked, original: Original) -> Answer:
        peers = self.console.peers
        try:
            if route.at_owner and asked.optional("connector"):
                owner = peers.owner_of(asked.connector)
                # One without a console has nothing to say here; what it has published is known.
                if owner is not None and owner.console:
                    whose = f"Connector '{asked.connector}' is on"
                    return peers.relayed(original, owner.console, asked, whose)
            return route.handler(self.console, asked)
        except NotLeader as elsewhere:
            leader = peers.console_of(elsewhere.url)
            return peers.relayed(original, leader, asked, "The group is led by")
        except Exception as error:  # the console's edge
            code, body = error_from(error, original.raw_path)
            # What others answered may quote the config.
            return Answer(code, {**body, "message": self._masks(asked).text(str(body["message"]))})

    def _masks(self, asked: Asked) -> Masks:
        names = asked.query.get("connector", [])
        try:
            return self._service.masks(names[0]) if names else Masks()
        except NotFoundError:
            return Masks()

    def _limiter(self, route: Route, verb: str) -> anyio.CapacityLimiter:
        """Threads of their own: none starves the others, and the console never starves REST."""
        kind = "long" if route.waits_long else "read" if verb in ("GET", "HEAD") else "change"
        if kind not in self._limiters:
            self._limiters[kind] = anyio.CapacityLimiter(_THREADS)
        return self._limiters[kind]


class _ConsoleRoute(PathRoute):
    """Tells what is around it that pages of other origins have no business here."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child = super().matches(scope)
        return match, ({**child, NOT_FOR_OTHERS: True, IN_QUERY: True} if match is not Match.NONE else child)


class _WithHeaders:
    """Adds what keeps browsers from doing more with an answer than we want."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, adding(send, _add_headers))


def _add_headers(headers: MutableHeaders) -> None:
    for name, value in _HEADERS.items():
        headers[name] = value
    headers.setdefault("cache-control", "no-store")


class _Refusing:
    """Answers 403 and why, instead of the route."""

    def __init__(self, app: ASGIApp, refusal: Callable[[Mapping[str, str]], str | None]) -> None:
        self._app = app
        self._refusal = refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        why = self._refusal(Headers(scope=scope))
        app = self._app if why is None else Response(dumped(error_body(403, why)), 403, media_type=JSON_TYPE)
        await app(scope, receive, send)


class _Redirect:
    """`/console` to `/console/`, or the page's addresses, which begin where it is, would be wrong."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_folder = raw_path(scope).endswith("/")
        # Relative, for proxies that put us below a folder of theirs.
        app = self._app if is_folder else Response(status_code=307, headers={"location": "console/"})
        await app(scope, receive, send)


def _with_head(verbs: Mapping[str, Route]) -> list[str]:
    return [*verbs, "HEAD"] if "GET" in verbs else list(verbs)


def _json(answer: Answer, request: Request) -> Response:
    headers = dict(answer.headers)
    if answer.body is None:
        return Response(status_code=answer.status, headers=headers)
    content: Any = dumped(answer.body)
    if len(content) >= _PACKED_FROM and _takes_packed(request):
        content = gzip.compress(content, _PACKING, mtime=0)
        headers |= {"content-encoding": "gzip", "vary": "accept-encoding"}
    return Response(content, answer.status, headers, media_type=JSON_TYPE)


def _takes_packed(request: Request) -> bool:
    return "gzip" in request.headers.get("accept-encoding", "")
