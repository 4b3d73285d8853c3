"""The dead letters of a worker's connectors, as the console asks for them: groups, records, replays.

The service passes the config of the connector, with its secrets; nothing of it is kept. Each look opens the
queue anew, reads its newest letters for some seconds, and says from where on there are more.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from icestream.api.config import Config
from icestream.api.errors import BadFilter, IcestreamError, NotFoundError, NotReadyError, PreconditionError
from icestream.jobs.letters.kinds import LetterKind, kind_of
from icestream.jobs.letters.replay import DeadLetterQueue, Request, Selection
from icestream.jobs.publishing.dead_letters import DeadLetter, DeadLetterFilter

_MOST_READ: Final = 10_000
_SECONDS: Final = 5.0
_STRIDE: Final = 2_500
"""Offsets that are read before somebody looks at the clock."""
_CURSOR: Final = re.compile(r"\d{1,6}:\d{1,18}(,\d{1,6}:\d{1,18})*", re.ASCII)

Letter = tuple[DeadLetter, bool]
"""A dead letter, and whether it was sent again."""


@dataclass
class LetterGroup:
    """Dead letters of one kind."""

    kind: LetterKind
    count: int = 0
    replayed: int = 0
    first_ms: int | None = None
    last_ms: int | None = None
    topics: set[str] = field(default_factory=set)

    def add(self, letter: DeadLetter, replayed: bool) -> None:
        self.count += 1
        self.replayed += replayed
        if letter.origin is not None:
            self.topics.add(letter.origin.topic)
        if letter.timestamp_ms >= 0:
            at = letter.timestamp_ms
            self.first_ms = at if self.first_ms is None else min(self.first_ms, at)
            self.last_ms = at if self.last_ms is None else max(self.last_ms, at)


@dataclass(frozen=True)
class LetterPage:
    """What a look has found, the newest first."""

    queue: str
    letters: Sequence[Letter]
    read: int
    """How many dead letters it looked at."""
    cursor: str | None
    """Where to go on; None: the queue has no more."""
    has_lost_some: bool
    """Whether the queue has had letters that it no longer has."""

    def groups(self) -> list[LetterGroup]:
        found: dict[LetterKind, LetterGroup] = {}
        for letter, replayed in self.letters:
            kind = kind_of(letter.context)
            found.setdefault(kind, LetterGroup(kind)).add(letter, replayed)
        return sorted(found.values(), key=lambda one: -one.count)


@dataclass(frozen=True)
class ReplayPlan:
    """What a replay would do."""

    found: Selection
    topics: Sequence[str]
    problem: str | None = None
    """Why it would be refused."""


@dataclass(frozen=True)
class ReplayProgress:
    """How far a replay is."""

    total: int
    sent: int = 0
    is_over: bool = False
    problem: str | None = None


class LetterDesk:
    def __init__(self, worker: Mapping[str, str], clock: Callable[[], float] = time.monotonic) -> None:
        self._worker = worker
        self._clock = clock
        self._lock = threading.Lock()
        self._replays: dict[str, ReplayProgress] = {}
        self.when_over: Callable[[str, ReplayProgress], None] = lambda name, progress: None
        """Told of the end of every replay, in its thread."""

    def page(self, name: str, config: Config, wanted: DeadLetterFilter, cursor: str | None) -> LetterPage:
        """The newest 10,000 dead letters before the cursor, or as many as can be read in five seconds."""
        with self._opened(name, config) as queue:
            deadline = self._clock() + _SECONDS
            place = queue.reader.place(_numbers(cursor))
            found: list[DeadLetter] = []
            read = 0
            for _ in range(_MOST_READ // _STRIDE):
                letters, place = queue.reader.newest(place, _STRIDE)
                read += len(letters)
                found += (letter for letter in letters if wanted.takes(letter))
                if self._clock() >= deadline or not queue.reader.has_before(place):
                    break
            replayed = queue.replayed_by_now()
            found.sort(key=lambda letter: (letter.timestamp_ms, letter.offset), reverse=True)
            more = ",".join(f"{p.number}:{place[p]}" for p in place)
            return LetterPage(
                queue.topic,
                [(letter, letter in replayed) for letter in found],
                read,
                more if queue.reader.has_before(place) else None,
                queue.reader.has_lost_some,
            )

    def letter(self, name: str, config: Config, partition: int, offset: int) -> Letter:
        """The one at a place of the queue."""
        with self._opened(name, config) as queue:
            found = queue.reader.at(partition, offset)
            if found is None:
                raise NotFoundError(
                    f"'{queue.topic}' has no dead letter of connector '{name}' at offset {offset} of "
                    f"partition {partition}; it may be gone by now, so look at the list again"
                )
            return found, found in queue.replayed_by_now()

    def plan(self, name: str, config: Config, request: Request) -> ReplayPlan:
        """What `replay` would send, and to where."""
        with self._opened(name, config) as queue:
            found = queue.looked(request)
            topics = [request.to_topic] if request.to_topic else sorted(found.origins)
            try:
                queue.refuse_unsendable(found, request.to_topic)
            except PreconditionError as refused:
                return ReplayPlan(found, topics, str(refused))
            return ReplayPlan(found, topics)

    def replay(self, name: str, config: Config, request: Request) -> ReplayProgress:
        """Begin to send; `progress` tells how far it is. One at a time for each connector."""
        plan = self.plan(name, config, request)
        if plan.problem is not None:
            raise BadFilter(plan.problem)
        with self._lock:
            under_way = self._replays.get(name)
            if under_way is not None and not under_way.is_over:
                raise NotReadyError(
                    f"a replay of connector '{name}' is under way ({under_way.sent:,} of {under_way.total:,} "
                    "sent); wait for its end"
                )
            begun = ReplayProgress(plan.found.count, is_over=not plan.found.count)
            self._replays[name] = begun
        if not begun.is_over:
            threading.Thread(
                target=self._send, args=(name, dict(config), request), name=f"replay-{name}", daemon=True
            ).start()
        return begun

    def progress(self, name: str) -> ReplayProgress | None:
        """Of the last replay that this worker has done; None if there was none."""
        return self._replays.get(name)

    def _send(self, name: str, config: Config, request: Request) -> None:
        problem: str | None = None
        try:
            with self._opened(name, config) as queue:
                for sent in queue.replay(request):
                    self._note(name, lambda was, sent=sent: replace(was, sent=was.sent + sent))  # type: ignore[misc]
        except IcestreamError as error:
            problem = str(error)
        except Exception as error:  # whoever looks at its progress must hear of its end
            problem = f"the replay ended: {type(error).__name__}; what was sent counts, so ask again"
            raise
        finally:
            self._note(name, lambda was: replace(was, is_over=True, problem=problem))
            self.when_over(name, self._replays[name])

    def _note(self, name: str, change: Callable[[ReplayProgress], ReplayProgress]) -> None:
        with self._lock:
            self._replays[name] = change(self._replays[name])

    @contextmanager
    def _opened(self, name: str, config: Config) -> Iterator[DeadLetterQueue]:
        queue = DeadLetterQueue(name, config, self._worker)
        try:
            yield queue
        finally:
            queue.close()


def _numbers(cursor: str | None) -> dict[int, int]:
    if not cursor:
        return {}
    if not _CURSOR.fullmatch(cursor):
        raise BadFilter(f"'{cursor[:40]}' is no place in a dead letter queue; take the one that was told")
    return {int(number): int(offset) for number, _, offset in (it.partition(":") for it in cursor.split(","))}
