"""Counts the requests of REST by the template of their path. REST tells; a part of the collector asks."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from typing import Final

from prometheus_client.metrics_core import Metric as Family

from icestream.metrics import catalog
from icestream.metrics.facts import WorkerFacts
from icestream.metrics.families import add, add_histogram, family_of
from icestream.metrics.histograms import Histogram, copies

_METHODS: Final = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))


class RequestCounts:
    """Told in the event loop, asked by threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: Counter[tuple[str, str, int]] = Counter()
        self._seconds: dict[tuple[str, str], Histogram] = {}

    def add(self, method: str, route: str, code: int, seconds: float) -> None:
        """`route` is one of a list; whoever calls sees to it."""
        known = method if method in _METHODS else catalog.OTHER
        with self._lock:
            self._answers[known, route, code] += 1
            if (known, route) not in self._seconds:
                self._seconds[known, route] = Histogram(catalog.REQUEST_SECONDS.buckets)
            self._seconds[known, route].add(seconds)

    def families(self, facts: WorkerFacts) -> Iterator[Family]:
        with self._lock:
            answers, seconds = dict(self._answers), copies(self._seconds)
        counts = family_of(catalog.REQUESTS)
        for (method, route, code), number in sorted(answers.items()):
            add(counts, catalog.REQUESTS, {"method": method, "route": route, "code": str(code)}, number)
        yield counts
        times = family_of(catalog.REQUEST_SECONDS)
        for (method, route), histogram in sorted(seconds.items()):
            add_histogram(times, catalog.REQUEST_SECONDS, {"method": method, "route": route}, histogram)
        yield times
