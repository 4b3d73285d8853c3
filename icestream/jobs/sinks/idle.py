"""How long a job without records sleeps, and when it checks targets and topics meanwhile. For the sink
manager.

The watch of its Kafka cluster wakes it. A job without a watch, such as one in a test, asks Kafka itself a few
times a second.
"""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from icestream.api.offsets import Offsets
from icestream.jobs.sinks.job import SinkJob
from icestream.kafka.topics import matching
from icestream.kafka.watch import Seen

_LEAST_POLL: Final = 0.01
_POLL_AT_ONCE: Final = 0.1
"""Of a job that commits as soon as there are records; the watch looks as often for all jobs."""
_MOST_POLL: Final = 0.25
_FIRST_CHECK: Final = 5.0
"""Seconds from a batch to a check of targets and topics; each time twice as long while nothing comes."""
_RAREST_CHECK: Final = 600.0
"""The watch tells of new records and topics: this check is for tables that somebody rolled back."""
_PUBLISHER_SECONDS: Final = 30.0
"""How long a publisher stays open after its last use: a producer of Kafka has threads and connections."""


class TopicWatch(Protocol):
    """Tells an idle job when its topics have changed. `icestream.kafka.watch.Watch` is the real one."""

    def when_changed(self, waiter: str, seen: Seen, tell: Callable[[], None]) -> None: ...

    def forget(self, waiter: str) -> None: ...


class IdleSchedule:
    """Of one job. Called by its manager, except `_hear`, which the watch calls from its own thread."""

    def __init__(self, job: SinkJob, watch: TopicWatch | None, wake: Callable[[], None]) -> None:
        self._job = job
        # A manager whose thread hung may end long after another one of the same job has begun to wait.
        self._waiter = f"{job.name}-{uuid.uuid4()}"
        self._watch = watch
        self._wake = wake
        self._every = _FIRST_CHECK
        # Those that start together do not all check together.
        self._spread = 1 - zlib.crc32(job.name.encode()) / 2**33
        self._check_at = 0.0
        self._has_news = False
        interval = job.limits.interval
        self._poll = min(_MOST_POLL, max(_LEAST_POLL, interval / 4)) if interval else _POLL_AT_ONCE

    def found_resume_point(self, now: float) -> None:
        """Targets and topics have just been asked."""
        self._check_in(_RAREST_CHECK, now)

    def had_batch(self, now: float) -> None:
        self._check_in(_FIRST_CHECK, now)

    def found_unchanged(self, now: float) -> None:
        """A check found nothing new."""
        self._check_in(2 * self._every, now)

    def _check_in(self, seconds: float, now: float) -> None:
        self._every = min(_RAREST_CHECK if self._watch else _FIRST_CHECK, seconds)
        self._check_at = now + self._every * self._spread

    def is_check_due(self, now: float, rows: int) -> bool:
        """Whether to check targets and topics: it is time, or the watch had news that no record explains."""
        news, self._has_news = self._has_news, False
        return now > self._check_at or (news and rows == 0)

    def pause(self, now: float, rows: int, ends: Offsets) -> float:
        """How many seconds the job may sleep; the watch wakes it when its topics are no longer like this."""
        if rows or self._watch is None:
            return self._poll
        self._watch.when_changed(self._waiter, Seen(ends, self._matching(), self._poll), self._hear)
        return max(self._poll, self._check_at - now)

    def close(self) -> None:
        if self._watch is not None:
            self._watch.forget(self._waiter)

    def may_close_publisher(self, now: float, last_used: float) -> bool:
        """A job that nobody would wake keeps it: it polls, and its next batch comes soon."""
        return self._watch is not None and now - last_used > _PUBLISHER_SECONDS

    @property
    def watched_seconds(self) -> float | None:
        """How often the watch looks at the topics of a job that sleeps; None: the job looks itself."""
        return None if self._watch is None else 2 * self._poll

    def _hear(self) -> None:
        self._has_news = True
        self._wake()

    def _matching(self) -> Callable[[Sequence[str]], Sequence[str]] | None:
        pattern = self._job.topics_pattern
        if pattern is None:
            return None
        return lambda names: matching(names, pattern)
