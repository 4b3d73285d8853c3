"""Slices of real partitions: many at once, with aborted and damaged records in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from confluent_kafka import Producer

from icestream.api.batch import Slice
from icestream.api.errors import SourceUnavailable
from icestream.api.offsets import Partition
from icestream.embedded.kafka import Broker
from icestream.kafka.chunk import Chunk
from icestream.kafka.reader import SliceReader
from icestream.kafka.topics import Topics

MANY = 60
OVERRIDES = {
    "isolation.level": "read_uncommitted",
    "enable.partition.eof": "false",
    "auto.offset.reset": "latest",
}


@pytest.fixture(scope="module")
def settings(broker: Broker) -> dict[str, str]:
    return {"bootstrap.servers": broker.bootstrap}


@pytest.fixture(scope="module")
def reader(settings: dict[str, str]) -> Iterator[SliceReader]:
    made = SliceReader(settings)
    yield made
    made.close()


def values(chunks: Sequence[Chunk]) -> dict[Partition, list[bytes | None]]:
    found: dict[Partition, list[bytes | None]] = {}
    for chunk in chunks:
        for part in chunk.parts:
            found.setdefault(part.partition, []).extend(chunk.values()[part.low : part.high])
    return found


def test_slices_of_many_partitions_are_read_at_once(settings: dict[str, str], reader: SliceReader) -> None:
    Topics(settings).create("reader-many", MANY, 1)
    producer = Producer(settings)
    for number in range(MANY * 4):
        producer.produce("reader-many", b"%d" % number, partition=number % MANY)
    producer.flush(60)
    slices = [Slice(Partition("reader-many", number), 1, 3) for number in range(MANY)]
    chunks = list(reader.read_all(slices, 10_000))
    wanted = {
        piece.partition: [b"%d" % (piece.partition.number + MANY * at) for at in (1, 2)] for piece in slices
    }
    assert values(chunks) == wanted
    assert len(chunks) == 1, "small slices make one chunk"
    assert sorted(set(chunks[0].offsets().tolist())) == [1, 2]
    # Again, with the same consumer, and cut into chunks: each slice stays in order.
    assert values(list(reader.read_all(slices, 1))) == wanted


@pytest.fixture(scope="module")
def aborted(settings: dict[str, str]) -> Partition:
    """A record, 2 × 100 aborted ones, a record; a marker after each transaction."""
    Topics(settings).create("reader-aborted", 1, 1)
    producer = Producer({**settings, "transactional.id": "reader-aborted"})
    producer.init_transactions(60)
    for records, commits in (
        ([b"first"], True),
        ([b"no"] * 100, False),
        ([b"no"] * 100, False),
        ([b"last"], True),
    ):
        producer.begin_transaction()
        for record in records:
            producer.produce("reader-aborted", record, partition=0)
        producer.flush(60)
        producer.commit_transaction(60) if commits else producer.abort_transaction(60)
    return Partition("reader-aborted", 0)


@pytest.mark.parametrize(("start", "until"), [(0, 206), (0, 204), (0, 50), (1, 150), (3, 60)])
@pytest.mark.parametrize(
    "override",
    [
        {},
        {
            "isolation.level": "read_uncommitted",
            "enable.partition.eof": "false",
            "auto.offset.reset": "latest",
        },
    ],
    ids=["plain", "overridden"],
)
def test_a_slice_ends_by_position_whatever_a_user_sets(
    settings: dict[str, str], aborted: Partition, start: int, until: int, override: dict[str, str]
) -> None:
    reader = SliceReader({**settings, **override})
    try:
        found = values(list(reader.read_all([Slice(aborted, start, until)], 10_000))).get(aborted, [])
    finally:
        reader.close()
    assert found == [*([b"first"] if start == 0 else []), *([b"last"] if until > 204 else [])]


def test_a_damaged_record_is_an_error_and_no_row(
    broker: Broker, settings: dict[str, str], reader: SliceReader
) -> None:
    Topics(settings).create("reader-damaged", 1, 1)
    producer = Producer(settings)
    producer.produce("reader-damaged", b"all is well", partition=0)
    producer.flush(60)
    (log,) = (broker.data / "topics" / "reader-damaged-0").glob("*.log")
    content = log.read_bytes()
    with log.open("r+b") as file:
        file.seek(content.index(b"well"))
        file.write(b"hell")
    with pytest.raises(SourceUnavailable, match="CRC"):
        list(reader.read(Slice(Partition("reader-damaged", 0), 0, 1), 10))
