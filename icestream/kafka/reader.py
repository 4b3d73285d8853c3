"""Reads slices of partitions; called by the pipeline's worker, inside Spark's Python processes."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from icestream.api.batch import Slice
from icestream.api.errors import SourceUnavailable
from icestream.api.offsets import Partition, named
from icestream.kafka.chunk import Chunk, Run, offset_of
from icestream.kafka.clients import kafka_errors, quiet, raise_if_refused
from icestream.kafka.fetch_positions import FetchPositions

_DEFAULTS: Mapping[str, str | int | bool] = {
    # As in Java: a record that was damaged on disk or on its way is an error, not a row.
    "check.crcs": True,
    "fetch.wait.max.ms": 100,
    "fetch.message.max.bytes": 4 * 1024 * 1024,
    "fetch.max.bytes": 32 * 1024 * 1024,
    # Of all partitions together: they share one queue.
    "queued.max.messages.kbytes": 32 * 1024,
    # A full queue stops fetching for this long; the default of a second would starve the decoder.
    "fetch.queue.backoff.ms": 10,
    "queued.min.messages": 100_000,
}
_OURS: Mapping[str, str | int | bool] = {
    "group.id": "icestream-reader",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
}
"""What the end of a slice depends on: no setting of a user changes it."""
_CHUNK_BYTES = 16 * 1024 * 1024
_HELD_BYTES = 64 * 1024 * 1024
_MESSAGES_A_CALL = 2_000
_QUIET_SECONDS = 5.0
_SILENCE_SECONDS = 30.0


class SliceReader:
    """One consumer, kept for the life of a worker process: making one costs half a second."""

    def __init__(
        self,
        settings: Mapping[str, str],
        clock: Callable[[], float] = time.monotonic,
        refuse: Callable[[], None] = lambda: None,
    ) -> None:
        """`refuse` is called whenever nothing comes; what it raises ends the reading."""
        self._settings = {**_DEFAULTS, **settings, **_OURS}
        with kafka_errors("connecting to Kafka"):
            self._consumer = Consumer(quiet(self._settings))
        self._clock = clock
        self._refuse = refuse

    def read(self, piece: Slice, chunk_rows: int) -> Iterator[Chunk]:
        """All records of one slice, in order."""
        return self.read_all([piece], chunk_rows)

    def read_all(self, slices: Sequence[Slice], chunk_rows: int) -> Iterator[Chunk]:
        """All records of slices of different partitions, which are fetched at the same time.

        A slice ends by position: its last offsets may be markers that are never delivered.
        """
        with kafka_errors(f"reading {named([piece.partition for piece in slices])}"):
            reading = _Reading(self._consumer, self._settings, slices, self._clock, self._refuse)
            try:
                yield from _chunks(reading.runs(), chunk_rows)
            finally:
                reading.close()

    def close(self) -> None:
        self._consumer.close()


def _chunks(runs: Iterable[tuple[Partition, Sequence[Message]]], chunk_rows: int) -> Iterator[Chunk]:
    """Runs of messages put together by topic. What is held back is bounded, however many topics there are."""
    gathered: dict[str, _Gathered] = {}
    for partition, messages in runs:
        mine = gathered.setdefault(partition.topic, _Gathered())
        mine.add(partition, messages)
        if mine.rows >= chunk_rows or mine.size >= _CHUNK_BYTES:
            yield gathered.pop(partition.topic).chunk()
        elif len(gathered) > 1 and sum(one.size for one in gathered.values()) >= _HELD_BYTES:
            yield gathered.pop(max(gathered, key=lambda topic: gathered[topic].size)).chunk()
    for rest in gathered.values():
        yield rest.chunk()


class _Gathered:
    """Messages of one topic that wait to become a chunk."""

    def __init__(self) -> None:
        self.rows = 0
        self.size = 0
        self._runs: dict[Partition, Run] = {}

    def add(self, partition: Partition, messages: Sequence[Message]) -> None:
        # Now, as long as the messages are in the processor's cache.
        values = [message.value() for message in messages]
        run = self._runs.setdefault(partition, Run(partition, [], []))
        run.messages.extend(messages)
        run.values.extend(values)
        self.rows += len(messages)
        self.size += sum(map(len, filter(None, values)))

    def chunk(self) -> Chunk:
        return Chunk.gathered(list(self._runs.values()), self.size)


class _Reading:
    """One task's slices on their way: which are still open, and when the last of them moved."""

    def __init__(
        self,
        consumer: Consumer,
        settings: Mapping[str, str | int | bool],
        slices: Sequence[Slice],
        clock: Callable[[], float],
        refuse: Callable[[], None],
    ) -> None:
        self._consumer = consumer
        self._settings = settings
        self._clock = clock
        self._refuse = refuse
        self._open = {piece.partition: piece for piece in slices if piece.span}
        self._next = {piece.partition: piece.start for piece in slices}
        self._moved_at = clock()
        self._positions: FetchPositions | None = None
        """Made when nothing comes: only its consumer tells how far it has looked."""

    def runs(self) -> Iterator[tuple[Partition, Sequence[Message]]]:
        """Messages of one partition after the other, as they come, until every slice has ended."""
        self._consumer.assign(self._from_here())
        while self._open:
            before = len(self._open)
            first = self._polling.poll(0.2)
            if first is None:
                self._wait()
            else:
                messages = [first, *self._polling.consume(_MESSAGES_A_CALL, timeout=0)]
                wrong = [message for message in messages if message.error() is not None]
                if wrong:
                    messages = [message for message in messages if message.error() is None]
                yield from self._plain(messages)
                self._errors(wrong)
            if self._open and len(self._open) < before:
                self._drop_ended()

    def close(self) -> None:
        if self._positions is not None:
            self._positions.close()
        self._consumer.unassign()

    @property
    def _polling(self) -> Consumer:
        return self._positions.consumer if self._positions else self._consumer

    def _from_here(self) -> list[TopicPartition]:
        return [TopicPartition(p.topic, p.number, self._next[p]) for p in self._open]

    def _plain(self, messages: Sequence[Message]) -> Iterator[tuple[Partition, Sequence[Message]]]:
        for partition, run in _by_partition(messages):
            piece = self._open.get(partition)
            if piece is None:
                continue
            if offset_of(run[0]) < self._next[partition]:
                # Of an earlier reading by this consumer: the client should have thrown it away.
                run = [message for message in run if offset_of(message) >= self._next[partition]]
                if not run:
                    continue
            self._moved_at = self._clock()
            self._next[partition] = offset_of(run[-1]) + 1
            if self._next[partition] >= piece.until:
                del self._open[partition]
                run = [message for message in run if offset_of(message) < piece.until]
            if run:
                yield partition, run

    def _errors(self, messages: Sequence[Message]) -> None:
        for message in messages:
            error = message.error()
            partition = _place(message)
            piece = self._open.get(partition)
            if error is None or error.retriable():
                continue
            if error.code() == KafkaError._PARTITION_EOF:
                if piece is not None and offset_of(message) >= piece.until:
                    del self._open[partition]
                    self._moved_at = self._clock()
            elif error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
                if piece is not None:
                    raise SourceUnavailable(
                        f"{partition} no longer has offset {self._next[partition]}: "
                        "it was removed by retention"
                    )
            else:
                raise KafkaException(error)

    def _drop_ended(self) -> None:
        """Fetch no more of what is beyond the end of a slice."""
        ended = [
            tp for tp in self._polling.assignment() if Partition(tp.topic, tp.partition) not in self._open
        ]
        self._polling.incremental_unassign(ended)

    def _wait(self) -> None:
        """Nothing came. Records that are never delivered, as those of aborted transactions, take their time
        too: then the position moves."""
        self._refuse()
        raise_if_refused(f"reading {named(self._open)}")
        if self._positions is not None:
            if self._positions.have_moved():
                self._moved_at = self._clock()
            for partition in [p for p in self._open if self._positions.is_past(p, self._open[p].until)]:
                del self._open[partition]
        quiet_for = self._clock() - self._moved_at
        if quiet_for > _SILENCE_SECONDS:
            raise SourceUnavailable(
                f"{named(self._open)} sent nothing for {_SILENCE_SECONDS:.0f} s at offset "
                f"{self._next[next(iter(self._open))]}; has every partition a leader, is the broker up?"
            )
        if quiet_for > _QUIET_SECONDS and self._positions is None:
            self._consumer.unassign()
            self._positions = FetchPositions(self._settings)
            self._positions.consumer.assign(self._from_here())


def _by_partition(messages: Sequence[Message]) -> Iterator[tuple[Partition, Sequence[Message]]]:
    """Messages that follow each other and are of one partition. Kafka sends thousands of one at a time, so
    nearly always it is all of them, which two lists tell sooner than a key of each message."""
    topics = [message.topic() for message in messages]
    numbers = [message.partition() for message in messages]
    if messages and topics.count(topics[0]) == numbers.count(numbers[0]) == len(messages):
        yield _place(messages[0]), messages
        return
    for partition, group in groupby(messages, key=_place):
        yield partition, list(group)


def _place(message: Message) -> Partition:
    return Partition(cast(str, message.topic()), cast(int, message.partition()))


@functools.lru_cache(maxsize=8)
def _reader(settings_json: str) -> SliceReader:
    return SliceReader(json.loads(settings_json))


def process_reader(settings: Mapping[str, str]) -> SliceReader:
    """This process's reader for a cluster."""
    return _reader(json.dumps(dict(settings), sort_keys=True))
