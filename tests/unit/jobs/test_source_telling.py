"""What the manager of a source tells of its batches."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pytest

from icestream.api.errors import RecordRejected, SourceUnavailable
from icestream.api.history import Outcome
from icestream.jobs.sources.manager import SourceJob, SourceManager
from icestream.jobs.sources.records import SourcePath, source_path_from
from icestream.records.records import Failure
from tests.unit.jobs.managed_sink import Told
from tests.unit.jobs.test_source_manager import LINES, NOW_MS, FakeWriter, Kafka, ListSource

STRINGS = {"key.converter": "StringConverter", "value.converter": "StringConverter"}
DROP = {
    "transforms": "drop",
    "transforms.drop.type": "org.apache.kafka.connect.transforms.Filter",
    "transforms.drop.predicate": "isT",
    "predicates": "isT",
    "predicates.isT.type": "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
    "predicates.isT.pattern": "t",
}


def managed(told: Told, kafka: Kafka, more: dict[str, str]) -> SourceManager:
    job = SourceJob("s", commit_seconds=0.0, tolerates_all=True, logs_rejects=False)
    now = iter(range(1_000_000))
    return SourceManager(
        job,
        [ListSource(LINES)],
        source_path_from({**STRINGS, **more}),
        lambda: FakeWriter(kafka),
        clock=lambda: next(now) / 1000,
        wall=lambda: dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
        observer=told,
    )


def test_a_batch_is_what_was_read_between_two_commits() -> None:
    told = Told()
    manager = managed(told, Kafka(), {})
    for _ in range(4):
        manager.tick()
    over = [record for record in told.batches if record.is_over]
    assert [record.outcome for record in over] == [Outcome.COMMITTED] * len(over)
    assert sum(record.read for record in over) == sum(record.written for record in over) == len(LINES)
    assert sum(record.bytes for record in over) == sum(map(len, LINES))
    assert {record.id for record in told.batches if not record.is_over} == {record.id for record in over}
    first = over[0]
    assert set(first.stages) >= {"read", "convert", "transform", "stage", "commit"}
    assert (first.targets[0].name, first.newest_ms) == ("t", {"t": NOW_MS})


def test_records_that_a_transform_drops_are_filtered_under_its_name() -> None:
    told = Told()
    manager = managed(told, Kafka(), DROP)
    for _ in range(4):
        manager.tick()
    over = [record for record in told.batches if record.is_over]
    assert {record.outcome for record in over} == {Outcome.EMPTY}
    assert sum(record.filtered.get("drop", 0) for record in over) == len(LINES)
    assert sum(record.written for record in over) == 0


def test_what_kafka_did_not_take_counts_nothing_and_says_why() -> None:
    told = Told()
    manager = managed(told, Kafka(failing=["commit"]), {})
    with pytest.raises(SourceUnavailable):
        manager.tick()
    last = told.batches[-1]
    assert (last.outcome, last.read, last.note) == (Outcome.UNAVAILABLE, 0, "commit")


def test_of_a_batch_that_is_not_sent_nothing_counts_though_others_are_committed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told, kafka = Told(), Kafka()
    # Offsets are saved every minute: what was sent before the bad record is committed with its failure.
    job = SourceJob("s", commit_seconds=60.0, tolerates_all=False, logs_rejects=False)
    manager = SourceManager(
        job,
        [ListSource(LINES)],
        source_path_from(STRINGS),
        lambda: FakeWriter(kafka),
        wall=lambda: dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
        observer=told,
    )
    manager.tick()
    real = SourcePath.convert
    bad = {0: Failure("VALUE_CONVERTER", "bad")}
    monkeypatch.setattr(SourcePath, "convert", lambda path, groups: replace(real(path, groups), failed=bad))
    with pytest.raises(RecordRejected):
        manager.tick()
    over = [record for record in told.batches if record.is_over]
    assert [(record.outcome, record.read, record.written) for record in over] == [(Outcome.COMMITTED, 4, 4)]
    assert over[0].rejected == {}
    with pytest.raises(RecordRejected):
        manager.tick()
    assert (told.batches[-1].outcome, told.batches[-1].read) == (Outcome.FAILED, 0)
