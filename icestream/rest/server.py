"""Runs the REST API in a thread of its own, on a socket that was bound before anything else started."""

from __future__ import annotations

import errno
import socket
import threading
import time
from typing import Final

import uvicorn

from icestream.api.errors import PreconditionError
from icestream.cluster.service import ConnectorService
from icestream.rest.app import CrossOrigin, build_app

_START_TIMEOUT: Final = 10.0
_STOP_TIMEOUT: Final = 3.0


class RestServer:
    """A running server; `stop` lets requests that are under way finish for a moment."""

    def __init__(self, server: uvicorn.Server, listener: socket.socket, host: str) -> None:
        self._server = server
        self._listener = listener
        self.host = host
        self.port: int = listener.getsockname()[1]
        self._thread = threading.Thread(
            target=server.run, kwargs={"sockets": [listener]}, name="rest", daemon=True
        )

    @property
    def url(self) -> str:
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(self.host, self.host)
        return f"http://{host}:{self.port}"

    def start(self) -> None:
        self._thread.start()
        deadline = time.monotonic() + _START_TIMEOUT
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise PreconditionError(f"the REST server did not start on {self.url}; see the log")
            time.sleep(0.005)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(_STOP_TIMEOUT)
        self._listener.close()


def listen(host: str, port: int) -> socket.socket:
    """A listening socket, or one sentence; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        raise PreconditionError(_refusal(error, host, port)) from error


def serve(
    service: ConnectorService,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    listener: socket.socket | None = None,
    cross_origin: CrossOrigin | None = None,
) -> RestServer:
    """Start the API and return when it answers."""
    config = uvicorn.Config(
        build_app(service, cross_origin),
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    server = RestServer(uvicorn.Server(config), listener or listen(host, port), host)
    server.start()
    return server


def _refusal(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} of {host} is taken; stop what uses it, or set 'listeners=http://{host}:0'"
    if error.errno == errno.EACCES:
        return f"port {port} of {host} needs more rights; choose one above 1023 in 'listeners'"
    return (
        f"cannot listen on {host}:{port} ({error.strerror or error}); set 'listeners' to an address we have"
    )
