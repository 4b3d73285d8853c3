"""The shape of the table of requests, and what its parts share. The requests themselves are in `cases/`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Request:
    """One request to both sides. The path goes on the wire as it is written, percent signs and all.

    A dict or list as body becomes JSON; text goes as it is. `settles` repeats the request until both agree:
    workers change their state a moment after they answer. `differs` names an agreed difference. `at_once`
    sends so many of the same at the same time and compares which statuses came: the real worker sometimes
    creates one connector twice.
    """

    method: str
    path: str
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    settles: bool = False
    differs: str = ""
    at_once: int = 1

    @property
    def may_create(self) -> bool:
        return (self.method, self.path) == ("POST", "/connectors") or (
            self.method == "PUT" and self.path.partition("?")[0].endswith("/config")
        )

    def __str__(self) -> str:
        shown = "" if self.body is None else f" {str(self.body)[:70]}"
        return f"{self.method} {self.path[:90]}{shown}"


@dataclass(frozen=True)
class Scenario:
    """Requests that build on each other; both sides have no connectors before and after it."""

    name: str
    requests: Sequence[Request]


def each(name: str, *requests: Request) -> list[Scenario]:
    """Requests that need nothing from each other, one scenario each."""
    return [Scenario(f"{name}: {request}", (request,)) for request in requests]


SOURCE = {
    "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
    "tasks.max": "1",
    "file": "@FOLDER@/in.txt",
    "topic": "parity-out",
}
SINK = {
    "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
    "tasks.max": "1",
    "file": "@FOLDER@/out.txt",
    "topics": "parity-in",
}


def create(name: str = "c", config: Mapping[str, Any] = SOURCE, differs: str = "", **more: Any) -> Request:
    return Request("POST", "/connectors", {"name": name, "config": config, **more}, differs=differs)


def GET(path: str, **more: Any) -> Request:
    return Request("GET", path, **more)


def PUT(path: str, body: Any = None, **more: Any) -> Request:
    return Request("PUT", path, body, **more)


def POST(path: str, body: Any = None, **more: Any) -> Request:
    return Request("POST", path, body, **more)


def PATCH(path: str, body: Any = None, **more: Any) -> Request:
    return Request("PATCH", path, body, **more)


def DELETE(path: str, **more: Any) -> Request:
    return Request("DELETE", path, **more)


RUNNING = GET("/connectors/c/status", settles=True)
"""Put before a step that needs a connector in its final state."""
