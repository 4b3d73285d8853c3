"""Connections of REST: how many there may be, how long each may take, which one goes when there are too many.

Without this a thousand idle sockets, or as many requests that are sent a byte at a time, leave no file
descriptor for anybody else. `rest/server.py` listens on `guarded_listener` sockets and gives uvicorn
`guarded_protocol`.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import resource
import socket
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from icestream.cluster.settings.rest_settings import ConnectionLimits

_LOG = logging.getLogger(__name__)
_MOST_FILES: Final = 65_536
_OPEN_MAX_OF_MACOS: Final = 10_240
_NO_DESCRIPTORS: Final = (errno.EMFILE, errno.ENFILE)
_LENGTHS: Final = frozenset({b"content-length", b"transfer-encoding"})
_MANY_CHUNKS: Final = 1_000
_SMALL_CHUNK: Final = 64
"""Bytes on average, below which there may not be so many in one body."""
_LAST_READ_SECONDS: Final = 0.5
"""How long a server that stops waits for who does not read: less than uvicorn waits for answers, which then
ends them with a trace."""
_TOO_SLOW: Final = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
_FULL: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"
)


class Phase(Enum):
    """What a connection waits for; the first are the first to go when there are too many."""

    HEADERS = 0
    IDLE = 1
    BODY = 2
    ANSWER = 3


@dataclass
class _Connection:
    socket: socket.socket
    host: str
    since: float
    phase: Phase = Phase.HEADERS


class Connections:
    """All open connections of a worker. Used from the thread of REST's event loop only."""

    def __init__(self, limits: ConnectionLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self.most = min(limits.most, _share_of_descriptors())
        self._clock = clock
        self._open: dict[int, _Connection] = {}
        self._spare = _open_spare()

    def __len__(self) -> int:
        self._forget_closed()
        return len(self._open)

    def close(self) -> None:
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None

    def opened(self, connection: socket.socket, host: str) -> bool:
        """Whether there is room for it; one that waits for its client makes some."""
        if len(self._open) >= self.most:
            self._forget_closed()
        if len(self._open) >= self.most and not self._evict():
            _LOG.warning("all %d connections are busy; one more was refused", self.most)
            return False
        self._open[connection.fileno()] = _Connection(connection, host, self._clock())
        return True

    def entered(self, descriptor: int, phase: Phase) -> None:
        known = self._open.get(descriptor)
        if known is not None:
            known.phase, known.since = phase, self._clock()

    def closed(self, descriptor: int) -> None:
        self._open.pop(descriptor, None)

    def accept_and_drop(self, listener: socket.socket) -> None:
        """Without a free descriptor a client would wait for ever: take it with the spare one, and hang up."""
        _LOG.warning("no file descriptor is free for a connection; raise the limit of open files (ulimit -n)")
        if self._spare is None:
            return
        os.close(self._spare)
        self._spare = None
        with contextlib.suppress(OSError):
            socket.socket.accept(listener)[0].close()
        self._spare = _open_spare()

    def _evict(self) -> bool:
        waiting = [one for one in self._open.values() if one.phase is not Phase.ANSWER]
        if not waiting:
            return False
        # Of the host that has most of them, so that others do not suffer from its flood; then the oldest.
        by_host = Counter(one.host for one in waiting)
        victim = min(waiting, key=lambda one: (-by_host[one.host], one.phase is Phase.BODY, one.since))
        _LOG.warning(
            "more than %d connections; one of %s, which has most of them, was closed (it waited: %s)",
            self.most,
            victim.host,
            victim.phase.name.lower(),
        )
        del self._open[victim.socket.fileno()]
        # Its transport sees the end and closes the socket.
        with contextlib.suppress(OSError):
            victim.socket.shutdown(socket.SHUT_RDWR)
        return True

    def _forget_closed(self) -> None:
        for descriptor, one in list(self._open.items()):
            if one.socket.fileno() != descriptor:
                del self._open[descriptor]


class GuardedListener(socket.socket):
    """A listening socket that asks `connections` about each client before the event loop hears of it."""

    connections: Connections | None = None

    def accept(self) -> tuple[socket.socket, Any]:
        if self.connections is None:
            return super().accept()
        while True:
            try:
                client, address = super().accept()
            except OSError as error:
                if error.errno not in _NO_DESCRIPTORS:
                    raise
                self.connections.accept_and_drop(self)
                raise BlockingIOError from None
            if self.connections.opened(client, str(address[0])):
                return client, address
            with contextlib.suppress(OSError):
                client.setblocking(False)
                client.send(_FULL)
            client.close()


def guarded_listener(listener: socket.socket, connections: Connections) -> GuardedListener:
    """The same socket, guarded; the given one is used up."""
    guarded = GuardedListener(listener.family, listener.type, listener.proto, fileno=listener.detach())
    guarded.connections = connections
    return guarded


def guarded_protocol(connections: Connections) -> type[asyncio.Protocol]:
    """HTTP for uvicorn, with limits of time."""
    return type("GuardedProtocol", (_Guarded,), {"guard": connections})


class _Strict:
    """Refuses requests that h11 takes: bodies of two lengths, and bodies in countless chunks.

    A proxy that believes the other of two lengths takes a part of the body for a request. Thousands of
    chunks of a byte each keep everybody else waiting.
    """

    def __init__(self, connection: h11.Connection) -> None:
        self._read = connection.next_event
        self._count = self._bytes = 0

    @classmethod
    def limited(cls, connection: h11.Connection) -> h11.Connection:
        connection.next_event = cls(connection).next_event  # type: ignore[method-assign]
        return connection

    def next_event(self) -> Any:
        event = self._read()
        if isinstance(event, h11.Request):
            self._count = self._bytes = 0
            if {name for name, _ in event.headers} >= _LENGTHS:
                raise h11.RemoteProtocolError("the body has two lengths")
        elif isinstance(event, h11.Data):
            self._count += event.chunk_start
            self._bytes += len(event.data)
            if self._count > _MANY_CHUNKS and self._bytes < self._count * _SMALL_CHUNK:
                raise h11.RemoteProtocolError("the body comes in too many small chunks")
        return event


class _Guarded(H11Protocol):
    guard: Connections

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._timer: asyncio.TimerHandle | None = None
        self._unread_timer: asyncio.TimerHandle | None = None
        self._phase: Phase | None = None
        self._descriptor = transport.get_extra_info("socket").fileno()
        self.conn = _Strict.limited(self.conn)
        super().connection_made(transport)
        self._look()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def send_400_response(self, msg: str) -> None:
        """Also in the middle of a body, when the answer may be on its way: nobody else answers then."""
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.guard.closed(self._descriptor)
        for timer in (self._timer, self._unread_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread_timer = self.loop.call_later(self.guard.limits.unread_s, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread_timer is not None:
            self._unread_timer.cancel()

    def shutdown(self) -> None:
        super().shutdown()
        self.loop.call_later(_LAST_READ_SECONDS, self._hang_up_on_who_does_not_read)

    def _hang_up_on_who_does_not_read(self) -> None:
        if self.flow is not None and self.flow.write_paused:
            self.transport.abort()

    def _look(self) -> None:
        """Which phase is this? If another than before, its time begins."""
        phase = self._phase_now()
        if phase is self._phase or self.transport.is_closing():
            return
        self._phase = phase
        self.guard.entered(self._descriptor, phase)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        limits = self.guard.limits
        seconds = {Phase.HEADERS: limits.headers_s, Phase.BODY: limits.body_s}.get(phase)
        if seconds is not None:
            self._timer = self.loop.call_later(seconds, self._too_slow)

    def _phase_now(self) -> Phase:
        if self.conn.their_state is h11.SEND_BODY:
            return Phase.BODY
        if self.conn.their_state is not h11.IDLE:
            return Phase.ANSWER
        has_begun = self.cycle is None or self.conn.trailing_data[0]
        # Between two requests uvicorn's own keep-alive counts.
        return Phase.HEADERS if has_begun else Phase.IDLE

    def _too_slow(self) -> None:
        if self.transport.is_closing():
            return
        has_answered = self.cycle is not None and self.cycle.response_started
        if (self._phase is Phase.BODY and not has_answered) or self.conn.trailing_data[0]:
            self.transport.write(_TOO_SLOW)
        self.transport.close()


def raise_file_limit() -> None:
    """Take as many file descriptors as this process may have, as a JVM does when it starts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        # macOS says that there is no limit and refuses more than a limit of its own.
        for limit in (wanted, max(soft, min(wanted, _OPEN_MAX_OF_MACOS))):
            with contextlib.suppress(ValueError, OSError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
                return


def _share_of_descriptors() -> int:
    """A quarter of them: Kafka's clients, Spark and files need the others."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 2**31 if soft == resource.RLIM_INFINITY else max(soft // 4, 16)


def _open_spare() -> int | None:
    try:
        return os.open(os.devnull, os.O_RDONLY)
    except OSError:
        return None
