"""Handlers about the worker, its group and all of its connectors."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

from icestream import __version__
from icestream.api.errors import NotFoundError
from icestream.cluster.group.membership import Rebalance
from icestream.cluster.settings.console_settings import Level
from icestream.plugins import all_plugins
from icestream.rest import admin
from icestream.rest.console.exchange import Asked, Console, Route, Table
from icestream.rest.exchange import Answer, Call
from icestream.rest.shapes import definitions_json, plugins_json

_LONGEST_CLASS: Final = 1_000


def read_me(console: Console, asked: Asked) -> Answer:
    """Who looks, at which worker, and what is switched off here."""
    service = console.service
    server, health = service.server(), service.health()
    off = [] if console.has_loggers else ["loggers"]
    off += [] if console.config.console.shows_payloads else ["payloads"]
    return Answer(
        body={
            "user": asked.user,
            "level": asked.level.name.lower(),
            "mode": "distributed" if service.membership.is_shared else "standalone",
            "worker": service.worker_id,
            "workers": max(1, len(service.membership.peers)),
            "cluster_id": server.kafka_cluster_id,
            "versions": {"icestream": __version__, "connect": server.version},
            "health": {"status": health.status, "message": health.message},
            "off": off,
            "assets": console.assets_version(),
            "at": console.wall_ms(),
        }
    )


def read_overview(console: Console, asked: Asked) -> Answer:
    """Rows of all connectors; with `local=1` only of those that run here."""
    if asked.optional("local") == "1":
        return Answer(body=console.overview.own())
    console.peers.ask_if_old(asked.header("authorization"))
    return Answer(body=console.overview.all())


def _no_answer(console: Console, asked: Asked) -> Answer:
    raise NotFoundError("Events are a stream")


def read_workers(console: Console, asked: Asked) -> Answer:
    membership, worker_id = console.service.membership, console.service.worker_id
    if not membership.is_shared:
        alone = _member(worker_id, "", len(console.service.names()), __version__)
        members = [{**alone, "is_leader": True, "is_here": True}]
        return Answer(
            body={
                "mode": "standalone",
                "generation": None,
                "leader": None,
                "members": members,
                "rebalances": [],
            }
        )
    console.peers.ask_if_old(asked.header("authorization"))
    silent = console.peers.silent()
    members = [
        {
            **_member(urlsplit(peer.url).netloc, peer.url, len(peer.connectors), peer.version),
            "is_leader": peer.url == membership.leader_url,
            "is_here": peer.url == membership.own_url,
            "answers": peer.url not in silent,
            "reason": silent.get(peer.url, ""),
        }
        for peer in sorted(membership.peers, key=lambda one: one.url)
    ]
    if not members:
        own = _member(worker_id, membership.own_url, 0, __version__)
        members = [{**own, "is_here": True, "is_leader": False}]
    for member in members:
        if member.get("is_here"):
            member["is_cut_off"] = not membership.is_well
    return Answer(
        body={
            "mode": "distributed",
            "generation": membership.generation,
            "leader": membership.leader_url or None,
            "members": members,
            "rebalances": [_rebalance(one, membership.own_url) for one in reversed(membership.rebalances)],
        }
    )


def _member(worker: str, url: str, connectors: int, version: str) -> dict[str, Any]:
    return {
        "worker": worker,
        "url": url,
        "connectors": connectors,
        "version": version,
        "answers": True,
        "is_cut_off": False,
        "reason": "",
    }


def _rebalance(one: Rebalance, own_url: str) -> dict[str, Any]:
    said = [f"{len(one.joined)} joined" if one.joined else "", f"{len(one.left)} left" if one.left else ""]
    text = ", ".join(
        part for part in (f"generation {one.generation}", f"{one.workers} workers", *said) if part
    )
    return {
        "at_ms": one.at_ms,
        "generation": one.generation,
        "seconds": round(one.seconds, 3),
        "text": f"{text}, {one.moves} connectors moved",
        "workers": one.workers,
        "joined": list(one.joined),
        "left": list(one.left),
        "moves": one.moves,
        "moved": [[move.connector, move.before or None, move.after or None] for move in one.moved],
        "gained": [move.connector for move in one.moved if move.after == own_url],
        "lost": [move.connector for move in one.moved if move.before == own_url],
    }


def list_plugins(console: Console, asked: Asked) -> Answer:
    return Answer(body={"plugins": plugins_json(all_plugins())})


def read_plugin(console: Console, asked: Asked) -> Answer:
    name = asked.required("plugin", longest=_LONGEST_CLASS)
    return Answer(body={"plugin": name, "settings": definitions_json(console.service.plugin_config(name))})


def list_loggers(console: Console, asked: Asked) -> Answer:
    _require_loggers(console)
    return Answer(body={"loggers": admin.list_loggers(console.service, asked).body})


def set_logger(console: Console, asked: Asked) -> Answer:
    _require_loggers(console)
    path = {"logger": asked.required("logger", longest=_LONGEST_CLASS)}
    return admin.set_logger(console.service, Call(path, asked.query, asked.body))


def _require_loggers(console: Console) -> None:
    if not console.has_loggers:
        raise NotFoundError("The worker's config has put /admin elsewhere with 'admin.listeners'")


ROUTES: Final[Table] = {
    ("GET", "me"): Route(read_me, Level.VIEW),
    ("GET", "overview"): Route(read_overview, Level.VIEW),
    ("GET", "events"): Route(_no_answer, Level.VIEW, is_stream=True),
    ("GET", "workers"): Route(read_workers, Level.VIEW),
    ("GET", "plugins"): Route(list_plugins, Level.VIEW),
    ("GET", "plugin"): Route(read_plugin, Level.VIEW),
    ("GET", "loggers"): Route(list_loggers, Level.VIEW),
    ("PUT", "logger"): Route(set_logger, Level.EDIT),
}
