"""The stream of events: what changes, told to every page that looks, as `text/event-stream`.

One look at the worker serves all streams, once a second and only while there are any. Streams live in the
event loop of REST and hold no thread. Whoever reads too slowly is cut off, and begins anew; when the server
stops, all end. Events: docs/console-api.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import anyio
import anyio.to_thread
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from icestream.api.errors import NotFoundError
from icestream.rest.answering import dumped
from icestream.rest.console.exchange import Console
from icestream.rest.console.overview import RowChanges
from icestream.rest.console.shapes import batch_json, event_json

_LOG = logging.getLogger(__name__)
MOST_STREAMS: Final = 100
MOST_WAITING: Final = 256
"""Events that a client may be behind."""
MOST_WAITING_BYTES: Final = 4 * 2**20
"""And how much they may be: those of a thousand connectors are large, and there may be many such clients."""
_LOOK_SECONDS: Final = 1.0
_PEERS_SECONDS: Final = 2.0
_COMMENT_SECONDS: Final = 15.0
_HANG_UP_SECONDS: Final = 35.0
"""A little longer than `rest/connections.py` waits before it hangs up on who does not read; sooner if the
server stops."""
_COMMENT: Final = b":\n\n"


@dataclass(eq=False)
class _Client:
    """One open stream."""

    connector: str
    """The one whose batches it wants to hear of; empty: none."""
    authorization: str
    waiting: deque[bytes] = field(default_factory=deque)
    waiting_bytes: int = 0
    has_news: asyncio.Event = field(default_factory=asyncio.Event)
    is_over: asyncio.Event = field(default_factory=asyncio.Event)
    is_cut: bool = False

    def put(self, chunk: bytes) -> None:
        # The first may be as large as it is: it is everything.
        is_much = 0 < self.waiting_bytes > MOST_WAITING_BYTES - len(chunk)
        if len(self.waiting) >= MOST_WAITING or is_much:
            self.is_cut = True
            self.is_over.set()
            return
        self.waiting.append(chunk)
        self.waiting_bytes += len(chunk)
        self.has_news.set()


@dataclass(frozen=True)
class _Looked:
    """What one look found, and up to where."""

    version: int
    history_version: int
    chunks: list[bytes]
    of_connector: list[tuple[str, bytes]]


class Streams:
    """All streams of one worker. `console` is asked for when the first one opens."""

    def __init__(self, console: Callable[[], Console], most: int = MOST_STREAMS) -> None:
        self._console = console
        self._most = most
        self._clients: set[_Client] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._looking: asyncio.Lock | None = None
        self._limiter: anyio.CapacityLimiter | None = None
        self._version = 0
        self._history_version = 0
        self._under_way: dict[str, str] = {}
        self._is_closing = False

    def __len__(self) -> int:
        return len(self._clients)

    # From any thread

    def close(self) -> None:
        """End all streams, and take no more."""
        self._is_closing = True
        self._call(self._end_all)

    def tell(self, event: str, data: Mapping[str, Any]) -> None:
        """Send an event to all."""
        if self._clients:
            self._call(self._publish, encoded(event, data))

    def _call(self, what: Callable[..., None], *arguments: Any) -> None:
        if self._loop is not None:
            # A loop that has ended has no streams.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(what, *arguments)

    # In the event loop

    async def open(self, last_event_id: str, authorization: str, connector: str) -> EventStream | str:
        """A stream that goes on after this event, or begins with everything; or why there is none."""
        if self._is_closing:
            return "The worker stops; ask again"
        if len(self._clients) >= self._most:
            return f"The worker has {self._most} open streams and takes no more; ask for the overview"
        client = _Client(connector, authorization)
        # Before anything is waited for: a flood of clients must not get past the count.
        self._clients.add(client)
        try:
            await self._begin(client, last_event_id)
        except BaseException:
            self._left(client)
            raise
        return EventStream(client, self._left)

    async def _begin(self, client: _Client, last_event_id: str) -> None:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._looking, self._limiter = asyncio.Lock(), anyio.CapacityLimiter(2)
        assert self._looking is not None
        # Not beside a look for the others: what that one found would come after what is newer.
        async with self._looking:
            if not self._tasks:
                await self._in_thread(self._start_here)
            changes, is_new = await self._in_thread(lambda: self._first_rows(last_event_id))
            console = self._console()
            hello = {"version": changes.version, "assets": console.assets_version(), "at": console.wall_ms()}
            client.waiting.appendleft(encoded("hello", hello))
            if is_new:
                snapshot = await self._in_thread(console.overview.all)
                client.put(encoded("overview", snapshot, snapshot["version"]))
            elif changes.rows or changes.gone:
                client.put(rows_event(changes, console.wall_ms()))
            client.has_news.set()
        if not self._tasks and not self._is_closing:
            self._tasks = [
                asyncio.create_task(self._look_on()),
                asyncio.create_task(self._ask_on()),
            ]

    def _start_here(self) -> None:
        """Nobody has looked for a while: what happened meanwhile is in the rows."""
        console = self._console()
        changes, _ = console.overview.changes(console.overview.version)
        self._version = changes.version
        self._history_version = console.service.history.version
        self._under_way = {}

    def _first_rows(self, last_event_id: str) -> tuple[RowChanges, bool]:
        console = self._console()
        given = last_event_id if last_event_id.isascii() and last_event_id.isdecimal() else ""
        since = int(given) if given and len(given) <= 18 else -1
        changes, _ = console.overview.changes(since)
        return changes, not changes.is_complete

    async def _look_on(self) -> None:
        """Until nobody looks any more."""
        assert self._looking is not None
        while self._clients:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                async with self._looking:
                    watched = {client.connector for client in self._clients if client.connector}
                    looked = await self._in_thread(lambda: self._look(watched))  # noqa: B023
                    # Not by its thread, which may outlive this task: what was seen is what is sent.
                    self._version, self._history_version = looked.version, looked.history_version
                    for chunk in looked.chunks:
                        self._publish(chunk)
                    for name, chunk in looked.of_connector:
                        self._publish(chunk, name)
            except Exception:  # the edge of all streams: one failed look must not end them
                _LOG.exception("a look for the console failed")

    def _look(self, watched: set[str]) -> _Looked:
        console = self._console()
        changes, states = console.overview.changes(self._version)
        chunks = []
        if changes.rows or changes.gone:
            chunks.append(rows_event(changes, console.wall_ms()))
        for one in states:
            said = {
                "connector": one.connector,
                "state": one.state,
                "health": one.health,
                "reason": one.reason,
                "at": console.wall_ms(),
            }
            chunks.append(encoded("state", said))
        # Before the look: what happens meanwhile is told twice rather than never.
        history_version = console.service.history.version
        return _Looked(changes.version, history_version, chunks, self._happened(console, watched))

    def _happened(self, console: Console, watched: set[str]) -> list[tuple[str, bytes]]:
        """Batches and events of the connectors that somebody has open."""
        history, seen = console.service.history, self._history_version
        found: list[tuple[str, bytes]] = []
        for name in watched:
            try:
                masks = console.service.masks(name)
            except NotFoundError:
                continue
            batches = history.batches(name, seen)
            records = list(batches.over)
            under_way = batches.under_way
            if under_way is not None and self._under_way.get(name) != under_way.id:
                self._under_way[name] = under_way.id
                records.append(under_way)
            for record in records:
                said = {"connector": name, "batch": batch_json(record, masks)}
                found.append((name, encoded("batch", said)))
            for event in history.events(name, seen):
                said = {"connector": name, "event": event_json(event, masks)}
                found.append((name, encoded("event", said)))
        return found

    async def _ask_on(self) -> None:
        """Ask the other workers for their rows, with the login of one who looks."""
        while self._clients:
            peers = self._console().peers
            newest = next((client for client in self._clients), None)
            login = newest.authorization if newest else ""
            try:
                await self._in_thread(lambda: peers.ask_if_old(login))  # noqa: B023
            except Exception:  # the edge of all streams
                _LOG.exception("the other workers could not be asked")
            await asyncio.sleep(_PEERS_SECONDS)

    async def _in_thread(self, work: Callable[[], Any]) -> Any:
        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._limiter)

    def _publish(self, chunk: bytes, connector: str = "") -> None:
        for client in self._clients:
            if not connector or client.connector == connector:
                client.put(chunk)

    def _left(self, client: _Client) -> None:
        self._clients.discard(client)
        if not self._clients:
            for task in self._tasks:
                task.cancel()
            self._tasks = []

    def _end_all(self) -> None:
        for client in list(self._clients):
            client.is_over.set()


class EventStream(Response):
    """The answer that goes on. Ends when the client leaves, is cut off, or the server stops."""

    def __init__(self, client: _Client, left: Callable[[_Client], None]) -> None:
        headers = {"x-accel-buffering": "no", "cache-control": "no-store"}
        super().__init__(None, 200, headers, media_type="text/event-stream")
        del self.headers["content-length"]
        self._client = client
        self._left = left

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        tasks: list[asyncio.Task[Any]] = []
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            tasks += [
                asyncio.create_task(self._send_on(send)),
                asyncio.create_task(_disconnect(receive)),
                asyncio.create_task(self._client.is_over.wait()),
            ]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._left(self._client)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if self._client.is_cut:
            _LOG.info("a page reads its events too slowly; its stream was ended")
        with contextlib.suppress(TimeoutError, OSError):
            end = {"type": "http.response.body", "body": b"", "more_body": False}
            await asyncio.wait_for(send(end), _HANG_UP_SECONDS)

    async def _send_on(self, send: Send) -> None:
        client = self._client
        while True:
            try:
                await asyncio.wait_for(client.has_news.wait(), _COMMENT_SECONDS)
            except TimeoutError:
                client.waiting.append(_COMMENT)
            client.has_news.clear()
            while client.waiting:
                # What waits together goes together: events stay in the queue while the client does not read.
                chunk = b"".join(client.waiting)
                sent = len(client.waiting)
                client.waiting_bytes = 0
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
                for _ in range(sent):
                    client.waiting.popleft()


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def encoded(event: str, data: Mapping[str, Any], version: int | None = None) -> bytes:
    """One event; JSON has no line breaks, so it is one line."""
    head = f"id: {version}\n" if version is not None else ""
    return f"{head}event: {event}\ndata: ".encode() + dumped(data) + b"\n\n"


def rows_event(changes: RowChanges, at: int) -> bytes:
    said = {"version": changes.version, "at": at, "rows": changes.rows, "gone": changes.gone}
    return encoded("rows", said, changes.version)
