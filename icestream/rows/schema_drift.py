"""What records have and a table lacks, gathered over the records of a task; for schema evolution.

JSON is held against the names that the table knows by msgspec, which refuses unknown keys natively; only
records that it refuses are looked at closely. Of JSON that no transform has edited, the decoder tells first
which chunks may have any. Records with a schema tell by it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from icestream.jsontext.types import closed_type, odd_ones
from icestream.records.column import Column
from icestream.records.json_source import ABSENT, JsonSource
from icestream.records.payloads import Payloads
from icestream.records.plain import plain
from icestream.records.schema import DECIMAL, ConnectSchema, Kind
from icestream.records.values import Fields, Node, Text
from icestream.rows.free_form import fields_with_text
from icestream.rows.logical_types import new_column_type
from icestream.rows.new_columns import (
    LIST_ELEMENT,
    MAP_VALUE,
    MOST_DIGITS,
    NO_LONGER_REQUIRED,
    GrowthLimit,
    Path,
    clash,
    clash_reason,
    column_count,
    combined,
    decimal_type,
    fields_of,
    inferred_type,
    list_of,
    map_of,
    merged,
    missing_in,
    new_fields,
    tells_nothing,
    trimmed,
    without_clashes,
)
from icestream.rows.widening import explicit_nulls, widenings

_MOMENT = pa.timestamp("us", "UTC")


@dataclass
class SchemaDrift:
    """`found` by path: a field to add with its type; of a field that the table has, the wider type that it
    should get; or that it should no longer be required."""

    schema: pa.Schema
    limit: GrowthLimit = field(default_factory=GrowthLimit)
    found: dict[Path, pa.DataType] = field(default_factory=dict)
    refusal: str | None = None
    """Why fields of a record are not among those found: they are beyond the limit."""
    force_optional: bool = False
    """Whether fields inside of new structs are optional even if a schema requires them."""
    texts: Collection[Path] = ()
    """Fields that become text, whatever they hold."""
    always_required: frozenset[str] = frozenset()
    """Columns that stay required, whatever records say: they identify rows."""
    widens: bool = True
    """Whether columns that the table has can get wider types, as far as its format goes."""
    _strict: dict[frozenset[str], msgspec.json.Decoder[Any]] = field(default_factory=dict)
    _seen: dict[ConnectSchema, str | None] = field(default_factory=dict)

    def in_payloads(self, payloads: Payloads) -> None:
        # Always against the table's own schema: the type must fit all records of the batch.
        texts = list(payloads)
        self.look_at(texts[row] for row in self._with_unknown_keys(texts))

    def look_at(self, texts: Iterable[bytes]) -> None:
        for text in texts:
            self._take(new_fields([text], self.schema))

    def beyond_limit(self, payloads: Payloads, rows: Iterable[int]) -> dict[int, str]:
        """Of payloads that were looked at: those with fields beyond the limit, and why."""
        found: dict[int, str] = {}
        if self.refusal is None:
            return found
        texts = list(payloads)
        for row in set(rows) & set(self._with_unknown_keys(texts)):
            fields = fields_with_text(new_fields([texts[row]], self.schema), self.texts)
            if fields and combined(self.found, fields) != self.found and (reason := self._refusal(fields)):
                found[row] = reason
        return found

    def in_fields(self, value: Fields) -> dict[int, str]:
        """The rows with fields beyond the limit, and why."""
        table = pa.struct(list(self.schema))
        refused: dict[int, str] = {}
        if value.rest is not None:
            refused |= self._in_rest(value.rest, frozenset(value.named))
        for name, node in value.named.items():
            position = table.get_field_index(name)
            if node is None:
                continue
            if position < 0:
                kind = _type_of(node, len(value))
                if reason := self._take({} if kind is None else {(name,): kind}):
                    refused |= dict.fromkeys(_present(node, len(value)), reason)
            elif pt.is_nested(table.field(position).type) and not isinstance(node, Column):
                for row, one in enumerate(plain(node, len(value))):
                    if reason := self._take(_gathered(missing_in(one, table.field(position).type, (name,)))):
                        refused[row] = reason
        return refused

    def in_misfits(self, values: Iterable[Any]) -> None:
        """Records that made no row, as Python's own values: what if columns were wider?"""
        table = pa.struct(list(self.schema))
        for value in values:
            self._take(widenings(value, table))

    def in_nulls(self, values: Iterable[Any]) -> None:
        """Records that lack a required value: what they say to be null is no longer required."""
        table = pa.struct(list(self.schema))
        for value in values:
            self._take(self._changeable({path: pa.null() for path in explicit_nulls(value, table)}))

    def in_schema(self, schema: ConnectSchema) -> str | None:
        """Why the records of a schema have too many fields; None if they have not."""
        if schema not in self._seen:
            changes = dict(_Changes(self.force_optional).between(schema, list(self.schema), ()))
            self._seen[schema] = self._take(self._changeable(changes))
        return self._seen[schema]

    def _changeable(self, fields: Mapping[Path, pa.DataType]) -> dict[Path, pa.DataType]:
        return {
            path: kind
            for path, kind in fields.items()
            if not pt.is_null(kind) or path[0] not in self.always_required
        }

    def _in_rest(self, rest: Text, edited: frozenset[str]) -> dict[int, str]:
        known = pa.struct([one for one in self.schema if one.name not in edited])
        refused: dict[int, str] = {}
        for row, value in self._suspects(rest, edited):
            named = {name: value[name] for name in value if name not in edited}
            if reason := self._take(_gathered(missing_in(named, known, ()))):
                refused[row] = reason
        return refused

    def _suspects(self, rest: Text, edited: frozenset[str]) -> Iterable[tuple[int, Any]]:
        if rest.path:
            return enumerate(rest.objects())
        values = rest.source.values
        texts = list(values) if rest.rows is None else [values[row] for row in rest.rows.tolist()]
        strange = self._with_unknown_keys(texts, edited)
        return zip(strange, JsonSource([texts[row] for row in strange]).objects(()), strict=True)

    def _with_unknown_keys(self, texts: list[bytes], edited: frozenset[str] = frozenset()) -> list[int]:
        """Rows with keys that neither the table has, on any level, nor a transform has edited."""
        if edited not in self._strict:
            self._strict[edited] = msgspec.json.Decoder(closed_type(self.schema, edited))
        rows: list[int] = np.flatnonzero(odd_ones(self._strict[edited].decode, texts)).tolist()
        return rows

    def _take(self, fields: Mapping[Path, pa.DataType]) -> str | None:
        """Add the fields of a record to those found, or say why they are too many."""
        if self.texts:
            fields = fields_with_text(fields, self.texts)
        if not self.widens:
            fields = {path: kind for path, kind in fields.items() if not self._has(path)}
        if all(path in self.found and self._holds(path, kind) for path, kind in fields.items()):
            return None
        if reason := self._refusal(fields):
            self.refusal = self.refusal or reason
            return reason
        self.found.update(combined(self.found, fields))
        return None

    def _holds(self, path: Path, kind: pa.DataType) -> bool:
        held = self.found[path]
        return bool(held == kind or merged(held, kind) == held)

    def _refusal(self, fields: Mapping[Path, pa.DataType]) -> str | None:
        new = {path: kind for path, kind in fields.items() if not self._has(path)}
        after = {path: kind for path, kind in combined(self.found, fields).items() if not self._has(path)}
        if not new:
            return None
        if (double := clash(after, self.schema, self.limit.any_case)) is not None:
            return clash_reason(double)
        return self.limit.refusal(new, column_count(after))

    def _has(self, path: Path) -> bool:
        """Whether the table has the field, and only its type is to change."""
        kind: pa.DataType = pa.struct(list(self.schema))
        for name in path:
            if pt.is_list(kind) and name == LIST_ELEMENT:
                kind = kind.value_type
            elif pt.is_map(kind) and name == MAP_VALUE:
                kind = kind.item_type
            elif pt.is_struct(kind) and kind.get_field_index(name) >= 0:
                kind = kind.field(kind.get_field_index(name)).type
            else:
                return False
        return True


