"""What a scrape hears: both formats, exemplars, zeros from the start, nothing of others."""

from __future__ import annotations

import gzip
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from icestream.api.engine import EngineNumbers, GarbageCollector, JvmNumbers
from icestream.api.history import MOST_PARTITIONS, Event, PartitionLag
from icestream.api.status import JobStatus, Progress, State
from icestream.cluster.group.membership import GroupView
from icestream.metrics import catalog
from icestream.metrics.collector import WorkerCollector
from icestream.metrics.counters import Counters
from icestream.metrics.exposition import exposition
from icestream.metrics.facts import JobFacts, WorkerFacts
from icestream.metrics.job_families import first_topics
from tests.kit.programs import require_program
from tests.unit.metrics.test_counters import LANDED

OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
HOSTILE = 'a"b\\c\nd{x="y"} 1\n# EOF <script>'
JVM = JvmNumbers(
    {"heap": 10, "nonheap": 5}, {"heap": 100}, {"G1 Young Generation": GarbageCollector(3, 0.25)}, 40
)


def busy(name: str = "orders") -> JobFacts:
    counters = Counters(wall=lambda: 1_500.0)
    counters.batch(name, LANDED)
    counters.event(name, Event(1, "retry", "away", about="kafka"))
    progress = Progress(
        lag=7,
        oldest_unread_ms=999_000,
        partitions=(PartitionLag("t", 0, 5, 10), PartitionLag("t", 1, 5, 6), PartitionLag("u", 0, 5, 6)),
        last_commit_ms=1_002_000,
        next_commit_in_ms=3_000,
        circuit={"destination": "bucket 'lake'", "state": "open", "opened": 2},
        maintenance=({"target": "db.t", "at_ms": 900_000, "seconds": 1.0},),
    )
    status = JobStatus(State.RUNNING, progress=progress)
    return JobFacts(name, status, counters.snapshot()[name], "sink", "Sink", "1", 2)


def facts_with(*jobs: JobFacts) -> WorkerFacts:
    engine = EngineNumbers(True, {"active": 2, "queued": 0}, 1, JVM)
    return WorkerFacts(1_100.0, jobs, GroupView(True, "", 3, 4), True, engine)


def text_of(*jobs: JobFacts, accept: str = "") -> str:
    return exposition(WorkerCollector(lambda: facts_with(*jobs)).registry, accept).body.decode()


def samples(text: str) -> Mapping[tuple[str, ...], float]:
    """By the name and the values of the labels."""
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_job_is_told_with_its_books() -> None:
    found = samples(text_of(busy()))
    assert found["icestream_records_read_total", "orders"] == 10
    assert found["icestream_records_written_total", "orders"] == 6
    assert found["icestream_records_rejected_total", "orders", "VALUE_CONVERTER"] == 3
    assert found["icestream_records_filtered_total", "orders", "drop"] == 1
    assert found["icestream_lag_records", "orders", "t"] == 6
    assert found["icestream_lag_records", "orders", "u"] == 1
    assert found["icestream_lag_records_max", "orders"] == 5
    assert found["icestream_lag_seconds", "orders"] == 101.0
    assert found["icestream_commit_last_success_timestamp_seconds", "orders"] == 1_002.0
    assert found["icestream_job_state", "orders", "running"] == 1
    assert found["icestream_job_state", "orders", "failed"] == 0
    assert found["icestream_circuit_breaker_state", "orders", "open", "bucket 'lake'"] == 1
    assert found["icestream_batch_duration_seconds_bucket", "orders", "2.5"] == 1
    assert found["icestream_maintenance_last_timestamp_seconds", "orders"] == 900.0
    assert found["icestream_group_rebalances_total",] == 4
    assert found["jvm_memory_used_bytes", "heap"] == found["jvm_memory_bytes_used", "heap"] == 10
    assert found["jvm_gc_collection_seconds_sum", "G1 Young Generation"] == 0.25


def test_what_can_be_counted_is_there_from_the_start() -> None:
    found = samples(text_of(JobFacts("new", JobStatus(State.UNASSIGNED))))
    for stage in catalog.REJECTED_STAGES:
        assert found["icestream_records_rejected_total", "new", stage] == 0
    for outcome in catalog.BATCH_OUTCOMES:
        assert found["icestream_batches_total", "new", outcome] == 0
    assert found["icestream_records_read_total", "new"] == 0
    assert not [name for name in found if name[0].endswith("_bucket")]


def test_openmetrics_is_strictly_right_and_has_exemplars() -> None:
    families = {family.name: family for family in openmetrics(text_of(busy(), accept=OPENMETRICS))}
    for name in ("icestream_commit_duration_seconds", "icestream_end_to_end_seconds"):
        found = [one.exemplar for one in families[name].samples if one.exemplar]
        assert found and found[0].labels == {"commit_id": "b1"}
    rejected = [one for one in families["icestream_records_rejected"].samples if one.exemplar]
    assert [one.labels["stage"] for one in rejected] == ["VALUE_CONVERTER"]
    assert rejected[0].exemplar is not None and rejected[0].exemplar.value == 3


