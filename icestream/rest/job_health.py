"""`/live`, `/ready` and `/metrics` of a job that runs on its own, for Kubernetes and Prometheus. Started by
`icestream job-manager`.

Nothing can be changed here, and nothing is told that a config holds: whoever reaches the port may ask.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from icestream.cluster.rest_settings import Listener, RestConfig
from icestream.rest.job_metrics import CONTENT_TYPE, JobFacts, metrics_text
from icestream.rest.server import RestServer, bind, serve_app


@dataclass(frozen=True)
class Answers:
    """What the job says of itself; each is asked at every request and must not wait."""

    alive: Callable[[], str | None]
    """None, or why the process should be replaced."""
    ready: Callable[[], str | None]
    """None, or what the job waits for."""
    facts: Callable[[], JobFacts]


def serve_health(host: str, port: int, answers: Answers) -> RestServer:
    """Answer at this address from now on; port 0 takes a free one."""
    return serve_app(health_app(answers), bind(RestConfig(listeners=(Listener("http", host, port),))))


def health_app(answers: Answers) -> Starlette:
    async def live(request: Request) -> Response:
        return _said("alive", answers.alive())

    async def ready(request: Request) -> Response:
        return _said("ready", answers.ready())

    async def metrics(request: Request) -> Response:
        return PlainTextResponse(metrics_text(answers.facts()), media_type=CONTENT_TYPE)

    return Starlette(routes=[Route("/live", live), Route("/ready", ready), Route("/metrics", metrics)])


def _said(well: str, problem: str | None) -> Response:
    if problem is None:
        return JSONResponse({"status": well})
    return JSONResponse({"status": f"not {well}", "message": problem}, status_code=503)
