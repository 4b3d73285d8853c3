"""Reads slices of partitions; called by the pipeline's worker, inside Spark's Python processes."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from icestream.api.batch import DATA_EXCEPTION, SINK_TASK, Rejected, Slice
from icestream.api.errors import SourceUnavailable
from icestream.api.offsets import Partition
from icestream.kafka.clients import kafka_errors, quiet, raise_if_refused

_READ_SETTINGS: Mapping[str, str | int | bool] = {
    "group.id": "icestream-reader",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
    "check.crcs": False,
    "fetch.wait.max.ms": 100,
    "fetch.message.max.bytes": 4 * 1024 * 1024,
    "fetch.max.bytes": 32 * 1024 * 1024,
    "queued.max.messages.kbytes": 32 * 1024,
    # A full queue stops fetching for this long; the default of a second would starve the decoder.
    "fetch.queue.backoff.ms": 10,
    "queued.min.messages": 100_000,
}
_CHUNK_BYTES = 16 * 1024 * 1024
_MESSAGES_A_CALL = 2_000
_SILENCE_SECONDS = 30.0
_REASON_CHARS = 4_000


@dataclass(frozen=True)
class Chunk:
    """Some records of one partition, in order. Keys and headers are fetched only where they are asked for."""

    partition: Partition
    messages: Sequence[Message]

    def __len__(self) -> int:
        return len(self.messages)

    def values(self) -> list[bytes | None]:
        return [message.value() for message in self.messages]

    def keys(self) -> list[bytes | None]:
        return [message.key() for message in self.messages]

    def headers(self) -> list[tuple[tuple[str, bytes | None], ...]]:
        return [headers_of(message) for message in self.messages]

    def timestamps(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        moments = (message.timestamp()[1] for message in self.messages)
        return np.fromiter(moments, np.int64, len(self.messages))

    def offsets(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        first, last = _offset(self.messages[0]), _offset(self.messages[-1])
        if last - first == len(self.messages) - 1:
            return np.arange(first, last + 1)
        return np.fromiter(map(_offset, self.messages), np.int64, len(self.messages))

    def total_bytes(self) -> int:
        """Of all values."""
        return sum(map(len, self.messages))

    def newest_ms(self) -> int:
        return int(self.messages[-1].timestamp()[1])

    def rejected(
        self,
        at: int,
        stage: str,
        reason: str,
        class_name: str = SINK_TASK,
        exception: str = DATA_EXCEPTION,
        task: int = 0,
    ) -> Rejected:
        message = self.messages[at]
        return Rejected(
            partition=self.partition,
            offset=_offset(message),
            stage=stage,
            reason=_shortened(reason),
            key=message.key(),
            value=message.value(),
            headers=headers_of(message),
            timestamp_ms=message.timestamp()[1],
            class_name=class_name,
            exception=exception,
            task=task,
        )


def _shortened(reason: str) -> str:
    """Java's messages may quote the value, and a dead letter says its reason twice: it must stay sendable."""
    return reason if len(reason) <= _REASON_CHARS else f"{reason[:_REASON_CHARS]}…"


def _offset(message: Message) -> int:
    return cast(int, message.offset())


def headers_of(message: Message) -> tuple[tuple[str, bytes | None], ...]:
    return tuple(cast("list[tuple[str, bytes | None]]", message.headers() or []))


class SliceReader:
    """One consumer, kept for the life of a worker process: making one costs half a second."""

    def __init__(self, settings: Mapping[str, str], clock: Callable[[], float] = time.monotonic) -> None:
        with kafka_errors("connecting to Kafka"):
            self._consumer = Consumer(quiet({**_READ_SETTINGS, **settings}))
        self._clock = clock

    def read(self, piece: Slice, chunk_rows: int) -> Iterator[Chunk]:
        """All records of a slice. It ends by position: its last offsets may be markers that are never
        delivered."""
        topic, number = piece.partition
        with kafka_errors(f"reading {piece.partition} at offset {piece.start}"):
            self._consumer.assign([TopicPartition(topic, number, piece.start)])
            try:
                yield from self._chunks(piece, chunk_rows)
            finally:
                self._consumer.unassign()

    def _chunks(self, piece: Slice, chunk_rows: int) -> Iterator[Chunk]:
        gathered: list[Message] = []
        size = 0
        for messages, done in self._polled(piece):
            gathered.extend(messages)
            size += sum(map(len, messages))
            if gathered and (done or len(gathered) >= chunk_rows or size >= _CHUNK_BYTES):
                yield Chunk(piece.partition, gathered)
                gathered, size = [], 0

    def _polled(self, piece: Slice) -> Iterator[tuple[list[Message], bool]]:
        """Messages below the slice's end, and whether the end is reached."""
        last_heard = self._clock()
        position = piece.start
        done = False
        while not done:
            # A call waits until it has as many messages as asked for: never ask for more than can come.
            wanted = max(1, min(_MESSAGES_A_CALL, piece.until - position))
            messages = self._consumer.consume(wanted, timeout=0.2)
            if not messages:
                raise_if_refused(f"reading {piece.partition}")
                if self._clock() - last_heard > _SILENCE_SECONDS:
                    raise SourceUnavailable(
                        f"{piece.partition} sent nothing for {_SILENCE_SECONDS:.0f} s at {piece.start}; "
                        "is the broker up?"
                    )
                continue
            last_heard = self._clock()
            done = messages[-1].error() is None and _offset(messages[-1]) >= piece.until - 1
            plain = [message for message in messages if message.error() is None]
            if len(plain) != len(messages):
                done = self._end_among(messages, piece) or done
            if plain:
                position = _offset(plain[-1]) + 1
            if plain and _offset(plain[-1]) >= piece.until:
                plain = [message for message in plain if _offset(message) < piece.until]
                done = True
            yield plain, done

    def _end_among(self, messages: Sequence[Message], piece: Slice) -> bool:
        for message in messages:
            error = message.error()
            if error is None:
                continue
            if error.code() == KafkaError._PARTITION_EOF:
                if _offset(message) >= piece.until:
                    return True
            elif error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
                raise SourceUnavailable(
                    f"{piece.partition} no longer has offset {piece.start}: it was removed by retention"
                )
            elif not error.retriable():
                raise KafkaException(error)
        return False

    def close(self) -> None:
        self._consumer.close()


@functools.lru_cache(maxsize=8)
def _reader(settings_json: str) -> SliceReader:
    return SliceReader(json.loads(settings_json))


def process_reader(settings: Mapping[str, str]) -> SliceReader:
    """This process's reader for a cluster."""
    return _reader(json.dumps(dict(settings), sort_keys=True))
