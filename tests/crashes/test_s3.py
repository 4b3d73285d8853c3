"""`kill -9`, sleepers and lost uploads around the commits of the S3 sink, in a bucket of moto.

`test_sinks.py` does the same with a folder. Here folders also go by the clock: nothing but the ledger knows
the names that a batch had when it died.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from icestream.connectors.s3.stores.opening import open_store
from icestream.embedded.kafka import Broker
from tests.behaviours.test_sinks import bucket_config, s3_subject
from tests.crashes.processes import Fault, JobProcess
from tests.crashes.test_sinks import Job, killed

_PARTITIONERS = "io.confluent.connect.storage.partitioner."
LAYOUTS = {
    # Several objects of a commit.
    "fields": {
        "partitioner.class": f"{_PARTITIONERS}FieldPartitioner",
        "partition.field.name": "id",
        "icestream.s3.commit.interval.ms": "100",
    },
    # Neither borders nor names follow from the records.
    "clock": {
        "partitioner.class": f"{_PARTITIONERS}TimeBasedPartitioner",
        "partition.duration.ms": "1000",
        "path.format": "'second'=HHmmss",
        "locale": "en",
        "timezone": "Europe/Berlin",
        "timestamp.extractor": "Wallclock",
        "rotate.schedule.interval.ms": "200",
    },
}
LONG = pytest.mark.long


@pytest.fixture
def make(broker: Broker, tmp_path: Path, s3: Mapping[str, str]) -> Iterator[Callable[[str], Job]]:
    made: list[Job] = []

    def job(layout: str) -> Job:
        config = {
            **bucket_config(dict(s3)),
            "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
            **LAYOUTS[layout],
            "flush.size": "1000",
        }
        config["connector.class"] = "S3SinkConnector"
        made.append(Job(broker, tmp_path, config, s3_subject(config)))
        return made[-1]

    yield job
    for one in made:
        for process in one.processes:
            process.kill()


@pytest.mark.parametrize(
    ("layout", "point"),
    [
        ("fields", "half published"),
        ("clock", "entered"),
        pytest.param("clock", "staged", marks=LONG),
        pytest.param("clock", "completed", marks=LONG),
        pytest.param("clock", "committed", marks=LONG),
        pytest.param("clock", "closing", marks=LONG),
        pytest.param("fields", "staged", marks=LONG),
        pytest.param("fields", "entered", marks=LONG),
        pytest.param("fields", "completed", marks=LONG),
        pytest.param("fields", "published", marks=LONG),
    ],
)
def test_a_job_that_is_killed_leaves_each_record_once(
    make: Callable[[str], Job], layout: str, point: str
) -> None:
    job = make(layout)
    job.produce(5)
    killed(job.start([Fault(point, "kill")]))
    job.produce(2)
    job.drain()
    job.check()


@pytest.mark.parametrize(
    "point", ["half published", pytest.param("staged", marks=LONG), pytest.param("entered", marks=LONG)]
)
def test_a_manager_that_slept_through_its_commit_changes_nothing_when_it_wakes(
    make: Callable[[str], Job], point: str
) -> None:
    job = make("fields")
    job.produce(4)
    zombie = job.start([Fault(point, "stop")])
    zombie.wait_stopped()
    job.produce(3)
    job.drain()
    job.check()
    before = job.subject.leftovers()
    zombie.go_on()
    ended(zombie)
    assert "Fenced" in zombie.text
    job.check()
    assert set(job.subject.leftovers()) >= set(before)


def test_uploads_that_are_gone_after_the_commit_are_written_again(make: Callable[[str], Job]) -> None:
    job = make("clock")
    job.produce(4)
    killed(job.start([Fault("entered", "kill")]))
    store = open_store(job.config)
    gone = list(store.open_uploads("topics/"))
    assert gone
    for upload in gone:
        store.abort(upload.key, upload.id)
    job.produce(1)
    job.drain()
    job.check()
    assert "has lost 1 uploads of commit 1" in job.processes[-1].text
    # Under the name that it had, although the clock is elsewhere now.
    assert gone[0].key in [one.key for one in store.list("topics/")]


def ended(process: JobProcess) -> None:
    process.wait(lambda: True if process.process.poll() is not None else None, "it did not end")
