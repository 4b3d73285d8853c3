"""`/live`, `/ready` and `/metrics` of a job that runs on its own, for Kubernetes and Prometheus. Started by
`icestream job-manager`.

Nothing can be changed here, and nothing is told that a config holds: whoever reaches the port may ask.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from icestream.cluster.liveness import Check, Checked
from icestream.cluster.rest_settings import Listener, RestConfig
from icestream.rest.job_metrics import CONTENT_TYPE, JobFacts, metrics_text
from icestream.rest.probe_answers import probe_routes
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
    def live() -> Checked:
        return _checked(answers.alive(), "The job can do its work.")

    def ready() -> Checked:
        return _checked(answers.ready(), "The job is at work.")

    async def metrics(request: Request) -> Response:
        return PlainTextResponse(metrics_text(answers.facts()), media_type=CONTENT_TYPE)

    return Starlette(routes=[*probe_routes(live, ready), Route("/metrics", metrics)])


def _checked(problem: str | None, well: str) -> Checked:
    return Checked((Check("job", problem is None, problem or well),), well)
