"""Stands between a worker and Kafka, and counts the requests by their kind. For `bench.scale`."""

from __future__ import annotations

import asyncio
import struct
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from icestream.embedded import ports

KINDS: Final = {
    0: "Produce",
    1: "Fetch",
    2: "ListOffsets",
    3: "Metadata",
    9: "OffsetFetch",
    10: "FindCoordinator",
    22: "InitProducerId",
    60: "DescribeCluster",
    75: "DescribeTopicPartitions",
}
_PIECE: Final = 1 << 16


class RequestCounter:
    """Finds the requests in the bytes of one connection, however they are cut."""

    def __init__(self, counts: Counter[str]) -> None:
        self._counts = counts
        self._head = b""
        self._left = 0

    def feed(self, data: bytes) -> None:
        while data:
            if self._left:
                passed = min(self._left, len(data))
                data, self._left = data[passed:], self._left - passed
                continue
            missing = 6 - len(self._head)
            self._head, data = self._head + data[:missing], data[missing:]
            if len(self._head) < 6:
                return
            length, kind = struct.unpack(">ih", self._head)
            self._counts[KINDS.get(kind, str(kind))] += 1
            self._left, self._head = length - 2, b""


class KafkaMeter:
    def __init__(self, broker_port: int) -> None:
        self.port = ports.free_port(avoid=broker_port)
        self._broker_port = broker_port
        self._counts: Counter[str] = Counter()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="kafka-meter", daemon=True)

    def start(self) -> None:
        self._thread.start()
        server = asyncio.start_server(self._serve, ports.HOST, self.port, backlog=4096)
        asyncio.run_coroutine_threadsafe(server, self._loop).result(10)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def counts(self) -> Counter[str]:
        return Counter(self._counts)

    async def _serve(self, client: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            broker, requests = await asyncio.open_connection(ports.HOST, self._broker_port)
            counter = RequestCounter(self._counts)
            await asyncio.gather(_pump(client, requests, counter), _pump(broker, answers, None))


async def _pump(
    source: asyncio.StreamReader, target: asyncio.StreamWriter, counter: RequestCounter | None
) -> None:
    with suppress(OSError):
        while data := await source.read(_PIECE):
            if counter:
                counter.feed(data)
            target.write(data)
            await target.drain()
    target.close()


@contextmanager
def metered(broker_port: int) -> Iterator[KafkaMeter]:
    meter = KafkaMeter(broker_port)
    meter.start()
    try:
        yield meter
    finally:
        meter.close()
