"""Kafka Connect's REST API as a Starlette application; handlers are synchronous, in a thread pool."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from icestream.cluster.service import ConnectorService
from icestream.rest import connectors, plugins, worker
from icestream.rest.errors import error_from, http_error_body
from icestream.rest.exchange import Answer, Call, Handler

Endpoint = Callable[[Request], Awaitable[Response]]


def build_app(service: ConnectorService) -> Starlette:
    """The whole API over one service."""
    table = worker.ROUTES | connectors.ROUTES | plugins.ROUTES
    routes = [
        Route(path, _endpoint(service, handler), methods=[verb]) for (verb, path), handler in table.items()
    ]
    routes += [
        Route(path, _options(path, table.keys()), methods=["OPTIONS"])
        for path in dict.fromkeys(path for _, path in table)
    ]
    app = Starlette(
        routes=routes,
        middleware=[Middleware(_WithoutTrailingSlash)],
        exception_handlers={HTTPException: _http_error},
    )
    app.router.redirect_slashes = False
    return app


class _WithoutTrailingSlash:
    """`/connectors/` is `/connectors`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and len(scope["path"]) > 1:
            scope = {**scope, "path": scope["path"].rstrip("/") or "/"}
        await self._app(scope, receive, send)


def _endpoint(service: ConnectorService, handler: Handler) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        body = await request.body()
        _check_media_types(request, body)
        query = {name: request.query_params.getlist(name) for name in request.query_params}
        call = Call(request.path_params, query, body, str(request.base_url).rstrip("/"))
        answer = await run_in_threadpool(_answer, handler, service, call, request.url.path)
        return _response(answer)

    return endpoint


def _options(path: str, table: Iterable[tuple[str, str]]) -> Endpoint:
    verbs = [verb for verb, known in table if known == path]
    allowed = (["HEAD"] if "GET" in verbs else []) + [*verbs, "OPTIONS"]

    async def endpoint(request: Request) -> Response:
        return PlainTextResponse(", ".join(allowed), headers={"Allow": ",".join(allowed)})

    return endpoint


def _answer(handler: Handler, service: ConnectorService, call: Call, path: str) -> Answer:
    try:
        return handler(service, call)
    except Exception as error:  # the REST edge
        return Answer(*error_from(error, path))


def _check_media_types(request: Request, body: bytes) -> None:
    sent = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if sent not in ("", "application/json") or (body and not sent):
        raise HTTPException(415)
    accepted = request.headers.get("accept", "*/*")
    kinds = {item.partition(";")[0].strip().lower() for item in accepted.split(",")}
    if not kinds & {"*/*", "application/*", "application/json"}:
        raise HTTPException(406)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _response(Answer(error.status_code, http_error_body(error.status_code)))


def _response(answer: Answer) -> Response:
    headers = dict(answer.headers)
    if answer.body is None:
        return Response(status_code=answer.status, headers=headers)
    return Response(_dumped(answer.body), answer.status, headers, media_type="application/json")


def _dumped(body: Any) -> bytes:
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
