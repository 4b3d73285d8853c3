"""The other workers of the group: asked for what only they know, and only at the addresses that the group
told. Requests carry the user's own login; nobody is asked while nobody looks.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import httpx

from icestream.cluster.group.membership import Membership, Peer
from icestream.cluster.settings.console_settings import LEVELS, Level
from icestream.rest.console.access import HEADER
from icestream.rest.console.exchange import API, Asked
from icestream.rest.console.overview import COLUMNS, OtherRow
from icestream.rest.errors import error_body
from icestream.rest.exchange import Answer
from icestream.rest.forward import Clients, Original, plain_client

_LOG = logging.getLogger(__name__)
HOPS: Final = "x-icestream-hops"
LEVEL: Final = "x-icestream-level"
"""What the worker lets people do that passes a request on: the one that answers allows no more."""
MOST_HOPS: Final = 2
_OLD_MS: Final = 2_000
_ASK_S: Final = 2.0
_CONNECT_S: Final = 1.0
_RELAY_S: Final = 90.0
_RELAY_CONNECT_S: Final = 5.0
_AT_ONCE: Final = 8
_MOST_BYTES: Final = 16 * 2**20
_PASSED_ON: Final = ("authorization", "content-type", "accept", "if-match")
_HANDED_BACK: Final = ("etag", "location")


@dataclass
class _Heard:
    """What a worker said last."""

    rows: dict[str, OtherRow]
    asked_ms: int
    problem: str = ""


def hops_of(headers: Mapping[str, str]) -> int | None:
    """How many workers have passed a request on; None: no worker says it so."""
    text = headers.get(HOPS)
    if text is None:
        return 0
    return int(text) if text in [str(hop) for hop in range(1, MOST_HOPS + 1)] else None


def level_of(headers: Mapping[str, str], own: Level) -> Level | None:
    """What a request may do here; None: no worker says it so."""
    word = headers.get(LEVEL)
    if word is None:
        return own
    return min(own, Level.of(word)) if word in LEVELS else None


class Peers:
    """Of one worker."""

    def __init__(
        self, membership: Membership, wall_ms: Callable[[], int], clients: Clients = plain_client
    ) -> None:
        self._membership = membership
        self._wall_ms = wall_ms
        self._clients = clients
        self._asking = threading.Lock()
        self._heard: dict[str, _Heard] = {}

    # One connector

    def owner_of(self, name: str) -> Peer | None:
        """The other worker that has a connector; None: it is ours, or nobody's."""
        if self._membership.owns(name):
            return None
        return next((peer for peer in self._others() if name in peer.connectors), None)

    def console_of(self, url: str) -> str:
        """Where the console of the worker is that has this address for REST."""
        peer = next((peer for peer in self._membership.peers if peer.url == url), None)
        return url if peer is None else peer.console

    def relayed(self, original: Original, url: str, asked: Asked, whose: str) -> Answer:
        """The answer of another worker to the same request, or why there is none."""
        if not url:
            return _error(503, f"{whose} a worker without a console; ask that one's REST API")
        if asked.hops >= MOST_HOPS or not _is_plain(url):
            return _error(
                409, "The workers are sharing out their connectors, and nobody has this one; ask again"
            )
        query = [(name, value) for name, values in original.query.items() for value in values]
        headers = {name: original.headers[name] for name in _PASSED_ON if name in original.headers}
        level = asked.level.name.lower()
        try:
            with self._clients() as client:
                response = client.request(
                    original.verb,
                    # Not as one text: however a path is spelt, it never names another host.
                    httpx.URL(url).copy_with(raw_path=f"{original.raw_path}?{urlencode(query)}".encode()),
                    content=original.body,
                    headers={**headers, HEADER: "1", HOPS: str(asked.hops + 1), LEVEL: level},
                    timeout=httpx.Timeout(_RELAY_S, connect=_RELAY_CONNECT_S),
                )
            return _answer(response, url)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            _LOG.warning("the worker at %s did not answer %s: %s", url, original.raw_path, error)
            return _error(
                503,
                f"{whose} the worker at {url}, which does not answer ({error or type(error).__name__}); "
                "if it is gone, another takes over soon",
            )

    # All connectors

    def rows(self) -> Mapping[str, OtherRow]:
        """What the others said last of the connectors that they have."""
        found: dict[str, OtherRow] = {}
        for peer in self._others():
            heard = self._heard.get(peer.url)
            if heard is not None:
                found |= {name: row for name, row in heard.rows.items() if name in peer.connectors}
        return found

    def silent(self) -> dict[str, str]:
        """Addresses of workers that did not answer when they were asked last, and why."""
        urls = {peer.url for peer in self._others()}
        heard = list(self._heard.items())
        return {url: one.problem for url, one in heard if one.problem and url in urls}

    def ask_if_old(self, authorization: str) -> None:
        """Ask each of the others for its rows, unless that has just been done; waits for a moment at most."""
        others = self._others()
        if not others or not self._asking.acquire(blocking=False):
            return
        try:
            now = self._wall_ms()
            for url in self._heard.keys() - {peer.url for peer in others}:
                del self._heard[url]
            due = [peer for peer in others if self._is_old(peer.url, now)]
            if due:
                self._ask(due, authorization, now)
        finally:
            self._asking.release()

    def _is_old(self, url: str, now: int) -> bool:
        heard = self._heard.get(url)
        return heard is None or now - heard.asked_ms >= _OLD_MS

    def _ask(self, due: Sequence[Peer], authorization: str, now: int) -> None:
        headers = {HEADER: "1", HOPS: str(MOST_HOPS)}
        if authorization:
            headers["authorization"] = authorization
        with (
            self._clients() as client,
            ThreadPoolExecutor(min(_AT_ONCE, len(due)), thread_name_prefix="console-peers") as pool,
        ):
            answers = list(pool.map(lambda peer: _overview_of(peer, client, headers), due))
        for peer, answer in zip(due, answers, strict=True):
            before = self._heard.get(peer.url)
            if isinstance(answer, str):
                self._heard[peer.url] = _Heard(before.rows if before else {}, now, answer)
            else:
                self._heard[peer.url] = _Heard({str(row[0]): OtherRow(row, now) for row in answer}, now)

    def _others(self) -> list[Peer]:
        return [peer for peer in self._membership.peers if peer.url != self._membership.own_url]


