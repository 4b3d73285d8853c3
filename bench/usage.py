"""What a process and all its descendants cost: CPU-seconds and memory. Each worker runs under such a meter.

CPU counts own time and the time of children that were waited for, so a dead child is not lost. Memory is the
sum of proportional set sizes (PSS): a page shared by several forked processes counts once.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Final, NamedTuple

import psutil  # type: ignore[import-untyped]

CPU_EVERY_S: Final = 0.5
# One PSS of a 2 GB process takes 100 ms of a core: seldom enough not to slow down what is measured.
MEMORY_EVERY_S: Final = 2.0


class Key(NamedTuple):
    """A process; the time of birth tells it from a later one with the same pid."""

    pid: int
    born: float


class Times(NamedTuple):
    """CPU-seconds of a process itself, and of its children that ended and were waited for."""

    own: float
    reaped: float


class CpuCounter:
    """Adds up the CPU-seconds of a tree of processes from samples of it."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._last: dict[Key, Times] = {}

    def add(self, sample: Mapping[Key, Times]) -> None:
        """Count what happened since the last sample.

        A child that ended is in its parent's `reaped`, its last moments included: then the change of the sums
        is right. If nobody in the tree waited for it, that change is too small by all it ever used, and the
        change of the own times of the living is the better figure: it lacks only the child's last moments.
        """
        own = reaped = 0.0
        for key, times in sample.items():
            before = self._last.get(key, Times(0.0, 0.0))
            own += times.own - before.own
            reaped += times.reaped - before.reaped
        gone = sum(sum(times) for key, times in self._last.items() if key not in sample)
        self.seconds += max(own, own + reaped - gone)
        self._last = dict(sample)


@dataclass(frozen=True)
class Usage:
    """From `mark` to the reading; memory and processes since the meter was started."""

    cpu_seconds: float
    peak_memory_bytes: int
    most_processes: int


class TreeMeter:
    """Samples the tree under a process from a thread of its own, for the length of a `with` block."""

    def __init__(self, root: int) -> None:
        process = psutil.Process(root)
        self._known: dict[Key, psutil.Process] = {Key(root, process.create_time()): process}
        self._cpu = CpuCounter()
        self._mark = 0.0
        self._peak = 0
        self._most = 0
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="meter", daemon=True)

    def __enter__(self) -> TreeMeter:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join()

    def mark(self) -> None:
        """CPU counts from here."""
        with self._lock:
            self._sample_cpu()
            self._mark = self._cpu.seconds

    def cpu_since_mark(self) -> float:
        with self._lock:
            self._sample_cpu()
            return self._cpu.seconds - self._mark

    def read(self) -> Usage:
        """The usage up to this moment."""
        cpu = self.cpu_since_mark()
        with self._lock:
            self._sample_memory()
            return Usage(cpu, self._peak, self._most)

    def memory_now(self) -> int:
        with self._lock:
            self._sample_cpu()
            return sum(_memory(process) for process in self._known.values())

    def living(self) -> list[psutil.Process]:
        """The processes of the tree that are still there, also those whose parent has died."""
        with self._lock:
            self._sample_cpu()
            return [process for process in self._known.values() if _runs(process)]

    def _run(self) -> None:
        rounds = round(MEMORY_EVERY_S / CPU_EVERY_S)
        turn = 0
        while not self._end.wait(CPU_EVERY_S):
            turn += 1
            with self._lock:
                self._sample_cpu()
                if turn % rounds == 0:
                    self._sample_memory()

    def _sample_cpu(self) -> None:
        self._known = _tree(self._known)
        sample = {}
        for key, process in self._known.items():
            try:
                times = process.cpu_times()
            except psutil.NoSuchProcess:
                continue
            reaped = getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
            sample[key] = Times(times.user + times.system, reaped)
        self._cpu.add(sample)
        self._most = max(self._most, len(sample))

    def _sample_memory(self) -> None:
        self._peak = max(self._peak, sum(_memory(process) for process in self._known.values()))


def _tree(known: Mapping[Key, psutil.Process]) -> dict[Key, psutil.Process]:
    """The known processes that still live, and all their descendants."""
    children: dict[int, list[psutil.Process]] = {}
    for process in psutil.process_iter(["ppid"]):
        children.setdefault(process.info["ppid"], []).append(process)
    found: dict[Key, psutil.Process] = {}
    waiting = [process for process in known.values() if process.is_running()]
    while waiting:
        process = waiting.pop()
        key = Key(process.pid, process.create_time())
        if key not in found:
            found[key] = process
            waiting += children.get(process.pid, [])
    return found


def _runs(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _memory(process: psutil.Process) -> int:
    try:
        full = process.memory_full_info()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return 0
    # Linux has PSS; elsewhere the memory that only this process has is the nearest that counts nothing twice.
    return int(getattr(full, "pss", 0) or full.uss)
