"""Kafka Connect's REST API as a Starlette application; handlers are synchronous, in a thread pool."""

from __future__ import annotations

import functools
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import anyio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from icestream.api.errors import NotLeader
from icestream.cluster.service import ConnectorService
from icestream.metrics.requests import RequestCounts
from icestream.rest import admin, connectors, offsets, plugins
from icestream.rest.answering import Refused, body_of, in_a_thread, is_readable, original_of, response_of
from icestream.rest.errors import error_body, error_from, http_error_body
from icestream.rest.exchange import JSON_TYPE, Answer, Call, Handler, TopicTracking, answer_type_of
from icestream.rest.forward import Clients, Original, forwarded, plain_client
from icestream.rest.routing import BadPath, PathRoute, allowed_verbs, by_path, raw_path

_LOG = logging.getLogger(__name__)
REQUEST_TIMEOUT_S: Final = 90.0
_THREADS: Final = 40
TABLE: Final[Mapping[tuple[str, str], Handler]] = (
    connectors.ROUTES | offsets.ROUTES | plugins.ROUTES | admin.ROUTES
)
Endpoint = Callable[[Request], Awaitable[Response]]
_MAY_WAIT_LONG: Final = frozenset(offsets.ROUTES.values()) | {plugins.validate_config}


@dataclass(frozen=True)
class ApiOptions:
    """What the worker's config says about the API."""

    topics: TopicTracking = field(default_factory=TopicTracking)
    clients: Clients = plain_client
    routes: tuple[BaseRoute, ...] = ()
    """Besides those of Kafka Connect; they ask for a login if these do."""
    timeout: float = REQUEST_TIMEOUT_S
    requests: RequestCounts = field(default_factory=RequestCounts)
    """Told of every request."""


def build_app(service: ConnectorService, options: ApiOptions | None = None) -> Starlette:
    """The whole API over one service, a route for each path."""
    options = options or ApiOptions()
    api = _Api(service, options)
    app = Starlette(
        routes=[
            *(
                PathRoute(path, api.endpoint(verbs), allowed_verbs(verbs))
                for path, verbs in by_path(TABLE).items()
            ),
            *options.routes,
        ],
        exception_handlers={
            HTTPException: _http_error,
            Refused: _refusal,
            BadPath: _bad_path,
            ClientDisconnect: _gone,
        },
    )
    app.router.redirect_slashes = False
    return app


class _Api:
    def __init__(self, service: ConnectorService, options: ApiOptions) -> None:
        self._service = service
        self._options = options
        self._limiters: dict[str, anyio.CapacityLimiter] = {}

    def endpoint(self, verbs: Mapping[str, Handler]) -> Endpoint:
        allowed = allowed_verbs(verbs)

        async def endpoint(request: Request) -> Response:
            if request.method == "OPTIONS":
                headers = {"Allow": ",".join(allowed), "Content-Type": "text/plain"}
                return Response(", ".join(allowed), headers=headers)
            return await self._respond(verbs["GET" if request.method == "HEAD" else request.method], request)

        return endpoint

    async def _respond(self, handler: Handler, request: Request) -> Response:
        readable = is_readable(request)
        answer_type = answer_type_of(request.headers.get("accept", ""))
        if answer_type is None:
            raise Refused(406)
        body = await body_of(request)
        if body and not readable:
            raise Refused(415, is_typed=True)
        original = original_of(request, body)
        call = Call(request.path_params, original.query, body, original.base_url, self._options.topics)
        return response_of(await self._answer(handler, call, original), answer_type)

    async def _answer(self, handler: Handler, call: Call, original: Original) -> Answer:
        work = functools.partial(self._answer_in_thread, handler, call, original)
        return await in_a_thread(work, self._limiter(handler, original.verb), self._options.timeout)

    def _answer_in_thread(self, handler: Handler, call: Call, original: Original) -> Answer:
        try:
            return handler(self._service, call)
        except NotLeader as elsewhere:
            return forwarded(original, elsewhere.url, self._options.clients)
        except Exception as error:  # the REST edge
            return Answer(*error_from(error, original.raw_path))

    def _limiter(self, handler: Handler, verb: str) -> anyio.CapacityLimiter:
        """Threads of their own for reads, changes and what asks other systems: none starves the others."""
        kind = "long" if handler in _MAY_WAIT_LONG else "read" if verb in ("GET", "HEAD") else "change"
        if kind not in self._limiters:
            self._limiters[kind] = anyio.CapacityLimiter(_THREADS)
        return self._limiters[kind]


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return response_of(Answer(error.status_code, http_error_body(error.status_code)), None)


async def _refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return response_of(error.answer, error.media_type)


async def _bad_path(request: Request, error: Exception) -> Response:
    return response_of(Answer(400, error_body(400, str(error))), JSON_TYPE)


async def _gone(request: Request, error: Exception) -> Response:
    """The client went away before it had sent its body: nobody reads this, and nothing is wrong here."""
    _LOG.debug("the client of %s %s went away", request.method, raw_path(request.scope))
    return Response(status_code=400)
