"""TimestampRouter: gives records a topic that tells their time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from icestream.records.records import Applied, Failure, Records
from icestream.transforms.dates import DateFormat
from icestream.transforms.failures import invalid_setting
from icestream.transforms.groups import Side, without_failed


@dataclass(frozen=True)
class TimestampRouter:
    topic_format: str
    timestamp_format: DateFormat

    @classmethod
    def configured(cls, settings: Mapping[str, Any], side: Side) -> Self:
        pattern = settings["timestamp.format"]
        try:
            return cls(settings["topic.format"], DateFormat.of(pattern))
        except ValueError as error:
            raise invalid_setting("timestamp.format", pattern, str(error)) from None

    def apply(self, records: Records) -> Applied:
        applied = without_failed(records, _without_timestamp(records))
        routed = [one for group in applied.records for one in self._routed(group)]
        return Applied(routed, applied.failed)

    def _routed(self, records: Records) -> list[Records]:
        times = self.timestamp_format.format(records.timestamps).dictionary_encode()
        codes = times.indices.to_numpy()
        names = [self._topic(records.topic, time) for time in times.dictionary.to_pylist()]
        if len(names) == 1:
            return [replace(records, topic=names[0])]
        return [
            replace(records.take(np.flatnonzero(codes == code)), topic=name)
            for code, name in enumerate(names)
        ]

    def _topic(self, topic: str, time: str) -> str:
        return self.topic_format.replace("${topic}", topic).replace("${timestamp}", time)


def _without_timestamp(records: Records) -> dict[int, Failure]:
    if not records.timestamps.null_count:
        return {}
    rows = np.flatnonzero(records.timestamps.is_null().to_numpy(zero_copy_only=False))
    numbers = records.partitions
    return {
        row: Failure(
            f"Timestamp missing on record: topic={records.topic}, "
            f"partition={None if numbers is None else numbers[row]}"
        )
        for row in rows.tolist()
    }
