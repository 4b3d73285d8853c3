"""Handlers about one connector: what it is and does, and what somebody asks of it.

What a worker remembers of a connector is on the worker that runs it, so most of these are answered there.
"""

from __future__ import annotations

import re
from typing import Any, Final

from icestream.api.errors import IcestreamError, NotFoundError
from icestream.api.history import TableCommit
from icestream.api.status import State
from icestream.cluster.configs.masking import without_values
from icestream.cluster.settings.console_settings import Level
from icestream.rest import connectors as kafka_connect
from icestream.rest.console.exchange import Asked, Console, Route, Table, rest
from icestream.rest.console.shapes import (
    batch_json,
    commit_json,
    event_json,
    partition_json,
    progress_json,
    series_json,
    unique,
)
from icestream.rest.errors import BadRequest
from icestream.rest.exchange import Answer
from icestream.rest.shapes import status_json

_RANGE: Final = re.compile(r"(\d{1,4})(m|h)", re.ASCII)
_UNITS: Final = {"m": 60, "h": 3600}
_LONGEST_RANGE: Final = 24 * 3600
_MOST_BATCHES: Final = 2_000
_MOST_EVENTS: Final = 2_000
_SOME: Final = 200
_LOOKED_AT: Final = 50
"""Batches whose targets are the connector's tables."""


def read_connector(console: Console, asked: Asked) -> Answer:
    name, service = asked.connector, console.service
    info, status, progress = service.info(name), service.status(name), service.progress(name)
    known = service.connectors.known.get(name)
    if known is None:
        raise NotFoundError(f"Connector {name} not found")
    masks, now = service.masks(name), console.wall_ms()
    health = console.overview.health(name, now)
    history = service.history.batches(name, most=_LOOKED_AT)
    rates = service.history.rates(name)
    trace = masks.text(status.trace) if status.trace else None
    tasks = [
        {**task, "trace": masks.text(task["trace"])} if "trace" in task else task
        for task in status_json(status)["tasks"]
    ]
    return Answer(
        body={
            "name": name,
            "type": info.type,
            "class": info.config.get("connector.class", ""),
            "version": status.version,
            "worker": status.worker_id,
            "state": status.state.value,
            "target_state": known.target.value,
            "health": health.health.value,
            "reason": masks.text(health.reason) or None,
            "fresh_ms": health.freshness_ms,
            "rate": None if rates is None else round(rates[1], 2),
            "since_ms": history.since_ms,
            "status": {
                "connector": {
                    "state": status.state.value,
                    "worker_id": status.worker_id,
                    "version": status.version,
                },
                "tasks": tasks,
            },
            "trace": trace,
            "trace_at_ms": _failed_at(console, name) if status.state is State.FAILED else None,
            "restart": _restart_note(trace),
            "progress": progress_json(progress, masks),
            "partitions": [partition_json(one) for one in progress.partitions],
            "warnings": [masks.text(warning) for warning in progress.warnings],
            "topics": unique((*progress.topics, *service.topics(name))),
            "tables": unique(
                target.name for record in reversed(history.over[-_LOOKED_AT:]) for target in record.targets
            ),
            "config": masks.config(info.config) if asked.level >= Level.EDIT else None,
            "keys": list(without_values(info.config)),
            "secrets": sorted(masks.keys),
            "config_version": known.stored.version,
            "at": now,
        }
    )


def _failed_at(console: Console, name: str) -> int | None:
    told = (event for event in reversed(console.service.history.events(name)) if event.kind == "state")
    return next((event.at_ms for event in told if event.text.startswith("FAILED")), None)


def _restart_note(trace: str | None) -> str | None:
    """How the automatic restarts go: the first line of the trace, if it is about them."""
    first = (trace or "").partition("\n")[0]
    return first if first.startswith("restart ") else None


