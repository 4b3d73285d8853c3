"""What the page of a connector says, compared with Kafka and with the table themselves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from icestream.embedded.kafka import Broker
from tests.console.conftest import Pages
from tests.console.real_worker import RealWorker, running_worker
from tests.integration.local_job import World as Job

PARTITIONS = 3


@pytest.fixture(scope="module")
def worker(broker: Broker) -> Iterator[RealWorker]:
    with running_worker(broker) as running:
        yield running


@pytest.fixture
def job(worker: RealWorker, broker: Broker, tmp_path: Path) -> Iterator[Job]:
    options = {"iceberg.control.commit.interval-ms": "200"}
    job = Job(broker, tmp_path, options=options, partitions=PARTITIONS)
    worker.service.create(job.name, {**job.config, "name": job.name})
    yield job
    worker.service.delete(job.name)


def test_batches_books_lag_and_snapshots_are_those_of_kafka_and_the_table(
    worker: RealWorker, job: Job, pages: Pages
) -> None:
    page = pages.open(f"{worker.url}#/c/{job.name}")
    expect(page.get_by_role("heading", level=1)).to_have_text(job.name)
    job.produce([{"id": number, "text": "x"} for number in range(500)] + [b"no json", b"{"])
    books = page.get_by_role("region", name="Books")
    expect(books).to_contain_text("read502")
    expect(books).to_contain_text("= written500")
    expect(books).to_contain_text("dead letters2")
    expect(books).to_contain_text("balanced")
    assert len(job.rows()) == 500
    lag = page.locator("section", has_text="Lag by partition").locator("tbody tr")
    expect(lag).to_have_count(PARTITIONS)
    ends = {f"{job.name}-{number}": end for number, end in ends_of(job).items()}
    for name, end in ends.items():
        expect(lag.filter(has_text=name)).to_contain_text(f"{end:,}{end:,}0")
    snapshot = job.catalog.load_table(f"ns.{job.name}").current_snapshot()
    assert snapshot is not None
    batches = page.get_by_role("region", name="Batches").locator("tbody tr")
    expect(batches.filter(has_text="committed").first).to_be_visible()
    expect(page.get_by_role("region", name="Commits")).to_contain_text(str(snapshot.snapshot_id))


def ends_of(job: Job) -> dict[int, int]:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({**job.settings, "group.id": f"{job.name}-looks"})
    try:
        return {
            number: consumer.get_watermark_offsets(TopicPartition(job.name, number))[1]
            for number in range(PARTITIONS)
        }
    finally:
        consumer.close()