@pytest.mark.parametrize("name", [HOSTILE, "größe 日本語 🚀", "{}", "a,b=c"])
def test_hostile_names_stay_text(name: str) -> None:
    found = samples(text_of(busy(name)))
    assert found["icestream_records_read_total", name] == 10
    assert list(openmetrics(text_of(busy(name), accept=OPENMETRICS)))


@pytest.mark.parametrize("accept", ["", OPENMETRICS])
def test_half_a_surrogate_pair_in_a_name_fails_no_scrape(accept: str) -> None:
    text = text_of(busy("a\ud800b"), busy("a\udfffb"), busy("größe 🚀"), accept=accept)
    read = [line for line in text.splitlines() if line.startswith("icestream_records_read_total")]
    assert [line.split('"')[1] for line in read] == [r"a\\ud800b", r"a\\udfffb", "größe 🚀"]
    assert list(openmetrics(text) if accept else text_string_to_metric_families(text))


@pytest.mark.parametrize("accept", ["", "text/plain", "*/*", "application/openmetrics-text;version=x.y"])
def test_whoever_asks_for_nothing_else_gets_the_text_format(accept: str) -> None:
    found = exposition(WorkerCollector(facts_with).registry, accept)
    assert found.content_type.startswith("text/plain; version=0.0.4")
    assert b"# TYPE icestream_records_read_total" not in found.body
    assert b"# TYPE icestream_group_rebalances_total counter" in found.body


def test_gzip_and_names() -> None:
    registry = WorkerCollector(lambda: facts_with(busy())).registry
    found = exposition(registry, "", "deflate, gzip;q=0.8", ["icestream_info"])
    assert found.is_gzip
    lines = gzip.decompress(found.body).decode().splitlines()
    assert [line.partition("{")[0] for line in lines if not line.startswith("#")] == ["icestream_info"]
    assert not exposition(registry, "", "gzip;q=0").is_gzip


def test_a_part_that_fails_takes_nothing_else_with_it() -> None:
    def broken(facts: WorkerFacts) -> Iterator[object]:
        raise RuntimeError("a dialect has a bug")
        yield

    collector = WorkerCollector(lambda: facts_with(busy()))
    collector.add(broken)  # type: ignore[arg-type]
    found = samples(exposition(collector.registry).body.decode())
    assert found["icestream_records_read_total", "orders"] == 10
    assert found["icestream_scrape_errors_total",] == 1


def test_many_topics_are_told_together() -> None:
    shown = first_topics({f"t{number:03}": float(number) for number in range(500)})
    assert len(shown) == 201
    assert shown["t499"] == 499.0
    assert sum(shown.values()) == sum(range(500))


def test_series_are_bounded_by_connectors() -> None:
    jobs = [busy(f"c{number}") for number in range(200)]
    found = samples(text_of(*jobs))
    assert len(found) / len(jobs) < 220


def test_prometheus_takes_it() -> None:
    promtool = require_program("promtool")
    checked = subprocess.run(
        [promtool, "check", "metrics"], input=text_of(busy()), capture_output=True, text=True, timeout=60
    )
    said = checked.stdout + checked.stderr
    # Names of others are as others have them.
    ours = [line for line in said.splitlines() if line.startswith("icestream_")]
    assert not ours and "error while linting" not in said, said


def test_the_lag_of_partitions_that_are_not_shown_is_in_the_sum() -> None:
    shown = tuple(PartitionLag("t", number, 0, 2) for number in range(MOST_PARTITIONS))
    job = replace(busy(), status=JobStatus(State.RUNNING, progress=Progress(lag=2_500, partitions=shown)))
    found = samples(text_of(job))
    lags = {key: value for key, value in found.items() if key[0] == "icestream_lag_records"}
    assert lags == {
        ("icestream_lag_records", "orders", "t"): 2_000,
        ("icestream_lag_records", "orders", "other"): 500,
    }


@pytest.mark.parametrize("state", [State.FAILED, State.PAUSED, State.STOPPED])
def test_of_a_job_that_does_not_run_nobody_says_that_all_records_are_there(state: State) -> None:
    shown = (PartitionLag("t", 0, 5, 5),)
    progress = Progress(lag=0, partitions=shown)
    running, ended = JobStatus(State.RUNNING, progress=progress), JobStatus(state, progress=progress)
    names = {"icestream_lag_records", "icestream_lag_records_max", "icestream_lag_seconds"}

    def told(status: JobStatus) -> set[str]:
        return names & {key[0] for key in samples(text_of(replace(busy(), status=status)))}

    assert told(running) == names
    assert told(ended) == set()
    assert told(replace(ended, progress=replace(progress, lag=3, oldest_unread_ms=1))) == names
