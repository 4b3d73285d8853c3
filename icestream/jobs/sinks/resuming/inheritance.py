"""A sink job that goes on where another program's workers stopped, such as those of Kafka Connect: what they
have told of and not made visible is settled before the first batch. Called by `resume_finder`.

The other program's offsets in the consumer group say up to where its workers had read, so what they wrote up
to there must become visible, and what they read beyond it is read again: never both.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Protocol

from icestream.api.errors import SourceUnavailable
from icestream.api.offsets import Partition
from icestream.api.sink import LeftBehind, Sink
from icestream.jobs.sinks.job import SinkJob
from icestream.jobs.sinks.resuming.resume import is_ours
from icestream.kafka.topics import GroupOffset

_log = logging.getLogger(__name__)


class KafkaOfOthers(Protocol):
    """What is asked of Kafka when a job changes hands."""

    def has_members(self, group: str) -> bool: ...

    def left_behind(self, topic: str, group: str) -> LeftBehind:
        """The records of a topic behind a group's offsets, once no transaction in it is open."""


def takes_over(group: Mapping[Partition, GroupOffset]) -> bool:
    """Whether somebody else had the group last: if it had workers, they may have left something."""
    return not all(map(is_ours, group.values()))


def settle(job: SinkJob, kafka: KafkaOfOthers, sink: Sink) -> bool:
    """Have the sink finish what the others have left; whether there may have been something."""
    source = sink.inheritance()
    if source is None:
        return False
    if kafka.has_members(job.group):
        # They could write more at any moment, with offsets that nobody would look at again.
        raise SourceUnavailable(
            f"consumer group '{job.group}' still has members: stop the workers that had this connector "
            "before; this job begins when they are gone"
        )
    left = kafka.left_behind(source.topic, source.group)
    if left.records:
        _log.info(
            "%s events of topic '%s' are from before this job",
            len(left.records),
            source.topic,
            extra={"connector": job.name},
        )
    sink.inherit(left)
    return True