def limited_to(
    schema: pa.Schema, fields: Mapping[Path, pa.DataType], limit: GrowthLimit
) -> dict[Path, pa.DataType]:
    """New fields of several tasks, no more than a table may get; what changes a field that it has stays."""
    table = SchemaDrift(schema)
    changes = {path: kind for path, kind in fields.items() if table._has(path) or pt.is_null(kind)}
    others = {path: kind for path, kind in fields.items() if path not in changes}
    new = without_clashes(others, schema, limit.any_case)
    return {**changes, **(new if column_count(new) <= limit.columns else trimmed(new, limit.columns))}


def _gathered(fields: Iterable[tuple[Path, pa.DataType]]) -> dict[Path, pa.DataType]:
    found: dict[Path, pa.DataType] = {}
    for path, kind in fields:
        found[path] = merged(found[path], kind) if path in found else kind
    return found


def _present(node: Node, length: int) -> list[int]:
    """The rows that have a value there."""
    if isinstance(node, Column):
        return [int(row) for row in np.flatnonzero(~node.nulls)]
    return [row for row, value in enumerate(plain(node, length)) if value is not None and value is not ABSENT]


def _type_of(node: Node, length: int) -> pa.DataType | None:
    """The type of a new column for values without a schema; None: they tell nothing."""
    if isinstance(node, Column):
        return _column_type(node)
    found: pa.DataType | None = None
    for value in plain(node, length):
        kind = None if value is ABSENT else inferred_type(value)
        if kind is not None:
            found = kind if found is None else merged(found, kind)
    return found


