"""The fields that records have, for a table that does not exist yet. Called by a sink's writer for every
group of alike records of a task; tasks and the job manager merge what each has seen.

Records with a schema tell their fields and which of them are required; of others the types are inferred, as
Java's table sinks do, and every field is optional.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from operator import length_hint

import msgspec
import pyarrow as pa

from icestream.jsontext.types import held_type
from icestream.records.column import Column
from icestream.records.payloads import Payloads
from icestream.records.schema import ConnectSchema, Kind
from icestream.records.values import Fields, Value
from icestream.rows.free_form import with_text
from icestream.rows.new_columns import (
    GrowthLimit,
    Path,
    clash,
    clash_reason,
    column_count,
    fields_of,
    merged,
    without_clashes,
)
from icestream.rows.schema_drift import SchemaDrift, column_type

WHOLE: Path = ()
"""The path of a record itself: the fields of a new table are one struct."""


@dataclass
class RecordShape:
    """`kind` is a struct of all fields that were seen; None: none was."""

    limit: GrowthLimit = field(default_factory=GrowthLimit)
    force_optional: bool = False
    texts: Collection[Path] = ()
    """Fields that become text, whatever they hold."""
    kind: pa.StructType | None = None
    refused: str | None = None
    """Why the fields of a record were left out: what the next step will say of it."""
    _seen: set[ConnectSchema] = field(default_factory=set)
    _takes: tuple[pa.StructType | None, msgspec.json.Decoder[object]] | None = None

    def look(self, value: Value) -> None:
        if isinstance(value, Column) and value.schema is not None and value.schema.kind is Kind.STRUCT:
            self._look_at_schema(value.schema)
        elif isinstance(value, Fields):
            text = value.rest
            if not value.named and text is not None and not text.path:
                payloads = text.source.payloads
                self._look_at_text(payloads if text.rows is None else payloads.take(text.rows))
            else:
                self._look_at_fields(value)

    def found(self) -> dict[Path, pa.DataType]:
        """For `Staged.new_fields`."""
        return {} if self.kind is None else {WHOLE: self.kind}

    def _look_at_schema(self, schema: ConnectSchema) -> None:
        if schema in self._seen:
            return
        self._seen.add(schema)
        self._take(with_text(column_type(schema, self.force_optional), self.texts))

    def _look_at_text(self, payloads: Payloads) -> None:
        """What is of the type found so far tells nothing more, and msgspec says so quickly."""
        texts = list(payloads)
        left = iter(texts)
        while length_hint(left):
            try:
                # As fast as C can: the iterator stands behind the one that was refused.
                deque(map(self._decoder().decode, left), maxlen=0)
            except ValueError:  # msgspec's errors are ValueErrors
                self._look_at_one(texts[len(texts) - length_hint(left) - 1])

    def _look_at_one(self, text: bytes) -> None:
        drift = self._drift()
        drift.look_at([text])
        self._take_from(drift)

    def _look_at_fields(self, value: Fields) -> None:
        drift = self._drift()
        drift.in_fields(value)
        self._take_from(drift)

    def _drift(self) -> SchemaDrift:
        return SchemaDrift(pa.schema([]), replace(self.limit, columns=self.limit.of), texts=self.texts)

    def _take_from(self, drift: SchemaDrift) -> None:
        self.refused = self.refused or drift.refusal
        if drift.found:
            self._take(_struct(drift.found))

    def _take(self, kind: pa.DataType) -> None:
        if not kind.num_fields:
            return
        after = kind if self.kind is None else merged(self.kind, kind)
        double = clash(_by_name(after), any_case=self.limit.any_case)
        reason = (
            self.limit.refusal(_by_name(kind), column_count(_by_name(after)))
            if double is None
            else clash_reason(double)
        )
        if reason is not None:
            self.refused = self.refused or reason
            return
        self.kind = after

    def _decoder(self) -> msgspec.json.Decoder[object]:
        if self._takes is None or self._takes[0] != self.kind:
            known = [] if self.kind is None else fields_of(self.kind)
            self._takes = self.kind, msgspec.json.Decoder(held_type(known))
        return self._takes[1]


def one_table(kind: pa.StructType, any_case: int = 0) -> pa.StructType:
    """What several tasks have found, as far as one table can have it."""
    kept = without_clashes(_by_name(kind), any_case=any_case)
    return pa.struct([one for one in fields_of(kind) if (one.name,) in kept])


def _struct(fields: Mapping[Path, pa.DataType]) -> pa.StructType:
    return pa.struct([pa.field(path[0], kind) for path, kind in fields.items()])


def _by_name(kind: pa.StructType) -> dict[Path, pa.DataType]:
    return {(one.name,): one.type for one in fields_of(kind)}