def _overview_of(peer: Peer, client: httpx.Client, headers: Mapping[str, str]) -> list[list[Any]] | str:
    """The rows of another worker, or why there are none."""
    url = peer.console
    if not url:
        return "it has no console"
    if not _is_plain(url):
        return "its address is none"
    try:
        response = client.get(
            httpx.URL(url).copy_with(raw_path=f"{API}overview?local=1".encode()),
            headers=dict(headers),
            timeout=httpx.Timeout(_ASK_S, connect=_CONNECT_S),
        )
        if response.status_code != 200 or len(response.content) > _MOST_BYTES:
            return f"it answered {response.status_code}"
        body = response.json()
        return _rows_from(body)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return f"it does not answer ({type(error).__name__})"
    except (ValueError, KeyError, TypeError):
        return "it answered something unreadable"


def _rows_from(body: Any) -> list[list[Any]]:
    """Rows with our columns, whatever the other worker's version knows."""
    columns: list[str] = body["columns"]
    places = [columns.index(name) if name in columns else None for name in COLUMNS]
    return [[None if at is None else row[at] for at in places] for row in body["rows"]]


def _is_plain(url: str) -> bool:
    """Nothing but scheme, host and port."""
    parts = urlsplit(url)
    return parts.scheme in ("http", "https") and bool(parts.netloc) and "@" not in parts.netloc


def _answer(response: httpx.Response, url: str) -> Answer:
    headers = {name: response.headers[name] for name in _HANDED_BACK if name in response.headers}
    if response.status_code == 401:
        # Not as it is: the browser would ask for another password, which this worker does not know.
        return _error(403, f"The worker at {url} does not know this login; workers must have the same users")
    try:
        body = response.json() if response.content else None
    except ValueError:
        return _error(502, f"The worker at {url} answered something unreadable ({response.status_code})")
    if not (200 <= response.status_code < 300 or response.status_code >= 400):
        return _error(502, f"The worker at {url} answered {response.status_code}")
    return Answer(response.status_code, body, headers)


def _error(code: int, message: str) -> Answer:
    return Answer(code, error_body(code, message))
