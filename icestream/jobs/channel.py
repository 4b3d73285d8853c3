"""The job's side effects in Kafka: dead letters, the sink's events and group offsets, in one transaction per
batch, or in several if the dead letters take long."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from icestream.api.batch import Rejected
from icestream.api.errors import SourceUnavailable
from icestream.api.offsets import Offsets, Partition
from icestream.api.sink import Message
from icestream.deadlines import Overdue, while_moving
from icestream.jobs.outbox import LetterQueue
from icestream.jobs.resume import NOTE_PREFIX
from icestream.jobs.sink_job import SinkJob
from icestream.kafka.topics import Topics
from icestream.kafka.transactions import Outgoing, Transactions

_log = logging.getLogger(__name__)

_TOPIC_CONFIG = {"max.message.bytes": str(100 * 1024 * 1024)}
"""A dead letter is the record and its headers: it must fit where the record did."""
_LONGEST_SILENCE = 60.0
"""Seconds: four requests of a transaction may take 15 each."""


class Channel(Protocol):
    def publish(
        self, commit: str, rejected: Sequence[Rejected], events: Sequence[Message], offsets: Offsets
    ) -> None:
        """Nothing twice, and all of it or, after an error, the first part of it: then the group's offsets say
        how far it came. Fenced: another manager of this job has taken over."""

    def close(self) -> None: ...

    def abandon(self) -> None:
        """Let go of it without waiting."""


class KafkaChannel:
    """Opening it fences every older channel of the same job."""

    def __init__(
        self,
        job: SinkJob,
        settings: dict[str, str],
        between: Callable[[], None] = lambda: None,
        seconds: float = _LONGEST_SILENCE,
    ) -> None:
        self._job = job
        self._seconds = seconds
        self._between = between
        """Called between two transactions of a batch; what it raises ends the batch there."""
        self._transactions = Transactions(settings, job.transactional_id, job.group)

    def publish(
        self, commit: str, rejected: Sequence[Rejected], events: Sequence[Message], offsets: Offsets
    ) -> None:
        note = f"{NOTE_PREFIX}{commit}"
        queue = LetterQueue(self._job, rejected, offsets)
        closing = [Outgoing(event.topic, event.key, event.value) for event in events]
        while True:
            # librdkafka keeps no time limit when its broker goes away in the middle of a transaction.
            self._moving(lambda: queue.write_some(self._transactions, closing, note))
            if not queue.left:
                return
            _log.info("published %s of %s dead letters", queue.sent, len(queue), extra=self._context())
            self._between()

    def prove(self, partition: Partition) -> None:
        """Fenced, if another channel of this job was opened since."""
        self._moving(lambda: self._transactions.prove(partition))

    def close(self) -> None:
        self._transactions.close()

    def abandon(self) -> None:
        # Closing waits for a broker that may be away.
        threading.Thread(target=self.close, name="abandoned-channel", daemon=True).start()

    def _moving(self, call: Callable[[], None]) -> None:
        try:
            doing = f"Kafka: transaction of {self._job.transactional_id}"
            while_moving(self._seconds, call, lambda: self._transactions.progress, doing)
        except Overdue:
            raise SourceUnavailable(
                f"Kafka did not end the transaction of {self._job.transactional_id}, and has not answered "
                f"for {self._seconds:.0f} s; is the broker up?"
            ) from None

    def _context(self) -> dict[str, str]:
        return {"connector": self._job.name}


def prepare_topics(job: SinkJob, events: Iterable[str], topics: Topics) -> None:
    """Create the topics of the sink's events and the dead letter queue if they are missing."""
    for name in events:
        _create_missing(topics, name, 3)
    if job.dead_letters:
        _create_missing(topics, job.dead_letters.topic, job.dead_letters.replication)


def _create_missing(topics: Topics, name: str, replication: int) -> None:
    if name not in topics.describe([name]):
        # The default of three copies is meant for clusters that have three brokers.
        topics.create(name, 1, min(replication, topics.brokers()), _TOPIC_CONFIG)
