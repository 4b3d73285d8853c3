"""Asks another worker what only that one can answer, as Kafka Connect's workers do: two hops at most."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

import httpx

from icestream.rest.errors import error_body
from icestream.rest.exchange import Answer

_LOG = logging.getLogger(__name__)
_TIMEOUT_S: Final = 90.0
_CONNECT_S: Final = 5.0
_PASSED_ON: Final = ("authorization", "content-type", "accept", "if-match", "x-icestream-console")

Clients = Callable[[], httpx.Client]
"""Makes the client that reaches other workers; it knows their certificates."""


def plain_client() -> httpx.Client:
    return httpx.Client(trust_env=False)


@dataclass(frozen=True)
class Original:
    """The request as it came."""

    verb: str
    raw_path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    body: bytes
    base_url: str

    @property
    def next_hop(self) -> bool | None:
        """`forward` of the request that we send: None if this one has gone far enough."""
        given = self.query.get("forward")
        if given is None:
            return True
        return False if given[0].lower() == "true" else None


def forwarded(original: Original, leader_url: str, clients: Clients = plain_client) -> Answer:
    """The other worker's answer, or why there is none."""
    hop = original.next_hop
    if hop is None:
        return _error(
            409, "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"
        )
    if not leader_url:
        return _error(
            409,
            "Cannot complete request momentarily due to no known leader URL, "
            "likely because a rebalance was underway.",
        )
    query = [
        (name, value) for name, values in original.query.items() if name != "forward" for value in values
    ]
    target = f"{original.raw_path}?{urlencode([*query, ('forward', str(hop).lower())])}"
    try:
        with clients() as client:
            response = client.request(
                original.verb,
                # Not as one text: however a path is spelt, it never names another host.
                httpx.URL(leader_url).copy_with(raw_path=target.encode()),
                content=original.body,
                headers={name: original.headers[name] for name in _PASSED_ON if name in original.headers},
                timeout=httpx.Timeout(_TIMEOUT_S, connect=_CONNECT_S),
            )
        return _answer(response, original, leader_url)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        _LOG.error(
            "the worker at %s did not answer %s %s: %s", leader_url, original.verb, original.raw_path, error
        )
        return _error(500, f"IO Error trying to forward REST request: {error or type(error).__name__}")


def _answer(response: httpx.Response, original: Original, leader_url: str) -> Answer:
    if not (200 <= response.status_code < 300 or response.status_code >= 400):
        return _error(500, f"Unexpected status code when handling forwarded request: {response.status_code}")
    headers: dict[str, str] = {}
    if location := response.headers.get("location"):
        headers["Location"] = original.base_url + location.removeprefix(leader_url.rstrip("/"))
    try:
        return Answer(response.status_code, response.json() if response.content else None, headers)
    except ValueError:
        return _error(
            500, f"Error trying to forward REST request: {leader_url} answered something unreadable"
        )


def _error(code: int, message: str) -> Answer:
    return Answer(code, error_body(code, message))
