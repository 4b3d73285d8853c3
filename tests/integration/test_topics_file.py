"""A topics file and environment variables, nothing else: a worker starts with them, the records of each topic
come into their bucket, and an outage of the store is told, waited for and survived."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import boto3
import httpx
import pytest
from confluent_kafka import Consumer

from icestream.api.offsets import Partition
from icestream.embedded.kafka import Broker
from icestream.kafka.topics import Topics
from tests.conftest import SECRET, Produce
from tests.http_proxy import Answer, PassOn, Request, proxy
from tests.spark_settings import SPARK

T = TypeVar("T")
SCHEMA = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "required": ["id", "event_type"],
    "properties": {"id": {"type": "integer"}, "event_type": {"type": "string"}},
}
UNAVAILABLE = Answer(
    503, {"Content-Type": "application/xml"}, b"<Error><Code>SlowDown</Code><Message>later</Message></Error>"
)


class Store:
    """S3 behind a proxy, which may say that it is overloaded."""

    def __init__(self, endpoint: str) -> None:
        self._client = boto3.client(
            "s3",
            endpoint_url=endpoint,
            region_name="us-east-1",
            aws_access_key_id="some-key",
            aws_secret_access_key=SECRET,
        )
        self.bucket = f"lake-{uuid.uuid4().hex[:8]}"
        self._client.create_bucket(Bucket=self.bucket)
        self.is_away = False
        self.refused = 0

    def handle(self, request: Request, pass_on: PassOn) -> Answer:
        if self.is_away:
            self.refused += 1
            return UNAVAILABLE
        return pass_on(request)

    def lines(self, prefix: str) -> dict[str, list[Any]]:
        """The records of each object of JSON Lines, by its key."""
        listed = self._client.list_objects_v2(Bucket=self.bucket, Prefix=prefix).get("Contents", [])
        keys = [
            one["Key"] for one in listed if one["Key"].endswith(".json") and "/_icestream/" not in one["Key"]
        ]
        return {key: [json.loads(line) for line in self._body(key).splitlines()] for key in keys}

    def ids(self, prefix: str) -> Counter[int]:
        return Counter(row["id"] for rows in self.lines(prefix).values() for row in rows)

    def _body(self, key: str) -> str:
        return str(self._client.get_object(Bucket=self.bucket, Key=key)["Body"].read().decode())


class Worker:
    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self._log = log

    @property
    def text(self) -> str:
        return self._log.read_text(errors="replace")

    def wait(self, look: Callable[[], T], what: str, seconds: float = 180) -> T:
        deadline = time.monotonic() + seconds
        while not (found := look()):
            assert self.process.poll() is None, self.text[-4000:]
            assert time.monotonic() < deadline, f"{what}\n{self.text[-4000:]}"
            time.sleep(0.2)
        return found

    def get(self, path: str) -> Any:
        found = self.wait(lambda: re.search(r"REST API on (http://[\w.:]+)", self.text), "no REST")
        assert found is not None
        self.url = found.group(1)
        return httpx.get(self.url + path, trust_env=False, timeout=30).json()


@contextmanager
def running(folder: Path, arguments: list[str], environ: Mapping[str, str]) -> Iterator[Worker]:
    log = folder / "worker.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "icestream.cli.main", *arguments],
            cwd=folder,
            env={**os.environ, **environ},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield Worker(process, log)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()


@pytest.fixture
def store(s3: Mapping[str, str]) -> Store:
    return Store(s3["iceberg.catalog.s3.endpoint"])


def application(folder: Path, name: str, bucket: str) -> Path:
    """The file of the seed, with two topics."""
    (folder / "schemas").mkdir()
    (folder / "schemas" / "user-events-schema.json").write_text(json.dumps(SCHEMA))
    file = folder / "application.yml"
    file.write_text(f"""
connector:
  topics:
    user-{name}:
      topic-name: user-{name}
      schema-file: schemas/user-events-schema.json
      destination:
        bucket: {bucket}
        prefix: events/user
        table-name: user_events
        partition-columns: ["year", "month", "day"]
      processing:
        batch-size: 100
        flush-interval: 1
    order-{name}:
      destination:
        prefix: events/order
        partition-columns: [event_type]
