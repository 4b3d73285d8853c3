"""Where the CPU went: seconds by process and thread, from /proc. `--profile` shows it; Linux only."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class ThreadTimes:
    """The threads of one kind in the processes of one kind; threads that have ended are in no line."""

    process: str
    thread: str
    threads: int
    cpu_seconds: float


def thread_times(processes: Iterable[Any]) -> list[ThreadTimes]:
    """All threads of psutil's processes, summed by kind, the most expensive first."""
    seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
    for process in processes:
        kind = Path(f"/proc/{process.pid}/comm")
        for task in Path(f"/proc/{process.pid}/task").glob("*/stat"):
            try:
                stat, name = task.read_text(), kind.read_text().strip()
            except OSError:
                continue
            thread, used = parse_stat(stat)
            seconds[name, thread_kind(thread)].append(used)
    found = [ThreadTimes(*key, len(used), round(sum(used), 2)) for key, used in seconds.items()]
    return sorted(found, key=lambda line: -line.cpu_seconds)


def parse_stat(stat: str) -> tuple[str, float]:
    """Name and CPU-seconds from a line of /proc/…/stat; the name is in parentheses and may hold any sign."""
    name = stat[stat.index("(") + 1 : stat.rindex(")")]
    fields = stat[stat.rindex(")") + 1 :].split()
    return name, (int(fields[11]) + int(fields[12])) / _TICKS


def thread_kind(thread: str) -> str:
    """The name without its number, so that the threads of a pool fall together."""
    return re.sub(r"[-_ #:]*\d+$", "", thread) or thread
