"""Tables that are missing, and columns: from the fields of records to `CREATE TABLE` and `ALTER TABLE`
(`auto.create`, `auto.evolve`). Tasks look at the records (`KeyedShape`), `table` executes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from icestream.connectors.jdbc.connections import Access
from icestream.connectors.jdbc.sink.plans import KAFKA, NONE, RECORD_KEY, Keys, NewTablePlan
from icestream.connectors.jdbc.sink.rows import KAFKA_FIELDS
from icestream.records.column import Column
from icestream.records.records import Records
from icestream.records.schema import Kind
from icestream.records.values import Fields, Value
from icestream.rows.new_columns import fields_of, merged
from icestream.rows.record_shape import RecordShape, one_table

KEY_FIELD = "__icestream_key"
"""Under this name the key of records stands beside the fields of their values."""


class KeyedShape:
    """The fields of the records of a task, of their keys, too, where those are columns."""

    def __init__(self, plan: NewTablePlan) -> None:
        self._rules = plan.rules
        self._value = RecordShape(plan.growth)
        self._key = RecordShape(plan.growth)
        self._single: pa.DataType | None = None

    def look(self, records: Records) -> None:
        value = records.value
        if self._rules.text_column and isinstance(value, Column) and pt.is_string(value.values.type):
            value = Fields({self._rules.text_column: value}, None, len(value))
        self._value.look(value)
        if self._rules.keys.mode == RECORD_KEY:
            self._look_at_key(records.key)

    def _look_at_key(self, key: Value) -> None:
        if isinstance(key, Column) and (key.schema is None or key.schema.kind is not Kind.STRUCT):
            kind = key.values.type
            if not pt.is_null(kind):
                self._single = kind if self._single is None else merged(self._single, kind)
        else:
            self._key.look(key)

    def found(self) -> dict[tuple[str, ...], pa.DataType]:
        """For `Staged.new_fields`: one struct of all columns, those of the key first."""
        if self._value.kind is None:
            return {}
        keys = self._rules.keys
        fields = {one.name: one for one in fields_of(self._value.kind) if self._is_wanted(one.name)}
        first: list[pa.Field] = []
        if keys.mode == RECORD_KEY and self._single is not None and len(keys.fields) == 1:
            first = [pa.field(keys.fields[0], self._single, nullable=False)]
        elif keys.mode == RECORD_KEY and self._key.kind is not None:
            known = fields_of(self._key.kind)
            first = [one for one in known if not keys.fields or one.name in keys.fields]
        others = [one for name, one in fields.items() if name not in {one.name for one in first}]
        whole = [pa.field(KEY_FIELD, pa.struct(first)), *others] if first else others
        return {(): pa.struct(whole)}

    def _is_wanted(self, name: str) -> bool:
        rules = self._rules
        if name in rules.keys.fields:
            return True
        return (not rules.fields or name in rules.fields) and name not in rules.without


def create_statement(access: Access, table: str, fields: Mapping[tuple[str, ...], Any], keys: Keys) -> str:
    """`CREATE TABLE` for records with these fields; ValueError if the key is not among them."""
    kind = one_table(fields.get((), pa.struct([])), 1 if access.dialect.ignores_case else 0)
    columns = {one.name: one for one in fields_of(kind)}
    of_key = columns.pop(KEY_FIELD, None)
    key_fields = {one.name: one for one in fields_of(of_key.type)} if of_key is not None else {}
    if keys.mode == KAFKA:
        names: Sequence[str] = keys.fields or KAFKA_FIELDS
        kinds = (pa.string(), pa.int32(), pa.int64())
        key_fields = {name: pa.field(name, kind) for name, kind in zip(names, kinds, strict=True)}
    columns = {**key_fields, **columns}
    if keys.mode == NONE:
        wanted: Sequence[str] = ()
    else:
        wanted = keys.fields or tuple(key_fields) or tuple(columns)
    if missing := [name for name in wanted if name not in columns]:
        raise ValueError(f"pk.fields names '{missing[0]}', and the records have only {', '.join(columns)}")
    made = {
        access.quote(name): (
            access.dialect.sql_type(one.type, is_key=name in wanted),
            one.nullable and name not in wanted,
        )
        for name, one in columns.items()
    }
    return access.dialect.create_table(table, made, [access.quote(name) for name in wanted])
