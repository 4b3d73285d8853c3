"""The job's side effects in Kafka: dead letters, control events and group offsets, in one transaction per
batch."""

from __future__ import annotations

import datetime as dt
import threading
import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from icestream.api.batch import Rejected
from icestream.api.errors import SourceUnavailable
from icestream.api.offsets import Offsets
from icestream.deadlines import Overdue, within
from icestream.jobs.events import Event, Payload, encoded
from icestream.jobs.job import DeadLetters, Job
from icestream.jobs.letters import CONTEXT
from icestream.jobs.standing import NOTE_PREFIX
from icestream.kafka.topics import Topics
from icestream.kafka.transactions import Outgoing, Transactions

_TOPIC_CONFIG = {"max.message.bytes": str(16 * 1024 * 1024)}
"""A dead letter is the record and its headers: it must fit where the record did."""
_LONGEST_TRANSACTION = 60.0
"""Seconds: four of its requests may take 15 each."""


class Channel(Protocol):
    def publish(
        self, commit: str, rejected: Sequence[Rejected], events: Sequence[Payload], offsets: Offsets
    ) -> None:
        """All or nothing. Fenced: another manager of this job has taken over."""

    def close(self) -> None: ...

    def abandon(self) -> None:
        """Let go of it without waiting."""


class KafkaChannel:
    """Opening it fences every older channel of the same job."""

    def __init__(
        self,
        job: Job,
        settings: dict[str, str],
        clock: Callable[[], dt.datetime],
        seconds: float = _LONGEST_TRANSACTION,
    ) -> None:
        self._job = job
        self._seconds = seconds
        self._clock = clock
        self._sender = str(uuid.uuid4()).encode()
        self._transactions = Transactions(settings, job.transactional_id, job.group)

    def publish(
        self, commit: str, rejected: Sequence[Rejected], events: Sequence[Payload], offsets: Offsets
    ) -> None:
        messages = [*self._letters(rejected), *self._events(events)]
        try:
            # librdkafka keeps no time limit when its broker goes away in the middle of a transaction.
            within(
                self._seconds,
                lambda: self._transactions.write(messages, offsets, f"{NOTE_PREFIX}{commit}"),
                "publishing",
            )
        except Overdue:
            raise SourceUnavailable(
                f"Kafka did not end the transaction of {self._job.transactional_id} "
                f"in {self._seconds:.0f} s; is the broker up?"
            ) from None

    def close(self) -> None:
        self._transactions.close()

    def abandon(self) -> None:
        # Closing waits for a broker that may be away.
        threading.Thread(target=self.close, name="abandoned-channel", daemon=True).start()

    def _letters(self, rejected: Sequence[Rejected]) -> Iterable[Outgoing]:
        target = self._job.dead_letters
        if target is None:
            return []
        return [dead_letter(record, target, self._job.name) for record in rejected]

    def _events(self, payloads: Sequence[Payload]) -> Iterable[Outgoing]:
        for payload in payloads:
            event = Event(uuid.uuid4(), self._clock(), self._job.group, payload)
            yield Outgoing(self._job.control_topic, self._sender, encoded(event))


def dead_letter(record: Rejected, target: DeadLetters, connector: str) -> Outgoing:
    """The record as it was; with Kafka Connect's headers about the error, if asked for."""
    context = {
        "topic": record.partition.topic,
        "partition": str(record.partition.number),
        "offset": str(record.offset),
        "connector.name": connector,
        "task.id": str(record.task),
        "stage": record.stage,
        "class.name": record.class_name,
        "exception.class.name": record.exception,
        "exception.message": record.reason,
        "exception.stacktrace": f"{record.exception}: {record.reason}\n",
    }
    headers = list(record.headers)
    if target.with_context:
        # A reason may quote half of a surrogate pair, which only Java's strings can hold.
        headers += [(CONTEXT + name, value.encode(errors="replace")) for name, value in context.items()]
    return Outgoing(target.topic, record.key, record.value, headers, record.timestamp_ms)


def prepare_topics(job: Job, topics: Topics) -> None:
    """Create the control topic and the dead letter queue if they are missing."""
    _create_missing(topics, job.control_topic, 3)
    prepare_dead_letters(job, topics)


def prepare_dead_letters(job: Job, topics: Topics) -> None:
    if job.dead_letters:
        _create_missing(topics, job.dead_letters.topic, job.dead_letters.replication)


def _create_missing(topics: Topics, name: str, replication: int) -> None:
    if name not in topics.describe([name]):
        # The default of three copies is meant for clusters that have three brokers.
        topics.create(name, 1, min(replication, topics.brokers()), _TOPIC_CONFIG)
