"""Asks Kafka now and then whether it answers, for `/actuator/health`: no request waits for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from icestream.api.errors import IcestreamError
from icestream.rest.actuator.health import Health, Status

_EVERY_SECONDS: Final = 10.0
_OLD_SECONDS: Final = 60.0


class KafkaWatch:
    """`ask` returns details, or raises; it has a time limit of its own."""

    def __init__(
        self, ask: Callable[[], dict[str, object]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._ask = ask
        self._clock = clock
        self._last: tuple[float, Health] | None = None
        self._closing = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._run, name="actuator-kafka", daemon=True).start()

    def close(self) -> None:
        self._closing.set()

    def __call__(self) -> Health:
        """How Kafka was a moment ago."""
        last = self._last
        if last is None:
            return Health(Status.UNKNOWN, {"message": "it was not asked yet"})
        if self._clock() - last[0] > _OLD_SECONDS:
            return Health(Status.DOWN, {"message": "it has not answered for a minute"})
        return last[1]

    def look(self) -> None:
        try:
            health = Health(Status.UP, self._ask())
        except IcestreamError as error:
            health = Health(Status.DOWN, {"message": str(error)})
        except Exception as error:  # whatever the client raises: the next look may do better
            health = Health(Status.DOWN, {"message": type(error).__name__})
        self._last = (self._clock(), health)

    def _run(self) -> None:
        while not self._closing.is_set():
            self.look()
            self._closing.wait(_EVERY_SECONDS)
