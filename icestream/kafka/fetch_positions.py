"""How far a consumer has looked, records that it never delivers included; used by the reader when nothing
comes.

librdkafka tells it in its statistics only. They cost, and pile up where nobody polls: so the consumer that
has them is made when it is needed, and closed with the slices.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer

from icestream.api.offsets import Partition
from icestream.kafka.clients import quiet

_EVERY_MS = 1_000


class FetchPositions:
    """A consumer, and where it fetches next."""

    def __init__(self, settings: Mapping[str, str | int | bool]) -> None:
        self._now: dict[Partition, int] = {}
        self._before: dict[Partition, int] = {}
        self._moved = False
        told: dict[str, Any] = {"statistics.interval.ms": _EVERY_MS, "stats_cb": self._hear}
        self.consumer = Consumer({**quiet(settings), **told})

    def have_moved(self) -> bool:
        """Whether any position has grown since the last call."""
        moved, self._moved = self._moved, False
        return moved

    def is_past(self, partition: Partition, until: int) -> bool:
        """Whether all below `until` has been looked at. Only by the last two reports: what the first of them
        counts may have waited in the queue."""
        return min(self._now.get(partition, -1), self._before.get(partition, -1)) >= until

    def close(self) -> None:
        self.consumer.close()

    def _hear(self, report: str) -> None:
        positions = {
            Partition(topic, int(number)): int(facts["next_offset"])
            for topic, content in json.loads(report)["topics"].items()
            for number, facts in content["partitions"].items()
            if int(number) >= 0
        }
        if any(at > self._now.get(partition, -1) for partition, at in positions.items()):
            self._moved = True
        self._before, self._now = self._now, positions
