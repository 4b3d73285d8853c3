"""Handlers about the worker itself: `/`, `/health` and `/admin/loggers`."""

from __future__ import annotations

from dataclasses import asdict

from icestream.cluster.logger_levels import level_number
from icestream.cluster.service import ConnectorService
from icestream.rest.errors import BadRequest, MalformedBody
from icestream.rest.exchange import Answer, Call, Handler

_HEALTH_CODES = {"healthy": 200, "starting": 503, "unhealthy": 500}


def read_server(service: ConnectorService, call: Call) -> Answer:
    return Answer(body=asdict(service.server()))


def read_health(service: ConnectorService, call: Call) -> Answer:
    health = service.health()
    return Answer(_HEALTH_CODES[health.status], asdict(health))


def list_loggers(service: ConnectorService, call: Call) -> Answer:
    return Answer(body={name: asdict(level) for name, level in service.loggers().items()})


def read_logger(service: ConnectorService, call: Call) -> Answer:
    return Answer(body=asdict(service.logger(call.path["logger"])))


def set_logger(service: ConnectorService, call: Call) -> Answer:
    """Any scope but `cluster` is that of this worker."""
    level = call.config().get("level")
    if level is None:
        raise BadRequest("Desired 'level' parameter was not specified in request.")
    if not level:
        raise MalformedBody("Illegal null or empty Level name.")
    # Before the scope: a level that no worker knows must not reach the others.
    level_number(level)
    is_cluster = (call.query.get("scope") or ["worker"])[0].lower() == "cluster"
    changed = service.set_logger(call.path["logger"], level, "cluster" if is_cluster else "worker")
    return Answer(204) if is_cluster else Answer(body=changed)


ROUTES: dict[tuple[str, str], Handler] = {
    ("GET", "/"): read_server,
    ("GET", "/health"): read_health,
    ("GET", "/admin/loggers"): list_loggers,
    ("GET", "/admin/loggers/{logger}"): read_logger,
    ("PUT", "/admin/loggers/{logger}"): set_logger,
}
