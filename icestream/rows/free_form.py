"""Fields that are of no fixed shape, and become JSON text, where each key would be a column for ever.

Asked by those who look for new columns (`schema_drift`, `record_shape`); the rows need nothing of it, because
text columns take objects and lists as JSON.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pyarrow as pa
import pyarrow.types as pt

from icestream.rows.new_columns import LIST_ELEMENT, MAP_VALUE, Path, fields_of, list_of, map_of


def path_of(name: str) -> Path:
    """`a.b` as a path; the elements of lists and the values of maps are not named."""
    return tuple(part.strip() for part in name.split("."))


def with_text(kind: pa.DataType, texts: Collection[Path], path: Path = ()) -> pa.DataType:
    """The type with text where a field of no fixed shape is."""
    if path in texts:
        return pa.string()
    if pt.is_struct(kind):
        return pa.struct(
            [one.with_type(with_text(one.type, texts, (*path, one.name))) for one in fields_of(kind)]
        )
    if pt.is_list(kind):
        return list_of(with_text(kind.value_type, texts, path), kind.value_field.nullable)
    if pt.is_map(kind):
        return map_of(kind.key_type, with_text(kind.item_type, texts, path), kind.item_field.nullable)
    return kind


def fields_with_text(fields: Mapping[Path, pa.DataType], texts: Collection[Path]) -> dict[Path, pa.DataType]:
    """New fields, with text where a field of no fixed shape is."""
    return {path: with_text(kind, texts, _named(path)) for path, kind in fields.items()}


def _named(path: Path) -> Path:
    return tuple(name for name in path if name not in (LIST_ELEMENT, MAP_VALUE))
