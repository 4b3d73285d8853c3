"""Tells the metrics of each request: its verb, which path it was, how it ended, how long that took.
`rest/server.py` puts it around everything else."""

from __future__ import annotations

import time
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from icestream.metrics.catalog import OTHER
from icestream.metrics.requests import RequestCounts

ROUTE: Final = "icestream.route"
"""Where a route leaves its template in the scope of a request."""
_NO_ANSWER: Final = 499
"""Of a request whose client went away before it had one."""


class CountedRequests:
    """The time is that until the answer begins: some answers are streams without an end."""

    def __init__(self, app: ASGIApp, counts: RequestCounts) -> None:
        self._app = app
        self._counts = counts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began, is_told = time.perf_counter(), scope["type"] != "http"

        def tell(code: int) -> None:
            nonlocal is_told
            if not is_told:
                is_told = True
                self._counts.add(scope["method"], _route(scope), code, time.perf_counter() - began)

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                tell(message["status"])
            await send(message)

        try:
            await self._app(scope, receive, sending)
        finally:
            tell(_NO_ANSWER)


def _route(scope: Scope) -> str:
    """The template. A path that a route takes as it stands is one of ours, and its own template."""
    if ROUTE in scope:
        return str(scope[ROUTE])
    is_ours = "endpoint" in scope and not scope.get("path_params")
    return str(scope["path"]) if is_ours else OTHER
