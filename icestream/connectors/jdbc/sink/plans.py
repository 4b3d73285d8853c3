"""What tasks are told of a table, and what they tell of what they staged. Plain data: it crosses process
boundaries. Made by `table`, used by `writer` and `merge`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from icestream.api.offsets import Partition
from icestream.connectors.jdbc.connections import Access
from icestream.connectors.jdbc.dialects.base import OWN_COLUMNS, ColumnInfo, TableId
from icestream.rows.new_columns import GrowthLimit

SEQUENCE, KIND, SOURCE, OFFSET = OWN_COLUMNS
DELETE, PUT = 0, 1

NONE, KAFKA, RECORD_KEY, RECORD_VALUE, RECORD_HEADER = (
    "none",
    "kafka",
    "record_key",
    "record_value",
    "record_header",
)
"""Where the columns of the primary key are from (`pk.mode`)."""
INSERT, UPSERT, UPDATE = "insert", "upsert", "update"

Refused = Mapping[Partition, Mapping[int, str]]
"""Rows that the database has refused, by where they are from, with the reason."""


@dataclass(frozen=True)
class Keys:
    """Where the primary key of a row is from."""

    mode: str = NONE
    fields: tuple[str, ...] = ()
    """Empty: all fields of the key or of the value."""


@dataclass(frozen=True)
class Zones:
    """What moments, days and times are in columns that have no time zone."""

    database: str = "UTC"
    dates: str = "UTC"


@dataclass(frozen=True)
class RowRules:
    """How records become rows, as the config has it: the same for all tables of a job."""

    keys: Keys = field(default_factory=Keys)
    mode: str = INSERT
    deletes: bool = False
    fields: tuple[str, ...] = ()
    """Those of the value that are taken; empty: all."""
    without: tuple[str, ...] = ()
    """Those that are not."""
    zones: Zones = field(default_factory=Zones)
    moments: Mapping[str, str] = field(default_factory=dict)
    """Fields that hold numbers which are moments, with their unit."""
    defaults: bool = True
    """Whether the default of a schema takes the place of a null."""
    text_column: str = ""
    """Where a value goes that is a mere text."""
    any_case: bool = False


@dataclass(frozen=True)
class TargetColumn:
    """A column that rows may have, and the Arrow type in which records are given to it."""

    info: ColumnInfo
    kind: pa.DataType

    @property
    def name(self) -> str:
        return self.info.name


@dataclass(frozen=True)
class TablePlan:
    """How to stage rows for a table that is there."""

    access: Access
    table: TableId
    columns: tuple[TargetColumn, ...]
    keys: tuple[str, ...]
    """The columns of the primary key, in this job's eyes."""
    rules: RowRules
    stage_prefix: str
    growth: GrowthLimit | None = None
    """How many columns a batch may add; None: none, and records with other fields fail."""
    new_fields: Mapping[tuple[str, ...], Any] = field(default_factory=dict)
    """Fields that the table gets with the rows that have them: `columns` has them already."""
    refused: Refused = field(default_factory=dict)


@dataclass(frozen=True)
class NewTablePlan:
    """Of a table that does not exist yet: tasks tell the fields of its records."""

    rules: RowRules
    growth: GrowthLimit


@dataclass(frozen=True)
class StagedRows:
    """Rows in a staging table, or in Arrow if the database takes them only from one process."""

    table: str
    rows: int
    """How many records they are of."""
    columns: tuple[str, ...]
    partitions: Sequence[Partition]
    """What the numbers of `SOURCE` mean."""
    has_deletes: bool = False
    content: bytes | None = field(default=None, repr=False)
