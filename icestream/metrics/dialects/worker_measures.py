"""What is kept of the worker itself: how connectors started, and how rebalances went. Fed by the worker,
read by `worker_rows.py`."""

from __future__ import annotations

from dataclasses import dataclass, field

from icestream.metrics.dialects.windows import Share, Window, WindowSize


@dataclass
class Startups:
    """Of connectors, or of tasks: sums, and the shares in the window."""

    share: Share
    attempts: int = 0
    successes: int = 0

    def record(self, count: int, *, is_success: bool, now_ms: int) -> None:
        self.attempts += count
        self.successes += count if is_success else 0
        for _ in range(count):
            self.share.record(is_success=is_success, now_ms=now_ms)

    @property
    def failures(self) -> int:
        return self.attempts - self.successes


@dataclass
class Rebalances:
    times_ms: Window
    completed: int = 0
    last_ms: int | None = None

    def record(self, seconds: float, now_ms: int) -> None:
        self.completed += 1
        self.last_ms = now_ms
        self.times_ms.record(seconds * 1000, now_ms)


@dataclass
class WorkerMeasures:
    """Not for two threads at once."""

    size: WindowSize = field(default_factory=WindowSize)
    connectors: Startups = field(init=False)
    tasks: Startups = field(init=False)
    rebalances: Rebalances = field(init=False)

    def __post_init__(self) -> None:
        self.connectors = Startups(Share(self.size))
        self.tasks = Startups(Share(self.size))
        self.rebalances = Rebalances(Window(self.size))