def read_history(console: Console, asked: Asked) -> Answer:
    """`range` is a number of minutes or hours, such as 15m, 1h or 24h."""
    _require(console, asked)
    text = asked.optional("range") or "1h"
    match = _RANGE.fullmatch(text)
    seconds = int(match[1]) * _UNITS[match[2]] if match else 0
    if not 0 < seconds <= _LONGEST_RANGE:
        raise BadRequest(f"'range={text[:40]}' is not a time up to 24h; write 15m, 1h, 6h or 24h")
    return Answer(body=series_json(console.service.history.series(asked.connector, seconds)))


def read_batches(console: Console, asked: Asked) -> Answer:
    """The one under way first, then the newest."""
    _require(console, asked)
    masks = console.service.masks(asked.connector)
    limit = asked.number("limit", _SOME, most=_MOST_BATCHES)
    found = console.service.history.batches(asked.connector, most=limit)
    under_way = [found.under_way] if found.under_way is not None else []
    shown = [*under_way, *reversed(found.over)][:limit]
    return Answer(
        body={"since_ms": found.since_ms, "batches": [batch_json(record, masks) for record in shown]}
    )


def read_commits(console: Console, asked: Asked) -> Answer:
    """The newest first, as the targets remember them; if they cannot be asked, as this worker does."""
    _require(console, asked)
    name, service = asked.connector, console.service
    limit = asked.number("limit", _SOME, most=_MOST_BATCHES)
    try:
        found = [commit_json(one) for one in service.commits(name)[:limit]]
        return Answer(body={"commits": found, "notes": []})
    except (IcestreamError, OSError) as error:
        why = service.masks(name).text(str(error))
        note = f"The targets cannot be asked ({why}); these are the batches that this worker remembers"
        return Answer(body={"commits": _remembered(console, name)[:limit], "notes": [note]})


def _remembered(console: Console, name: str) -> list[dict[str, Any]]:
    return [
        commit_json(
            TableCommit(
                target.name,
                target.id,
                record.started_ms + round(record.seconds * 1000),
                files=len(target.file_bytes),
                rows=target.rows,
                bytes=sum(target.file_bytes),
                rejected=sum(record.rejected.values()),
                filtered=sum(record.filtered.values()),
                valid_through_ms=record.valid_through_ms,
                commit=record.id,
            )
        )
        for record in reversed(console.service.history.batches(name).over)
        for target in record.targets
        if target.id
    ]


def read_timeline(console: Console, asked: Asked) -> Answer:
    """Events of a connector, or of all that run here if none is named; the newest first."""
    history = console.service.history
    limit = asked.number("limit", _SOME, most=_MOST_EVENTS)
    if asked.optional("connector"):
        _require(console, asked)
        masks = console.service.masks(asked.connector)
        events = [event_json(event, masks) for event in reversed(history.events(asked.connector)[-limit:])]
        return Answer(body={"since_ms": history.batches(asked.connector, most=0).since_ms, "events": events})
    found: list[dict[str, Any]] = []
    for name, event in reversed(history.all_events()[-limit:]):
        try:
            found.append({"connector": name, **event_json(event, console.service.masks(name))})
        except NotFoundError:
            # It was deleted; what it had to hide went with it.
            continue
    return Answer(body={"since_ms": None, "events": found})


def _require(console: Console, asked: Asked) -> None:
    console.service.info(asked.connector)


ROUTES: Final[Table] = {
    ("GET", "connector"): Route(read_connector, Level.VIEW, at_owner=True),
    ("GET", "history"): Route(read_history, Level.VIEW, at_owner=True),
    ("GET", "batches"): Route(read_batches, Level.VIEW, at_owner=True),
    ("GET", "commits"): Route(read_commits, Level.VIEW, waits_long=True),
    ("GET", "timeline"): Route(read_timeline, Level.VIEW, at_owner=True),
    ("PUT", "pause"): Route(rest(kafka_connect.pause_connector), Level.OPERATE),
    ("PUT", "resume"): Route(rest(kafka_connect.resume_connector), Level.OPERATE),
    ("PUT", "stop"): Route(rest(kafka_connect.stop_connector), Level.OPERATE),
    ("POST", "restart"): Route(rest(kafka_connect.restart_connector), Level.OPERATE),
    ("DELETE", "connector"): Route(rest(kafka_connect.delete_connector), Level.EDIT),
}
