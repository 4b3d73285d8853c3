"""Fill a topic with MinIO logs, as fast as it goes or at a rate. `icestream load`, demo, tests, bench."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from icestream.api.errors import SourceUnavailable
from icestream.embedded.minio_logs import BASE, generate
from icestream.embedded.topics import partition_count

if TYPE_CHECKING:
    from confluent_kafka import Producer

_CHUNK: Final = 2_000
_PRODUCER: Final = {
    "acks": "all",
    "enable.idempotence": True,
    "linger.ms": 20,
    "batch.size": 1_000_000,
    "compression.type": "lz4",
    "message.max.bytes": 12_000_000,
    "queue.buffering.max.messages": 200_000,
    "queue.buffering.max.kbytes": 131_072,
    "delivery.report.only.error": True,
    "log_level": 0,
}


@dataclass(frozen=True)
class LoadReport:
    """`sent` counts the broken records too."""

    sent: int
    bad: int
    seconds: float

    @property
    def rate(self) -> float:
        return self.sent / self.seconds if self.seconds else 0.0


class Pacer:
    """Keeps a stream of records at a rate: told how many have gone, it sleeps if that is too early."""

    def __init__(
        self,
        rate: float | None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._rate = rate
        self._clock = clock
        self._sleep = sleep
        self._started = clock()

    @property
    def chunk(self) -> int:
        """How many records may go between two calls of `wait`: a twentieth of a second of them."""
        return _CHUNK if self._rate is None else max(1, min(_CHUNK, int(self._rate / 20)))

    def wait(self, gone: int) -> None:
        if self._rate is not None:
            early = gone / self._rate - (self._clock() - self._started)
            if early > 0:
                self._sleep(early)

    def seconds(self) -> float:
        return self._clock() - self._started


def produce(
    bootstrap: str,
    topic: str,
    kind: str,
    records: int,
    rate: float | None = None,
    bad: int = 0,
    seed: int = 0,
    on_progress: Callable[[int], None] | None = None,
    *,
    start: int = 0,
    base: datetime = BASE,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> LoadReport:
    """Write records start … start+records-1 of a seed, `bad` of them broken; wait until the broker has them.

    Record i goes to partition i modulo the number of partitions, so the same load gives the same topic.
    """
    partitions = partition_count(bootstrap, topic)
    failures: list[str] = []
    producer = _producer(bootstrap, failures)
    pacer = Pacer(rate, clock, sleep)
    chunk = pacer.chunk
    try:
        for done, record in enumerate(generate(kind, records, seed, start, bad=bad, base=base)):
            _send(producer, topic, record, (start + done) % partitions)
            if (done + 1) % chunk == 0:
                producer.poll(0)
                _raise_first(failures, topic, bootstrap)
                if on_progress:
                    on_progress(done + 1)
                pacer.wait(done + 1)
        # Short waits, so that Ctrl-C is seen between them.
        while producer.flush(0.2):
            _raise_first(failures, topic, bootstrap)
    except BaseException:
        producer.purge()
        raise
    _raise_first(failures, topic, bootstrap)
    if on_progress:
        on_progress(records)
    return LoadReport(records, bad, pacer.seconds())


def _producer(bootstrap: str, failures: list[str]) -> Producer:
    from confluent_kafka import KafkaError, Message, Producer

    def failed(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(error.str())

    return Producer({**_PRODUCER, "bootstrap.servers": bootstrap, "on_delivery": failed})


def _send(producer: Producer, topic: str, record: bytes, partition: int) -> None:
    while True:
        try:
            producer.produce(topic, record, partition=partition)
        except BufferError:
            producer.poll(0.1)
        else:
            return


def _raise_first(failures: list[str], topic: str, bootstrap: str) -> None:
    if failures:
        raise SourceUnavailable(f"topic '{topic}' at {bootstrap} did not take all records: {failures[0]}")
