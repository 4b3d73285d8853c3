"""A source that counts. Each counter is a source partition, and the tasks share the counters."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from icestream.api.config import REQUIRED, Config, ConfigDef, Setting, Type
from icestream.api.connector import JavaClass
from icestream.api.errors import BadOffsets
from icestream.api.offset_admin import OffsetEntry
from icestream.api.source import SourceBatch, SourcePlugin
from icestream.records.column import Column, struct_column
from icestream.records.records import Records
from icestream.records.schema import STRING, ConnectSchema, Kind, struct

VALUE = struct(("counter", STRING), ("number", ConnectSchema(Kind.INT64)), name="com.example.Count")
AT_A_TIME = 100


class CounterPlugin(SourcePlugin):
    classes = (JavaClass("com.example.CounterSourceConnector", "com.example.CounterSourceTask", "1.0"),)
    settings = ConfigDef(
        (
            Setting("topic", Type.STRING, REQUIRED, "The topic that gets the numbers."),
            Setting("counters", Type.LIST, ["a", "b"], "The names of the counters."),
            Setting("until", Type.INT, 1000, "Where each of them ends.", at_least=0),
        )
    )

    def tasks(self, config: Config, most: int) -> Sequence[Config]:
        names = self.settings.parse(config)["counters"]
        return [{**config, "counters": ",".join(names[n::most])} for n in range(min(most, len(names)))]

    def open(self, task: Config) -> CounterSource:
        return CounterSource(**self.settings.parse(task))

    def check_offsets(self, config: Config, entries: Sequence[OffsetEntry]) -> None:
        for partition, offset in ((entry.partition, entry.offset) for entry in entries):
            if offset is not None and ([*partition], [*offset]) != (["counter"], ["next"]):
                raise BadOffsets(f"{partition}, {offset}: write a 'counter' and what comes 'next'")


class CounterSource:
    def __init__(self, topic: str, counters: Sequence[str], until: int) -> None:
        self._topic, self._names, self._until = topic, counters, until
        self._next: dict[str, int] = {}

    def seek(self, offsets: Sequence[OffsetEntry]) -> None:
        stored: dict[Any, Any] = {entry.partition.get("counter"): entry.offset for entry in offsets}
        self._next = {name: (stored.get(name) or {"next": 0})["next"] for name in self._names}

    def read(self, limit: int) -> SourceBatch | None:
        name, start = min(self._next.items(), key=lambda item: item[1])
        numbers = np.arange(start, min(start + limit, start + AT_A_TIME, self._until))
        if not len(numbers):
            return None
        names = pa.array([name] * len(numbers))
        records = Records(
            rows=np.arange(len(numbers)),
            topic=self._topic,
            partitions=None,
            timestamps=pa.array(np.full(len(numbers), time.time_ns() // 1_000_000)),
            key=Column(names, STRING),
            value=struct_column(VALUE, [names, pa.array(numbers)]),
        )
        self._next[name] = start + len(numbers)
        return SourceBatch([records], [OffsetEntry({"counter": name}, {"next": self._next[name]})])

    def close(self) -> None:
        """Nothing is open."""
