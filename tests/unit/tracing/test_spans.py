"""A batch as a trace: where its stages stand, and what they say."""

from __future__ import annotations

import uuid
from dataclasses import replace

from icestream.api.history import BatchRecord, Outcome, TargetCommit
from icestream.tracing.spans import Span, batch_span, trace_id

MS = 1_000_000
RECORD = BatchRecord(
    "b1",
    1_000,
    Outcome.COMMITTED,
    seconds=10.0,
    read=100,
    written=90,
    rejected={"VALUE_CONVERTER": 4, "TRANSFORMATION": 2},
    filtered={"drop": 4},
    bytes=5_000,
    lag_after=7,
    tasks=4,
    longest_task=4.0,
    stages={
        "plan": 1.0,
        "queue": 2.0,
        "read": 4.0,
        "convert": 2.0,
        "transform": 1.0,
        "stage": 1.0,
        "commit": 1.5,
        "publish": 0.5,
    },
    targets=(TargetCommit("ns.t", "17", 90, 1.2, (10, 20)),),
)


def placed(span: Span) -> dict[str, tuple[float, float]]:
    """In seconds since the batch began."""
    return {one.name: ((one.start - span.start) / 1e9, (one.end - span.start) / 1e9) for one in span.children}


def test_stages_stand_where_they_happened() -> None:
    span = batch_span("orders", RECORD)
    assert (span.start, span.end) == (1_000 * MS, 11_000 * MS)
    assert placed(span) == {
        "plan": (0.0, 1.0),
        "queue": (1.0, 3.0),
        # Eight seconds of four tasks, in the four of the longest.
        "read": (3.0, 5.0),
        "convert": (5.0, 6.0),
        "transform": (6.0, 6.5),
        "stage": (6.5, 7.0),
        "commit": (8.0, 9.5),
        "publish": (9.5, 10.0),
    }
    assert [one.attributes["icestream.stage.seconds"] for one in span.children][2] == 4.0


def test_a_batch_says_what_became_of_its_records() -> None:
    span = batch_span("orders", RECORD)
    assert span.error is None
    assert span.attributes == {
        "icestream.connector": "orders",
        "icestream.batch.id": "b1",
        "icestream.batch.outcome": "committed",
        "icestream.records.read": 100,
        "icestream.records.written": 90,
        "icestream.records.rejected": 6,
        "icestream.records.filtered": 4,
        "icestream.read.bytes": 5_000,
        "icestream.tasks": 4,
        "icestream.targets": ["ns.t"],
        "icestream.lag.records": 7,
    }
    (commit,) = next(one for one in span.children if one.name == "commit").children
    assert commit.attributes["icestream.target"] == "ns.t"
    assert (commit.attributes["icestream.files"], commit.attributes["icestream.files.bytes"]) == (2, 30)


def test_a_batch_that_failed_is_an_error_with_its_sentence() -> None:
    failed = replace(RECORD, outcome=Outcome.FAILED, note="the table is gone", stages={"plan": 1.0})
    span = batch_span("orders", failed)
    assert span.error == "the table is gone"
    assert [one.name for one in span.children] == ["plan"]
    assert batch_span("orders", replace(RECORD, outcome=Outcome.RUN_AGAIN)).error is None


def test_whatever_the_numbers_no_stage_leaves_its_batch() -> None:
    """Clocks jump, and stages of a batch that ran twice are summed."""
    stages = dict.fromkeys(RECORD.stages, 100.0)
    for record in (
        replace(RECORD, stages=stages),
        replace(RECORD, stages=stages, longest_task=0.0),
        replace(RECORD, seconds=0.0),
        replace(RECORD, seconds=-1.0, longest_task=-1.0, stages={"read": -1.0, "commit": -2.0, "x": 1.0}),
    ):
        span = batch_span("orders", record)
        inner = [*span.children, *(below for one in span.children for below in one.children)]
        assert span.end >= span.start
        assert all(span.start <= one.start <= one.end <= span.end for one in inner)


def test_thousands_of_targets_are_not_thousands_of_spans() -> None:
    many = tuple(TargetCommit(f"ns.t{number}", rows=number) for number in range(5_000))
    span = batch_span("orders", replace(RECORD, targets=many))
    commits = next(one for one in span.children if one.name == "commit").children
    assert [one.attributes["icestream.target"] for one in commits][:2] == ["ns.t4999", "ns.t4998"]
    assert len(commits) == 50


def test_a_trace_has_the_id_of_its_batch() -> None:
    batch = uuid.uuid4()
    assert trace_id(str(batch)) == batch.int
    assert trace_id("") != 0
    assert trace_id("turn-7") == trace_id("turn-7") != trace_id("turn-8")
