"""An object store that has bad days: what a proxy in front of it fails, slows down and loses."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Mapping
from typing import Final

from tests.http_proxy import Answer, ConnectionLost, PassOn, Request

_SLOW_SECONDS: Final = 0.2
KINDS: Final = ("500", "503 SlowDown", "reset before", "reset after", "slow")


def _error(status: int, code: str) -> Answer:
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>try later</Message></Error>"
    return Answer(status, {"Content-Type": "application/xml"}, body.encode())


class Faults:
    """Each request fails with the chances that are given; `reset after` loses an answer only."""

    def __init__(self, chances: Mapping[str, float], seed: int) -> None:
        assert set(chances) <= set(KINDS)
        self._chances = dict(chances)
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self.met: Counter[str] = Counter()

    def end(self) -> None:
        """From now on all is well."""
        self._chances = {}

    def __call__(self, request: Request, pass_on: PassOn) -> Answer:
        kind = self._drawn()
        if kind == "500":
            return _error(500, "InternalError")
        if kind == "503 SlowDown":
            return _error(503, "SlowDown")
        if kind == "reset before":
            raise ConnectionLost
        if kind == "slow":
            time.sleep(_SLOW_SECONDS)
        answer = pass_on(request)
        if kind == "reset after":
            raise ConnectionLost
        return answer

    def _drawn(self) -> str:
        with self._lock:
            at = self._random.random()
            for kind, chance in self._chances.items():
                if at < chance:
                    self.met[kind] += 1
                    return kind
                at -= chance
            self.met["well"] += 1
            return "well"
