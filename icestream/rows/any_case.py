"""Records whose field names match a table's whatever their case (`schema-case-insensitive`).

Called by a sink's writer before records become rows: every name that the table knows in another spelling gets
the table's, on all levels; everybody after that compares names as they are. Of JSON only the records with
strange keys are written anew, and of these only the objects where the table has structs: numbers keep their
digits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from icestream.jsontext.types import closed_type, odd_ones
from icestream.records.column import Column, filled_deep
from icestream.records.json_source import ABSENT, JsonSource, encoded
from icestream.records.rows import Indexes
from icestream.records.schema import ConnectSchema, Field, Kind
from icestream.records.values import Fields, Listing, Node, Text, Value
from icestream.rows.cast import entries_of, null_mask, offsets_of
from icestream.rows.new_columns import Path, fields_of, list_of, map_of, merged

_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_LIST: Final = msgspec.json.Decoder(list[msgspec.Raw])
_ENCODE: Final = msgspec.json.encode
_WRAPPER: Final = "value"
_MOST_SPELLINGS: Final = 1000
"""That are remembered: records may bring any number of them."""


class Ambiguous(ValueError):
    """Several names that are one without their case."""


@dataclass(frozen=True, eq=False)
class Respelled:
    """A value in the table's spelling, without the rows that fail."""

    value: Value
    kept: Indexes | None
    """Which rows are in it; None: all."""
    failed: Mapping[int, str]


