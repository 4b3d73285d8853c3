"""Sends dead letters to their topics again, each at most once. Used by `icestream dlq`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from icestream.api.config import Config, subset
from icestream.api.errors import Fenced, NotFoundError, NotReadyError, PreconditionError
from icestream.api.offsets import NOTHING
from icestream.jobs.letters import Letter, LetterBox
from icestream.jobs.replay_marks import MARKS, Sent, ensure_marks, sent_before, sent_by_now
from icestream.kafka.clients import client_settings
from icestream.kafka.reader import SliceReader
from icestream.kafka.topics import Topics
from icestream.kafka.transactions import Outgoing, Transactions

_LETTERS: Final = 500
_BYTES: Final = 8 * 1024 * 1024
"""A transaction ends with the letter that makes it as long as one of these."""

Test = Callable[[Letter, bool], bool]
"""Whether a letter is meant; told whether it was sent again already."""


@dataclass
class Selection:
    """What a look through the queue has found to be sent."""

    letters: int = 0
    sent_already: int = 0
    without_origin: int = 0
    cut_down: int = 0
    """Letters whose record was too large for the queue: only its topic has it."""
    origins: dict[str, int] = field(default_factory=dict)
    """Topic → the highest partition that a letter came from."""

    def add(self, letter: Letter) -> None:
        self.letters += 1
        self.cut_down += not letter.is_whole
        if letter.origin is None:
            self.without_origin += 1
        else:
            topic, number = letter.origin
            self.origins[topic] = max(number, self.origins.get(topic, 0))


class Queue:
    """The dead letter queue of one connector."""

    def __init__(self, connector: str, config: Config, worker: Mapping[str, str]) -> None:
        self.topic = _queue_of(connector, config)
        self._settings = {
            role: client_settings(worker, role, subset(config, f"{role}.override."))
            for role in ("admin", "consumer", "producer")
        }
        self._topics = Topics(self._settings["admin"])
        self._reader = SliceReader(self._settings["consumer"])
        self._box = LetterBox(self.topic, connector, self._topics, self._reader)
        if not self._box.exists:
            raise NotFoundError(
                f"connector '{connector}' has no dead letters: topic '{self.topic}' does not exist yet"
            )

    def close(self) -> None:
        self._reader.close()

    def letters(self, test: Test) -> Iterator[tuple[Letter, bool]]:
        """Those that are meant, each with whether it was sent again."""
        sent = self._sent_by_now()
        for letter in self._box.letters():
            again = letter in sent
            if test(letter, again):
                yield letter, again

    def selection(self, test: Test, limit: int | None, to_topic: str | None) -> Selection:
        """What `replay` would send; raises if it could not."""
        found, sent = Selection(), self._sent_by_now()
        for letter in self._box.letters():
            if not test(letter, letter in sent):
                continue
            if letter in sent:
                found.sent_already += 1
            elif limit is None or found.letters < limit:
                found.add(letter)
        self._refuse_unsendable(found, to_topic)
        return found

    def replay(self, test: Test, limit: int | None, to_topic: str | None) -> Iterator[int]:
        """Send them; yields how many each transaction had. The limit counts letters of this call."""
        ensure_marks(self._topics)
        name = f"icestream-replay-{self.topic}"
        try:
            transactions = Transactions(self._settings["producer"], name, name)
            try:
                sent = self._take_over(transactions)
                for part in _parts(self._unsent(sent, test, limit)):
                    messages = [_outgoing(letter, to_topic) for letter in part]
                    transactions.write([*messages, *sent.note(part)], NOTHING, "")
                    yield len(part)
            finally:
                transactions.close()
        except Fenced:
            raise NotReadyError(
                f"another replay of queue '{self.topic}' has begun; this one has ended. What it had sent "
                "counts: nothing is sent twice"
            ) from None

    def _take_over(self, transactions: Transactions) -> Sent:
        """What earlier replays have sent. They are fenced; behind a record of our own nothing of theirs can
        come."""
        offset = transactions.write([Outgoing(MARKS, f"replayer/{self.topic}".encode(), b"")], NOTHING, "")
        return sent_before(self._box.id, self._settings["consumer"], offset)

    def _sent_by_now(self) -> Sent:
        return sent_by_now(self._box.id, self._topics, self._settings["consumer"])

    def _unsent(self, sent: Sent, test: Test, limit: int | None) -> Iterator[Letter]:
        count = 0
        for letter in self._box.letters():
            if letter in sent or not test(letter, False):
                continue
            if count == limit:
                return
            count += 1
            yield letter

    def _refuse_unsendable(self, found: Selection, to_topic: str | None) -> None:
        if to_topic == self.topic:
            raise PreconditionError(f"'{to_topic}' is the dead letter queue itself; name another --to-topic")
        if found.cut_down:
            raise PreconditionError(
                f"{found.cut_down:,} of {found.letters:,} letters lack the value of their record, which was "
                f"too large for '{self.topic}'; the record is still in its topic, at the letter's offset. "
                "Leave them out with --where 'value is not null'"
            )
        if found.without_origin and not to_topic:
            raise PreconditionError(
                f"{found.without_origin:,} of {found.letters:,} letters do not say which topic they are from "
                f"(no __connect.errors.topic header: errors.deadletterqueue.context.headers.enable was "
                "false); say where they belong with --to-topic, or leave them out with "
                "--where 'topic is not null'"
            )
        wanted = {to_topic: 0} if to_topic else found.origins
        facts = self._topics.describe(wanted)
        for topic, partition in wanted.items():
            if topic not in facts:
                raise PreconditionError(
                    f"topic '{topic}' does not exist; create it, or send the letters elsewhere with "
                    "--to-topic"
                )
            if partition >= facts[topic].partitions:
                raise PreconditionError(
                    f"topic '{topic}' has {facts[topic].partitions} partitions, but a letter is from "
                    f"partition {partition}; let the keys decide with --to-topic {topic}"
                )


def _queue_of(connector: str, config: Config) -> str:
    topic = config.get("errors.deadletterqueue.topic.name", "").strip()
    if not topic:
        raise NotFoundError(
            f"connector '{connector}' has no dead letter queue; set errors.tolerance=all and "
            "errors.deadletterqueue.topic.name"
        )
    return topic


def _outgoing(letter: Letter, to_topic: str | None) -> Outgoing:
    """The record as it was: to the partition it came from, or to another topic as its key says."""
    origin = letter.origin
    if to_topic or origin is None:
        assert to_topic is not None
        return Outgoing(to_topic, letter.key, letter.value, letter.headers, letter.timestamp_ms)
    return Outgoing(
        origin.topic, letter.key, letter.value, letter.headers, letter.timestamp_ms, origin.number
    )


def _parts(letters: Iterable[Letter]) -> Iterator[list[Letter]]:
    part: list[Letter] = []
    size = 0
    for letter in letters:
        part.append(letter)
        size += len(letter.value or b"") + len(letter.key or b"")
        if len(part) >= _LETTERS or size >= _BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part
