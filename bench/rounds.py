"""One run: a fresh worker, table and connector, until the last row is visible. And the order of runs."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.machine import Foreign
from bench.profile import ThreadTimes, thread_times
from bench.sides import Side, connector_config
from bench.table import BenchTable, Content, wait_for_rows
from bench.worker import RunFailed, Worker, running_worker

_POLL_S: Final = 0.1
_CHECK_S: Final = 2.0
_PATIENCE_S: Final = 180.0


@dataclass(frozen=True)
class Load:
    """The topic that is drained, the same for every run."""

    bootstrap: str
    topic: str
    records: int
    broker_pid: int
    evolve_schema: bool


@dataclass(frozen=True)
class Drained:
    """What one run measured."""

    side: str
    round: int
    records: int
    seconds: float
    first_rows_seconds: float
    cpu_seconds: float
    peak_memory_bytes: int
    processes: int
    startup_seconds: float
    """From starting the worker to healthy; not part of `seconds`."""
    foreign_share: float
    """The part of the machine that others used meanwhile: neither side, broker nor harness."""
    content: Content
    threads: Sequence[ThreadTimes] = ()

    @property
    def rate(self) -> float:
        return self.records / self.seconds

    @property
    def cpu_per_million(self) -> float:
        return self.cpu_seconds * 1_000_000 / self.records


def in_turn(sides: Sequence[Side], rounds: int) -> Iterator[tuple[int, Side]]:
    """Every side in every round; who goes first changes from round to round."""
    for number in range(1, rounds + 1):
        for side in sides if number % 2 else tuple(reversed(sides)):
            yield number, side


def drain(
    side: Side,
    number: int,
    load: Load,
    folder: Path,
    on_progress: Callable[[int], None],
    *,
    profile: bool = False,
    keep: bool = False,
) -> Drained:
    """Run one side once. Its files are deleted unless something goes wrong or `keep` is set."""
    folder.mkdir(parents=True)
    table = BenchTable(folder)
    table.create()
    # What the run before has written is flushed now, not on this run's time.
    os.sync()
    began = time.monotonic()
    with running_worker(side, folder, load.bootstrap) as worker:
        startup = time.monotonic() - began
        drained = _drain(side, number, load, worker, table, on_progress, startup, profile)
    if not keep:
        shutil.rmtree(folder)
    return drained


def _drain(
    side: Side,
    number: int,
    load: Load,
    worker: Worker,
    table: BenchTable,
    on_progress: Callable[[int], None],
    startup: float,
    profile: bool,
) -> Drained:
    name = f"bench-{side.name}-{number}"
    config = connector_config(side, table, topic=load.topic, evolve_schema=load.evolve_schema)
    watch = _Watch(worker, name, table, on_progress)
    worker.meter.mark()
    foreign = Foreign([load.broker_pid])
    watch.started = time.monotonic()
    worker.create(name, config)
    rows = wait_for_rows(
        watch.rows,
        load.records,
        clock=time.monotonic,
        sleep=time.sleep,
        every_s=_POLL_S,
        patience_s=_PATIENCE_S,
    )
    seconds = time.monotonic() - watch.started
    usage = worker.meter.read()
    share = foreign.share(usage.cpu_seconds)
    threads = thread_times(worker.meter.living()) if profile else ()
    if rows < load.records:
        raise RunFailed(
            f"{side.title} shows {rows:,} of {load.records:,} rows and has added none"
            f" for {_PATIENCE_S:.0f} s; its log is in the run's folder"
        )
    return Drained(
        side=side.name,
        round=number,
        records=load.records,
        seconds=seconds,
        first_rows_seconds=watch.first_rows - watch.started,
        cpu_seconds=usage.cpu_seconds,
        peak_memory_bytes=usage.peak_memory_bytes,
        processes=usage.most_processes,
        startup_seconds=startup,
        foreign_share=share,
        content=checked(table.content(), load.records, side.title),
        threads=threads,
    )


class _Watch:
    """Counts visible rows, notes when the first came, and checks now and then that the connector runs."""

    def __init__(
        self, worker: Worker, name: str, table: BenchTable, on_progress: Callable[[int], None]
    ) -> None:
        self._worker = worker
        self._name = name
        self._table = table
        self._on_progress = on_progress
        self._checked = time.monotonic()
        self.started = 0.0
        self.first_rows = 0.0

    def rows(self) -> int:
        rows = self._table.visible_rows()
        now = time.monotonic()
        if rows and not self.first_rows:
            self.first_rows = now
        if now - self._checked > _CHECK_S:
            self._checked = now
            self._worker.check(self._name)
            self._on_progress(rows)
        return rows


def checked(content: Content, records: int, title: str) -> Content:
    """The content, if it is every record once."""
    if (content.rows, content.distinct) != (records, records):
        raise RunFailed(
            f"{title} wrote {content.rows:,} rows with {content.distinct:,} different ids"
            f" for {records:,} records; this run counts for nothing"
        )
    return content
