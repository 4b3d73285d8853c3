"""Batches of the history in few bytes: a record takes 2.4 KB as objects and a quarter of that packed, and
most are never looked at. Used by `history`, in one process: nothing packed is stored or sent.
"""

from __future__ import annotations

import marshal
from dataclasses import fields
from operator import attrgetter
from typing import Final

from icestream.api.history import BatchRecord, Outcome, TargetCommit, TopicCounts

_PLAIN: Final = [one.name for one in fields(BatchRecord) if one.name not in ("outcome", "targets", "topics")]
_plain = attrgetter(*_PLAIN)
_TARGET: Final = ("name", "id", "rows", "seconds", "file_bytes")
_target = attrgetter(*_TARGET)
_topic = attrgetter(*(one.name for one in fields(TopicCounts)))


def packed(record: BatchRecord) -> bytes:
    return marshal.dumps(
        (
            record.outcome.value,
            [(_target(one), one.outcome.value) for one in record.targets],
            {name: _topic(counts) for name, counts in record.topics.items()},
            *(dict(value) if isinstance(value, dict) else value for value in _plain(record)),
        )
    )


def unpacked(content: bytes) -> BatchRecord:
    outcome, targets, topics, *plain = marshal.loads(content)
    return BatchRecord(
        **dict(zip(_PLAIN, plain, strict=True)),
        outcome=Outcome(outcome),
        targets=tuple(
            TargetCommit(**dict(zip(_TARGET, facts, strict=True)), outcome=Outcome(one))
            for facts, one in targets
        ),
        topics={name: TopicCounts(*counts) for name, counts in topics.items()},
    )
