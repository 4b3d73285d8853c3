"""A sink whose every answer has a time limit. Around the real one, for the sink manager.

Clients have limits of their own, but not all of them and not for everything: a database that stopped in
mid-query, a proxy that sends a byte a minute. The call that hangs is left behind in its thread, with its
sink; if it wakes and commits after all, the compare-and-set has decided by then.
"""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any, TypeVar

from icestream.api.batch import Staged
from icestream.api.checkpoint import FoundCheckpoint
from icestream.api.errors import CommitUnknown, SinkUnavailable
from icestream.api.history import TableCommit
from icestream.api.sink import (
    Commit,
    Inheritance,
    LeftBehind,
    Message,
    OpenWriter,
    Receipt,
    Sink,
    Target,
    TargetAudit,
    Unfinished,
)
from icestream.deadlines import Overdue, within

_T = TypeVar("_T")


class LimitedSink(Sink):
    def __init__(
        self, open_sink: Callable[[], Sink], seconds: float | None, commit_seconds: float | None = None
    ) -> None:
        """`commit_seconds`: how long a commit may take, where the config says it."""
        self._open = open_sink
        self._seconds = seconds
        self._commit_seconds = commit_seconds
        self._sink = open_sink()
        self._replacing = threading.Lock()
        self.writer: OpenWriter = self._sink.writer
        self.commit_seconds = self._sink.commit_seconds
        self.routing = self._sink.routing
        self.whole_partitions = self._sink.whole_partitions

    def targets(self) -> Sequence[Target]:
        return [_LimitedTarget(self, target.name) for target in self._sink.targets()]

    def target(self, name: str) -> Target:
        return _LimitedTarget(self, name)

    def known_targets(self) -> Sequence[Target]:
        """Without a limit: it may take long, and every answer has the limits of its client."""
        return [_LimitedTarget(self, target.name) for target in self._sink.known_targets()]

    def event_topics(self) -> Sequence[str]:
        return self._sink.event_topics()

    def events(
        self, commit: str, receipts: Mapping[str, Receipt] | None, valid_through: dt.datetime | None
    ) -> Sequence[Message]:
        return self._sink.events(commit, receipts, valid_through)

    def inheritance(self) -> Inheritance | None:
        return self._sink.inheritance()

    def inherit(self, left: LeftBehind) -> None:
        # It limits each of its own calls: how many there are depends on what was left.
        self._sink.inherit(left)

    def close(self) -> None:
        self._sink.close()

    @property
    def commit_limit(self) -> float | None:
        """How many seconds a commit may take: as the config says, or as long as it may take the sink."""
        if self._commit_seconds is not None or self._seconds is None:
            return self._commit_seconds
        return max(self._seconds, self.commit_seconds or 0.0)

    def asked(self, target: str, call: Callable[[Target], _T], doing: str) -> _T:
        """What a target answers in time."""
        return self.asked_within(self._seconds, target, call, doing)

    def asked_within(
        self, seconds: float | None, target: str, call: Callable[[Target], _T], doing: str
    ) -> _T:
        sink = self._sink
        mine = sink.target(target)
        if seconds is None:
            return call(mine)
        try:
            # A sink that does not answer is in the hands of the thread that hangs.
            told = f"catalog or object store: {doing} {target}"
            return within(seconds, lambda: call(mine), told, too_late=sink.close)
        except Overdue:
            self._replace(sink)
            raise _NoAnswer(
                f"{doing} {target}: no answer of its catalog or object store in {seconds:g} s"
            ) from None

    def _replace(self, sink: Sink) -> None:
        """Once, if several threads have waited for it."""
        with self._replacing:
            if self._sink is sink:
                self._sink = self._open()

    def another(self) -> Sink:
        """A sink of its own, for a thread of its own; to be closed after use."""
        return self._open()


class _LimitedTarget(Target):
    def __init__(self, sink: LimitedSink, name: str) -> None:
        self._sink = sink
        self.name = name

    def found(self) -> FoundCheckpoint:
        return self._sink.asked(self.name, lambda target: target.found(), "reading")

    def plan(self, new_fields: Mapping[tuple[str, ...], Any]) -> Any:
        return self._sink.asked(self.name, lambda target: target.plan(new_fields), "planning files of")

    def create(self, fields: Mapping[tuple[str, ...], Any]) -> None:
        self._sink.asked(self.name, lambda target: target.create(fields), "creating")

    def commit(self, commit: Commit) -> Receipt:
        try:
            return self._sink.asked_within(
                self._sink.commit_limit, self.name, lambda target: target.commit(commit), "committing to"
            )
        except _NoAnswer as error:
            raise CommitUnknown(f"{error}; the commit may land all the same") from None

    def unfinished(self) -> Unfinished | None:
        return self._sink.asked(self.name, lambda target: target.unfinished(), "reading")

    def finish(self, staged: Staged) -> None:
        self._sink.asked(self.name, lambda target: target.finish(staged), "finishing a commit to")

    def discard(self, staged: Staged) -> None:
        self._sink.asked(self.name, lambda target: target.discard(staged), "removing files of")

    def sweep(self, landed: str, now: dt.datetime) -> int:
        """May take long, and has a thread of its own."""
        with closing(self._sink.another()) as sink:
            return sink.target(self.name).sweep(landed, now)

    def commits(self, most: int) -> Sequence[TableCommit]:
        return self._sink.asked(self.name, lambda target: target.commits(most), "reading")

    def audit(self) -> TargetAudit:
        return self._sink.asked(self.name, lambda target: target.audit(), "reading")


class _NoAnswer(SinkUnavailable):
    pass
