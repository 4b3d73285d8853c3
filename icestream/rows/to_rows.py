"""Records to rows of a table's schema; called by the writer of a sink, once per group of alike records.

What is still JSON text is decoded here, straight into the table's types; columns are cast. Of records that
transforms have edited, the fields that are still text are decoded in as few native passes as their paths
allow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from icestream.api.batch import Failure
from icestream.api.sink import TASK_PUT
from icestream.jsontext.coerce import CastError, coerced
from icestream.jsontext.table_rows import RowDecoder
from icestream.records.column import Column, array_of, children, filled_deep
from icestream.records.json_source import JsonSource, Path
from icestream.records.payloads import Payloads
from icestream.records.plain import plain
from icestream.records.rows import Indexes
from icestream.records.schema import Kind
from icestream.records.values import Fields, Listing, Node, Text, Value
from icestream.rows.cast import NOT_CAST, cast_column
from icestream.rows.logical_types import meant
from icestream.rows.schema_drift import SchemaDrift

_WRAPPER: Final = "value"


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows, each with its position in the group; the records that make none, by position."""

    rows: pa.Table
    index: Indexes
    failed: Mapping[int, Failure]


@dataclass
class RowConverter:
    """Makes rows of one table. `drift` is told of what the records have and the table lacks."""

    schema: pa.Schema
    drift: SchemaDrift | None = None
    _whole: RowDecoder = field(init=False)
    _text: TextDecoder = field(init=False)

    def __post_init__(self) -> None:
        on_drift = self.drift.in_payloads if self.drift else None
        self._whole = RowDecoder(self.schema, on_drift)
        self._text = TextDecoder()

    def to_rows(self, value: Value, length: int) -> Rows:
        if isinstance(value, Fields):
            made = self._from_text(value.rest) if _is_untouched(value) else self._from_fields(value)
            return self._with_misfits_told(value, made)
        if isinstance(value, Column) and value.schema is not None and value.schema.kind is Kind.STRUCT:
            return self._with_misfits_told(value, self._from_struct(value))
        reason = f"the value is {_what(value)}, and a row needs an object with fields"
        failed = _failures(dict.fromkeys(range(length), reason))
        return Rows(self.schema.empty_table(), np.empty(0, np.int64), failed)

    def _with_misfits_told(self, value: Fields | Column, made: Rows) -> Rows:
        if self.drift is None:
            return made
        rows = [*made.failed, *made.index[_infinite(made.rows)].tolist()]
        if rows:
            self.drift.in_misfits(in_python(value, rows))
        return made

    def _from_text(self, text: Text | None) -> Rows:
        """JSON objects that nobody has touched: one native pass."""
        assert text is not None
        payloads = text.source.payloads if text.rows is None else text.source.payloads.take(text.rows)
        decoded = self._whole.decode(payloads)
        beyond = self.drift.beyond_limit(payloads, decoded.index.tolist()) if self.drift else {}
        if not beyond:
            return Rows(decoded.rows, decoded.index, _failures(decoded.failed))
        keep = ~np.isin(decoded.index, np.fromiter(beyond, np.int64, len(beyond)))
        failed = _failures({**decoded.failed, **beyond})
        return Rows(decoded.rows.filter(pa.array(keep)), decoded.index[keep], failed)

    def _from_fields(self, value: Fields) -> Rows:
        failed: dict[int, str] = {}
        if self.drift is not None:
            failed |= self.drift.in_fields(value)
        columns = self._columns(value, list(self.schema), "", failed)
        return self._assembled(columns, failed, len(value))

    def _from_struct(self, value: Column) -> Rows:
        assert value.schema is not None
        failed: dict[int, str] = {}
        if self.drift is not None and (reason := self.drift.in_schema(value.schema)):
            failed |= dict.fromkeys(range(len(value)), reason)
        held = children(filled_deep(value))
        columns = [
            _cast(held[one.name], one.type, one.name, failed)
            if one.name in held
            else pa.nulls(len(value), one.type)
            for one in self.schema
        ]
        return self._assembled(columns, failed, len(value))

    def _assembled(self, columns: Sequence[pa.Array], failed: dict[int, str], length: int) -> Rows:
        rows = pa.table(columns, schema=self.schema)
        if not failed:
            return Rows(rows, np.arange(length), {})
        keep = np.ones(length, np.bool_)
        keep[np.fromiter(failed, np.int64, len(failed))] = False
        return Rows(rows.filter(pa.array(keep)), np.flatnonzero(keep), _failures(failed))

    def _columns(
        self, value: Fields, wanted: Sequence[pa.Field], prefix: str, failed: dict[int, str]
    ) -> list[pa.Array]:
        """One column for each field of a table's struct."""
        found: dict[int, pa.Array] = {}
        texts: dict[int, _Wanted] = {}
        for position, one in enumerate(wanted):
            node = value.get(one.name)
            text = _text_of(node)
            if text is not None:
                texts[position] = _Wanted(text, one.type)
            else:
                found[position] = self._column(node, one, f"{prefix}{one.name}", len(value), failed)
        found.update(zip(texts, self._text.decode(list(texts.values()), failed), strict=True))
        return [found[position] for position in range(len(wanted))]

    def _column(
        self, node: Node | None, one: pa.Field, path: str, length: int, failed: dict[int, str]
    ) -> pa.Array:
        if node is None:
            return pa.nulls(length, one.type)
        if isinstance(node, Column):
            return _cast(node, one.type, path, failed)
        if isinstance(node, Fields) and pa.types.is_struct(one.type):
            fields = [one.type.field(position) for position in range(one.type.num_fields)]
            return pa.StructArray.from_arrays(self._columns(node, fields, f"{path}.", failed), fields=fields)
        return _one_by_one(plain(node, length), one.type, path, failed)


