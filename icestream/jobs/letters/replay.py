"""Sends dead letters to their topics again, each at most once. Used by `icestream dlq`.

What was sent is kept in a topic of its own, `icestream-replays`, in the transactions that send it: one record
for each stretch of offsets of a queue's partition, of which the newest counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from pyroaring import BitMap64

from icestream.api.config import Config, subset
from icestream.api.errors import Fenced, NotFoundError, NotReadyError, PreconditionError
from icestream.api.offsets import NOTHING
from icestream.jobs.publishing.dead_letters import DeadLetter, DeadLetterFilter, DeadLetterReader
from icestream.kafka.clients import client_settings
from icestream.kafka.log import LogRecord, TopicLog
from icestream.kafka.reader import SliceReader
from icestream.kafka.topics import Topics
from icestream.kafka.transactions import Outgoing, Transactions

_REPLAYS: Final = "icestream-replays"
_REPLICATION: Final = 3
_STRETCH: Final = 2**16
"""Offsets that share a record: as a bitmap it takes 8 KiB at most."""
_LETTERS: Final = 500
_BYTES: Final = 8 * 1024 * 1024
"""A transaction ends with the dead letter that makes it as long as one of these."""


@dataclass(frozen=True)
class Request:
    """What to send, and where to."""

    filter: DeadLetterFilter = field(default_factory=DeadLetterFilter)
    limit: int | None = None
    to_topic: str | None = None
    """None: each to the topic and partition that it is from."""
    skip_unsendable: bool = False
    """Leave out what lacks its value, or its topic where none is given. Otherwise one such is an error."""

    def takes(self, letter: DeadLetter) -> bool:
        if not self.filter.takes(letter):
            return False
        sendable = letter.is_whole and (letter.origin is not None or self.to_topic is not None)
        return sendable or not self.skip_unsendable


@dataclass
class Selection:
    """What a look through the queue has found to be sent."""

    count: int = 0
    sent_already: int = 0
    without_origin: int = 0
    without_value: int = 0
    """Dead letters whose record was too large for the queue: only its topic has it."""
    origins: dict[str, int] = field(default_factory=dict)
    """Topic → the highest partition that a dead letter is from."""

    def add(self, letter: DeadLetter) -> None:
        self.count += 1
        self.without_value += not letter.is_whole
        if letter.origin is None:
            self.without_origin += 1
        else:
            topic, number = letter.origin
            self.origins[topic] = max(number, self.origins.get(topic, 0))


class DeadLetterQueue:
    """The dead letter queue of one connector."""

    def __init__(self, connector: str, config: Config, worker: Mapping[str, str]) -> None:
        self.topic = _queue_of(connector, config)
        self._settings = {
            role: client_settings(worker, role, subset(config, f"{role}.override."))
            for role in ("admin", "consumer", "producer")
        }
        self._topics = Topics(self._settings["admin"])
        self._slices = SliceReader(self._settings["consumer"])
        self.reader = DeadLetterReader(self.topic, connector, self._topics, self._slices)
        if not self.reader.exists:
            raise NotFoundError(
                f"connector '{connector}' has no dead letters: topic '{self.topic}' does not exist yet"
            )

    def close(self) -> None:
        self._slices.close()

    def dead_letters(self, wanted: DeadLetterFilter) -> Iterator[tuple[DeadLetter, bool]]:
        """Those that are meant, each with whether it was replayed."""
        replayed = self.replayed_by_now()
        for letter in self.reader.dead_letters():
            if wanted.takes(letter):
                yield letter, letter in replayed

    def selection(self, request: Request) -> Selection:
        """What `replay` would send; raises if it could not."""
        found = self.looked(request)
        self.refuse_unsendable(found, request.to_topic)
        return found

    def looked(self, request: Request) -> Selection:
        """What is meant, whether it can be sent or not."""
        found, replayed = Selection(), self.replayed_by_now()
        for letter in self.reader.dead_letters():
            if not request.takes(letter):
                continue
            if letter in replayed:
                found.sent_already += 1
            elif request.limit is None or found.count < request.limit:
                found.add(letter)
        return found

    def replay(self, request: Request) -> Iterator[int]:
        """Send them; yields how many each transaction had. The limit counts dead letters of this call."""
        if _REPLAYS not in self._topics.describe([_REPLAYS]):
            replicas = min(_REPLICATION, self._topics.brokers())
            self._topics.create(_REPLAYS, 1, replicas, {"cleanup.policy": "compact"})
        name = f"icestream-replay-{self.topic}"
        try:
            transactions = Transactions(self._settings["producer"], name, name)
            try:
                replayed = self._take_over(transactions)
                for part in _parts(self._unsent(replayed, request)):
                    messages = [_outgoing(letter, request.to_topic) for letter in part]
                    transactions.write([*messages, *replayed.add(part)], NOTHING, "")
                    yield len(part)
            finally:
                transactions.close()
        except Fenced:
            raise NotReadyError(
                f"another replay of queue '{self.topic}' has begun; this one has ended. What it had sent "
                "counts: nothing is sent twice"
            ) from None

    def _take_over(self, transactions: Transactions) -> Replayed:
        """What earlier replays have sent. They are fenced: behind a record of our own nothing of theirs can
        come, and what was open before it is decided."""
        own = Outgoing(_REPLAYS, f"replayer/{self.topic}".encode(), b"")
        offset = transactions.write([own], NOTHING, "")
        return self._replayed(lambda log: log.read_past(offset))

    def replayed_by_now(self) -> Replayed:
        """As far as it can be seen from outside: to show, not to send by."""
        if _REPLAYS not in self._topics.describe([_REPLAYS]):
            return Replayed(self.reader.id)
        return self._replayed(lambda log: log.read_to_end())

    def _replayed(self, read: Callable[[TopicLog], None]) -> Replayed:
        replayed = Replayed(self.reader.id)
        log = TopicLog(self._settings["consumer"], _REPLAYS, replayed.take)
        try:
            log.start()
            read(log)
        finally:
            log.close()
        return replayed

    def _unsent(self, replayed: Replayed, request: Request) -> Iterator[DeadLetter]:
        count = 0
        for letter in self.reader.dead_letters():
            if letter in replayed or not request.takes(letter):
                continue
            if count == request.limit:
                return
            count += 1
            yield letter

    def refuse_unsendable(self, found: Selection, to_topic: str | None) -> None:
        if to_topic == self.topic:
            raise PreconditionError(f"'{to_topic}' is the dead letter queue itself; name another --to-topic")
        if found.without_value:
            raise PreconditionError(
                f"{found.without_value:,} of {found.count:,} dead letters lack the value of their record, "
                f"which was too large for '{self.topic}'; the record is still in its topic, at the offset "
                "that the dead letter names. Leave them out with --skip-unsendable"
            )
        if found.without_origin and not to_topic:
            raise PreconditionError(
                f"{found.without_origin:,} of {found.count:,} dead letters do not say which topic they are "
                "from (no __connect.errors.topic header: errors.deadletterqueue.context.headers.enable was "
                "false); say where they belong with --to-topic, or leave them out with --skip-unsendable"
            )
        wanted = {to_topic: 0} if to_topic else found.origins
        facts = self._topics.describe(wanted)
        for topic, partition in wanted.items():
            if topic not in facts:
                raise PreconditionError(
                    f"topic '{topic}' does not exist; create it, or send the dead letters elsewhere with "
                    "--to-topic"
                )
            if partition >= facts[topic].partitions:
                raise PreconditionError(
                    f"topic '{topic}' has {facts[topic].partitions} partitions, but a dead letter is from "
                    f"partition {partition}; let the keys decide with --to-topic {topic}"
                )


@dataclass
class Replayed:
    """Which dead letters of one queue were sent again. Its topic id tells it from a queue created anew."""

    queue_id: str
    _stretches: dict[str, BitMap64] = field(default_factory=dict)

    def take(self, record: LogRecord) -> None:
        key = record.key.decode(errors="replace")
        if key.startswith(f"{self.queue_id}/") and record.value:
            self._stretches[key] = BitMap64.deserialize(record.value)

    def __contains__(self, letter: DeadLetter) -> bool:
        return letter.offset in self._stretches.get(self._key(letter), ())

    def add(self, letters: Iterable[DeadLetter]) -> list[Outgoing]:
        """Returns the records that make it last."""
        changed: dict[str, BitMap64] = {}
        for letter in letters:
            key = self._key(letter)
            changed[key] = self._stretches.setdefault(key, BitMap64())
            changed[key].add(letter.offset)
        return [Outgoing(_REPLAYS, key.encode(), bits.serialize()) for key, bits in changed.items()]

    def _key(self, letter: DeadLetter) -> str:
        return f"{self.queue_id}/{letter.place.number}/{letter.offset // _STRETCH}"


def _queue_of(connector: str, config: Config) -> str:
    topic = config.get("errors.deadletterqueue.topic.name", "").strip()
    if not topic:
        raise NotFoundError(
            f"connector '{connector}' has no dead letter queue; set errors.tolerance=all and "
            "errors.deadletterqueue.topic.name"
        )
    return topic


def _outgoing(letter: DeadLetter, to_topic: str | None) -> Outgoing:
    """The record as it was: to the partition it came from, or to another topic as its key says."""
    origin = letter.origin
    if to_topic or origin is None:
        assert to_topic is not None
        return Outgoing(to_topic, letter.key, letter.value, letter.headers, letter.timestamp_ms)
    return Outgoing(
        origin.topic, letter.key, letter.value, letter.headers, letter.timestamp_ms, origin.number
    )


def _parts(letters: Iterable[DeadLetter]) -> Iterator[list[DeadLetter]]:
    part: list[DeadLetter] = []
    size = 0
    for letter in letters:
        part.append(letter)
        size += len(letter.value or b"") + len(letter.key or b"")
        if len(part) >= _LETTERS or size >= _BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part
