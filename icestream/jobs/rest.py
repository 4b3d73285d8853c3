"""How a job waits: woken by the watch of its cluster, with a look of its own now and then. For the manager.

A job without a watch, such as one in a test, asks Kafka itself a few times a second.
"""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Callable, Sequence
from typing import Final

from icestream.api.offsets import Offsets
from icestream.jobs.borders import News
from icestream.jobs.sink_job import SinkJob
from icestream.kafka.topics import matching
from icestream.kafka.watch import Seen

_LEAST_POLL: Final = 0.01
_MOST_POLL: Final = 0.25
_FIRST_LOOK: Final = 5.0
"""Seconds from a batch to a look at tables and topics; each time twice as long while nothing comes."""
_RAREST_LOOK: Final = 600.0
"""The watch tells of new records and topics: this look is for tables that somebody rolled back."""
_CHANNEL_SECONDS: Final = 30.0
"""How long a channel stays open after its last use: a producer of Kafka has threads and connections."""


class Rest:
    def __init__(self, job: SinkJob, news: News | None, wake: Callable[[], None]) -> None:
        self._job = job
        # A manager whose thread hung may end long after another one of the same job has begun to wait.
        self._waiter = f"{job.name}-{uuid.uuid4()}"
        self._news = news
        self._wake = wake
        self._every = _FIRST_LOOK
        # Those that start together do not all look together.
        self._spread = 1 - zlib.crc32(job.name.encode()) / 2**33
        self._look_at = 0.0
        self._has_news = False
        self._poll = min(_MOST_POLL, max(_LEAST_POLL, job.limits.interval / 4))

    @property
    def lets_go(self) -> bool:
        """Whether a job that rests gives up what it can open again."""
        return self._news is not None

    def stood(self, now: float) -> None:
        """The job has asked where it stands."""
        self._look_in(_RAREST_LOOK, now)

    def worked(self, now: float) -> None:
        """The job has had a batch."""
        self._look_in(_FIRST_LOOK, now)

    def looked(self, now: float) -> None:
        """Nothing has changed."""
        self._look_in(2 * self._every, now)

    def _look_in(self, seconds: float, now: float) -> None:
        self._every = min(_RAREST_LOOK if self._news else _FIRST_LOOK, seconds)
        self._look_at = now + self._every * self._spread

    def wants_look(self, now: float, rows: int) -> bool:
        """Whether tables and topics are to be looked at: it is time, or there is news and no record explains
        it."""
        news, self._has_news = self._has_news, False
        return now > self._look_at or (news and rows == 0)

    def seconds(self, now: float, rows: int, ends: Offsets) -> float:
        """How long the job may sleep."""
        if rows or self._news is None:
            return self._poll
        self._news.when_changed(self._waiter, Seen(ends, self._matching(), self._poll), self._hear)
        return max(self._poll, self._look_at - now)

    def end(self) -> None:
        if self._news is not None:
            self._news.forget(self._waiter)

    def is_long(self, now: float, used: float) -> bool:
        """Whether a channel that was used then is to be closed."""
        return self.lets_go and now - used > _CHANNEL_SECONDS

    def _hear(self) -> None:
        self._has_news = True
        self._wake()

    def _matching(self) -> Callable[[Sequence[str]], Sequence[str]] | None:
        pattern = self._job.topics_pattern
        if pattern is None:
            return None
        return lambda names: matching(names, pattern)
