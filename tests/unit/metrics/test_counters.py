"""What is counted of batches and events."""

from __future__ import annotations

import threading

from icestream.api.history import BatchRecord, Event, Outcome, TargetCommit
from icestream.metrics.counters import Counters

LANDED = BatchRecord(
    "b1",
    started_ms=1_000_000,
    outcome=Outcome.COMMITTED,
    seconds=2.0,
    read=10,
    written=6,
    rejected={"VALUE_CONVERTER": 3},
    filtered={"drop": 1},
    bytes=500,
    newest_ms={"orders": 1_000_000},
    valid_through_ms=999_000,
    tasks=2,
    longest_task=1.0,
    stages={"plan": 0.1, "queue": 0.2, "commit": 0.3},
    targets=(TargetCommit("db.t", "7", 6, 0.3, (100, 200)),),
    letters=3,
)


def test_a_batch_that_landed_is_in_the_books() -> None:
    counters = Counters(wall=lambda: 2_000.0)
    counters.batch("c", BatchRecord("b1", 1_000_000, Outcome.UNDER_WAY))
    assert list(counters.snapshot()["c"].under_way) == ["b1"]
    counters.batch("c", LANDED)
    counts = counters.snapshot()["c"]
    assert counts.read == counts.written + counts.rejected.total() + counts.filtered.total() == 10
    assert (counts.bytes_read, counts.letters, counts.files, counts.file_bytes) == (500, 3, 2, 300)
    assert counts.batches == {"committed": 1}
    assert counts.commits == {"landed": 1}
    assert counts.under_way == {}
    assert (counts.end_to_end.count, counts.end_to_end.sum) == (1, 2.0)
    assert counts.stage_seconds["plan"].sum == 0.1
    assert counts.spark_seconds.sum == 1.2
    assert counts.rejected_exemplars["VALUE_CONVERTER"].labels == {"commit_id": "b1"}


def test_a_batch_that_did_not_land_is_counted_and_not_in_the_books() -> None:
    counters = Counters()
    for outcome in (Outcome.CONFLICT, Outcome.UNKNOWN, Outcome.CUT, Outcome.FAILED):
        commit = TargetCommit("db.t", seconds=1.0, file_bytes=(1,), outcome=outcome)
        counters.batch("c", BatchRecord("x", 1, outcome, read=5, written=5, targets=(commit,)))
    counts = counters.snapshot()["c"]
    assert (counts.read, counts.written, counts.files) == (0, 0, 0)
    assert counts.batches == {"conflict": 1, "unknown": 1, "cut": 1, "failed": 1}
    assert counts.commits == {"refused": 1, "unknown": 1, "not_landed": 2}


def test_events_are_counted_by_what_they_are_about() -> None:
    counters = Counters()
    for event in (
        Event(1, "retry", "Kafka is away", about="kafka"),
        Event(1, "retry", "whoever", about="10.0.0.7:5432 refused"),
        Event(1, "restart", "again", numbers={"attempt": 1}),
        Event(1, "restart", "somebody asked for it", user="ann"),
        Event(1, "fenced", "by another"),
        Event(1, "replay", "letters", numbers={"records": 7}),
        Event(1, "schema", "columns", about="add_column", numbers={"columns": 2}),
        Event(1, "maintenance", "done", about="done", numbers={"seconds": 1.5, "files": 9, "bytes": 900}),
        Event(1, "maintenance", "failed", about="failed"),
        Event(1, "config", "not counted"),
    ):
        counters.event("c", event)
    counts = counters.snapshot()["c"]
    assert counts.retries == {"kafka": 1, "other": 1}
    assert (counts.restarts, counts.fenced, counts.replayed) == (1, 1, 7)
    assert counts.schema_changes == {"add_column": 2}
    assert counts.maintenance == {"done": 1, "failed": 1}
    assert (counts.maintenance_seconds, counts.maintenance_files, counts.maintenance_bytes) == (1.5, 9, 900)


def test_a_connector_that_left_is_forgotten() -> None:
    counters = Counters()
    counters.batch("stays", LANDED)
    counters.batch("leaves", LANDED)
    counters.retain({"stays"})
    assert list(counters.snapshot()) == ["stays"]
    counters.batch("leaves", LANDED)
    assert counters.snapshot()["leaves"].read == 10


def test_the_books_balance_whenever_somebody_looks() -> None:
    counters, done = Counters(), threading.Event()

    def run() -> None:
        for number in range(3000):
            counters.batch(f"c{number % 3}", LANDED)
        done.set()

    jobs = [threading.Thread(target=run) for _ in range(2)]
    for job in jobs:
        job.start()
    while not done.is_set():
        for counts in counters.snapshot().values():
            assert counts.read == counts.written + counts.rejected.total() + counts.filtered.total()
    for job in jobs:
        job.join()
    assert sum(counts.read for counts in counters.snapshot().values()) == 60_000


def test_a_batch_whose_end_nobody_told_is_under_way_until_the_next() -> None:
    counters = Counters()
    for number in range(3):
        counters.batch("c", BatchRecord(f"b{number}", 1, Outcome.UNDER_WAY))
    assert list(counters.snapshot()["c"].under_way) == ["b2"]
