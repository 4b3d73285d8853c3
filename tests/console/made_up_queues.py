"""Dead letters and offsets that nobody has to bring about, for the pictures of the console: made up, and the
same whenever they are asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from icestream.api.batch import DATA_EXCEPTION
from icestream.api.config import Config
from icestream.api.offset_admin import OffsetEntry, PartitionPosition
from icestream.api.offsets import Partition
from icestream.jobs.letters.desk import Letter, LetterDesk, LetterPage
from icestream.jobs.publishing.dead_letters import DeadLetter, DeadLetterFilter
from icestream.jsontext.one_value import BROKEN

_QUEUE: Final = Partition("payments-dead-letters", 0)
_TOPIC: Final = "payments-ledger"
_JSON: Final = "org.apache.kafka.connect.json.JsonConverter"
_TASK: Final = "org.apache.iceberg.connect.IcebergSinkTask"
_KINDS: Final = (
    ("TASK_PUT", _TASK, "field 'amount' is \"{amount}\", which does not fit a column of type double"),
    ("VALUE_CONVERTER", _JSON, BROKEN + "unexpected end of data at {at}"),
    ("TASK_PUT", _TASK, "field 'account' is required by the table and has no value"),
)
_OF_KIND: Final = (0, 1, 0, 0, 2, 0, 1, 0, 0, 2, 0, 1)
"""Of which kind each letter is, the newest first."""
_MINUTES: Final = 60_000


class MadeUpDesk(LetterDesk):
    """A queue of a dozen letters, for whichever connector is asked for."""

    def __init__(self, now_ms: int) -> None:
        super().__init__({})
        self._letters = [_letter(number, kind, now_ms) for number, kind in enumerate(_OF_KIND)]

    def page(self, name: str, config: Config, wanted: DeadLetterFilter, cursor: str | None) -> LetterPage:
        found: list[Letter] = [(letter, False) for letter in self._letters if wanted.takes(letter)]
        return LetterPage(_QUEUE.topic, found, len(self._letters), None, False)

    def letter(self, name: str, config: Config, partition: int, offset: int) -> Letter:
        return next(letter for letter in self._letters if letter.offset == offset), False


def _letter(number: int, kind: int, now_ms: int) -> DeadLetter:
    stage, thrower, reason = _KINDS[kind]
    payment: dict[str, object] = {
        "payment": f"p-{48_213 - 7 * number}",
        "account": f"DE{61_045_722 - 977 * number}",
        "amount": ("12,50", "n/a", "3.000,00", "-")[number % 4] if kind == 0 else 12.5,
        "currency": "EUR",
    }
    if kind == 2:
        del payment["account"]
    whole = json.dumps(payment).encode()
    value = whole[: 31 + number] if kind == 1 else whole
    context = {
        "topic": _TOPIC,
        "partition": str(number % 3),
        "offset": str(20_577_803 - 41 * number),
        "connector.name": _TOPIC,
        "task.id": "0",
        "stage": stage,
        "class.name": thrower,
        "exception.class.name": DATA_EXCEPTION,
        "exception.message": reason.format(amount=payment["amount"], at=len(value)),
    }
    key = str(payment["payment"]).encode()
    headers = (("trace", f"7f3a{number:02x}".encode()),)
    at = now_ms - number * 11 * _MINUTES - 42_000
    return DeadLetter(_QUEUE, 11 - number, context, key, value, headers, at)


class MadeUpOffsets:
    """Three partitions, whose oldest records are gone; an `OffsetAdmin` that changes nothing."""

    _POSITIONS: Final = tuple(
        PartitionPosition("shop-orders", number, 6_200_000, end, at, at, at, ((0, at),))
        for number, (at, end) in enumerate(
            ((8_110_640, 8_110_702), (8_110_633, 8_110_690), (8_110_634, 8_110_711))
        )
    )

    def read(self, name: str, config: Mapping[str, str]) -> list[OffsetEntry]:
        return [
            OffsetEntry(
                {"kafka_topic": one.topic, "kafka_partition": one.partition}, {"kafka_offset": one.resumes}
            )
            for one in self._POSITIONS
        ]

    def positions(
        self, name: str, config: Mapping[str, str], entries: Sequence[OffsetEntry] = ()
    ) -> list[PartitionPosition]:
        return list(self._POSITIONS)

    def alter(self, name: str, config: Mapping[str, str], entries: Sequence[OffsetEntry]) -> str:
        return "nothing was changed"

    def reset(self, name: str, config: Mapping[str, str]) -> str:
        return "nothing was changed"
