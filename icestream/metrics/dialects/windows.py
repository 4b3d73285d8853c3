"""Rates, averages and extremes over a sliding window, as Kafka's clients compute them.

A window is `samples` samples of `sample_ms` each. Pure: every call is told the time. Fed and read by
`job_measures.py` and `worker_measures.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

SAMPLES_KEY: Final = "metrics.num.samples"
SAMPLE_MS_KEY: Final = "metrics.sample.window.ms"


@dataclass(frozen=True)
class WindowSize:
    """Kafka's defaults: two samples of half a minute."""

    samples: int = 2
    sample_ms: int = 30_000

    @property
    def expires_ms(self) -> int:
        return self.samples * self.sample_ms


def window_size(worker: Mapping[str, str]) -> WindowSize:
    """What a worker's config says; what is not a positive number is Kafka's default."""

    def number(key: str, default: int) -> int:
        text = worker.get(key, "").strip()
        return int(text) if text.isdecimal() and len(text) < 12 and int(text) > 0 else default

    return WindowSize(number(SAMPLES_KEY, 2), number(SAMPLE_MS_KEY, 30_000))


@dataclass
class _Sample:
    began_ms: int
    last_ms: int
    count: int = 0
    total: float = 0.0
    least: float = math.inf
    most: float = -math.inf


class Window:
    """Values of the last while. A value belongs to the sample in which it came; samples that are too old
    count no more."""

    def __init__(self, size: WindowSize = WindowSize()) -> None:  # noqa: B008  it is frozen
        self._size = size
        self._samples: list[_Sample] = []

    def record(self, value: float, now_ms: int) -> None:
        samples = self._samples
        if not samples or now_ms - samples[-1].began_ms >= self._size.sample_ms:
            samples.append(_Sample(now_ms, now_ms))
            del samples[: -self._size.samples]
        current = samples[-1]
        current.last_ms = now_ms
        current.count += 1
        current.total += value
        current.least = min(current.least, value)
        current.most = max(current.most, value)

    def rate(self, now_ms: int) -> float:
        """Sum per second, over at least all samples but one: a burst at the start is no large rate."""
        samples = self._young(now_ms)
        if not samples:
            return 0.0
        elapsed = now_ms - samples[0].began_ms
        missing = self._size.samples - 1 - elapsed // self._size.sample_ms
        elapsed += max(0, missing) * self._size.sample_ms
        return sum(sample.total for sample in samples) * 1000 / elapsed if elapsed else 0.0

    def average(self, now_ms: int) -> float:
        """NaN without a value."""
        samples = self._young(now_ms)
        count = sum(sample.count for sample in samples)
        return sum(sample.total for sample in samples) / count if count else math.nan

    def largest(self, now_ms: int) -> float:
        return self._extreme(max, (sample.most for sample in self._young(now_ms)))

    def smallest(self, now_ms: int) -> float:
        return self._extreme(min, (sample.least for sample in self._young(now_ms)))

    @staticmethod
    def _extreme(choose: Callable[..., float], values: object) -> float:
        return choose(values, default=math.nan)

    def _young(self, now_ms: int) -> list[_Sample]:
        return [sample for sample in self._samples if now_ms - sample.last_ms < self._size.expires_ms]


class Share:
    """Which fraction of what happened in the window was a success."""

    def __init__(self, size: WindowSize = WindowSize()) -> None:  # noqa: B008  it is frozen
        self._window = Window(size)

    def record(self, *, is_success: bool, now_ms: int) -> None:
        self._window.record(1.0 if is_success else 0.0, now_ms)

    def success(self, now_ms: int) -> float:
        """0 if nothing happened, as Kafka says."""
        share = self._window.average(now_ms)
        return 0.0 if math.isnan(share) else share

    def failure(self, now_ms: int) -> float:
        share = self._window.average(now_ms)
        return 0.0 if math.isnan(share) else 1.0 - share


class StateShares:
    """How large a part of its time something has spent in each state."""

    def __init__(self) -> None:
        self._spent: dict[str, int] = {}
        self._state: str | None = None
        self._since_ms = 0

    def enter(self, state: str, now_ms: int) -> None:
        self._settle(now_ms)
        self._state = state

    def share(self, state: str, now_ms: int) -> float:
        """1 for the state of something that has only begun, as Kafka says."""
        self._settle(now_ms)
        total = sum(self._spent.values())
        return self._spent.get(state, 0) / total if total else float(state == self._state)

    def _settle(self, now_ms: int) -> None:
        if self._state is not None:
            self._spent[self._state] = self._spent.get(self._state, 0) + max(0, now_ms - self._since_ms)
        self._since_ms = now_ms
