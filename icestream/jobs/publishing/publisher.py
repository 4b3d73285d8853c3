"""Publishes the outcome of a batch to Kafka: dead letters, the sink's events and group offsets, in one
transaction, or in several if there are many dead letters.

Called by the sink manager after every commit, and by `checkpoint_offsets` when offsets are moved by hand.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, Protocol

from icestream.api.batch import Batch, PartlyStaged, Rejected
from icestream.api.errors import SourceUnavailable
from icestream.api.offsets import Offsets, Partition
from icestream.api.sink import Message, Sink, SinkPlan, Target, TargetTask
from icestream.deadlines import Overdue, while_moving
from icestream.jobs.publishing.dead_letters import CONTEXT, LEFT_OUT
from icestream.jobs.sinks.batches import planning
from icestream.jobs.sinks.batches.staging import BatchRunner
from icestream.jobs.sinks.job import DeadLetterSettings, SinkJob
from icestream.jobs.sinks.resuming.resume import NOTE_PREFIX
from icestream.kafka.clients import ANSWER_SECONDS
from icestream.kafka.topics import Topics
from icestream.kafka.transactions import Outgoing, Purged, TooLarge, Transactions

_log = logging.getLogger(__name__)

_TOPIC_CONFIG: Final = {"max.message.bytes": str(100 * 1024 * 1024)}
"""A dead letter is the record and its headers: it must fit where the record did."""
_LONGEST_SILENCE: Final = ANSWER_SECONDS + 3.0
"""A little more than one request of a transaction may take."""
_SMALL: Final = 4_096
"""Keys and headers up to this many bytes stay even in a dead letter without its value."""
_SHORT_REASON: Final = 500
_MOST_PURGES: Final = 10


class Publisher(Protocol):
    """`KafkaPublisher` is the real one."""

    def publish(
        self, commit: str, rejected: Sequence[Rejected], events: Sequence[Message], offsets: Offsets
    ) -> None:
        """Nothing twice, and all of it or, after an error, the first part of it: then the group's offsets say
        how far it came. Fenced: another manager of this job has taken over."""

    def close(self) -> None: ...

    def abandon(self) -> None:
        """Let go of it without waiting."""


class KafkaPublisher:
    """Opening it fences every older publisher of the same job."""

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
        pending = PendingDeadLetters(self._job, rejected, offsets)
        closing = [Outgoing(event.topic, event.key, event.value) for event in events]
        while True:
            # librdkafka keeps no time limit when its broker goes away in the middle of a transaction.
            self._moving(lambda: pending.write_some(self._transactions, closing, note))
            if not pending.left:
                return
            _log.info("published %s of %s dead letters", pending.sent, len(pending), extra=self._context())
            self._between()

    def prove(self, partition: Partition) -> None:
        """Fenced, if another publisher of this job was opened since."""
        self._moving(lambda: self._transactions.prove(partition))

    def close(self) -> None:
        self._transactions.close()

    def abandon(self) -> None:
        # Closing waits for a broker that may be away.
        threading.Thread(target=self.close, name="abandoned-publisher", daemon=True).start()

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


def create_missing_topics(job: SinkJob, events: Iterable[str], topics: Topics) -> None:
    """Create the topics of the sink's events and the dead letter queue if they are missing."""
    for name in events:
        _create_missing(topics, name, 3)
    if job.dead_letters:
        _create_missing(topics, job.dead_letters.topic, job.dead_letters.replication)


def _create_missing(topics: Topics, name: str, replication: int) -> None:
    if name not in topics.describe([name]):
        # The default of three copies is meant for clusters that have three brokers.
        topics.create(name, 1, min(replication, topics.brokers()), _TOPIC_CONFIG)


