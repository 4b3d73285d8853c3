"""Records to rows of a table: columns from value, key, headers and Kafka, as `pk.mode` and its siblings say.

Used by `writer`, once per group of alike records. Which columns a statement names depends on the records: one
that they do not have keeps what it has, or gets its default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from icestream.api.batch import Failure
from icestream.api.sink import TASK_PUT
from icestream.connectors.jdbc.sink.plans import (
    INSERT,
    KAFKA,
    NONE,
    RECORD_HEADER,
    RECORD_VALUE,
    UPDATE,
    TablePlan,
    TargetColumn,
)
from icestream.connectors.jdbc.sink.zones import on_the_clock
from icestream.records.column import Column, children, struct_column
from icestream.records.origins import RowOrigins
from icestream.records.records import Records
from icestream.records.rows import Indexes
from icestream.records.schema import ConnectSchema, Field, Kind
from icestream.records.values import Fields, Value, typed
from icestream.rows.cast import cast_column
from icestream.rows.new_columns import GrowthLimit
from icestream.rows.schema_drift import SchemaDrift
from icestream.rows.to_rows import RowConverter

KAFKA_FIELDS = ("__connect_topic", "__connect_partition", "__connect_offset")
_WITH_ZONE = ("timestamptz",)


@dataclass(frozen=True, eq=False)
class Made:
    """Rows with the same columns, each with its row of the chunk; failures by row of the chunk."""

    rows: pa.Table
    index: Indexes
    failed: Mapping[int, Failure]

    def without(self, failed: Mapping[int, Failure]) -> Made:
        keep = ~np.isin(self.index, np.fromiter(failed, np.int64, len(failed)))
        return self if keep.all() else Made(self.rows.filter(pa.array(keep)), self.index[keep], self.failed)


def _texts(values: pa.Array) -> pa.Array:
    """Bytes as texts; what is none is null."""
    texts = [None if one is None else one.decode(errors="replace") for one in values.to_pylist()]
    return pa.array(texts, pa.string())


def _is_anywhere(value: Fields, name: str) -> bool:
    """Whether a record has the field, if only to say that it is null."""
    for part in typed(value.get(name), len(value)):
        if not isinstance(part.value, Column) or part.value.absent is None or not part.value.absent.all():
            return True
    return False


def failure(reason: str) -> Failure:
    return Failure(reason, exception="org.apache.kafka.connect.errors.ConnectException", stage=TASK_PUT)


class RowMaker:
    """Makes rows of one table."""

    def __init__(self, plan: TablePlan, *, stages: bool = True) -> None:
        self._plan = plan
        self._rules = plan.rules
        self._columns = {column.name: column for column in plan.columns}
        schema = pa.schema([pa.field(column.name, self._given(column)) for column in plan.columns])
        limit = plan.growth or replace(GrowthLimit(), columns=0, of=0)
        self._drift = SchemaDrift(schema, limit if stages else replace(limit, columns=0))
        self._converter = RowConverter(schema, self._drift)
        self._bare: dict[ConnectSchema, ConnectSchema] = {}
        self._by_schema: dict[ConnectSchema, RowConverter] = {}

    @property
    def new_fields(self) -> dict[tuple[str, ...], pa.DataType]:
        """Top-level fields that the table lacks; changes of columns that it has are not ours to make."""
        return {
            path: kind
            for path, kind in self._drift.found.items()
            if len(path) == 1 and path[0] not in self._columns and not pt.is_null(kind)
        }

    def _given(self, column: TargetColumn) -> pa.DataType:
        return pa.int64() if column.name in self._rules.moments else column.kind

    # -- records that put a row --

    def puts(self, records: Records, origins: RowOrigins) -> Made:
        value = self._value(records)
        rows = self._converter_for(value).to_rows(value, len(records))
        names = self._present(value, rows.rows)
        failed = {int(records.rows[at]): self._told(why) for at, why in rows.failed.items()}
        held = {name: rows.rows.column(name).combine_chunks() for name in names}
        keys, wrong = self._keys(records.take(rows.index), origins)
        failed |= wrong
        held |= keys
        if not held:
            why = failure(f"no field of the record is a column of {self._plan.table}")
            failed |= dict.fromkeys(records.rows[rows.index].tolist(), why)
            return Made(pa.table({}), records.rows[:0], failed)
        made = self._assembled(held, records.rows[rows.index], failed)
        return self._without_nulls(made)

    def _converter_for(self, value: Value) -> RowConverter:
        """Of records with a schema: a number may go where booleans do, and the other way round."""
        if not isinstance(value, Column) or value.schema is None:
            return self._converter
        if value.schema not in self._by_schema:
            numbers = {
                one.name
                for one in value.schema.fields
                if one.name in self._columns
                and pt.is_boolean(self._columns[one.name].kind)
                and one.schema.kind.value.startswith("INT")
            }
            schema = pa.schema(
                [one.with_type(pa.int64()) if one.name in numbers else one for one in self._converter.schema]
            )
            same = not numbers
            self._by_schema[value.schema] = self._converter if same else RowConverter(schema, self._drift)
        return self._by_schema[value.schema]

    def _told(self, why: Failure) -> Failure:
        if self._plan.growth is None and "that the table lacks" in why.reason:
            reason = why.reason.partition(", and a batch")[0]
            return failure(f"{reason}: add them to {self._plan.table}, or set auto.evolve=true")
        return why

    def _value(self, records: Records) -> Value:
        """The value with the fields that are wanted."""
        value, rules = records.value, self._rules
        if rules.text_column and isinstance(value, Column) and pt.is_string(value.values.type):
            return Fields({rules.text_column: value}, None, len(value))
        if isinstance(value, Column) and value.schema is not None and value.schema.kind is Kind.STRUCT:
            return self._struct(value)
        if not isinstance(value, Fields):
            return value
        keys = self._plan.keys if rules.keys.mode == RECORD_VALUE else ()
        if rules.fields:
            value = Fields({name: value.get(name) for name in (*rules.fields, *keys)}, None, len(value))
        return value.put(dict.fromkeys(name for name in rules.without if name not in keys))

    def _struct(self, value: Column) -> Column:
        schema = value.schema
        assert schema is not None
        if schema not in self._bare:
            self._bare[schema] = self._pruned(schema)
        bare = self._bare[schema]
        if bare is schema:
            return value
        held = children(value)
        arrays = [held[one.name].values.cast(one.schema.arrow_type) for one in bare.fields]
        return struct_column(bare, arrays, value.nulls)

    def _pruned(self, schema: ConnectSchema) -> ConnectSchema:
        """Without fields that nobody wants, and without defaults if nulls are to stay nulls."""
        rules = self._rules
        fields = [one for one in schema.fields if self._is_wanted(one.name)]
        if not rules.defaults:
            fields = [replace(one, schema=replace(one.schema, default=None)) for one in fields]
        fields = [replace(one, schema=self._as_number(one)) for one in fields]
        return schema if tuple(fields) == schema.fields else replace(schema, fields=tuple(fields))

    def _as_number(self, field: Field) -> ConnectSchema:
        """Booleans are 0 and 1 where the column has numbers."""
        column = self._columns.get(field.name)
        is_number = column is not None and pt.is_integer(column.kind)
        if not is_number or field.schema.kind is not Kind.BOOLEAN:
            return field.schema
        default = None if field.schema.default is None else int(field.schema.default)
        return replace(field.schema, kind=Kind.INT8, default=default)

    def _is_wanted(self, name: str) -> bool:
        rules = self._rules
        if rules.keys.mode == RECORD_VALUE and name in self._plan.keys:
            return True
        return (not rules.fields or name in rules.fields) and name not in rules.without

    def _present(self, value: Value, rows: pa.Table) -> list[str]:
        """The columns that the records have. Of records without a schema: those that one of them has."""
        if isinstance(value, Column):
            schema = value.schema
            if schema is None or schema.kind is not Kind.STRUCT:
                return []
            return [one.name for one in schema.fields if one.name in self._columns]
        if not isinstance(value, Fields):
            return []
        if value.rest is None:
            return [name for name, node in value.named.items() if node is not None and name in self._columns]
        return [
            name
            for name in self._columns
            if rows.column(name).null_count < rows.num_rows or _is_anywhere(value, name)
        ]

    # -- keys --

    def _keys(self, records: Records, origins: RowOrigins) -> tuple[dict[str, pa.Array], dict[int, Failure]]:
        """The columns of the primary key that are not in the value."""
        mode = self._rules.keys.mode
        if mode in (NONE, RECORD_VALUE):
            return {}, {}
        if mode == KAFKA:
            return self._of_kafka(records, origins), {}
        return self._of_headers(records) if mode == RECORD_HEADER else self._of_key(records)

    def _of_kafka(self, records: Records, origins: RowOrigins) -> dict[str, pa.Array]:
        mine = origins.take(records.rows)
        numbers = np.array([partition.number for partition in mine.partitions], np.int32)
        values = (
            pa.array([records.topic] * len(records), pa.string()),
            pa.array(numbers[mine.codes]),
            pa.array(mine.offsets),
        )
        return {
            name: cast_column(held, self._columns[name].kind, name)[0]
            for name, held in zip(self._plan.keys, values, strict=True)
        }

    def _of_key(self, records: Records) -> tuple[dict[str, pa.Array], dict[int, Failure]]:
        return key_columns(records, [self._columns[name] for name in self._plan.keys])

    def _of_headers(self, records: Records) -> tuple[dict[str, pa.Array], dict[int, Failure]]:
        found = {header.name: header for header in records.headers}
        held: dict[str, pa.Array] = {}
        failed: dict[int, Failure] = {}
        for name in self._plan.keys:
            column = self._columns[name]
            given = found.get(name)
            if given is None or not isinstance(given.values, Column):
                held[name] = pa.nulls(len(records), column.kind)
                continue
            values = given.values.values
            if given.raw:
                # Nobody has read them.
                values = _texts(values)
            held[name], wrong = cast_column(values, column.kind, name)
            failed |= {int(records.rows[at]): failure(why) for at, why in wrong.items()}
        return held, failed

    def deletions(self, records: Records) -> Made:
        """Rows with nothing but the key, of records without a value."""
        held, failed = self._of_key(records)
        return self._without_nulls(self._assembled(held, records.rows, failed), keys_only=True)

    # -- rows --

    def _assembled(self, held: Mapping[str, pa.Array], index: Indexes, failed: Mapping[int, Failure]) -> Made:
        ordered = [one for one in self._columns if one in held]
        rows = pa.table([self._as_stored(held[name], self._columns[name]) for name in ordered], names=ordered)
        made = Made(rows, index, dict(failed))
        return made.without(failed) if failed else made

    def _as_stored(self, values: pa.Array, column: TargetColumn) -> pa.Array:
        if (unit := self._rules.moments.get(column.name)) is not None and pt.is_timestamp(column.kind):
            values = values.cast(pa.timestamp(unit, "UTC")).cast(pa.timestamp("us", "UTC"), safe=False)
        if column.info.type_name in _WITH_ZONE:
            return values
        return on_the_clock(values, self._rules.zones)

    def _without_nulls(self, made: Made, *, keys_only: bool = False) -> Made:
        """Rows without a value where the table, or the key, has to have one fail here, each by itself."""
        failed = dict(made.failed)
        keys = set(self._plan.keys)
        for column in self._plan.columns:
            is_key, name = column.name in keys, column.name
            if keys_only and not is_key:
                continue
            if name not in made.rows.column_names:
                if is_key and self._rules.keys.mode != NONE and self._rules.mode != INSERT:
                    failed |= dict.fromkeys(
                        made.index.tolist(), failure(f"column '{name}' of the primary key is in no field")
                    )
                elif not (column.info.is_nullable or column.info.has_default or self._rules.mode == UPDATE):
                    failed |= dict.fromkeys(
                        made.index.tolist(), failure(f"column '{name}' has to have a value, and no default")
                    )
                continue
            held = made.rows.column(name)
            if held.null_count and (not column.info.is_nullable or (is_key and self._rules.mode != INSERT)):
                null = np.flatnonzero(pc.is_null(held).to_numpy())
                failed |= {
                    int(made.index[row]): failure(
                        f"column '{name}' has to have a value, and the record has null"
                    )
                    for row in null.tolist()
                }
        return replace(made, failed=failed).without(failed) if failed else made


def key_columns(
    records: Records, columns: list[TargetColumn]
) -> tuple[dict[str, pa.Array], dict[int, Failure]]:
    """The columns of a primary key from the keys of records: by their fields, or the key itself."""
    key = records.key
    if key is None:
        why = failure("pk.mode=record_key needs records with a key, and this one has none")
        nothing = {column.name: pa.nulls(len(records), column.kind) for column in columns}
        return nothing, dict.fromkeys(records.rows.tolist(), why)
    if not isinstance(key, Column) or (key.schema is not None and key.schema.kind is Kind.STRUCT):
        schema = pa.schema([pa.field(column.name, column.kind) for column in columns])
        made = RowConverter(schema).to_rows(key, len(records))
        failed = {int(records.rows[at]): why for at, why in made.failed.items()}
        places = np.zeros(len(records), np.int64)
        places[made.index] = np.arange(len(made.index))
        gone = np.ones(len(records), np.bool_)
        gone[made.index] = False
        at = pa.array(places, mask=gone)
        return {name: made.rows.column(name).combine_chunks().take(at) for name in schema.names}, failed
    if len(columns) != 1:
        names = ", ".join(column.name for column in columns)
        why = failure(f"the key is a single value, and the primary key has the columns {names}")
        nothing = {column.name: pa.nulls(len(records), column.kind) for column in columns}
        return nothing, dict.fromkeys(records.rows.tolist(), why)
    (only,) = columns
    values, wrong = cast_column(key.values, only.kind, only.name)
    return {only.name: values}, {int(records.rows[at]): failure(why) for at, why in wrong.items()}
