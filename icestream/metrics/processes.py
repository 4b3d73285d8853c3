"""CPU and memory of the worker with all processes that it has started: Spark's JVM, its Python workers, jobs
in processes of their own. From /proc; told under the names that dashboards know, which mean the whole worker.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from prometheus_client.metrics_core import Metric as Family

from icestream.metrics import catalog
from icestream.metrics.facts import WorkerFacts
from icestream.metrics.families import add, family_of

_PROC: Final = Path("/proc")
# Fields of /proc/<pid>/stat after the name, as proc(5) counts them, less the three that are cut off.
_PARENT, _CPU, _THREADS, _STARTED, _VIRTUAL, _RESIDENT = 1, slice(11, 15), 17, 19, 20, 21


@dataclass(frozen=True)
class Process:
    """One, as /proc tells it."""

    parent: int
    ticks: int
    """Of CPU, with those of its children that have ended."""
    threads: int
    started_ticks: int
    virtual: int
    resident_pages: int


class ProcessFamilies:
    """A part of the collector; `pid` is the process that is told of."""

    def __init__(self, pid: int | None = None, proc: Path = _PROC) -> None:
        self._pid = pid or os.getpid()
        self._proc = proc
        self._ticks_a_second = os.sysconf("SC_CLK_TCK")
        self._page = os.sysconf("SC_PAGE_SIZE")
        self._most_cpu = 0.0

    def __call__(self, facts: WorkerFacts) -> Iterator[Family]:
        found = processes(self._proc)
        if self._pid not in found:
            # No /proc, as on a Mac: left out.
            return
        tree = [found[pid] for pid in _tree(self._pid, found)]
        own = found[self._pid]
        # A process that nobody waited for takes its time with it; a counter must not fall.
        cpu = sum(one.ticks for one in tree) / self._ticks_a_second
        self._most_cpu = max(self._most_cpu, cpu)
        yield _one(catalog.CPU, self._most_cpu)
        yield _one(catalog.MEMORY, sum(one.resident_pages for one in tree) * self._page)
        yield _one(catalog.VIRTUAL, sum(one.virtual for one in tree))
        yield _one(catalog.STARTED, self._boot_time() + own.started_ticks / self._ticks_a_second)
        yield _one(catalog.THREADS, own.threads)
        yield _one(catalog.CHILDREN, len(tree) - 1)
        yield _one(catalog.OPEN_FILES, len(os.listdir(self._proc / str(self._pid) / "fd")))
        yield _one(catalog.MOST_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[0])

    def _boot_time(self) -> float:
        lines = (self._proc / "stat").read_text().splitlines()
        return float(next(line.split()[1] for line in lines if line.startswith("btime ")))


def processes(proc: Path = _PROC) -> dict[int, Process]:
    """All of this machine, by their ids; empty where there is no /proc."""
    found = {}
    try:
        names = [name for name in os.listdir(proc) if name.isdecimal()]
    except OSError:
        return {}
    for name in names:
        try:
            # Not by pathlib: a machine may have thousands of them.
            with open(f"{proc}/{name}/stat", "rb", buffering=0) as file:
                text = file.read()
        except OSError:
            # It has ended meanwhile.
            continue
        # The name of a program may have blanks and parentheses itself.
        fields = text[text.rindex(b")") + 1 :].split()
        found[int(name)] = Process(
            int(fields[_PARENT]),
            sum(map(int, fields[_CPU])),
            int(fields[_THREADS]),
            int(fields[_STARTED]),
            int(fields[_VIRTUAL]),
            int(fields[_RESIDENT]),
        )
    return found


def _tree(root: int, found: Mapping[int, Process]) -> list[int]:
    """The process and all that descend from it."""
    children: dict[int, list[int]] = {}
    for pid, process in found.items():
        children.setdefault(process.parent, []).append(pid)
    tree = [root]
    for pid in tree:
        tree += children.get(pid, [])
    return tree


def _one(metric: catalog.Metric, value: float) -> Family:
    family = family_of(metric)
    add(family, metric, {}, float(value))
    return family
