"""`/live` and `/ready`: what a probe hears of a worker, or of a job that runs on its own. One shape for both.

Answered in the event loop itself, without a login and without a thread: a probe must not wait behind
requests.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from icestream.cluster.liveness import Checked

_EVERY_SECONDS: Final = 1.0


class Heartbeat:
    """Of an event loop: `keep` runs in it, others ask for its age."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last: float | None = None

    @property
    def age(self) -> float | None:
        """Seconds since the loop last moved; None before it does and after its end."""
        return None if self._last is None else self._clock() - self._last

    async def keep(self) -> None:
        try:
            while True:
                self._last = self._clock()
                await asyncio.sleep(_EVERY_SECONDS)
        finally:
            self._last = None


def probe_routes(live: Callable[[], Checked], ready: Callable[[], Checked]) -> list[Route]:
    """Each is asked at every request and must not wait."""

    async def answer_live(request: Request) -> Response:
        return _answer("alive", live())

    async def answer_ready(request: Request) -> Response:
        return _answer("ready", ready())

    return [Route("/live", answer_live), Route("/ready", answer_ready)]


def _answer(well: str, checked: Checked) -> Response:
    body = {
        "status": well if checked.is_well else f"not {well}",
        "message": checked.message,
        "checks": [
            {"name": check.name, "status": "ok" if check.is_well else "failed", "message": check.message}
            for check in checked.checks
        ],
    }
    return JSONResponse(body, 200 if checked.is_well else 503, {"Cache-Control": "no-store"})
