"""A door between a client and a server that may be shut, or left open with nobody behind it."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Literal

Mode = Literal["passes", "drops", "hangs"]
_LINGER_NOT: Final = struct.pack("ii", 1, 0)
"""With no time to linger, closing is a reset."""


class TcpProxy:
    """`passes` bytes both ways; `drops` connections, old and new; `hangs`: takes them and says nothing."""

    def __init__(self, server: tuple[str, int]) -> None:
        self._server = server
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._mode: Mode = "passes"
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.refused = 0
        """Connections that were not passed on."""

    @property
    def mode(self) -> Mode:
        return self._mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        self._mode = mode
        if mode != "hangs":
            # Also those that hung: nobody answers them any more.
            self.close_all()

    def close_all(self) -> None:
        with self._lock:
            ends, self._open = self._open, set()
        for end in ends:
            _reset(end)

    def run(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=[client], daemon=True).start()

    def stop(self) -> None:
        with contextlib.suppress(OSError):
            # Closing alone does not wake who accepts.
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.close_all()

    def _serve(self, client: socket.socket) -> None:
        with self._lock:
            self._open.add(client)
        if self._mode != "passes":
            self.refused += 1
            if self._mode == "drops":
                _reset(client)
            return
        try:
            server = socket.create_connection(self._server, 30)
        except OSError:
            _reset(client)
            return
        with self._lock:
            self._open.add(server)
        threading.Thread(target=self._pass_on, args=[server, client], daemon=True).start()
        self._pass_on(client, server)

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if self._mode == "hangs":
                    return
                target.sendall(data)
        if self._mode != "hangs":
            _reset(source)
            _reset(target)


def _reset(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT)
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    with contextlib.suppress(OSError):
        end.close()


@contextmanager
def tcp_proxy(host: str, port: int) -> Iterator[TcpProxy]:
    proxy = TcpProxy((host, port))
    threading.Thread(target=proxy.run, daemon=True).start()
    try:
        yield proxy
    finally:
        proxy.stop()