def publish_missing(
    batch: Batch, targets: Sequence[Target], sink: Sink, runner: BatchRunner, publisher: Publisher, job: str
) -> None:
    """Publish what Kafka has missed of a batch that is in all targets: decode it again for its dead letters,
    and publish them with its offsets."""
    _log.info(
        "publishing what Kafka has missed of batch %s", batch.id, extra={"connector": job, "batch": batch.id}
    )
    tasks = [TargetTask(target.name, target.plan({})) for target in targets]
    plan = SinkPlan(sink.writer, tasks)
    parts = [batch]
    while parts:
        part = parts.pop()
        try:
            result = runner.run(part, plan, stages=False)
        except PartlyStaged as failed:
            raise failed.reason from failed
        if result.overflow and part.span > 1:
            middle = planning.cut(part.start, part.end, max(1, part.span // 2))
            parts += [replace(part, start=middle), replace(part, end=middle)]
            continue
        closing = [] if parts else sink.events(batch.id, None, None)
        publisher.publish(batch.id, result.rejected, closing, part.end)


class PendingDeadLetters:
    """The dead letters of one batch in the order of offsets, and how many of them are published.

    Used by `KafkaPublisher`. As many go into a transaction as Kafka takes; those that are too large for the
    topic go without their value."""

    def __init__(self, job: SinkJob, rejected: Sequence[Rejected], end: Offsets) -> None:
        self._job = job
        self._target = job.dead_letters
        # In the order of positions: after any of them, one position a partition tells how far they are.
        self._rejected = sorted(rejected, key=_position) if self._target else []
        self._end = end
        self._singly = False
        self._too_large: int | None = None
        """Size of the smallest dead letter that the topic has refused."""
        self._purges = 0
        self.sent = 0

    def __len__(self) -> int:
        return len(self._rejected)

    @property
    def left(self) -> int:
        return len(self) - self.sent

    def write_some(self, transactions: Transactions, closing: Sequence[Outgoing], note: str) -> None:
        """One transaction: some dead letters, and the offsets up to where they are from.

        `closing` goes with the last of them, and with it the offsets of the whole batch.
        """
        while True:
            try:
                self.sent += transactions.write_some(
                    self._dead_letters(self.sent),
                    closing,
                    lambda count: self._reached(self.sent + count),
                    note,
                    singly=self._singly,
                )
                return
            except TooLarge as refusal:
                self._shrink(refusal)
            except Purged:
                self._purges += 1
                if self._purges > _MOST_PURGES:
                    raise

    def _dead_letters(self, start: int) -> Iterator[Outgoing]:
        for at in range(start, len(self._rejected)):
            assert self._target is not None
            record = self._rejected[at]
            whole = dead_letter(record, self._target, self._job.name)
            fits = self._too_large is None or whole.size < self._too_large
            yield whole if fits else without_value(record, self._target, self._job.name)

    def _reached(self, count: int) -> Offsets:
        """The offsets once so many dead letters are published. Partitions that are not named stay."""
        if count == len(self._rejected):
            return self._end
        last = self._rejected[count - 1]
        done = {partition: self._end[partition] for partition in self._end if partition < last.partition}
        return Offsets({**done, last.partition: last.offset + 1})

    def _shrink(self, refusal: TooLarge) -> None:
        """Dead letters that travel together are refused together; alone, only the one that is too large."""
        if not self._singly:
            self._singly = True
            return
        at = self.sent + max(refusal.at)
        if self._target is None or at >= len(self._rejected):
            raise refusal
        whole = dead_letter(self._rejected[at], self._target, self._job.name)
        if self._too_large is not None and whole.size >= self._too_large:
            # It has no value already.
            raise refusal
        self._too_large = whole.size
        _log.warning(
            "dead letters of %s bytes and more are too large for topic '%s'; they go without their value. "
            "To have them whole, raise max.message.bytes of the topic",
            f"{whole.size:,}",
            whole.topic,
            extra={"connector": self._job.name},
        )


def _position(record: Rejected) -> tuple[str, int, int]:
    return (*record.partition, record.offset)


def dead_letter(record: Rejected, target: DeadLetterSettings, connector: str) -> Outgoing:
    """The record as it was; with Kafka Connect's headers about the error, if asked for."""
    headers = list(record.headers)
    if target.with_context:
        headers += _context(record, connector, record.reason)
    return Outgoing(target.topic, record.key, record.value, headers, record.timestamp_ms)


def without_value(record: Rejected, target: DeadLetterSettings, connector: str) -> Outgoing:
    """A dead letter that says where the record is, and how large what it leaves out was. The value is never
    there, the headers about the error always are: without them nobody could find the record."""
    key, headers = record.key, list(record.headers)
    told = {"value": len(record.value or b"")}
    if len(key or b"") > _SMALL:
        told["key"], key = len(key or b""), None
    size = sum(len(name) + len(value or b"") for name, value in headers)
    if size > _SMALL:
        told["headers"], headers = size, []
    headers += _context(record, connector, record.reason[:_SHORT_REASON])
    headers += [(f"{LEFT_OUT}{name}.bytes", str(count).encode()) for name, count in told.items()]
    return Outgoing(target.topic, key, None, headers, record.timestamp_ms)


def _context(record: Rejected, connector: str, reason: str) -> list[tuple[str, bytes | None]]:
    context = {
        "topic": record.partition.topic,
        "partition": str(record.partition.number),
        "offset": str(record.offset),
        "connector.name": connector,
        "task.id": str(record.task),
        "stage": record.stage,
        "class.name": record.class_name,
        "exception.class.name": record.exception,
        "exception.message": reason,
        "exception.stacktrace": f"{record.exception}: {reason}\n",
    }
    # A reason may quote half of a surrogate pair, which only Java's strings can hold.
    return [(CONTEXT + name, value.encode(errors="replace")) for name, value in context.items()]


def log_rejected(job: SinkJob, rejected: Sequence[Rejected]) -> None:
    """One line for all of them, and one for each if `errors.log.enable` asks for it.

    Never a value: reasons may quote one, so even they are told only on request.
    """
    if not rejected:
        return
    context = {"connector": job.name}
    first = rejected[0]
    _log.warning(
        "rejected %s records, the first: offset %s of %s (%s)",
        len(rejected),
        first.offset,
        first.partition,
        first.stage,
        extra=context,
    )
    if job.logs_rejects:
        for record in rejected:
            _log.error("%s", _line(job, record), extra=context)


def _line(job: SinkJob, record: Rejected) -> str:
    where = ""
    if job.logs_messages:
        where = (
            f", where consumed record is {{topic='{record.partition.topic}', "
            f"partition={record.partition.number}, offset={record.offset}, timestamp={record.timestamp_ms}}}"
        )
    return (
        f"Error encountered in task {job.name}-{record.task}. Executing stage '{record.stage}' with class "
        f"'{record.class_name}'{where}. {record.exception}: {record.reason}"
    )
