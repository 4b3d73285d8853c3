"""`/metrics`: on REST, where REST's login holds for it, and on listeners of its own, where nobody logs in.

An answer is made in a thread, few at a time: whoever scrapes a worker must not hold up those who steer it.
"""

from __future__ import annotations

from typing import Final

import anyio
import anyio.to_thread
from prometheus_client.registry import CollectorRegistry
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from icestream.cluster.settings.metrics_settings import LISTENERS, MetricsConfig
from icestream.cluster.settings.rest_settings import RestConfig
from icestream.metrics.exposition import exposition
from icestream.rest.server import Bound, RestServer, bind, serve_app

PATH: Final = "/metrics"
_AT_ONCE: Final = 2
_MOST_WAITING: Final = 16
_MOST_NAMES: Final = 100


class _Scrapes:
    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._limiter: anyio.CapacityLimiter | None = None
        self._under_way = 0

    async def answer(self, request: Request) -> Response:
        if self._under_way >= _AT_ONCE + _MOST_WAITING:
            return Response("too many scrapes at once\n", 503, {"Retry-After": "1"}, "text/plain")
        # Belongs to the event loop that is there now, and was not when this was made.
        self._limiter = self._limiter or anyio.CapacityLimiter(_AT_ONCE)
        self._under_way += 1
        try:
            found = await anyio.to_thread.run_sync(
                exposition,
                self._registry,
                request.headers.get("accept", ""),
                request.headers.get("accept-encoding", ""),
                request.query_params.getlist("name[]")[:_MOST_NAMES],
                limiter=self._limiter,
            )
        finally:
            self._under_way -= 1
        headers = {"Vary": "Accept, Accept-Encoding", "Cache-Control": "no-store"}
        if found.is_gzip:
            headers["Content-Encoding"] = "gzip"
        # The type has its character set, which Starlette would add a second time.
        return Response(found.body, headers={**headers, "Content-Type": found.content_type})


def metrics_route(registry: CollectorRegistry) -> Route:
    return Route(PATH, _Scrapes(registry).answer, methods=["GET"])


def bind_metrics(config: MetricsConfig) -> Bound | None:
    """Listen wherever the config says, if it says so; nothing answers yet."""
    return bind(RestConfig(listeners=config.listeners), LISTENERS) if config.listeners else None


def serve_metrics(registry: CollectorRegistry, config: MetricsConfig, bound: Bound) -> RestServer:
    """Answer there from now on; `stop` closes the sockets too."""
    return serve_app(Starlette(routes=[metrics_route(registry)]), bound, config.tls)
