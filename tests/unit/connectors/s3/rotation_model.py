"""Confluent's rules of rotation as one reads them: record by record. `rotation` is compared with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from icestream.connectors.s3.rotation import RotationRules


@dataclass(frozen=True)
class Row:
    folder: int
    schema: int = 0
    fits: bool = True
    time: int | None = None


class Model:
    def __init__(self, rules: RotationRules, changes: Callable[[int, int], bool]) -> None:
        self.rules, self.changes = rules, changes
        self.round = 0
        self.count = 0
        self.base: int | None = None
        self.last_folder: int | None = None
        self.schemas: dict[int, int] = {}

    def commit(self) -> None:
        self.round += 1
        self.count, self.base, self.schemas = 0, None, {}

    def put(self, row: Row) -> int:
        """The round of the record."""
        if self.base is None:
            self.base = row.time
        if self.count and self.rules.interval_ms > 0 and row.time is not None and self.base is not None:
            is_late = row.time - self.base >= self.rules.interval_ms
            if is_late or (self.rules.on_folder_change and row.folder != self.last_folder):
                self.commit()
                self.base = row.time
        began = self.schemas.get(row.folder)
        if began is not None and began != row.schema and self.changes(began, row.schema):
            self.commit()
            self.base = row.time
        self.schemas.setdefault(row.folder, row.schema)
        self.last_folder = row.folder
        mine = self.round
        if row.fits:
            self.count += 1
            if self.count >= self.rules.flush_size:
                self.commit()
        return mine

    def put_all(self, rows: Sequence[Row]) -> list[int]:
        return [self.put(row) for row in rows]