def _infinite(rows: pa.Table) -> Indexes:
    """Rows with a float that is infinite: the value may have been too large for it. Rare, and cheap."""
    flags = np.zeros(rows.num_rows, np.bool_)
    for name in rows.column_names:
        column = rows.column(name)
        if pt.is_float32(column.type):
            flags |= pc.fill_null(pc.is_inf(column), False).to_numpy()
    return np.flatnonzero(flags)


def in_python(value: Fields | Column, rows: Sequence[int]) -> list[Any]:
    """Those of some rows that Python can hold: it has no moments after the year 9999."""
    try:
        return plain(value.take(np.array(rows, np.int64)), len(rows))
    except NOT_CAST:
        return [] if len(rows) == 1 else [one for row in rows for one in in_python(value, [row])]


def _failures(reasons: Mapping[int, str]) -> dict[int, Failure]:
    return {at: Failure(reason, stage=TASK_PUT) for at, reason in reasons.items()}


def _is_untouched(value: Fields) -> bool:
    return not value.named and value.rest is not None and not value.rest.path


def _text_of(node: Node | None) -> Text | None:
    """The text that a node still is."""
    if isinstance(node, Text):
        return node
    if isinstance(node, Listing):
        return node.text
    return node.rest if isinstance(node, Fields) and not node.named else None


def _cast(column: Column, kind: pa.DataType, path: str, failed: dict[int, str]) -> pa.Array:
    held = filled_deep(column)
    values, reasons = cast_column(meant(held.values, held.schema, kind), kind, path)
    failed.update(reasons)
    return values


def _one_by_one(values: list[Any], kind: pa.DataType, path: str, failed: dict[int, str]) -> pa.Array:
    """Objects that transforms changed inside, where the table has a map or text: rare."""
    held = []
    for at, value in enumerate(values):
        try:
            held.append(coerced(value, kind, path))
        except CastError as error:
            held.append(None)
            failed[at] = str(error)
    return array_of(held, kind)


def _what(value: Value) -> str:
    if isinstance(value, Listing):
        return "a list"
    if isinstance(value, Column):
        return value.schema.kind.value if value.schema else str(value.values.type)
    return "null"


@dataclass(frozen=True)
class _Wanted:
    """A column that is to come from JSON text."""

    text: Text
    type: pa.DataType


