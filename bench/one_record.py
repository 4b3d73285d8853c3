"""How long one record takes from the produce call until it is visible in the table.

The commit interval is set to 10 ms, so that there is next to nothing to wait for, and nothing is subtracted:
the figure contains the interval, the broker's acknowledgement and the look at the catalog every 2 ms.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.sides import Side, connector_config
from bench.table import BenchTable, wait_for_rows
from bench.worker import RunFailed, running_worker

if TYPE_CHECKING:
    from confluent_kafka import Producer

TOPIC: Final = "one-record"
INTERVAL_MS: Final = 10
WARM_UP: Final = 3
_POLL_S: Final = 0.002
_PATIENCE_S: Final = 60.0


@dataclass(frozen=True)
class Latency:
    """Milliseconds of each record, in the order in which they were sent."""

    milliseconds: Sequence[float]

    @property
    def median(self) -> float:
        return statistics.median(self.milliseconds)


def one_record(side: Side, bootstrap: str, folder: Path, *, count: int, evolve_schema: bool) -> Latency:
    """Send records one at a time, each only when the one before is visible; the first ones do not count."""
    from confluent_kafka import Producer

    from icestream.embedded.minio_logs import generate
    from icestream.embedded.topics import ensure_topic

    folder.mkdir(parents=True)
    table = BenchTable(folder)
    table.create()
    ensure_topic(bootstrap, TOPIC)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "acks": "all", "log_level": 0})
    name = f"bench-{side.name}-one-record"
    config = connector_config(side, table, topic=TOPIC, evolve_schema=evolve_schema, interval_ms=INTERVAL_MS)
    pause = random.Random(1)
    taken = []
    with running_worker(side, folder, bootstrap) as worker:
        worker.create(name, config)
        worker.wait_until_running(name)
        for number, record in enumerate(generate("api", WARM_UP + count), 1):
            # Uneven pauses, so that records do not fall in step with a loop of the side.
            time.sleep(pause.uniform(0.2, 0.7))
            taken.append(_send_one(producer, record, table, number))
            worker.check(name)
    return Latency([round(seconds * 1000, 1) for seconds in taken[WARM_UP:]])


def _send_one(producer: Producer, record: bytes, table: BenchTable, number: int) -> float:
    started = time.monotonic()
    producer.produce(TOPIC, record, partition=number % 3)
    producer.poll(0)
    rows = wait_for_rows(
        table.visible_rows,
        number,
        clock=time.monotonic,
        sleep=time.sleep,
        every_s=_POLL_S,
        patience_s=_PATIENCE_S,
    )
    seconds = time.monotonic() - started
    if rows != number:
        raise RunFailed(
            f"{rows} rows are visible {seconds:.0f} s after record {number} was sent, not {number}"
        )
    return seconds
