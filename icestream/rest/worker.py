"""Handlers about the worker itself: `/` and `/health`."""

from __future__ import annotations

from dataclasses import asdict

from icestream.cluster.service import ConnectorService
from icestream.rest.exchange import Answer, Call, Handler

_HEALTH_CODES = {"healthy": 200, "starting": 503, "unhealthy": 500}


def read_server(service: ConnectorService, call: Call) -> Answer:
    return Answer(body=asdict(service.server()))


def read_health(service: ConnectorService, call: Call) -> Answer:
    health = service.health()
    return Answer(_HEALTH_CODES[health.status], asdict(health))


ROUTES: dict[tuple[str, str], Handler] = {
    ("GET", "/"): read_server,
    ("GET", "/health"): read_health,
}
