"""Which statistics of a data file's columns go into the table's manifests. Used by `stage.py`.

PyIceberg keeps bounds of top-level columns only. Leaves of structs get theirs too, as Java's writers have it:
readers skip files by them. What is inside of a list or a map has none: a bound of elements tells nothing of a
row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pyiceberg.io.pyarrow import (
    MetricModeTypes,
    MetricsMode,
    StatisticsCollector,
    compute_statistics_plan,
    match_metrics_mode,
)
from pyiceberg.schema import Schema
from pyiceberg.table import TableProperties
from pyiceberg.types import BinaryType, PrimitiveType, StringType, StructType


def statistics_plan(schema: Schema, properties: Mapping[str, str]) -> dict[int, StatisticsCollector]:
    plan = compute_statistics_plan(schema, dict(properties))
    for field_id in _struct_leaves(schema.as_struct(), inside=False):
        if field_id in plan:
            one = plan[field_id]
            plan[field_id] = replace(one, mode=_mode(one, properties))
    return plan


def _struct_leaves(struct: StructType, *, inside: bool) -> Iterator[int]:
    for field in struct.fields:
        if isinstance(field.field_type, StructType):
            yield from _struct_leaves(field.field_type, inside=True)
        elif inside and isinstance(field.field_type, PrimitiveType):
            yield field.field_id


def _mode(column: StatisticsCollector, properties: Mapping[str, str]) -> MetricsMode:
    default = properties.get(
        TableProperties.DEFAULT_WRITE_METRICS_MODE, TableProperties.DEFAULT_WRITE_METRICS_MODE_DEFAULT
    )
    own = properties.get(f"{TableProperties.METRICS_MODE_COLUMN_CONF_PREFIX}.{column.column_name}")
    mode = match_metrics_mode(own or default)
    if mode.type == MetricModeTypes.TRUNCATE and not isinstance(column.iceberg_type, StringType | BinaryType):
        return MetricsMode(MetricModeTypes.FULL)
    return mode
