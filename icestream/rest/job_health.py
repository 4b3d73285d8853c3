"""`/live`, `/ready` and `/metrics` of a job that runs on its own, for Kubernetes and Prometheus. Started by
`icestream job-manager`.

Nothing can be changed here, and nothing is told that a config holds: whoever reaches the port may ask.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from starlette.applications import Starlette

from icestream.cluster.liveness import Check, Checked
from icestream.cluster.settings.rest_settings import Listener, RestConfig
from icestream.metrics.collector import WorkerCollector
from icestream.metrics.facts import Facts
from icestream.metrics.processes import ProcessFamilies
from icestream.rest.metrics_answers import metrics_route
from icestream.rest.probe_answers import probe_routes
from icestream.rest.server import RestServer, bind, serve_app


@dataclass(frozen=True)
class Answers:
    """What the job says of itself; each is asked at every request and must not wait."""

    alive: Callable[[], str | None]
    """None, or why the process should be replaced."""
    ready: Callable[[], str | None]
    """None, or what the job waits for."""
    facts: Facts
    """For metrics."""


def serve_health(host: str, port: int, answers: Answers) -> RestServer:
    """Answer at this address from now on; port 0 takes a free one."""
    return serve_app(health_app(answers), bind(RestConfig(listeners=(Listener("http", host, port),))))


def health_app(answers: Answers) -> Starlette:
    def live() -> Checked:
        return _checked(answers.alive(), "The job can do its work.")

    def ready() -> Checked:
        return _checked(answers.ready(), "The job is at work.")

    collector = WorkerCollector(answers.facts)
    collector.add(ProcessFamilies())
    return Starlette(routes=[*probe_routes(live, ready), metrics_route(collector.registry)])


def _checked(problem: str | None, well: str) -> Checked:
    return Checked((Check("job", problem is None, problem or well),), well)
