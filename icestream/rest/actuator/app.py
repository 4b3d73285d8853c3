"""The routes of `/actuator`, over what a worker knows of itself. Started by the command of the worker.

Nothing can be changed here and nobody logs in; answers are made in threads, few at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import anyio
import anyio.to_thread
from prometheus_client.registry import CollectorRegistry
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from icestream.rest.actuator import env, metric_answers
from icestream.rest.actuator.health import WorkerHealth
from icestream.rest.actuator.meters import Measured
from icestream.rest.actuator.shapes import answer, missing

_AT_ONCE: Final = 4
_MOST_NAMES: Final = 100
_T = TypeVar("_T")


@dataclass(frozen=True)
class Told:
    """What the answers are made of; each is asked at every request."""

    health: WorkerHealth
    measured: Callable[[], Sequence[Measured]]
    connectors: Callable[[], Mapping[str, Mapping[str, object]]]
    worker_metrics: CollectorRegistry | None = None
    env: env.Sources | None = field(default=None, repr=False)
    """None: `/actuator/env` is off."""


def actuator_app(told: Told) -> Starlette:
    endpoints = _Endpoints(told)
    routes = {
        "": endpoints.links,
        "/health": endpoints.health,
        "/health/{path:path}": endpoints.health,
        "/metrics": endpoints.metrics,
        "/metrics/{name}": endpoints.metric,
        "/prometheus": endpoints.prometheus,
        "/connector/metrics": endpoints.connectors,
    }
    if told.env is not None:
        routes |= {"/env": endpoints.env, "/env/{name}": endpoints.env_property}
    app = Starlette(routes=[Route(f"/actuator{path}", one, methods=["GET"]) for path, one in routes.items()])
    app.router.redirect_slashes = False
    return app


class _Endpoints:
    def __init__(self, told: Told) -> None:
        self._told = told
        self._limiter: anyio.CapacityLimiter | None = None

    async def _made(self, make: Callable[[], _T]) -> _T:
        # Belongs to the event loop that is there now, and was not when this was made.
        self._limiter = self._limiter or anyio.CapacityLimiter(_AT_ONCE)
        return await anyio.to_thread.run_sync(make, limiter=self._limiter)

    async def links(self, request: Request) -> Response:
        base = f"{str(request.base_url).rstrip('/')}/actuator"
        paths = {
            "self": "",
            "health": "/health",
            "health-path": "/health/{*path}",
            "metrics": "/metrics",
            "metrics-requiredMetricName": "/metrics/{requiredMetricName}",
            "prometheus": "/prometheus",
            "connector-metrics": "/connector/metrics",
        }
        if self._told.env is not None:
            paths |= {"env": "/env", "env-toMatch": "/env/{toMatch}"}
        links = {name: {"href": f"{base}{path}", "templated": "{" in path} for name, path in paths.items()}
        return answer(request, {"_links": links})

    async def health(self, request: Request) -> Response:
        # Names of destinations have slashes: those of a path may come encoded, or as they are.
        path = [part for part in request.path_params.get("path", "").split("/", 1) if part]
        found = await self._made(lambda: self._told.health.answer(path))
        if found is None:
            return missing()
        status, body = found
        return answer(request, body, status)

    async def metrics(self, request: Request) -> Response:
        return answer(request, await self._made(lambda: metric_answers.names(self._told.measured())))

    async def metric(self, request: Request) -> Response:
        name, tags = request.path_params["name"], request.query_params.getlist("tag")[:_MOST_NAMES]
        try:
            found = await self._made(lambda: metric_answers.details(self._told.measured(), name, tags))
        except metric_answers.BadTag as error:
            return answer(request, {"status": 400, "error": "Bad Request", "message": str(error)}, 400)
        return missing() if found is None else answer(request, found)

    async def prometheus(self, request: Request) -> Response:
        asked = ",".join(request.query_params.getlist("includedNames"))
        included = [name.strip() for name in asked.split(",") if name.strip()][:_MOST_NAMES]
        accept = request.headers.get("accept", "")
        encoding = request.headers.get("accept-encoding", "")
        told = self._told
        found = await self._made(
            lambda: metric_answers.scrape(told.measured(), told.worker_metrics, included, accept, encoding)
        )
        headers = {"Vary": "Accept, Accept-Encoding", "Cache-Control": "no-store"}
        if found.is_gzip:
            headers["Content-Encoding"] = "gzip"
        return Response(found.body, headers={**headers, "Content-Type": found.content_type})

    async def connectors(self, request: Request) -> Response:
        body: Mapping[str, Any] = await self._made(self._told.connectors)
        return answer(request, body)

    async def env(self, request: Request) -> Response:
        return answer(request, env.env(self._told.env or {}))

    async def env_property(self, request: Request) -> Response:
        found = env.property_of(self._told.env or {}, request.path_params["name"])
        return missing() if found is None else answer(request, found)
