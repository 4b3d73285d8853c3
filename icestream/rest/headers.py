"""What every answer carries besides its own headers: rules for web pages of other origins, and those that
`response.http.headers.config` adds. `rest/server.py` puts both around the API, as Kafka Connect's Jetty does.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from email.utils import formatdate
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from icestream.cluster.settings.rest_settings import CrossOrigin, HeaderRule

NOT_FOR_OTHERS: Final = "icestream.not_for_others"
"""In the scope of requests whose answers pages of other origins never read, whatever the config says."""
_ANY_ORIGIN: Final = "*"
_PREFLIGHT_MAX_AGE_S: Final = 60


class CrossOriginHeaders:
    """Tells browsers which pages may read our answers; requests themselves are never refused here.

    An allowed origin is a regular expression without regard to case, as in Jetty 12. A preflight goes on to
    the API like any other request: its status and body are the API's.
    """

    def __init__(self, app: ASGIApp, rules: CrossOrigin) -> None:
        self._app = app
        self._rules = rules
        self._any = _ANY_ORIGIN in rules.origins
        self._patterns = [re.compile(it, re.IGNORECASE) for it in rules.origins if it != _ANY_ORIGIN]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        more = self._headers(scope["method"], Headers(scope=scope))

        def change(headers: MutableHeaders) -> None:
            # Routing has left its mark by the time of the answer.
            if not scope.get(NOT_FOR_OTHERS):
                _add(headers, more)

        await self._app(scope, receive, adding(send, change))

    def _headers(self, method: str, request: Headers) -> list[tuple[str, str]]:
        found = [("Vary", "Origin")]
        origin = request.get("origin")
        if origin is None or not self._allows(origin):
            return found
        found.append(("Access-Control-Allow-Origin", origin))
        if method == "OPTIONS" and "access-control-request-method" in request:
            found += [
                ("Access-Control-Allow-Methods", ",".join(self._rules.methods)),
                ("Access-Control-Allow-Headers", "Content-Type"),
                ("Access-Control-Max-Age", str(_PREFLIGHT_MAX_AGE_S)),
            ]
        return found

    def _allows(self, origin: str) -> bool:
        # A browser may send several, separated by blanks.
        return self._any or any(
            pattern.fullmatch(one) for one in origin.split() for pattern in self._patterns
        )


class ResponseHeaders:
    """Adds the headers of `response.http.headers.config`; one that the answer has itself stays as it is."""

    def __init__(
        self, app: ASGIApp, rules: Sequence[HeaderRule], clock: Callable[[], float] = time.time
    ) -> None:
        self._app = app
        self._rules = rules
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, adding(send, self._apply))

    def _apply(self, headers: MutableHeaders) -> None:
        own = set(headers.keys())
        for rule in self._rules:
            if rule.name.lower() in own:
                continue
            if rule.is_set and rule.name in headers:
                del headers[rule.name]
            headers.append(rule.name, self._value(rule))

    def _value(self, rule: HeaderRule) -> str:
        if not rule.is_date:
            return rule.value
        return formatdate(self._clock() + int(rule.value) / 1000, usegmt=True)


def adding(send: Send, change: Callable[[MutableHeaders], None]) -> Send:
    """`send`, with the headers of the answer changed first."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            change(MutableHeaders(scope=message))
        await send(message)

    return sending


def _add(headers: MutableHeaders, more: Iterable[tuple[str, str]]) -> None:
    for name, value in more:
        headers.append(name, value)
