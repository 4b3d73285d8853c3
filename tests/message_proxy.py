"""A server between a client and the real one, on the level of bytes: it can lose a message, or its answer."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from icestream.embedded import ports

_ANSWER_SECONDS = 0.5


@dataclass
class Fault:
    """What happens to the next message that has these bytes in it; once."""

    message: bytes
    is_passed_on: bool
    """Whether the server gets it; the answer is lost in any case."""


@dataclass
class Proxy:
    port: int
    upstream: tuple[str, int]
    fault: Fault | None = None
    hits: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def _taken(self, data: bytes) -> Fault | None:
        with self._lock:
            if self.fault is None or self.fault.message not in data:
                return None
            fault, self.fault = self.fault, None
            self.hits += 1
            return fault

    def serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(self.upstream) as server:
            back = threading.Thread(target=_pump, args=(server, client), daemon=True)
            back.start()
            while data := _received(client):
                fault = self._taken(data)
                if fault is None:
                    server.sendall(data)
                    continue
                # Nothing more goes back; what the server is told, it does in its own time.
                _shut(client)
                if fault.is_passed_on:
                    server.sendall(data)
                    back.join(_ANSWER_SECONDS)
                _shut(server)
                return
            _shut(server)


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(2**16):
            target.sendall(data)
    _shut(target)


def _received(source: socket.socket) -> bytes:
    try:
        return source.recv(2**16)
    except OSError:
        return b""


def _shut(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)


@contextmanager
def message_proxy(upstream: tuple[str, int]) -> Iterator[Proxy]:
    with socket.create_server((ports.HOST, 0)) as listening:
        made = Proxy(listening.getsockname()[1], upstream)

        def accept() -> None:
            while True:
                try:
                    client, _ = listening.accept()
                except OSError:
                    return
                threading.Thread(target=made.serve, args=(client,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield made
        _shut(listening)
