"""`python -m bench.steady_load`: records at an even rate, in a process of its own. Started by `bench.steady`.

Each record's number is its request id, and the times at which records went are kept in a file, so that a row
can be told from when it is.
"""

from __future__ import annotations

import struct
import sys
import time
from array import array
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Final

_POOL: Final = 20_000
_MARK: Final = b'"requestID":"'
_DIGITS: Final = 16
_TICK_S: Final = 0.01
PARTITIONS: Final = 3


def request_id(number: int) -> bytes:
    return b"%016X" % number


def number_of(request: str) -> int:
    return int(request, 16)


def halves(record: bytes) -> tuple[bytes, bytes]:
    """What stands before and after the request id."""
    at = record.index(_MARK) + len(_MARK)
    return record[:at], record[at + _DIGITS :]


class Sent:
    """When records went: pairs of a time of the monotonic clock and the count up to then."""

    def __init__(self, ticks: Sequence[tuple[float, int]]) -> None:
        self.ticks = ticks

    @classmethod
    def read(cls, file: Path) -> Sent:
        return cls([(at, count) for at, count in struct.iter_unpack("=dq", file.read_bytes())])

    def times(self) -> array[float]:
        """The time of each record, by its number."""
        found: array[float] = array("d")
        for at, count in self.ticks:
            found.extend([at] * (count - len(found)))
        return found


def send(bootstrap: str, topic: str, rate: int, seconds: float, file: Path) -> None:
    from confluent_kafka import Producer

    from icestream.embedded.minio_logs import generate

    pool = [halves(record) for record in islice(generate("api", _POOL), _POOL)]
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "linger.ms": 5,
            "acks": "all",
            "compression.type": "lz4",
            "queue.buffering.max.messages": 1_000_000,
            "delivery.report.only.error": True,
            "log_level": 0,
        }
    )
    producer.list_topics(topic, timeout=30)
    total, sent, ticks = int(rate * seconds), 0, []
    began = time.monotonic()
    while sent < total:
        now = time.monotonic()
        due = min(total, int((now - began) * rate))
        for number in range(sent, due):
            before, after = pool[number % _POOL]
            producer.produce(topic, before + request_id(number) + after, partition=number % PARTITIONS)
        if due > sent:
            # The later of the two ends of the tick would flatter: the earlier is taken.
            ticks.append((now, due))
            sent = due
        producer.poll(0)
        time.sleep(max(0.0, now + _TICK_S - time.monotonic()))
    if producer.flush(60):
        raise SystemExit("the broker did not take all records in time")
    file.write_bytes(b"".join(struct.pack("=dq", *tick) for tick in ticks))


if __name__ == "__main__":
    _bootstrap, _topic, _rate, _seconds, _file = sys.argv[1:]
    send(_bootstrap, _topic, int(_rate), float(_seconds), Path(_file))
