"""What all jobs of a worker use together: one watch per Kafka cluster, and a limit on how many jobs start at
once. Made by `jobs.build`, once per worker."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final

from icestream.kafka.watch import Clusters

_STARTS_AT_ONCE: Final = 8
_SECONDS: Final = 30.0


class StartGate:
    """Lets only so many jobs at a time find out where to resume. If none of these is done for a while, they
    hang, and those that wait go on."""

    def __init__(
        self, places: int, seconds: float = _SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._free = threading.Semaphore(places)
        self._seconds = seconds
        self._clock = clock
        self._left_at = clock()
        self._own = threading.local()

    def __enter__(self) -> None:
        came = self._clock()
        self._own.has_place = False
        while not self._own.has_place and self._clock() - max(came, self._left_at) <= self._seconds:
            self._own.has_place = self._free.acquire(timeout=self._seconds)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left_at = self._clock()
        if self._own.has_place:
            self._free.release()


@dataclass(frozen=True)
class WorkerResources:
    clusters: Clusters = field(default_factory=Clusters)
    gate: StartGate = field(default_factory=lambda: StartGate(_STARTS_AT_ONCE))
