"""The targets of a job that routes: which of them are open, which do not exist, how many there may be. Used
by `resume_finder`.

A target that only records name is opened when the first of them does, and stays open from batch to batch, so
that its checkpoint is not asked for again. A bound keeps the memory of a job flat, however many there are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from icestream.api.checkpoint import FoundCheckpoint
from icestream.api.errors import ConfigError, FatalError
from icestream.api.sink import Sink, Target, too_many_targets

_MOST_KEPT: Final = 500
"""Targets that stay open between batches."""
_ABSENT_SECONDS: Final = 10.0
"""How long a target that was not there is taken for absent before it is asked for again."""
_MOST_CHECKED: Final = 20
"""Targets that one check of an idle job asks for their checkpoint."""


class RoutedTargets:
    """Of one job."""

    def __init__(self, sink: Sink) -> None:
        assert sink.routing is not None
        self._sink = sink
        self._routing = sink.routing
        self._by_config = frozenset(target.name for target in sink.targets())
        self._used: dict[str, int] = {}
        """The last batch that had rows for a target, by number."""
        self._batch = 0
        self._absent: dict[str, tuple[str, float]] = {}
        self._check_from = 0
        self._created: set[str] = set()

    def forget(self) -> None:
        """All targets are asked again."""
        self._used.clear()
        self._absent.clear()

    def absent(self, now: float) -> dict[str, str]:
        """Targets that were not there when records named them, and why."""
        self._absent = {name: at for name, at in self._absent.items() if now - at[1] < _ABSENT_SECONDS}
        return {name: why for name, (why, _) in self._absent.items()}

    def opened(
        self, names: Collection[str], already: int, now: float
    ) -> list[tuple[Target, FoundCheckpoint]]:
        """Those of these targets that exist, with what they say of the job."""
        if already + len(self._absent) + len(names) > self._routing.most_targets + _MOST_KEPT:
            self._absent.clear()
        if len(names) > self._routing.most_targets:
            raise FatalError(too_many_targets(self._routing, min(names)))
        opened = []
        for name in sorted(names):
            target = self._sink.target(name)
            try:
                found = target.found()
                target.plan({})
            except ConfigError as error:
                self._absent[name] = (str(error), now)
                continue
            opened.append((target, found))
        return opened

    def all_found(
        self, targets: Sequence[Target], found: Sequence[FoundCheckpoint]
    ) -> Sequence[FoundCheckpoint]:
        """What is found of the targets of the config, and then of all others that the job has written."""
        if not self._routing.grows:
            return found
        names = {target.name for target in targets}
        others = [target for target in self._sink.known_targets() if target.name not in names]
        return [*found, *(target.found() for target in others)]

    def creates(self, missing: Sequence[Target]) -> None:
        """Some targets are about to be created; not without end."""
        self._created |= {target.name for target in missing}
        if len(self._created) > self._routing.most_targets:
            raise FatalError(too_many_targets(self._routing, missing[0].name))

    def has_nothing_for(self, missing: Sequence[Target], now: float) -> bool:
        """The records that name these have no field to create them from, such as those that only delete;
        whether that is news."""
        names = {target.name for target in missing}
        is_news = not names <= self._absent.keys()
        self._absent |= dict.fromkeys(names, ("", now))
        return is_news

    def had_rows(self, names: Iterable[str]) -> None:
        self._batch += 1
        self._used |= dict.fromkeys(names, self._batch)

    def too_many(self, count: int) -> bool:
        return count - len(self._by_config) > _MOST_KEPT

    def is_kept(self, name: str) -> bool:
        """Whether a target stays open: those that had rows last, and those that the config names."""
        if name in self._by_config:
            return True
        newest = sorted(self._used.items(), key=lambda item: item[1], reverse=True)[: _MOST_KEPT // 2]
        self._used = dict(newest)
        return name in self._used

    def next_to_check(self, targets: Sequence[Target]) -> list[int]:
        """The positions of those whose turn it is to be asked whether somebody else has changed them."""
        count = len(targets)
        turn = [(self._check_from + at) % count for at in range(min(count, _MOST_CHECKED))]
        self._check_from = (turn[-1] + 1) % count if turn else 0
        return turn