@dataclass
class TextDecoder:
    """Columns from JSON text at some paths. Remembers the native decoders of the layouts that it has met."""

    _decoders: dict[object, RowDecoder] = field(default_factory=dict)

    def decode(self, wanted: Sequence[_Wanted], failed: dict[int, str]) -> list[pa.Array]:
        """A column for each, null where a row is failed; adds to `failed`, by row."""
        found: dict[int, pa.Array] = {}
        for source, layout, rows in _passes(wanted):
            found.update(self._run(source, layout, rows, failed))
        return [found[position] for position in range(len(wanted))]

    def _run(
        self, source: JsonSource, layout: _Layout, rows: Indexes | None, failed: dict[int, str]
    ) -> Iterator[tuple[int, pa.Array]]:
        payloads = source.payloads if rows is None else source.payloads.take(rows)
        if () in layout.types:
            payloads, layout = _wrapped(payloads), layout.below(_WRAPPER)
        decoded = self._decoder(layout).decode(payloads)
        table = decoded.rows
        if decoded.failed:
            failed.update(decoded.failed)
            table = table.take(_spread(decoded.index, len(payloads)))
        for path, positions in layout.positions.items():
            column = _at(table, path)
            for position in positions:
                yield position, column

    def _decoder(self, layout: _Layout) -> RowDecoder:
        key = tuple(layout.types.items())
        if key not in self._decoders:
            self._decoders[key] = RowDecoder(pa.schema(_fields(layout.types)))
        return self._decoders[key]


@dataclass
class _Layout:
    """What one pass decodes: paths none of which is inside another."""

    types: dict[Path, pa.DataType] = field(default_factory=dict)
    positions: dict[Path, list[int]] = field(default_factory=dict)

    def takes(self, path: Path, kind: pa.DataType) -> bool:
        if path in self.types:
            return bool(self.types[path] == kind)
        return not any(path[: len(other)] == other or other[: len(path)] == path for other in self.types)

    def add(self, path: Path, kind: pa.DataType, position: int) -> None:
        self.types[path] = kind
        self.positions.setdefault(path, []).append(position)

    def below(self, name: str) -> _Layout:
        return _Layout(
            {(name, *path): kind for path, kind in self.types.items()},
            {(name, *path): positions for path, positions in self.positions.items()},
        )


def _passes(wanted: Sequence[_Wanted]) -> list[tuple[JsonSource, _Layout, Indexes | None]]:
    passes: list[tuple[JsonSource, _Layout, Indexes | None]] = []
    for position, one in enumerate(wanted):
        text = one.text
        for source, layout, _ in passes:
            if source is text.source and layout.takes(text.path, one.type):
                layout.add(text.path, one.type, position)
                break
        else:
            layout = _Layout()
            layout.add(text.path, one.type, position)
            passes.append((text.source, layout, text.rows))
    return passes


def _fields(types: Mapping[Path, pa.DataType]) -> list[pa.Field]:
    """The tree of the paths as nested structs."""
    inner: dict[str, dict[Path, pa.DataType]] = {}
    for path, kind in types.items():
        inner.setdefault(path[0], {})[path[1:]] = kind
    return [
        pa.field(name, below[()] if () in below else pa.struct(_fields(below)))
        for name, below in inner.items()
    ]


def _wrapped(payloads: Payloads) -> Payloads:
    return Payloads.of([b'{"%s":%s}' % (_WRAPPER.encode(), payload) for payload in payloads])


def _spread(index: Indexes, length: int) -> pa.Array:
    """For each row its place among the decoded ones; null if it is not among them."""
    places = np.zeros(length, np.int64)
    gone = np.ones(length, np.bool_)
    places[index], gone[index] = np.arange(len(index)), False
    return pa.array(places, mask=gone)


def _at(table: pa.Table, path: Path) -> pa.Array:
    column: Any = table.column(path[0]).combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks)
    for name in path[1:]:
        column = pc.struct_field(column, name)
    return column
