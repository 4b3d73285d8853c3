"""Which Delta tables can get upserts. Asked by `table` before anything is staged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.types as pt
from deltalake import DeltaTable

from icestream.api.errors import ConfigError, Problem
from icestream.connectors.delta.schemas import arrow_schema
from icestream.tables.upserts.changes import OWN_COLUMNS


def refuse_unfit_for_upserts(name: str, table: DeltaTable, ids: Sequence[str]) -> None:
    """ConfigError: nothing can be merged into the table."""
    schema = arrow_schema(table.schema().to_json())
    problems = [
        *_properties(name, table.metadata().configuration),
        *_columns(name, schema, ids),
    ]
    if problems:
        raise ConfigError([Problem("delta.tables", why) for why in problems])


def _properties(name: str, properties: Mapping[str, str]) -> Iterator[str]:
    for key, why in (
        ("delta.appendOnly", "takes appends alone"),
        ("delta.enableChangeDataFeed", "keeps a feed of its changes, which a merge here does not write"),
    ):
        if properties.get(key, "").strip().lower() == "true":
            yield f"Table '{name}' {why} ({key}=true), and upserts change rows; set it to false."


def _columns(name: str, schema: pa.Schema, ids: Sequence[str]) -> Iterator[str]:
    if not ids:
        yield f"Table '{name}' has no id columns, and upserts need them; set delta.table.{name}.id-columns."
    for one in ids:
        kind = _type_at(schema, one.split("."))
        if kind is None:
            yield f"Table '{name}' has no column '{one}', which id-columns names; correct it."
        elif pt.is_nested(kind) or pt.is_floating(kind):
            yield f"Column '{one}' of table '{name}' is a {kind}, which cannot identify a row; name another."
    if own := sorted(OWN_COLUMNS.intersection(schema.names)):
        yield f"Table '{name}' has a column '{own[0]}', a name that upserts need themselves; rename it."


def _type_at(schema: pa.Schema, path: Sequence[str]) -> pa.DataType | None:
    if path[0] not in schema.names:
        return None
    kind = schema.field(path[0]).type
    for name in path[1:]:
        if not pt.is_struct(kind) or kind.get_field_index(name) < 0:
            return None
        kind = kind.field(name).type
    return kind
