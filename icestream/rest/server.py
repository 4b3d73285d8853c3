"""Runs the REST API in a thread of its own, on sockets that were bound before anything else started."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from icestream.api.errors import PreconditionError
from icestream.cluster.service import ConnectorService
from icestream.cluster.settings.console_settings import Level
from icestream.cluster.settings.rest_settings import Listener, RestConfig, bracketed
from icestream.cluster.settings.rest_tls import Tls
from icestream.rest.app import ApiOptions, build_app
from icestream.rest.audit_log import Audit
from icestream.rest.connections import Connections, guarded_listener, guarded_protocol
from icestream.rest.console.site import Site, SiteOptions
from icestream.rest.counted_requests import CountedRequests
from icestream.rest.forward import Clients
from icestream.rest.headers import CrossOriginHeaders, ResponseHeaders
from icestream.rest.probe_answers import Heartbeat, probe_routes
from icestream.rest.security import client_context, guarded, server_context

_LOG = logging.getLogger(__name__)
_START_TIMEOUT: Final = 10.0
_STOP_TIMEOUT: Final = 3.0
_KEEP_ALIVE_S: Final = 30
"""As long as Jetty keeps an idle connection, so that clients find theirs still open."""
_BACKLOG: Final = 128

HERE: Final = RestConfig(listeners=(Listener("http", "127.0.0.1", 0),))
_Serving = tuple[uvicorn.Server, list[socket.socket]]


@dataclass(frozen=True)
class Open:
    """A listener and its open socket."""

    listener: Listener
    socket: socket.socket

    @property
    def port(self) -> int:
        return int(self.socket.getsockname()[1])

    @property
    def url(self) -> str:
        """An address that works from this machine."""
        host = self.listener.host
        reachable = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
        return f"{self.listener.scheme}://{bracketed(reachable)}:{self.port}"


@dataclass(frozen=True)
class Bound:
    """All sockets that REST listens on; nothing answers there before `serve`."""

    config: RestConfig
    regular: tuple[Open, ...]
    admin: tuple[Open, ...] = ()
    console: tuple[Open, ...] = ()
    """Those of the console alone; none if it is where REST is."""

    @property
    def advertised_url(self) -> str:
        """How other workers and clients reach us."""
        return self.config.advertised_url([it.port for it in self.regular])

    @property
    def advertised_console(self) -> str:
        """How other workers reach our console, without its path; empty if there is none."""
        if self.config.console.level is Level.OFF:
            return ""
        alone = self.config.console_listeners
        if alone is None:
            return self.advertised_url
        if not alone:
            return ""
        apart = replace(self.config, listeners=alone, advertised_scheme=alone[0].scheme, advertised_port=None)
        return apart.advertised_url([it.port for it in self.console])

    def guarded_by(self, connections: Connections) -> Bound:
        """The same sockets, which ask `connections` about each client; these here are used up."""

        def guarded(opened: Sequence[Open]) -> tuple[Open, ...]:
            return tuple(Open(it.listener, guarded_listener(it.socket, connections)) for it in opened)

        return Bound(self.config, guarded(self.regular), guarded(self.admin), guarded(self.console))

    def close(self) -> None:
        _close((*self.regular, *self.admin, *self.console))


class RestServer:
    """A running server; `stop` lets requests that are under way finish for a moment."""

    def __init__(
        self,
        bound: Bound,
        servers: Sequence[_Serving],
        connections: Connections,
        heartbeat: Heartbeat | None = None,
        before_stop: Callable[[], None] = lambda: None,
    ) -> None:
        """`before_stop` ends what would not end by itself."""
        self._bound = bound
        self._before_stop = before_stop
        self.heartbeat = heartbeat or Heartbeat()
        self.connections = connections
        self._servers = servers
        self.host = bound.regular[0].listener.host
        self.port = bound.regular[0].port
        self.urls = [it.url for it in bound.regular]
        self.admin_urls = [it.url for it in bound.admin]
        self.url = self.urls[0]
        self.console_urls = _console_urls(bound)
        self._thread = threading.Thread(target=self._run, name="rest", daemon=True)

    def start(self) -> None:
        self._thread.start()
        deadline = time.monotonic() + _START_TIMEOUT
        while not all(server.started for server, _ in self._servers):
            if not self._thread.is_alive() or time.monotonic() > deadline:
                self.stop()
                raise PreconditionError(f"the REST server did not start on {self.url}; see the log")
            time.sleep(0.005)

    def stop(self) -> None:
        self._before_stop()
        for server, _ in self._servers:
            server.should_exit = True
        self._thread.join(_STOP_TIMEOUT)
        self._bound.close()
        self.connections.close()

    def _run(self) -> None:
        async def serve_all() -> None:
            beating = asyncio.create_task(self.heartbeat.keep())
            await asyncio.gather(*(server.serve(sockets=sockets) for server, sockets in self._servers))
            beating.cancel()

        try:
            asyncio.run(serve_all())
        except Exception:  # the thread's edge: `start` tells the user
            _LOG.exception("the REST server ended")


def listen(host: str, port: int, key: str = "listeners") -> socket.socket:
    """A listening socket, or one sentence; port 0 takes a free one, no host is all interfaces."""
    try:
        if not host and socket.has_dualstack_ipv6():
            return socket.create_server(
                ("", port), family=socket.AF_INET6, backlog=_BACKLOG, dualstack_ipv6=True
            )
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise PreconditionError(_refusal(error, host, port, key)) from error


def bind(config: RestConfig = HERE, key: str = "listeners") -> Bound:
    """Listen wherever the config says; nothing answers yet. `key`: what to change if that cannot be."""
    kinds = (config.listeners, config.admin_listeners or (), config.console_listeners or ())
    opened: list[tuple[Open, ...]] = []
    try:
        for listeners in kinds:
            opened.append(())
            for it in listeners:
                opened[-1] += (Open(it, listen(it.host, it.port, key)),)
    except PreconditionError:
        _close([it for kind in opened for it in kind])
        raise
    return Bound(config, *opened)


def serve(
    service: ConnectorService, bound: Bound | None = None, options: ApiOptions | None = None
) -> RestServer:
    """Start the API and return when it answers; `stop` closes the sockets too.

    Without sockets it is on a free port that only this machine reaches.
    """
    bound = bound or bind()
    config = bound.config
    options = options or ApiOptions()
    if config.tls is not None:
        options = replace(options, clients=_clients(config))
    connections = Connections(config.connections)
    bound = bound.guarded_by(connections)
    heartbeat = Heartbeat()
    try:
        site = Site(service, config, SiteOptions(options.topics, options.clients))
        regular = _regular_app(service, config, options, heartbeat, site)
        servers = _servers(regular, bound.regular, config.tls, connections)
        servers += _servers(_admin_app(service, options), bound.admin, config.admin_tls, connections)
        alone = _console_app(service, config, options, site)
        servers += _servers(alone, bound.console, config.tls, connections)
    except PreconditionError:
        bound.close()
        connections.close()
        raise
    server = RestServer(bound, servers, connections, heartbeat, site.close)
    server.start()
    return server


def serve_app(app: ASGIApp, bound: Bound, tls: Tls | None = None) -> RestServer:
    """Start an application of its own, and return when it answers; `tls` is for sockets that have https."""
    connections = Connections(bound.config.connections)
    bound = bound.guarded_by(connections)
    server = RestServer(bound, _servers(app, bound.regular, tls, connections), connections)
    server.start()
    return server


def _clients(config: RestConfig) -> Clients:
    """For requests that another worker must answer."""
    context = client_context(config)
    return lambda: httpx.Client(trust_env=False, verify=context)


def _regular_app(
    service: ConnectorService, config: RestConfig, options: ApiOptions, heartbeat: Heartbeat, site: Site
) -> ASGIApp:
    app = build_app(service, options)
    if config.admin_listeners is not None:
        _keep(app, lambda route: not _is_admin(route))
    if config.credentials is not None:
        app = guarded(app, config.credentials)
    # Probes have no login.
    app.router.routes += probe_routes(lambda: service.live(heartbeat.age), lambda: service.readiness())
    if config.console_listeners is None:
        app.router.routes.extend(site.routes())
    return CountedRequests(_with_headers(app, config), options.requests)


def _console_app(service: ConnectorService, config: RestConfig, options: ApiOptions, site: Site) -> ASGIApp:
    """The console alone, for listeners of its own."""
    app = build_app(service, options)
    app.router.routes[:] = site.routes()
    return _with_headers(app, config)


def _with_headers(app: Starlette, config: RestConfig) -> ASGIApp:
    wrapped: ASGIApp = app
    if config.headers:
        wrapped = ResponseHeaders(wrapped, config.headers)
    if config.cross_origin.origins:
        wrapped = CrossOriginHeaders(wrapped, config.cross_origin)
    return Audit(wrapped)


def _admin_app(service: ConnectorService, options: ApiOptions) -> ASGIApp:
    """Only /admin, and plain: Kafka Connect puts neither users nor headers on listeners of their own."""
    app = build_app(service, options)
    _keep(app, _is_admin)
    return Audit(app)


def _keep(app: Starlette, wanted: Callable[[BaseRoute], bool]) -> None:
    app.router.routes[:] = [route for route in app.router.routes if wanted(route)]


def _is_admin(route: BaseRoute) -> bool:
    return str(getattr(route, "path", "")).startswith("/admin")


def _servers(
    app: ASGIApp, opened: Sequence[Open], tls: Tls | None, connections: Connections
) -> list[_Serving]:
    """One server for all http sockets and one for all https sockets, if there are any."""
    contexts: dict[str, ssl.SSLContext | None] = {"http": None}
    if tls is not None:
        contexts["https"] = server_context(tls)
    found = []
    for scheme, context in contexts.items():
        sockets = [it.socket for it in opened if it.listener.scheme == scheme]
        if sockets:
            found.append((_uvicorn(app, context, connections), sockets))
    return found


def _uvicorn(app: ASGIApp, context: ssl.SSLContext | None, connections: Connections) -> uvicorn.Server:
    config = uvicorn.Config(
        app,
        http=guarded_protocol(connections),
        ws="none",
        backlog=_BACKLOG,
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=1,
    )
    config.load()
    config.ssl = context
    return uvicorn.Server(config)


def _console_urls(bound: Bound) -> list[str]:
    """None if the console is switched off."""
    if bound.config.console.level is Level.OFF:
        return []
    alone = bound.config.console_listeners is not None
    return [f"{it.url}/console/" for it in (bound.console if alone else bound.regular)]


def _close(opened: Sequence[Open]) -> None:
    for it in opened:
        it.socket.close()


def _refusal(error: OSError, host: str, port: int, key: str) -> str:
    shown = host or "this machine"
    if error.errno == errno.EADDRINUSE:
        return f"port {port} of {shown} is taken; stop what uses it, or choose another in '{key}'"
    if error.errno == errno.EACCES:
        return f"port {port} of {shown} needs more rights; choose one above 1023 in '{key}'"
    return f"cannot listen on {shown}:{port} ({error.strerror or error}); set '{key}' to an address we have"
