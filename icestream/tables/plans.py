"""What the writer of a task must know of a table, whatever its format. A sink's own plan has it and more."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from icestream.rows.new_columns import GrowthLimit, Path
from icestream.rows.record_shape import RecordShape

NewFields = Mapping[Path, pa.DataType]


class RowPlan(Protocol):
    """How records become rows of one table."""

    @property
    def name(self) -> str: ...

    @property
    def arrow_schema(self) -> pa.Schema:
        """Of the rows, the new fields among their columns."""

    @property
    def new_fields(self) -> NewFields:
        """Fields that the table gets with the rows that have them."""

    @property
    def growth(self) -> GrowthLimit | None:
        """How many columns a batch may add, the new ones included; None: none, what the table lacks is left
        out."""

    @property
    def force_optional(self) -> bool:
        """Whether fields inside of new columns are optional, whatever the schema of a record says."""

    @property
    def always_required(self) -> frozenset[str]:
        """Columns that stay required, whatever records say."""

    @property
    def widens(self) -> bool:
        """Whether the table can get wider types for columns that it has."""

    @property
    def kafka_columns(self) -> Sequence[str]:
        """What the rows tell of where they are from; the schema has these columns."""

    @property
    def any_case(self) -> bool:
        """Whether names of fields match those of columns whatever their case."""

    @property
    def texts(self) -> Collection[Path]:
        """Fields whose new columns are text, whatever they hold."""

    @property
    def shape(self) -> Hashable:
        """Equal for tables of which records become rows alike; None if it is like no other."""


@dataclass(frozen=True)
class NewTablePlan:
    """What a worker must know of a table that does not exist yet: it tells the fields of its records."""

    name: str
    growth: GrowthLimit
    force_optional: bool = False
    texts: Collection[Path] = ()

    def seen(self) -> RecordShape:
        """What looks at the records of a task."""
        return RecordShape(self.growth, self.force_optional, self.texts)
