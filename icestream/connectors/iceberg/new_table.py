"""Creates tables that are missing, from the fields of the records that are for them
(`iceberg.tables.auto-create-enabled`). Called by the job manager alone, through `table.py`.

The catalog decides who creates a table: whoever comes second takes the one that is there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import (
    BadRequestError,
    ForbiddenError,
    NamespaceAlreadyExistsError,
    TableAlreadyExistsError,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    YearTransform,
)
from pyiceberg.types import DoubleType, FloatType, ListType, MapType, StructType

from icestream.api.config import Config, subset
from icestream.api.errors import ConfigError, Problem
from icestream.connectors.iceberg.catalogs.opening import sink_errors
from icestream.connectors.iceberg.partition_by import Term, terms
from icestream.connectors.iceberg.schemas import new_schema
from icestream.connectors.iceberg.table_settings import table_setting
from icestream.rows.new_columns import fields_of
from icestream.tables.given import Given, names_in
from icestream.tables.new_table_columns import named_field, not_created

_log = logging.getLogger(__name__)

_FIRST_PARTITION_ID: Final = 1000
_TRANSFORMS: Final[Mapping[str, Callable[[int], Transform[Any, Any]]]] = {
    "identity": lambda size: IdentityTransform(),
    "year": lambda size: YearTransform(),
    "month": lambda size: MonthTransform(),
    "day": lambda size: DayTransform(),
    "hour": lambda size: HourTransform(),
    "bucket": lambda size: BucketTransform(size),
    "truncate": lambda size: TruncateTransform(size),
}
_PERIODS: Final = ("year", "month", "day", "hour")


@dataclass(frozen=True)
class NewTable:
    """How a missing table is created."""

    partition_by: Given = field(default_factory=lambda: Given("", ""))
    id_columns: Given = field(default_factory=lambda: Given("", ""))
    properties: Mapping[str, str] = field(default_factory=dict)
    any_case: bool = False
    """Whether the names of columns in the config match whatever their case."""
    needs_ids: bool = False
    """Whether it gets upserts, which need columns that identify a row."""

    @classmethod
    def from_config(
        cls, config: Config, table: str, *, any_case: bool = False, needs_ids: bool = False
    ) -> NewTable:
        return cls(
            table_setting(config, table, "partition-by"),
            table_setting(config, table, "id-columns"),
            subset(config, "iceberg.tables.auto-create-props."),
            any_case,
            needs_ids,
        )

    def create(self, catalog: Catalog, name: str, record: pa.StructType) -> None:
        """Create the table for records of this type, with its namespaces."""
        if self.needs_ids and not self.id_columns:
            raise ConfigError(
                [
                    Problem(
                        self.id_columns.key,
                        f"Table '{name}' is not created, because upserts need columns that identify a row; "
                        f"set iceberg.table.{name}.id-columns or iceberg.tables.default-id-columns.",
                    )
                ]
            )
        schema = self.schema(name, record)
        spec = self.spec(name, schema)
        with sink_errors(f"creating table {name}"):
            _create_namespaces(catalog, name)
            try:
                catalog.create_table(name, schema, partition_spec=spec, properties=dict(self.properties))
            except TableAlreadyExistsError:
                _log.info("table %s was created by somebody else meanwhile", name)
                return
        partitions = ", ".join(one.name for one in spec.fields)
        _log.info(
            "created table %s with %s columns, %s",
            name,
            len(schema.fields),
            f"partitioned by {partitions}" if partitions else "not partitioned",
        )

    def schema(self, name: str, record: pa.StructType) -> Schema:
        """With the columns that identify a row as such: they are required, whatever the records say."""
        columns = {
            named_field(column, record, name, self.id_columns, any_case=self.any_case)
            for column in names_in(self.id_columns)
        }
        kind = pa.struct(
            [one.with_nullable(one.nullable and one.name not in columns) for one in fields_of(record)]
        )
        made = new_schema(kind)
        ids = []
        for column in sorted(columns):
            found = made.find_field(column)
            if isinstance(found.field_type, StructType | ListType | MapType | FloatType | DoubleType):
                raise not_created(
                    self.id_columns,
                    name,
                    f"column '{column}' is a {found.field_type}, which identifies no row",
                )
            ids.append(found.field_id)
        return Schema(*made.fields, identifier_field_ids=ids)

    def spec(self, name: str, schema: Schema) -> PartitionSpec:
        fields: list[PartitionField] = []
        periods: set[str] = set()
        for number, term in enumerate(terms(self.partition_by.value) if self.partition_by else []):
            column = self._column(term, schema, name)
            transform = _TRANSFORMS[term.transform](term.size or 0)
            kind = schema.find_type(column)
            if not kind.is_primitive or not transform.can_transform(kind):
                raise not_created(
                    self.partition_by,
                    name,
                    f"'{term.transform}' does not go with column '{column}', a {kind}",
                )
            if term.transform in _PERIODS and column in periods:
                raise not_created(self.partition_by, name, f"column '{column}' has more than one period")
            periods.update([column] if term.transform in _PERIODS else [])
            fields.append(
                PartitionField(
                    source_id=schema.find_field(column).field_id,
                    field_id=_FIRST_PARTITION_ID + number,
                    transform=transform,
                    name=Term(column, term.transform, term.size).name,
                )
            )
        return PartitionSpec(*fields)

    def _column(self, term: Term, schema: Schema, table: str) -> str:
        try:
            found = schema.find_field(term.column, case_sensitive=not self.any_case)
        except ValueError:
            known = ", ".join(schema.column_names)
            raise not_created(
                self.partition_by, table, f"the records have no field '{term.column}', only {known}"
            ) from None
        name = schema.find_column_name(found.field_id)
        assert name is not None
        return name


def _create_namespaces(catalog: Catalog, table: str) -> None:
    """Every level, as Java's sink does. Who may not create one may still create the table in it."""
    *levels, _ = Catalog.identifier_to_tuple(table)
    for depth in range(1, len(levels) + 1):
        try:
            catalog.create_namespace(tuple(levels[:depth]))
        except (NamespaceAlreadyExistsError, ForbiddenError, BadRequestError):
            continue
