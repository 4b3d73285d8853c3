"""Records to rows of a table's schema; called by the pipeline's worker, once per group of alike records.

What is still JSON text is decoded here, straight into the table's types; columns are cast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from icestream.jsontext.coerce import Misfit, coerced
from icestream.jsontext.table_rows import JsonDecoder, Refused
from icestream.records.column import Column, children, filled_deep
from icestream.records.plain import plain
from icestream.records.rows import Indexes
from icestream.records.schema import Kind
from icestream.records.values import Fields, Listing, Node, Text, Value
from icestream.rows.fit_columns import fitted
from icestream.rows.fit_text import TextFitter, Wanted
from icestream.rows.surplus import Surplus


@dataclass(frozen=True)
class Fitted:
    """Rows that fit, each with its position in the group; what does not fit, by position."""

    rows: pa.Table
    index: Indexes
    refused: Mapping[int, Refused]


@dataclass
class RecordFitter:
    """For one table. `surplus` is told of what the records have and the table lacks; None: nobody asks."""

    schema: pa.Schema
    surplus: Surplus | None = None
    _whole: JsonDecoder = field(init=False)
    _text: TextFitter = field(default_factory=TextFitter)

    def __post_init__(self) -> None:
        on_surplus = self.surplus.in_payloads if self.surplus else None
        self._whole = JsonDecoder(self.schema, on_surplus)

    def fit(self, value: Value, length: int) -> Fitted:
        if isinstance(value, Fields):
            return self._fit_text(value.rest) if _is_untouched(value) else self._fit_fields(value)
        if isinstance(value, Column) and value.schema is not None and value.schema.kind is Kind.STRUCT:
            return self._fit_struct(value)
        refused = Refused(0, f"the value is {_what(value)}, and a row needs an object with fields", True)
        return Fitted(self.schema.empty_table(), np.empty(0, np.int64), dict.fromkeys(range(length), refused))

    def _fit_text(self, text: Text | None) -> Fitted:
        """JSON objects that nobody has touched: one native pass."""
        assert text is not None
        payloads = text.source.payloads if text.rows is None else text.source.payloads.take(text.rows)
        decoded = self._whole.decode(payloads)
        refused = {one.at: one for one in decoded.rejected}
        beyond = self.surplus.refusals(payloads, decoded.index.tolist()) if self.surplus else {}
        if not beyond:
            return Fitted(decoded.rows, decoded.index, refused)
        refused |= {at: Refused(at, reason, True) for at, reason in beyond.items()}
        keep = ~np.isin(decoded.index, np.fromiter(beyond, np.int64, len(beyond)))
        return Fitted(decoded.rows.filter(pa.array(keep)), decoded.index[keep], refused)

    def _fit_fields(self, value: Fields) -> Fitted:
        refused: dict[int, Refused] = {}
        if self.surplus is not None:
            beyond = self.surplus.in_fields(value)
            refused |= {at: Refused(at, reason, True) for at, reason in beyond.items()}
        columns = self._columns(value, list(self.schema), "", refused)
        return self._assembled(columns, refused, len(value))

    def _fit_struct(self, value: Column) -> Fitted:
        assert value.schema is not None
        refused: dict[int, Refused] = {}
        if self.surplus is not None and (reason := self.surplus.in_schema(value.schema)):
            refused |= {at: Refused(at, reason, True) for at in range(len(value))}
        held = children(filled_deep(value))
        columns = [
            _cast(held[one.name], one.type, one.name, refused)
            if one.name in held
            else pa.nulls(len(value), one.type)
            for one in self.schema
        ]
        return self._assembled(columns, refused, len(value))

    def _assembled(self, columns: Sequence[pa.Array], refused: dict[int, Refused], length: int) -> Fitted:
        rows = pa.table(columns, schema=self.schema)
        if not refused:
            return Fitted(rows, np.arange(length), {})
        keep = np.ones(length, np.bool_)
        keep[np.fromiter(refused, np.int64, len(refused))] = False
        return Fitted(rows.filter(pa.array(keep)), np.flatnonzero(keep), refused)

    def _columns(
        self, value: Fields, wanted: Sequence[pa.Field], prefix: str, refused: dict[int, Refused]
    ) -> list[pa.Array]:
        """One column for each field of a table's struct."""
        found: dict[int, pa.Array] = {}
        texts: dict[int, Wanted] = {}
        for position, one in enumerate(wanted):
            node = value.get(one.name)
            text = _text_of(node)
            if text is not None:
                texts[position] = Wanted(text, one.type)
            else:
                found[position] = self._column(node, one, f"{prefix}{one.name}", len(value), refused)
        found.update(zip(texts, self._text.decode(list(texts.values()), refused), strict=True))
        return [found[position] for position in range(len(wanted))]

    def _column(
        self, node: Node | None, one: pa.Field, path: str, length: int, refused: dict[int, Refused]
    ) -> pa.Array:
        if node is None:
            return pa.nulls(length, one.type)
        if isinstance(node, Column):
            return _cast(node, one.type, path, refused)
        if isinstance(node, Fields) and pa.types.is_struct(one.type):
            fields = [one.type.field(position) for position in range(one.type.num_fields)]
            return pa.StructArray.from_arrays(self._columns(node, fields, f"{path}.", refused), fields=fields)
        return _one_by_one(plain(node, length), one.type, path, refused)


def _is_untouched(value: Fields) -> bool:
    return not value.named and value.rest is not None and not value.rest.path


def _text_of(node: Node | None) -> Text | None:
    """The text that a node still is."""
    if isinstance(node, Text):
        return node
    if isinstance(node, Listing):
        return node.text
    return node.rest if isinstance(node, Fields) and not node.named else None


def _cast(column: Column, kind: pa.DataType, path: str, refused: dict[int, Refused]) -> pa.Array:
    values, failed = fitted(filled_deep(column).values, kind, path)
    refused.update({at: Refused(at, why, True) for at, why in failed.items()})
    return values


def _one_by_one(values: list[Any], kind: pa.DataType, path: str, refused: dict[int, Refused]) -> pa.Array:
    """Objects that transforms changed inside, where the table has a map or text: rare."""
    held = []
    for at, value in enumerate(values):
        try:
            held.append(coerced(value, kind, path))
        except Misfit as misfit:
            held.append(None)
            refused[at] = Refused(at, str(misfit), True)
    return pa.array(held, kind)


def _what(value: Value) -> str:
    if isinstance(value, Listing):
        return "a list"
    if isinstance(value, Column):
        return value.schema.kind.value if value.schema else str(value.values.type)
    return "null"
