"""How far a download is, on stderr: a bar on a terminal, else a line now and then."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

_MB = 1_000_000
_EVERY_S = 10.0

Advance = Callable[[int], None]
"""Called by any thread with bytes that arrived; less than 0 where a transfer starts over."""


@contextmanager
def download_progress(
    what: str, total: int, console: Console | None = None, every_s: float = _EVERY_S
) -> Iterator[Advance]:
    console = console or Console(stderr=True)
    if console.is_terminal:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=console) as bar:
            task = bar.add_task("Java libraries", total=total)
            yield lambda count: bar.advance(task, count)
        return
    lines = _Lines(console, total, every_s)
    # Said at once: without a line, the first start would look stuck.
    lines.say(f"fetching Java libraries: {what} ({_mb(total)} MB, once)")
    yield lines.advance


class _Lines:
    def __init__(self, console: Console, total: int, every_s: float) -> None:
        self._console, self._total, self._every_s = console, total, every_s
        self._lock = threading.Lock()
        self._arrived = 0
        self._began = self._said = time.monotonic()

    def say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def advance(self, count: int) -> None:
        with self._lock:
            self._arrived += count
            now = time.monotonic()
            if now - self._said < self._every_s or self._arrived >= self._total:
                return
            self._said = now
            rate = max(self._arrived, 1) / max(now - self._began, 0.001)
            left = (self._total - self._arrived) / rate
            self.say(
                f"  {_mb(self._arrived)} of {_mb(self._total)} MB, {rate / _MB:.1f} MB/s, {left:.0f} s left"
            )


def _mb(count: int) -> str:
    return f"{count / _MB:,.1f}" if count < 10 * _MB else f"{count / _MB:,.0f}"