""")
    return file


def test_a_worker_of_a_topics_file_outlasts_an_outage_of_its_store(
    tmp_path: Path, broker: Broker, produce: Produce, store: Store, s3: Mapping[str, str]
) -> None:
    name = uuid.uuid4().hex[:8]
    users, orders = f"user-{name}", f"order-{name}"
    good = [{"id": number, "event_type": "login"} for number in range(400)]
    bad = [{"id": f"{number}"} for number in range(7)]
    produce(users, [*good[:300], *bad])
    produce(orders, good[:300])
    file = application(tmp_path, name, store.bucket)
    with proxy(s3["iceberg.catalog.s3.endpoint"], store.handle) as endpoint:
        environ = {
            "KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap,
            "S3_BUCKET_NAME": store.bucket,
            "S3_ENDPOINT_URL": endpoint,
            "BATCH_SIZE": "50",
            "FLUSH_INTERVAL": "1",
            "AWS_ACCESS_KEY_ID": "some-key",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "CONNECT_LISTENERS": "http://127.0.0.1:0",
            "CONNECT_ICESTREAM_CIRCUIT_FAILURES": "2",
            "CONNECT_ICESTREAM_CIRCUIT_OPEN_MS": "2000",
            "CONNECT_SPARK_MASTER": SPARK["spark.master"],
            "CONNECT_SPARK_DRIVER_MEMORY": SPARK["spark.driver.memory"],
        }
        with running(tmp_path, ["standalone", "--topics-file", str(file)], environ) as worker:
            worker.wait(lambda: store.ids("events/user").total() >= 300, "no users")
            worker.wait(lambda: store.ids("events/order").total() >= 300, "no orders")
            check_names(store, users, orders)
            assert worker.get("/connectors?expand=info").keys() == {users, orders}

            store.is_away = True
            produce(users, good[300:])
            produce(orders, good[300:])
            for connector in (users, orders):
                status = worker.wait(lambda name=connector: held(worker, name), f"{connector} is not held")  # type: ignore[misc]
                assert status["connector"]["state"] == status["tasks"][0]["state"] == "RUNNING"
                said = status["tasks"][0]["trace"]
                assert said.startswith(f"Circuit breaker of s3://{store.bucket} at 127.0.0.1:"), said
                assert "SlowDown" in said
            before = offsets(broker, users), offsets(broker, orders)
            asked = store.refused
            worker.wait(lambda: store.refused > asked, "nobody asks whether it is back")
            assert (offsets(broker, users), offsets(broker, orders)) == before
            assert "Circuit breaker of s3://" in worker.text
            shown = command("connector", "status", users, "--url", worker.url)
            assert "Circuit breaker" in shown.stdout
            store.is_away = False

            worker.wait(lambda: store.ids("events/user").total() >= 400, "users are missing")
            worker.wait(lambda: store.ids("events/order").total() >= 400, "orders are missing")
            worker.wait(lambda: "is closed again, after" in worker.text, "the breaker did not close")
            worker.wait(lambda: not held(worker, users), "it is still said to be open")
            again = command("topics-file", "apply", str(file), "--url", worker.url, **environ)
            assert again.stdout == f"connector {users} unchanged\nconnector {orders} unchanged\n", (
                again.stderr
            )
    for prefix in ("events/user", "events/order"):
        assert store.ids(prefix) == Counter(range(400)), "something is missing, or twice"
    assert dead_letters(broker, f"{users}-dlq") == len(bad)


def check_names(store: Store, users: str, orders: str) -> None:
    day = r"year=\d{4}/month=\d{2}/day=\d{2}"
    for key, rows in store.lines("events/user").items():
        assert re.fullmatch(rf"events/user/user_events/{day}/user_events\+\d\+\d{{10}}\.json", key), key
        assert len(rows) <= 100
    for key, rows in store.lines("events/order").items():
        assert re.fullmatch(rf"events/order/{orders}/event_type=login/{orders}\+\d\+\d{{10}}\.json", key), key
        assert len(rows) <= 50


def held(worker: Worker, name: str) -> Any:
    status = worker.get(f"/connectors/{name}/status")
    return status if "Circuit breaker" in status["connector"].get("trace", "") else None


def offsets(broker: Broker, name: str) -> Any:
    partitions = [Partition(name, number) for number in range(3)]
    return Topics({"bootstrap.servers": broker.bootstrap}).group_offsets(f"connect-{name}", partitions)


def command(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "icestream.cli.main", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environ},
    )


def dead_letters(broker: Broker, topic: str) -> int:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": uuid.uuid4().hex,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "enable.partition.eof": "true",
        }
    )
    consumer.subscribe([topic])
    found, deadline = 0, time.monotonic() + 60
    while time.monotonic() < deadline:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            found += 1
        elif message is not None and found:
            break
    consumer.close()
    return found
