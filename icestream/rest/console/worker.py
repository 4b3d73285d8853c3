"""Handlers about the worker and all of its connectors: `me`, `overview`."""

from __future__ import annotations

from typing import Final

from icestream import __version__
from icestream.cluster.console_settings import Level
from icestream.rest.console.exchange import Asked, Console, Route, Table
from icestream.rest.console.overview import overview
from icestream.rest.exchange import Answer


def read_me(console: Console, asked: Asked) -> Answer:
    """Who looks, at which worker, and what is switched off here."""
    service = console.service
    server = service.server()
    off = [] if console.has_loggers else ["loggers"]
    off += [] if console.config.console.shows_payloads else ["payloads"]
    return Answer(
        body={
            "user": asked.user,
            "level": asked.level.name.lower(),
            "mode": "distributed" if service.membership.is_shared else "standalone",
            "worker": service.worker_id,
            "cluster_id": server.kafka_cluster_id,
            "versions": {"icestream": __version__, "connect": server.version},
            "health": {"status": service.health().status, "message": service.health().message},
            "off": off,
            "assets": console.assets_version(),
            "at": console.wall_ms(),
        }
    )


def read_overview(console: Console, asked: Asked) -> Answer:
    return Answer(body=overview(console))


ROUTES: Final[Table] = {
    ("GET", "me"): Route(read_me, Level.VIEW),
    ("GET", "overview"): Route(read_overview, Level.VIEW),
}
