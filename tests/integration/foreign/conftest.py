"""Parts that nobody here wrote, really running: Kafka, Iceberg on Spark, S3, catalogs, clusters."""

import json
import multiprocessing
import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from icestream.api.status import JobStarter, RunningJob
from icestream.cli.sql import fetched_jars
from icestream.embedded import kafka, ports
from icestream.embedded.topics import ensure_topic
from icestream.pipeline.sql import Result, run_sql, split_statements

Config = Mapping[str, str]
SECRET = "s3cret/and+odd@signs"


def in_utc() -> None:
    os.environ["TZ"] = "UTC"
    time.tzset()


FOR_SMALL_TABLES: Config = {
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
}


class ForeignSpark:
    """Spark with Iceberg's own runtime, in a process of its own: this one's session is the worker's."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(1, context, in_utc)
        self._settings: dict[str, str] = {}

    def __call__(self, configs: Config | Sequence[Config], text: str) -> list[Result]:
        several = [configs] if isinstance(configs, Mapping) else list(configs)
        if not self._settings:
            self._settings = dict(FOR_SMALL_TABLES)
            self._settings["spark.jars"] = ",".join(map(str, fetched_jars(EVERY_KIND)))
        settings = {
            **self._settings,
            "spark.sql.defaultCatalog": several[0].get("iceberg.catalog", "iceberg"),
        }
        return self._pool.submit(run_sql, several, split_statements(text), settings).result(timeout=300)

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


EVERY_KIND: Sequence[Config] = (
    {"iceberg.catalog.type": "jdbc", "iceberg.catalog.uri": "jdbc:sqlite:a.db"},
    {"iceberg.catalog.type": "jdbc", "iceberg.catalog.uri": "jdbc:postgresql://127.0.0.1/a"},
    {"iceberg.catalog.type": "rest", "iceberg.catalog.uri": "http://127.0.0.1"},
)


@pytest.fixture(scope="session")
def foreign_spark() -> Iterator[ForeignSpark]:
    spark = ForeignSpark()
    yield spark
    spark.close()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kafka.Broker]:
    with kafka.running_broker(tmp_path_factory.mktemp("kafka")) as running:
        yield running


@pytest.fixture(scope="session")
def start_job(broker: kafka.Broker) -> JobStarter:
    from icestream.jobs.build import job_starter

    start = job_starter({"bootstrap.servers": broker.bootstrap, "spark.master": "local[2]"})

    def start_plain_json(name: str, config: Mapping[str, str], *, paused: bool) -> RunningJob:
        return start(name, {**config, "value.converter.schemas.enable": "false"}, paused=paused)

    return start_plain_json


@pytest.fixture
def sqlite_catalog(tmp_path: Path) -> dict[str, str]:
    return {
        # Its own name: a Spark session opens a catalog once, and this one serves many tests.
        "iceberg.catalog": f"demo_{uuid.uuid4().hex[:8]}",
        "iceberg.catalog.type": "jdbc",
        "iceberg.catalog.uri": f"jdbc:sqlite:{tmp_path}/catalog.db",
        "iceberg.catalog.warehouse": f"file://{tmp_path}/warehouse",
    }


Produce = Callable[[str, Sequence[Mapping[str, Any]]], None]


@pytest.fixture(scope="session")
def produce(broker: kafka.Broker) -> Produce:
    """Write records as JSON to a topic of 3 partitions, in turn."""
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "linger.ms": 5,
            "queue.buffering.max.messages": 1_000_000,
            "log_level": 0,
        }
    )

    def write(topic: str, records: Sequence[Mapping[str, Any]]) -> None:
        ensure_topic(broker.bootstrap, topic)
        for number, record in enumerate(records):
            producer.produce(topic, json.dumps(record).encode(), partition=number % 3)
            producer.poll(0)
        assert producer.flush(60) == 0

    return write


@pytest.fixture
def drained() -> Callable[[RunningJob, int], None]:
    """Wait until a job has written so many rows since its first batch."""

    def wait(job: RunningJob, rows: int, patience: float = 120) -> None:
        deadline = time.monotonic() + patience
        while (status := job.status()).progress.rows < rows:
            assert status.trace is None, status.trace
            assert time.monotonic() < deadline, status
            time.sleep(0.05)

    return wait


@pytest.fixture(scope="session")
def s3() -> Iterator[dict[str, str]]:
    """An S3 server with the bucket `warehouse`: the catalog settings that lead to it."""
    import boto3
    from moto.server import ThreadedMotoServer

    port = ports.free_port()
    server = ThreadedMotoServer(ip_address=ports.HOST, port=port, verbose=False)
    server.start()
    endpoint = f"http://{ports.HOST}:{port}"
    keys = {"aws_access_key_id": "some-key", "aws_secret_access_key": SECRET, "region_name": "us-east-1"}
    boto3.client("s3", endpoint_url=endpoint, **keys).create_bucket(Bucket="warehouse")
    yield {
        "iceberg.catalog.s3.endpoint": endpoint,
        "iceberg.catalog.s3.path-style-access": "true",
        "iceberg.catalog.s3.access-key-id": "some-key",
        "iceberg.catalog.s3.secret-access-key": SECRET,
        "iceberg.catalog.client.region": "us-east-1",
    }
    server.stop()
