"""What happened to the connectors of this worker, for as long as it runs: rings of points, batches and
events.

An observer (`icestream.observers`) that managers, reconcilers and the service tell; the status reporter
brings the samples of lag and freshness. The console reads snapshots and subscribes to changes. Nothing is
stored: a restart or a move begins anew, and a gap stays a gap. All methods may be called from any thread and
return at once.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import Final, Generic, TypeVar

from icestream.api.history import BatchRecord, Event
from icestream.cluster.history.packed_records import packed, unpacked
from icestream.cluster.history.series import Ring, SeriesView

MOST_RECORDS: Final = 20_000
"""Batches and events of all connectors together."""
_LEAST_EACH: Final = 16
_AT_ONCE: Final = 64
"""Records that the greediest loses at a time: looking for it costs."""
_MOST_GONE: Final = 1_000

_LOOK_BACK: Final = 8
"""Among so many batches is the one whose end was found out later."""
_Record = TypeVar("_Record")


@dataclass(frozen=True)
class Changes:
    """What has changed since a version."""

    version: int
    names: frozenset[str] = frozenset()
    """Connectors with a new batch, event, sample or state."""
    gone: frozenset[str] = frozenset()
    """Connectors that were forgotten, and did not come back."""
    is_complete: bool = True
    """False: too much has been forgotten since; look at everything anew."""


@dataclass(frozen=True)
class Batches:
    """The batches of a connector."""

    since_ms: int | None
    """When its history on this worker begins; None: there is none."""
    under_way: BatchRecord | None
    over: tuple[BatchRecord, ...]
    """The oldest first."""


@dataclass(frozen=True)
class Recent:
    """What the last minutes tell of a connector, for its health."""

    since_ms: int | None = None
    rejected_ms: int | None = None
    """When a batch with rejected records landed last."""
    lags: tuple[tuple[int, float], ...] = ()
    """Samples of its lag: milliseconds and lag, the oldest first."""


@dataclass
class _Entry(Generic[_Record]):
    version: int
    record: _Record


@dataclass
class _Packed:
    """A batch that is over."""

    version: int
    id: str
    content: bytes


@dataclass
class _OfConnector:
    """What is kept of one connector."""

    since_ms: int
    version: int
    ring: Ring
    batches: deque[_Packed] = field(default_factory=deque)
    events: deque[_Entry[Event]] = field(default_factory=deque)
    under_way: BatchRecord | None = None
    rejected_ms: int | None = None

    @property
    def size(self) -> int:
        return len(self.batches) + len(self.events)

    def drop_oldest(self) -> None:
        # Events are few and explain much; a batch every second must not push them out.
        (self.batches if len(self.batches) >= len(self.events) else self.events).popleft()


class Subscription:
    """Of one who wants to know of changes. `tell` is called once, from any thread and at once after a change,
    and not again before the next `changes`: it must only wake whoever looks."""

    def __init__(self, history: History, tell: Callable[[], None], version: int) -> None:
        self._history = history
        self._tell = tell
        self.version = version
        self._is_armed = True

    def changes(self) -> Changes:
        """Since the last look."""
        self._is_armed = True
        changes = self._history.changed_since(self.version)
        self.version = changes.version
        return changes

    def close(self) -> None:
        self._history.leave(self)

    def ring(self) -> None:
        if self._is_armed:
            self._is_armed = False
            try:
                self._tell()
            except Exception:  # a listener's edge, such as an event loop that is closed
                self.close()


class History:
    """Of one worker."""

    def __init__(
        self,
        wall_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        most_records: int = MOST_RECORDS,
    ) -> None:
        self._wall_ms = wall_ms
        self._most_records = most_records
        self._lock = threading.Lock()
        self._version = 0
        self._connectors: dict[str, _OfConnector] = {}
        self._records = 0
        self._gone: deque[tuple[int, str]] = deque(maxlen=_MOST_GONE)
        self._subscriptions: tuple[Subscription, ...] = ()

    # -- told --

    def batch(self, connector: str, record: BatchRecord) -> None:
        with self._lock:
            kept = self._touched(connector)
            if not record.is_over:
                kept.under_way = record
            else:
                self._take_ended(kept, record)
        self._ring()

    def event(self, connector: str, event: Event) -> None:
        with self._lock:
            kept = self._touched(connector)
            last = kept.events[-1] if kept.events else None
            if last is not None and _repeats(event, last.record):
                last.version, last.record = kept.version, _again(event, last.record)
            else:
                self._make_room(kept)
                kept.events.append(_Entry(kept.version, event))
        self._ring()

    def forget(self, connector: str) -> None:
        with self._lock:
            kept = self._connectors.pop(connector, None)
            if kept is None:
                return
            self._records -= kept.size
            self._version += 1
            self._gone.append((self._version, connector))
        self._ring()

    def retain(self, known: Callable[[], Collection[str]]) -> None:
        """Forget all others: they were deleted, here or elsewhere, and something came in late. `known` is
        asked after a look at what there is, so that none is forgotten that comes meanwhile."""
        with self._lock:
            kept = set(self._connectors)
        for name in kept.difference(known()):
            self.forget(name)

    def sample(self, connector: str, lag: int | None, freshness: float | None, ends: int | None) -> None:
        """How a job is now, about every ten seconds; `ends` is the sum of the ends of its partitions."""
        now = self._wall_ms()
        with self._lock:
            kept = self._connectors.get(connector) or self._touched(connector)
            is_news = kept.ring.sample(now, lag, freshness, ends)
            if is_news:
                self._touched(connector)
        if is_news:
            self._ring()

    def touched(self, connector: str) -> None:
        """Its state is another than before."""
        with self._lock:
            self._touched(connector)
        self._ring()

    # -- asked --

    @property
    def version(self) -> int:
        """Grows with every change."""
        return self._version

    def series(self, connector: str, seconds: float) -> SeriesView | None:
        """The last so many seconds, up to a day: in steps of 10 seconds up to an hour, else of 5 minutes."""
        now = self._wall_ms()
        with self._lock:
            kept = self._connectors.get(connector)
            return kept.ring.view(now, seconds, kept.since_ms) if kept else None

    def batches(self, connector: str, after: int = 0, most: int | None = None) -> Batches:
        """Those that have ended after the version `after`, the last so many, and the one under way."""
        with self._lock:
            kept = self._connectors.get(connector)
            if kept is None:
                return Batches(None, None, ())
            last = itertools.islice(reversed(kept.batches), most)
            contents = [one.content for one in last if one.version > after]
            since, under_way = kept.since_ms, kept.under_way
        return Batches(since, under_way, tuple(unpacked(content) for content in reversed(contents)))

    def events(self, connector: str, after: int = 0) -> tuple[Event, ...]:
        """Those told after the version `after`, the oldest first."""
        with self._lock:
            kept = self._connectors.get(connector)
            return _after(kept.events, after) if kept else ()

    def all_events(self, after: int = 0) -> tuple[tuple[str, Event], ...]:
        """Of all connectors, by time."""
        with self._lock:
            found = [
                (name, event)
                for name, kept in self._connectors.items()
                for event in _after(kept.events, after)
            ]
        return tuple(sorted(found, key=lambda one: one[1].at_ms))

    def recent(self, connector: str, seconds: int = 300) -> Recent:
        now = self._wall_ms()
        with self._lock:
            kept = self._connectors.get(connector)
            if kept is None:
                return Recent()
            return Recent(kept.since_ms, kept.rejected_ms, kept.ring.lags(now, seconds))

    def rates(self, connector: str) -> tuple[float, float] | None:
        """Records a second that came in and went out in the last minute; None: nothing is known."""
        now = self._wall_ms()
        with self._lock:
            kept = self._connectors.get(connector)
            return kept.ring.rates(now) if kept else None

    # -- changes --

    def changed_since(self, version: int) -> Changes:
        with self._lock:
            names = frozenset(name for name, kept in self._connectors.items() if kept.version > version)
            gone = frozenset(name for at, name in self._gone if at > version) - self._connectors.keys()
            is_complete = len(self._gone) < _MOST_GONE or self._gone[0][0] <= version
            return Changes(self._version, names, gone, is_complete and version <= self._version)

    def subscribe(self, tell: Callable[[], None]) -> Subscription:
        """`tell` is called after a change; see `Subscription`."""
        with self._lock:
            made = Subscription(self, tell, self._version)
            self._subscriptions = (*self._subscriptions, made)
        return made

    def leave(self, subscription: Subscription) -> None:
        with self._lock:
            self._subscriptions = tuple(one for one in self._subscriptions if one is not subscription)

    # -- how --

    def _ring(self) -> None:
        for subscription in self._subscriptions:
            subscription.ring()

    def _touched(self, connector: str) -> _OfConnector:
        self._version += 1
        kept = self._connectors.get(connector)
        if kept is None:
            kept = self._connectors[connector] = _OfConnector(self._wall_ms(), self._version, Ring())
        kept.version = self._version
        return kept

    def _take_ended(self, kept: _OfConnector, record: BatchRecord) -> None:
        if kept.under_way is not None and kept.under_way.id == record.id:
            kept.under_way = None
        last = itertools.islice(reversed(kept.batches), _LOOK_BACK)
        known = next((one for one in last if one.id == record.id), None)
        if known is not None:
            # What became of it was found out later.
            known.version, known.content = kept.version, packed(record)
        else:
            self._make_room(kept)
            kept.batches.append(_Packed(kept.version, record.id, packed(record)))
        now = self._wall_ms()
        kept.ring.batch(now, record)
        if record.landed and any(record.rejected.values()):
            kept.rejected_ms = now

    def _make_room(self, kept: _OfConnector) -> None:
        """For one more record of this connector: full, it loses its own oldest once it has its share, and the
        greediest of the others otherwise."""
        if self._records < self._most_records:
            self._records += 1
            return
        share = max(_LEAST_EACH, self._most_records // len(self._connectors))
        if kept.size >= share:
            kept.drop_oldest()
            return
        greediest = max(self._connectors.values(), key=lambda one: one.size)
        lost = max(1, min(_AT_ONCE, greediest.size - share))
        for _ in range(lost):
            greediest.drop_oldest()
        self._records += 1 - lost


def _repeats(event: Event, before: Event) -> bool:
    """Whether it is the next attempt of the same: an outage of a day is one line, and not thousands."""
    return event.kind == "retry" and (event.kind, event.about) == (before.kind, before.about)


def _again(event: Event, before: Event) -> Event:
    since = before.numbers.get("since_ms", before.at_ms)
    return replace(event, numbers={**event.numbers, "since_ms": since})


def _after(entries: deque[_Entry[_Record]], version: int) -> tuple[_Record, ...]:
    return tuple(entry.record for entry in entries if entry.version > version)
