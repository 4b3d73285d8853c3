"""`python -m bench.telling`: what it costs that a job tells of its batches, and what the history of a worker
takes. CPU time of one thread, so it says the same on a machine that others use. No Kafka, no Spark.
The numbers of docs/decisions/039-history.md are its own.
"""

from __future__ import annotations

import datetime as dt
import time
import tracemalloc
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from icestream.api.batch import Batch, BatchResult, Counts, Staged, TaskTimes
from icestream.api.history import STAGES, BatchRecord, Outcome, TargetCommit
from icestream.api.offsets import Offsets, Partition
from icestream.api.sink import Receipt
from icestream.cluster.history.history import MOST_RECORDS, History
from icestream.jobs.sinks.batches.lags import LagWatch
from icestream.jobs.sinks.batches.staging import StagedBatch
from icestream.jobs.sinks.batches.telling import BatchTelling
from icestream.observers import Observers

_TIMES = TaskTimes({"read": 0.1, "convert": 0.1, "transform": 0.0, "stage": 0.1, "queue": 0.1}, 0.3, 1)


def main() -> None:
    table = Table("microseconds of CPU", "1 partition", "50", "1,000")
    for name, measured in (("telling a batch", _telling), ("lag of its partitions", _lags)):
        table.add_row(name, *(f"{measured(partitions) * 1e6:,.0f}" for partitions in (1, 50, 1_000)))
    history = History()
    each = _seconds(lambda: history.batch("c", _record(0)), 5_000)
    table.add_row("the history, aside, each time", *[f"{each * 1e6:,.0f}"] * 3)
    console = Console()
    console.print(table)
    console.print(f"a batch in the ring: {_bytes_a_batch():,.0f} bytes; the ring: {MOST_RECORDS:,}")
    console.print(f"points of a connector: {_bytes_a_connector():,.0f} bytes")


def _telling(partitions: int) -> float:
    batch, result = _batch(partitions)
    done = StagedBatch(batch, result, (), {}, 1, _TIMES)
    observers = Observers(History())
    told = BatchTelling("c", observers, time.monotonic, lambda: dt.datetime.now(dt.UTC))
    receipt = Receipt(None, 17, [5])

    def tell() -> None:
        told.begins(batch, time.monotonic())
        told.staged(done, dt.datetime.now(dt.UTC), has_queue=False)
        told.commits_to(["ns.t"])
        for stage in ("stage", "commit", "publish"):
            with told.stage(stage):
                pass
        told.committed_to("ns.t", 1, time.monotonic(), receipt)
        told.landed(done)
        told.ends_well(0)

    seconds = _seconds(tell, 20_000 // (partitions + 9))
    observers.settle(60)
    return seconds


def _lags(partitions: int) -> float:
    batch, result = _batch(partitions)
    watch, now = LagWatch(), dt.datetime.now(dt.UTC)

    def look() -> None:
        watch.at(batch.start, batch.end, now)
        watch.committed(result.newest_ms)
        watch.at(batch.end, batch.end, now)

    return _seconds(look, 20_000 // (partitions + 9))


def _batch(partitions: int) -> tuple[Batch, BatchResult]:
    numbers = [Partition("t", number) for number in range(partitions)]
    counts = dict.fromkeys(numbers, Counts(1, 1))
    batch = Batch("9f0c", Offsets(dict.fromkeys(numbers, 0)), Offsets(dict.fromkeys(numbers, 1)))
    staged = {"ns.t": Staged((), partitions, counts)}
    return batch, BatchResult(staged, (), 100, dict.fromkeys(numbers, 5), times=_TIMES)


def _record(number: int) -> BatchRecord:
    sizes = tuple(4_000_000 + number + one for one in range(3))
    return BatchRecord(
        f"9f0c0000-0000-0000-0000-{number:012}",
        1_794_737_645_102 + number,
        Outcome.COMMITTED,
        1.9 + number,
        planned=40_000 + number,
        read=40_000 + number,
        written=39_998 + number,
        rejected={"VALUE_CONVERTER": 1},
        filtered={"dropOld": 1},
        bytes=34_520_000 + number,
        lag_after=12_480 + number,
        newest_ms={"t": 1_794_737_644_800 + number},
        valid_through_ms=1_794_737_644_800 + number,
        tasks=2,
        longest_task=1.31 + number,
        stages=dict.fromkeys(STAGES, 0.1 * number),
        targets=(TargetCommit("streaming.apilogs", str(7 * 10**18 + number), 39_998, 0.31, sizes),),
    )


def _bytes_a_batch() -> float:
    tracemalloc.start()
    history = History()
    before = tracemalloc.get_traced_memory()[0]
    for number in range(MOST_RECORDS):
        history.batch(f"c{number % 10}", _record(number))
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return taken / MOST_RECORDS


def _bytes_a_connector() -> float:
    tracemalloc.start()
    history = History()
    before = tracemalloc.get_traced_memory()[0]
    for number in range(1_000):
        history.sample(f"c{number}", 5, 1.0, 7)
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return taken / 1_000


def _seconds(work: Callable[[], None], times: int) -> float:
    """The best of five rounds."""
    rounds = []
    for _ in range(5):
        began = time.thread_time()
        for _ in range(times):
            work()
        rounds.append((time.thread_time() - began) / times)
    return min(rounds)


if __name__ == "__main__":
    main()
