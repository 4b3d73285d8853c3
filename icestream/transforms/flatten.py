"""`Flatten`: nested structs and maps become one level of fields, named by their paths."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from icestream.api.nesting import too_deep_ones
from icestream.records.column import Column, children
from icestream.records.java_classes import java_class
from icestream.records.json_source import ABSENT, JsonSource, Learned, Path
from icestream.records.records import Applied, Failure, Records
from icestream.records.rows import Indexes
from icestream.records.schema import ConnectSchema, Kind
from icestream.records.values import Fields, Node, Text
from icestream.transforms.failures import GroupFailed, is_null, not_a_map, not_a_struct
from icestream.transforms.flat_text import Join, LearnedShape, Scattered, flat_text, leaves
from icestream.transforms.groups import Side, all_failed, merged, without_failed
from icestream.transforms.structs import defaulted, full_struct_column, null_failures, with_fields

_PURPOSE: Final = "flattening"
_TOO_DEEP: Final = Failure("Flatten transformation was passed a value that is nested too deeply")


@dataclass(frozen=True)
class Flatten:
    side: Side
    delimiter: str
    _shapes: dict[Path, LearnedShape] = field(default_factory=dict)
    _learned: Learned = field(default_factory=Learned)

    @classmethod
    def configured(cls, settings: Mapping[str, Any], side: Side) -> Self:
        return cls(side, settings["delimiter"])

    def apply(self, records: Records) -> Applied:
        value = self.side.get(records)
        if is_null(value):
            return Applied([records])
        if isinstance(value, Column) and value.schema is not None:
            return self._flatten_structs(records, value, value.schema)
        if not isinstance(value, Fields):
            return all_failed(records, not_a_map(value, _PURPOSE))
        return self._flatten_maps(records, value)

    def _flatten_structs(self, records: Records, value: Column, schema: ConnectSchema) -> Applied:
        if schema.kind is not Kind.STRUCT:
            return all_failed(records, not_a_struct(value, _PURPOSE))
        try:
            flat = _flat_structs(value, schema, self._join)
        except GroupFailed as refused:
            return all_failed(records, refused.failure)
        return without_failed(self.side.put(records, flat.column), flat.failed)

    def _flatten_maps(self, records: Records, value: Fields) -> Applied:
        found = _Found(self._join)
        found.gather(value, "")
        found.refuse_what_is_too_deep()
        if found.failed:
            outcome = without_failed(records, found.failed)
            return merged([Applied([], outcome.failed), *map(self.apply, outcome.records)])
        if not found.texts:
            return Applied([self.side.put(records, Fields(found.columns, None, len(records)))])
        structs = [self._shape(one.text).decode(_values(one.text)) for one in found.texts]
        if not any(None in decoded for decoded in structs):
            return self._by_paths(records, found, structs)
        fits = np.fromiter((None not in row for row in zip(*structs, strict=True)), np.bool_, len(records))
        outcomes = []
        for rows, make in ((np.flatnonzero(fits), self._by_paths), (np.flatnonzero(~fits), self._by_text)):
            if len(rows):
                some = [[one[row] for row in rows.tolist()] for one in structs]
                outcomes.append(make(records.take(rows), found.take(rows), some))
        return merged(outcomes)

    def _shape(self, text: Text) -> LearnedShape:
        return self._shapes.setdefault(text.path, LearnedShape(text.path))

    def _by_paths(self, records: Records, found: _Found, structs: Sequence[list[Any]]) -> Applied:
        """Objects of the learned shape: each leaf stays in its text."""
        named = dict(found.columns)
        for one, decoded in zip(found.texts, structs, strict=True):
            text = one.text
            below = leaves(self._shape(text).shape, decoded, one.skip)
            for path in (*below.paths, *below.null_objects):
                name = functools.reduce(self._join, path, one.prefix)
                if name in named:  # two paths make one name: which of them counts differs from row to row
                    return self._by_text(records, found, structs)
                if path in below.null_objects:
                    named[name] = _nulls_at(below.null_objects[path], len(records))
                else:
                    named[name] = Text(text.source, (*text.path, *path), text.rows)
        return Applied([self.side.put(records, Fields(named, None, len(records)))])

    def _by_text(self, records: Records, found: _Found, structs: Sequence[list[Any]]) -> Applied:
        """Objects of any shape, rewritten one by one."""
        columns, texts = _apart(found)
        flat = [flat_text(texts, row, self._join) for row in range(len(records))]
        fields = Fields(columns, Text(JsonSource(flat, self._learned)), len(records))
        return Applied([self.side.put(records, fields)])

    def _join(self, prefix: str, name: str) -> str:
        return f"{prefix}{self.delimiter}{name}" if prefix else name


@dataclass
class _Found:
    """What a map holds: columns that are leaves already, and text that may hold objects."""

    join: Join
    columns: dict[str, Node] = field(default_factory=dict)
    texts: list[Scattered] = field(default_factory=list)
    failed: dict[int, Failure] = field(default_factory=dict)

    def gather(self, fields: Fields, prefix: str) -> None:
        if fields.rest is not None:
            self.texts.append(Scattered(prefix, fields.rest, fields.named.keys()))
        for name, node in fields.named.items():
            path = self.join(prefix, name)
            if isinstance(node, Fields):
                self.gather(node, path)
            elif isinstance(node, Text) and dict in set(map(type, node.objects())):
                self.texts.append(Scattered(path, node))
            elif node is not None:
                self.columns[path] = node
                self.failed.update(_unsupported(node))

    def refuse_what_is_too_deep(self) -> None:
        for one in self.texts:
            self.failed.update(dict.fromkeys(too_deep_ones(_values(one.text)), _TOO_DEEP))

    def take(self, rows: Indexes) -> _Found:
        columns = {name: node.take(rows) for name, node in self.columns.items()}
        return _Found(self.join, columns, [replace(one, text=one.text.take(rows)) for one in self.texts])


def _apart(found: _Found) -> tuple[dict[str, Node], list[Scattered]]:
    """Columns, and text to rewrite: a leaf that some rows lack must not hide one of the same name there."""
    columns, texts = {}, list(found.texts)
    for name, node in found.columns.items():
        if isinstance(node, Text) and ABSENT in node.objects():
            texts.append(Scattered(name, node))
        else:
            columns[name] = node
    return columns, texts


def _unsupported(node: Node) -> dict[int, Failure]:
    """Rows with values that Connect has no type for without a schema."""
    if not isinstance(node, Column) or not (
        pt.is_timestamp(node.values.type) or pt.is_decimal(node.values.type)
    ):
        return {}
    why = Failure(
        f"Flatten transformation was passed a value of type class {java_class(node)} which is not supported "
        "by Connect's data API"
    )
    return dict.fromkeys(np.flatnonzero(~node.nulls).tolist(), why)


def _values(text: Text) -> Sequence[bytes]:
    values = text.source.values
    return values if text.rows is None else [values[row] for row in text.rows.tolist()]


def _nulls_at(rows: Indexes, length: int) -> Column:
    absent = np.ones(length, np.bool_)
    absent[rows] = False
    return Column(pa.nulls(length), None, absent)


@dataclass(frozen=True)
class _FlatStructs:
    column: Column
    failed: Mapping[int, Failure]
    """By position."""


@dataclass(frozen=True)
class _Leaf:
    name: str
    schema: ConnectSchema
    values: pa.Array
    failed: Mapping[int, Failure]


@dataclass(frozen=True)
class _Around:
    """What the structs around a field mean for it."""

    prefix: str
    optional: bool
    default: Mapping[str, Any] | None


def _flat_structs(column: Column, schema: ConnectSchema, join: Join) -> _FlatStructs:
    """Raises GroupFailed if the schema cannot be flattened."""
    around = _Around("", schema.optional, schema.default)
    leaves = list(_leaves(column, schema, around, join))
    flat = with_fields(schema, [(leaf.name, leaf.schema) for leaf in leaves])
    failed: dict[int, Failure] = {}
    for leaf in leaves:
        failed = {**leaf.failed, **failed}
    return _FlatStructs(full_struct_column(flat, [leaf.values for leaf in leaves], len(column)), failed)


def _leaves(column: Column, schema: ConnectSchema, around: _Around, join: Join) -> Iterator[_Leaf]:
    nulls = column.nulls
    for name, child in children(column).items():
        inner = schema[name]
        default = inner.default
        if default is None and around.default is not None:
            default = around.default.get(name)
        within = _Around(join(around.prefix, name), around.optional or inner.optional, default)
        if inner.kind is Kind.STRUCT:
            yield from _leaves(child, inner, within, join)
        elif inner.kind is Kind.MAP:
            raise GroupFailed(
                f"Flatten transformation does not support {inner.kind} for record with schemas (for field "
                f"{within.prefix})."
            )
        else:
            flat = replace(inner, optional=within.optional, default=default)
            values = defaulted(child, nulls).values
            refused = null_failures(within.prefix, Column(values, flat))
            failed = {row: why for row, why in refused.items() if not nulls[row]}
            yield _Leaf(within.prefix, flat, values, failed)
