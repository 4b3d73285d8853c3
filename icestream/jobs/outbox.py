"""Dead letters on their way to their queue: in order, as many to a transaction as Kafka takes, cut down where
the queue takes none so large. For `channel`."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Final

from icestream.api.batch import Rejected
from icestream.api.offsets import Offsets
from icestream.jobs.dead_letters import CONTEXT, LEFT_OUT
from icestream.jobs.sink_job import DeadLetters, SinkJob
from icestream.kafka.transactions import Outgoing, Purged, TooLarge, Transactions

_log = logging.getLogger(__name__)

_SMALL: Final = 4_096
"""Keys and headers up to this many bytes stay even in a letter that is cut down."""
_SHORT_REASON: Final = 500
_MOST_PURGES: Final = 10


class LetterQueue:
    """The dead letters of one batch, and how many of them are in the queue."""

    def __init__(self, job: SinkJob, rejected: Sequence[Rejected], end: Offsets) -> None:
        self._job = job
        self._target = job.dead_letters
        # In the order of positions: after any of them, one position a partition tells how far they are.
        self._rejected = sorted(rejected, key=_place) if self._target else []
        self._end = end
        self._singly = False
        self._too_large: int | None = None
        """Size of the smallest letter that the queue has refused."""
        self._purges = 0
        self.sent = 0

    def __len__(self) -> int:
        return len(self._rejected)

    @property
    def left(self) -> int:
        return len(self) - self.sent

    def write_some(self, transactions: Transactions, closing: Sequence[Outgoing], note: str) -> None:
        """One transaction: some letters, and the offsets up to where they are from.

        `closing` goes with the last of them, and with it the offsets of the whole batch.
        """
        while True:
            try:
                self.sent += transactions.write_some(
                    self._letters(self.sent),
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

    def _letters(self, start: int) -> Iterator[Outgoing]:
        for at in range(start, len(self._rejected)):
            assert self._target is not None
            record = self._rejected[at]
            whole = dead_letter(record, self._target, self._job.name)
            fits = self._too_large is None or whole.size < self._too_large
            yield whole if fits else cut_down(record, self._target, self._job.name)

    def _reached(self, count: int) -> Offsets:
        """The offsets once so many letters are in the queue. Partitions that are not named stay."""
        if count == len(self._rejected):
            return self._end
        last = self._rejected[count - 1]
        done = {partition: self._end[partition] for partition in self._end if partition < last.partition}
        return Offsets({**done, last.partition: last.offset + 1})

    def _shrink(self, refusal: TooLarge) -> None:
        """Letters that travel together are refused together; alone, only the one that is too large."""
        if not self._singly:
            self._singly = True
            return
        at = self.sent + max(refusal.at)
        if self._target is None or at >= len(self._rejected):
            raise refusal
        whole = dead_letter(self._rejected[at], self._target, self._job.name)
        if self._too_large is not None and whole.size >= self._too_large:
            # It was cut down already.
            raise refusal
        self._too_large = whole.size
        _log.warning(
            "dead letters of %s bytes and more are too large for topic '%s'; they go without their value. "
            "To have them whole, raise max.message.bytes of the topic",
            f"{whole.size:,}",
            whole.topic,
            extra={"connector": self._job.name},
        )


def _place(record: Rejected) -> tuple[str, int, int]:
    return (*record.partition, record.offset)


def dead_letter(record: Rejected, target: DeadLetters, connector: str) -> Outgoing:
    """The record as it was; with Kafka Connect's headers about the error, if asked for."""
    headers = list(record.headers)
    if target.with_context:
        headers += _context(record, connector, record.reason)
    return Outgoing(target.topic, record.key, record.value, headers, record.timestamp_ms)


def cut_down(record: Rejected, target: DeadLetters, connector: str) -> Outgoing:
    """A letter that says where the record is, and how large what it leaves out was. The value is never there,
    the headers about the error always are: without them nobody could find the record."""
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
