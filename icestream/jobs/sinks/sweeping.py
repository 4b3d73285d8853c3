"""When targets are swept of what dead batches have left behind: now and then, beside the job's batches."""

from __future__ import annotations

import datetime as dt
import functools
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from icestream.api.sink import Receipt, Target

_log = logging.getLogger(__name__)

_SWEEP_SECONDS: Final = 6 * 3600.0


class SweepSchedule:
    """Of one job. Told by its manager of every batch that landed."""

    def __init__(
        self,
        job: str,
        clock: Callable[[], float],
        wall: Callable[[], dt.datetime],
        aside: Callable[[Callable[[], None]], None],
    ) -> None:
        self._context = {"connector": job, "batch": ""}
        self._clock = clock
        self._wall = wall
        self._aside = aside
        self._swept_at: dict[str, float] = {}

    def committed(self, batch: str, targets: Sequence[Target], receipts: Mapping[str, Receipt]) -> None:
        """Only after a commit: whatever was under way before it, the target refuses from now on."""
        now = self._clock()
        due = [
            target
            for target in targets
            if receipts[target.name].id is not None
            and now - self._swept_at.get(target.name, -math.inf) >= _SWEEP_SECONDS
        ]
        if due:
            self._swept_at |= dict.fromkeys((target.name for target in due), now)
            self._aside(functools.partial(self._sweep, due, batch, self._wall()))

    def _sweep(self, targets: Sequence[Target], landed: str, now: dt.datetime) -> None:
        for target in targets:
            try:
                target.sweep(landed, now)
            except Exception as error:  # the edge of its thread; it is tried again, and nothing depends on it
                _log.warning("%s was not swept: %s", target.name, error, extra=self._context)
