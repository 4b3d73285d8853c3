"""What the handlers of the console see: the worker, and who asks for what."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from icestream.cluster.service import ConnectorService
from icestream.cluster.settings.console_settings import Level
from icestream.cluster.settings.rest_settings import RestConfig
from icestream.rest.errors import BadRequest
from icestream.rest.exchange import MAX_NAME, Answer, Call, Handler

if TYPE_CHECKING:
    from icestream.rest.console.overview import Overview
    from icestream.rest.console.peers import Peers

API: Final = "/console/api/"


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True)
class Asked(Call):
    """One request to the console's API."""

    level: Level = Level.VIEW
    """What this worker lets people do."""
    user: str = ""
    """Who logged in; empty where nobody has to."""
    headers: Mapping[str, str] = field(default_factory=dict)
    hops: int = 0
    """How many workers have passed it on."""

    @property
    def connector(self) -> str:
        """The connector that is meant: never part of the path, because browsers fold `..` away."""
        return self.required("connector")

    def required(self, name: str, *, longest: int = MAX_NAME) -> str:
        text = self.optional(name)
        if not text:
            raise BadRequest(f"The query has no '{name}'; add ?{name}=…")
        if len(text) > longest:
            raise BadRequest(
                f"'{name}' in the query has {len(text)} characters; at most {longest} are possible"
            )
        return text

    def optional(self, name: str) -> str | None:
        """A parameter of the query; twice the same could be read in two ways."""
        values = self.query.get(name, [])
        if len(values) > 1:
            raise BadRequest(f"The query has '{name}' {len(values)} times; write it once")
        return values[0] if values else None

    def number(self, name: str, default: int, *, most: int) -> int:
        """A whole number of the query, from 0 to `most`."""
        text = self.optional(name)
        if text is None or text == "":
            return default
        if not (text.isascii() and text.isdecimal() and len(text) <= 18 and int(text) <= most):
            raise BadRequest(f"'{name}={text[:40]}' in the query is not a number from 0 to {most}")
        return int(text)

    def header(self, name: str) -> str:
        return self.headers.get(name.lower(), "")


@dataclass(frozen=True)
class Console:
    """The console of one worker."""

    service: ConnectorService
    overview: Overview
    peers: Peers
    config: RestConfig = field(default_factory=RestConfig)
    wall_ms: Callable[[], int] = wall_ms
    assets_version: Callable[[], str] = lambda: ""
    tell: Callable[[str, Mapping[str, Any]], None] = lambda event, data: None
    """Sends an event of this name to all streams, from any thread."""

    @property
    def level(self) -> Level:
        return self.config.console.level

    @property
    def has_loggers(self) -> bool:
        """Whether `/admin` is where REST is; the console does not open again what was moved or closed."""
        return self.config.admin_listeners is None


ConsoleHandler = Callable[[Console, Asked], Answer]


@dataclass(frozen=True)
class Route:
    """A path of the API with one verb."""

    handler: ConsoleHandler
    level: Level
    """The lowest that may use it."""
    waits_long: bool = False
    at_owner: bool = False
    is_stream: bool = False
    """`site.py` answers it with a stream of events; the handler is not asked."""


Table = Mapping[tuple[str, str], Route]
"""By verb and by what follows `/console/api/`."""


def rest(handler: Handler) -> ConsoleHandler:
    """One of Kafka Connect's handlers, with the name where it looks for it."""

    def handled(console: Console, asked: Asked) -> Answer:
        call = Call({"connector": asked.connector}, asked.query, asked.body, asked.base_url, asked.topics)
        return handler(console.service, call)

    return handled
