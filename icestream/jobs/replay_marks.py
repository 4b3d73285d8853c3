"""Which dead letters were sent again: remembered in a topic, in the transactions that send them. For
`jobs.replay`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from pyroaring import BitMap64

from icestream.jobs.letters import Letter
from icestream.kafka.log import LogRecord, TopicLog
from icestream.kafka.topics import Topics
from icestream.kafka.transactions import Outgoing

MARKS: Final = "icestream-replays"
"""The newest record of a key counts."""
_REPLICATION: Final = 3
_SEGMENT: Final = 2**16
"""Offsets whose marks share a record: as a bitmap it takes 8 KiB at most."""


@dataclass
class Sent:
    """Which letters of one queue were sent. The queue's topic id tells it from one created anew."""

    queue_id: str
    _segments: dict[str, BitMap64] = field(default_factory=dict)

    def take(self, record: LogRecord) -> None:
        key = record.key.decode(errors="replace")
        if key.startswith(f"{self.queue_id}/") and record.value:
            self._segments[key] = BitMap64.deserialize(record.value)

    def __contains__(self, letter: Letter) -> bool:
        return letter.offset in self._segments.get(self._key(letter), ())

    def note(self, letters: Iterable[Letter]) -> list[Outgoing]:
        """Add letters; returns the records that make it last."""
        changed: dict[str, BitMap64] = {}
        for letter in letters:
            key = self._key(letter)
            changed[key] = self._segments.setdefault(key, BitMap64())
            changed[key].add(letter.offset)
        return [Outgoing(MARKS, key.encode(), bits.serialize()) for key, bits in changed.items()]

    def _key(self, letter: Letter) -> str:
        return f"{self.queue_id}/{letter.place.number}/{letter.offset // _SEGMENT}"


def sent_by_now(queue_id: str, topics: Topics, settings: Mapping[str, str]) -> Sent:
    """As far as it can be seen from outside: to show, not to send by."""
    if MARKS not in topics.describe([MARKS]):
        return Sent(queue_id)
    return _read(queue_id, settings, lambda log: log.read_to_end())


def sent_before(queue_id: str, settings: Mapping[str, str], offset: int) -> Sent:
    """All that precedes a record of the marks, which must be our own: what was open then is decided."""
    return _read(queue_id, settings, lambda log: log.read_past(offset))


def ensure_marks(topics: Topics) -> None:
    if MARKS not in topics.describe([MARKS]):
        topics.create(MARKS, 1, min(_REPLICATION, topics.brokers()), {"cleanup.policy": "compact"})


def _read(queue_id: str, settings: Mapping[str, str], until: Callable[[TopicLog], None]) -> Sent:
    sent = Sent(queue_id)
    log = TopicLog(settings, MARKS, sent.take)
    try:
        log.start()
        until(log)
    finally:
        log.close()
    return sent
