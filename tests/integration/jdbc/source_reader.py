"""Reads with a JDBC source as the source manager does, without Kafka."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from icestream.api.offset_admin import OffsetEntry
from icestream.api.source import Source, SourceBatch
from icestream.connectors.jdbc.source.plugin import JdbcSourcePlugin
from icestream.jobs.offsets.formats import entries_of, offset_records
from icestream.records.plain import plain

PATIENCE = 60.0


class SourceReader:
    """One connector: what its tasks have read, by topic, and the offsets that are stored with it."""

    def __init__(self, config: Mapping[str, str], stored: Sequence[OffsetEntry] = (), tasks: int = 1) -> None:
        self.plugin = JdbcSourcePlugin()
        self.config = {"poll.interval.ms": "50", "connection.attempts": "1", **config}
        assert self.plugin.problems(self.config) == []
        assert self.plugin.settings.problems(self.config) == []
        self.sources: list[Source] = [
            self.plugin.open(task) for task in self.plugin.tasks(self.config, tasks)
        ]
        self._stored: dict[bytes, bytes | None] = dict(offset_records("c", stored))
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self.batches: list[SourceBatch] = []
        self.seek()

    @property
    def stored(self) -> list[OffsetEntry]:
        return entries_of("c", self._stored.items())

    def seek(self) -> None:
        for source in self.sources:
            source.seek(self.stored)

    def turn(self, limit: int = 100_000) -> int:
        """One read of each task; how many rows there were."""
        count = 0
        for source in self.sources:
            batch = source.read(limit)
            if batch is None:
                continue
            assert len(batch) <= limit
            self.batches.append(batch)
            self._stored |= dict(offset_records("c", batch.after))
            for group in batch.records:
                assert group.value is not None
                self.rows.setdefault(group.topic, []).extend(plain(group.value, len(group)))
                count += len(group)
        return count

    def until(self, is_enough: Callable[[], bool], limit: int = 100_000) -> None:
        end = time.monotonic() + PATIENCE
        while not is_enough():
            assert time.monotonic() < end, self.rows
            if not self.turn(limit):
                time.sleep(0.02)

    def quiet(self, seconds: float = 0.4, limit: int = 100_000) -> None:
        """Read until nothing came for a while."""
        last = time.monotonic()
        while time.monotonic() - last < seconds:
            if self.turn(limit):
                last = time.monotonic()
            else:
                time.sleep(0.02)

    def ids(self, topic: str) -> list[Any]:
        return [row["id"] for row in self.rows.get(topic, [])]

    def close(self) -> None:
        for source in self.sources:
            source.close()
