"""The manager of a job: a connector at work, as the control plane sees it.

`jobs.build` makes one for a connector's config; `cluster.reconciler` drives it in the connector's own thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from icestream.api.status import Progress


class Manager(Protocol):
    """Called from one thread, except `cancel`, `allow` and reads of `progress`."""

    @property
    def progress(self) -> Progress:
        """How far the job is; replaced as a whole, so that other threads may read it."""

    def tick(self) -> float:
        """One turn. Returns how many seconds may pass before the next."""

    def close(self) -> None:
        """Give back what is open. No tick follows."""

    def cancel(self) -> None:
        """Give up the turn under way, which raises Cancelled if it can, and every later one until `allow`.

        Called from another thread; may take a few seconds.
        """

    def allow(self) -> None:
        """Take a `cancel` back. Returns at once."""


class MakeManager(Protocol):
    """Makes the manager of a connector from its resolved config. May take long: it may have to start Spark.

    `wake` may be called from any thread, to end the pause that the last `tick` asked for.
    """

    def __call__(self, name: str, config: Mapping[str, str], wake: Callable[[], None]) -> Manager: ...