def _column_type(column: Column) -> pa.DataType | None:
    kind = column.values.type
    if column.schema is not None:
        return column_type(column.schema)
    if column.values.null_count == len(column):
        return None
    if pt.is_integer(kind):
        return pa.int64()
    if pt.is_floating(kind):
        return pa.float64()
    if pt.is_decimal(kind):
        return _decimal_column(column.values)
    return _MOMENT if pt.is_timestamp(kind) else kind


def _decimal_column(values: pa.Array) -> pa.DataType:
    """By the values, as Java infers it: the widest integer part and the longest fraction."""
    found: pa.DataType | None = None
    for value in pc.unique(values.drop_null()).to_pylist():
        kind = decimal_type(value) or pa.string()
        found = kind if found is None else merged(found, kind)
    return found or pa.string()


def column_type(schema: ConnectSchema, force_optional: bool = False) -> pa.DataType:
    """The type of a new column for values of a schema, as the Java sink has it. Inside of it fields are
    required where the schema says so."""

    def inside(one: ConnectSchema) -> tuple[pa.DataType, bool]:
        return column_type(one, force_optional), force_optional or one.optional

    if (named := new_column_type(schema)) is not None:
        return named
    if schema.kind is Kind.STRUCT:
        fields = [pa.field(one.name, *inside(one.schema)) for one in schema.fields]
        return pa.struct([one for one in fields if not tells_nothing(one.type)])
    if schema.kind is Kind.ARRAY and schema.value is not None:
        return list_of(*inside(schema.value))
    if schema.kind is Kind.MAP and schema.key is not None and schema.value is not None:
        return map_of(column_type(schema.key, force_optional), *inside(schema.value))
    kind = schema.arrow_type
    if schema.name == DECIMAL:
        # Tables have no negative scale: the zeros are written.
        return pa.decimal128(MOST_DIGITS, max(0, kind.scale))
    if pt.is_timestamp(kind):
        return _MOMENT
    if pt.is_time(kind):
        return pa.time64("us")
    return pa.int32() if pt.is_int8(kind) or pt.is_int16(kind) else kind


@dataclass(frozen=True)
class _Changes:
    """What a table needs for the records of a schema, on every level."""

    force_optional: bool

    def between(
        self, schema: ConnectSchema, table: Iterable[pa.Field], path: Path
    ) -> Iterator[tuple[Path, pa.DataType]]:
        known = {one.name: one for one in table}
        for one in schema.fields:
            here = (*path, one.name)
            if one.name not in known:
                kind = column_type(one.schema, self.force_optional)
                if not tells_nothing(kind):
                    yield here, kind
            else:
                yield from self._of(one.schema, known[one.name], here)

    def _of(self, schema: ConnectSchema, held: pa.Field, path: Path) -> Iterator[tuple[Path, pa.DataType]]:
        if held.type == pa.int32() and schema.arrow_type == pa.int64():
            yield path, pa.int64()
        elif held.type == pa.float32() and schema.arrow_type == pa.float64():
            yield path, pa.float64()
        if not held.nullable and schema.optional:
            yield (*path, NO_LONGER_REQUIRED), pa.null()
        if schema.kind is Kind.STRUCT and pt.is_struct(held.type):
            yield from self.between(schema, fields_of(held.type), path)
        elif schema.kind is Kind.ARRAY and schema.value is not None and pt.is_list(held.type):
            yield from self._of(schema.value, held.type.value_field, (*path, LIST_ELEMENT))
        elif schema.kind is Kind.MAP and schema.value is not None and pt.is_map(held.type):
            yield from self._of(schema.value, held.type.item_field, (*path, MAP_VALUE))