@dataclass
class AnyCase:
    """For the records of one table."""

    schema: pa.Schema
    _strict: msgspec.json.Decoder[Any] = field(init=False)
    _schemas: dict[ConnectSchema, ConnectSchema | str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._table = pa.struct(list(self.schema))
        self._strict = msgspec.json.Decoder(closed_type(self.schema))
        self._respell = _Respeller(self._table)

    def respelled(self, value: Value, length: int) -> Respelled:
        if isinstance(value, Column) and value.schema is not None and value.schema.kind is Kind.STRUCT:
            return self._column(value)
        if not isinstance(value, Fields):
            return Respelled(value, None, {})
        failed: dict[int, str] = {}
        made = self._fields(value, self._table, failed)
        if not failed:
            return Respelled(made, None, failed)
        keep = np.setdiff1d(np.arange(length), np.fromiter(failed, np.int64, len(failed)))
        return Respelled(made.take(keep), keep, failed)

    # -- records with a schema --

    def _column(self, column: Column) -> Respelled:
        assert column.schema is not None
        if column.schema not in self._schemas:
            try:
                self._schemas[column.schema] = _respelled_schema(column.schema, self._table)
            except Ambiguous as error:
                self._schemas[column.schema] = str(error)
        found = self._schemas[column.schema]
        if isinstance(found, str):
            failed = dict.fromkeys(range(len(column)), found)
            return Respelled(column.take(np.empty(0, np.int64)), np.empty(0, np.int64), failed)
        if found == column.schema:
            return Respelled(column, None, {})
        # Defaults have the names of the old schema: fill them in before these are gone.
        values = _retyped(filled_deep(column).values, found.arrow_type)
        return Respelled(Column(values, found), None, {})

    # -- records without --

    def _fields(self, value: Fields, table: pa.StructType, failed: dict[int, str]) -> Fields:
        spelling = _spelling(table)
        named: dict[str, Node | None] = {}
        for name, node in value.named.items():
            own = spelling.get(name.lower(), name)
            if own in named and node is not None and named[own] is not None:
                reason = _told(own, [one for one in value.named if spelling.get(one.lower(), one) == own])
                failed.update(dict.fromkeys(range(len(value)), reason))
            if node is not None or own not in named:
                named[own] = self._node(node, table, own, failed)
        return Fields(named, self._rest(value.rest, table, failed), len(value))

    def _node(
        self, node: Node | None, table: pa.StructType, name: str, failed: dict[int, str]
    ) -> Node | None:
        position = table.get_field_index(name)
        kind = table.field(position).type if position >= 0 else pa.null()
        if isinstance(node, Fields) and pt.is_struct(kind):
            return self._fields(node, kind, failed)
        if isinstance(node, Text | Listing) and _has_names(kind):
            text = node.text if isinstance(node, Listing) else node
            return self._wrapped(text.objects(), kind, failed)
        if isinstance(node, Column) and node.schema is not None and _has_names(kind):
            try:
                schema = _respelled_schema(node.schema, kind)
            except Ambiguous as error:
                failed.update(dict.fromkeys(range(len(node)), str(error)))
                return node
            return Column(_retyped(filled_deep(node).values, schema.arrow_type), schema)
        return node

    def _rest(self, rest: Text | None, table: pa.StructType, failed: dict[int, str]) -> Text | None:
        if rest is None:
            return None
        if rest.path:
            texts = [encoded(one) for one in rest.objects()]
        else:
            values = rest.source.values
            texts = list(values) if rest.rows is None else [values[row] for row in rest.rows.tolist()]
        strict = self._strict if table is self._table else msgspec.json.Decoder(closed_type(fields_of(table)))
        odd = np.flatnonzero(odd_ones(strict.decode, texts)).tolist()
        if not odd:
            return rest
        respell = self._respell if table is self._table else _Respeller(table)
        for row in odd:
            try:
                texts[row] = respell(texts[row])
            except Ambiguous as error:
                failed[row] = str(error)
        return Text(JsonSource(texts))

    def _wrapped(self, objects: Sequence[Any], kind: pa.DataType, failed: dict[int, str]) -> Text:
        """Values at a path of JSON text, as a text of their own."""
        texts = []
        respell = _Respeller(pa.struct([(_WRAPPER, kind)]))
        for row, one in enumerate(objects):
            text = b"{}" if one is ABSENT else encoded({_WRAPPER: one})
            try:
                texts.append(respell(text))
            except Ambiguous as error:
                failed[row] = str(error)
                texts.append(b"{}")
        return Text(JsonSource(texts), (_WRAPPER,))


def _has_names(kind: pa.DataType) -> bool:
    if pt.is_struct(kind):
        return True
    if pt.is_list(kind):
        return _has_names(kind.value_type)
    return pt.is_map(kind) and _has_names(kind.item_type)


def _spelling(table: pa.StructType) -> dict[str, str]:
    return {one.name.lower(): one.name for one in fields_of(table)}


def _told(name: str, spellings: Sequence[str]) -> str:
    both = " and ".join(f"'{one}'" for one in sorted(spellings))
    return f"the fields {both} are both the column '{name}' whatever their case; rename one"


def _names(names: Sequence[str], table: pa.StructType) -> dict[str, str]:
    """For each name the table's, or itself."""
    spelling = _spelling(table)
    found = {name: spelling.get(name.lower(), name) for name in names}
    if len(set(found.values())) < len(found):
        own = next(one for one in found.values() if list(found.values()).count(one) > 1)
        raise Ambiguous(_told(own, [name for name, one in found.items() if one == own]))
    return found


class _Respeller:
    """Writes JSON of one type anew, with the table's names; what is of another shape stays as it is."""

    def __init__(self, kind: pa.DataType) -> None:
        self._is_list = pt.is_list(kind)
        self._each: _Respeller | None = None
        """Of the elements of a list, or of the values of a map."""
        self._spelling: dict[str, str] = {}
        self._inner: dict[str, _Respeller] = {}
        if pt.is_struct(kind):
            self._spelling = _spelling(kind)
            self._inner = {one.name: _Respeller(one.type) for one in fields_of(kind) if _has_names(one.type)}
        elif _has_names(kind):
            self._each = _Respeller(kind.value_type if self._is_list else kind.item_type)
        self._known: dict[str, str] = {}

    def __call__(self, text: bytes | msgspec.Raw) -> bytes:
        try:
            if self._is_list:
                assert self._each is not None
                return _ENCODE([msgspec.Raw(self._each(raw)) for raw in _LIST.decode(text)])
            members = _OBJECT.decode(text)
        except msgspec.DecodeError:
            return bytes(text)
        if self._each is not None:
            return _ENCODE({key: msgspec.Raw(self._each(raw)) for key, raw in members.items()})
        found: dict[str, msgspec.Raw] = {}
        for name, raw in members.items():
            own = self._known.get(name) or self._own(name)
            if own in found:
                raise Ambiguous(_told(own, [one for one in members if self._own(one) == own]))
            inner = self._inner.get(own)
            found[own] = raw if inner is None else msgspec.Raw(inner(raw))
        return _ENCODE(found)

    def _own(self, name: str) -> str:
        own = self._spelling.get(name.lower())
        if own is not None and len(self._known) < _MOST_SPELLINGS:
            self._known[name] = own
        return name if own is None else own


def _respelled_schema(schema: ConnectSchema, kind: pa.DataType) -> ConnectSchema:
    """The schema with the table's names; the same one if it has them."""
    if schema.kind is Kind.STRUCT and pt.is_struct(kind):
        names = _names([one.name for one in schema.fields], kind)
        fields = tuple(
            Field(names[one.name], _respelled_schema(one.schema, _type_of(kind, names[one.name])))
            for one in schema.fields
        )
        return schema if fields == schema.fields else replace(schema, fields=fields, default=None)
    if schema.kind is Kind.ARRAY and schema.value is not None and pt.is_list(kind):
        return replace(schema, value=_respelled_schema(schema.value, kind.value_type), default=None)
    if schema.kind is Kind.MAP and schema.value is not None and pt.is_map(kind):
        return replace(schema, value=_respelled_schema(schema.value, kind.item_type), default=None)
    return schema


def _type_of(table: pa.StructType, name: str) -> pa.DataType:
    position = table.get_field_index(name)
    return table.field(position).type if position >= 0 else pa.null()


def _retyped(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """The same values under other names: the fields of a struct by position."""
    if values.type == kind:
        return values
    if pt.is_struct(kind):
        fields = fields_of(kind)
        held = [_retyped(one, to.type) for one, to in zip(values.flatten(), fields, strict=True)]
        return pa.StructArray.from_arrays(held, fields=fields, mask=null_mask(values))
    if pt.is_list(kind):
        items = _retyped(values.flatten(), kind.value_type)
        return pa.ListArray.from_arrays(offsets_of(values), items, type=kind, mask=null_mask(values))
    offsets, keys, items = entries_of(values)
    items = _retyped(items, kind.item_type)
    return pa.MapArray.from_arrays(offsets, keys, items, type=kind, mask=null_mask(values))


# -- for the job manager --


def ambiguous_columns(schema: pa.Schema) -> str | None:
    """Columns of a table that no record could be told apart for."""
    return next(_ambiguous(pa.struct(list(schema)), ""), None)


def _ambiguous(kind: pa.DataType, path: str) -> Iterator[str]:
    if pt.is_struct(kind):
        seen: dict[str, str] = {}
        for one in fields_of(kind):
            if (other := seen.setdefault(one.name.lower(), one.name)) != one.name:
                yield f"'{path}{other}' and '{path}{one.name}'"
            yield from _ambiguous(one.type, f"{path}{one.name}.")
    elif pt.is_list(kind):
        yield from _ambiguous(kind.value_type, f"{path}element.")
    elif pt.is_map(kind):
        yield from _ambiguous(kind.item_type, f"{path}value.")


def folded(kind: pa.DataType) -> pa.DataType:
    """A type in which no two fields differ in their case alone: the spelling that sorts first stays."""
    if pt.is_struct(kind):
        found: dict[str, pa.Field] = {}
        for one in sorted(fields_of(kind), key=lambda one: one.name):
            inner = one.with_type(folded(one.type))
            if (held := found.get(one.name.lower())) is None:
                found[one.name.lower()] = inner
            else:
                both = folded(merged(held.type, inner.type))
                found[one.name.lower()] = held.with_type(both).with_nullable(True)
        order = dict.fromkeys(one.name.lower() for one in fields_of(kind))
        return pa.struct([found[name] for name in order])
    if pt.is_list(kind):
        return list_of(folded(kind.value_type), kind.value_field.nullable)
    if pt.is_map(kind):
        return map_of(kind.key_type, folded(kind.item_type), kind.item_field.nullable)
    return kind


def folded_paths(fields: Mapping[Path, pa.DataType]) -> dict[Path, pa.DataType]:
    """New fields of several tasks, each of which has its own spelling of them."""
    found: dict[Path, tuple[Path, pa.DataType]] = {}
    for path, kind in sorted(fields.items()):
        low = tuple(name.lower() for name in path)
        if low in found:
            spelled, held = found[low]
            found[low] = spelled, folded(merged(held, kind))
        else:
            found[low] = path, folded(kind)
    return dict(found.values())
