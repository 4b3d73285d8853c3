"""The crash table of the Delta sink: `kill -9` between the steps of its commit, answers that are lost, other
people's commits and RESTOREs while the job is down, two managers.

`test_sinks.py` kills it between the steps that all sinks have. In processes of their own, with a real broker;
what is marked as long is in `tests/unit/connectors/delta/test_commits.py` without them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable, PostCommitHookProperties, write_deltalake

from tests.crashes.processes import Fault
from tests.crashes.test_sinks import Job, killed, make

__all__ = ["make"]


def table_of(job: Job) -> DeltaTable:
    return DeltaTable(str(place_of(job)))


def place_of(job: Job) -> Path:
    return Path(job.config["delta.location"]) / "ns" / "t"


def produce_with_new_field(job: Job, count: int) -> None:
    """As `Job.produce`, with a field that the table lacks."""
    producer = Producer(job.worker)
    for number in range(job.sent, job.sent + count):
        producer.produce(job.name, json.dumps({"id": number, "text": "x", "more": number}).encode())
        producer.produce(job.name, b"bad %d" % number)
    assert producer.flush(60) == 0
    job.sent += count


def test_columns_that_were_added_without_their_rows_are_found(make: Callable[[str], Job]) -> None:
    job = make("delta")
    job.config["delta.tables.evolve-schema-enabled"] = "true"
    produce_with_new_field(job, 3)
    killed(job.start([Fault("grown", "kill")]))
    assert "more" in [field.name for field in table_of(job).schema().fields]
    assert job.subject.visible() == []
    produce_with_new_field(job, 2)
    job.drain()
    job.check()
    history = table_of(job).history()
    assert [entry["operation"] for entry in history].count("ADD COLUMN") == 1


@pytest.mark.parametrize("action", ["kill", pytest.param("raise", marks=pytest.mark.long)])
def test_a_commit_whose_answer_is_lost_is_not_made_again(make: Callable[[str], Job], action: str) -> None:
    job = make("delta")
    job.produce(4)
    process = job.start([Fault("accepted", action)])
    if action == "kill":
        killed(process)
        assert job.subject.visible() == list(range(4))
        job.drain()
    else:
        process.wait_text("# drained")
        assert "landed, although it was answered" in process.text
        process.kill()
    job.check()
    assert [entry["operation"] for entry in table_of(job).history()].count("WRITE") == 1


def test_a_manager_killed_before_the_checkpoint_of_the_log_leaves_it_to_the_next(
    make: Callable[[str], Job],
) -> None:
    job = make("delta")
    table_of(job).alter.set_table_properties(
        {"delta.checkpointInterval": "2"},
        post_commithook_properties=PostCommitHookProperties(create_checkpoint=False),
    )
    job.produce(2)
    killed(job.start([Fault("log checkpoint", "kill")]))
    assert not list(place_of(job).glob("_delta_log/*.checkpoint.parquet"))
    job.produce(2)
    job.drain()
    assert list(place_of(job).glob("_delta_log/*.checkpoint.parquet"))
    job.check()


def test_a_manager_that_slept_through_its_commit_is_refused_by_the_table(make: Callable[[str], Job]) -> None:
    job = make("delta")
    job.produce(5)
    zombie = job.start([Fault("sending", "stop")])
    zombie.wait_stopped()
    job.produce(2)
    job.drain()
    job.check()
    version = table_of(job).version()
    zombie.go_on()
    zombie.ended()
    assert "Fenced" in zombie.text
    assert table_of(job).version() == version
    job.check()


@pytest.mark.long
def test_other_people_write_while_the_job_is_down(make: Callable[[str], Job]) -> None:
    """An append, a deletion and a compaction by others: the job goes on where it was."""
    job = make("delta")
    job.produce(4)
    job.drain()
    write_deltalake(str(place_of(job)), pa.table({"id": [100], "text": ["theirs"]}), mode="append")
    table_of(job).delete("id = 0")
    table_of(job).optimize.compact()
    job.produce(2)
    job.drain()
    assert job.subject.visible() == [1, 2, 3, 4, 5, 100]


@pytest.mark.long
def test_a_restored_table_gets_again_what_it_lost(make: Callable[[str], Job]) -> None:
    job = make("delta")
    job.produce(3)
    job.drain()
    version = table_of(job).version()
    job.produce(3)
    job.drain()
    table_of(job).restore(version)
    assert job.subject.visible() == [0, 1, 2]
    job.produce(1)
    job.drain()
    assert job.subject.visible() == list(range(7))


@pytest.mark.long
def test_a_log_that_was_cleaned_up_still_says_how_far_the_job_is(make: Callable[[str], Job]) -> None:
    """As after a month in which others wrote: no commit of the job is left, its transactions are."""
    job = make("delta")
    job.produce(3)
    job.drain()
    write_deltalake(str(place_of(job)), pa.table({"id": [100], "text": ["theirs"]}), mode="append")
    table = table_of(job)
    table.create_checkpoint()
    for commit in place_of(job).glob("_delta_log/*.json"):
        if int(commit.stem) < table.version():
            commit.unlink()
    job.produce(2)
    job.drain()
    assert job.subject.visible() == [*range(5), 100]
