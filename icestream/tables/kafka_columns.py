"""Columns that say where in Kafka a row is from, beside the record's own.

Their names are those that `KafkaMetadataTransform` gives its fields. Unlike that transform, they do not have
every record decoded: the writer adds them to the rows. Used by `table.py`, which adds the columns to a table,
and by `writer.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from icestream.records.origins import RowOrigins
from icestream.records.records import Records
from icestream.records.rows import Indexes
from icestream.rows.cast import cast_column

_PREFIX: Final = "_kafka_metadata_"
_TYPES: Final[Mapping[str, pa.DataType]] = {
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"),
}


def column_of(fact: str) -> str:
    return f"{_PREFIX}{fact}"


def columns_of(facts: Sequence[str]) -> dict[tuple[str, ...], pa.DataType]:
    """The columns that a table needs, as new fields."""
    return {(column_of(fact),): _TYPES[fact] for fact in facts}


def with_columns_of(record: pa.StructType, facts: Sequence[str]) -> pa.StructType:
    """The type of records with the columns beside their own fields."""
    own = [record.field(position) for position in range(record.num_fields)]
    more = [pa.field(path[0], kind) for path, kind in columns_of(facts).items()]
    return pa.struct([one for one in own if (one.name,) not in columns_of(facts)] + more)


def with_kafka_columns(rows: pa.Table, facts: Sequence[str], records: Records, index: Indexes) -> pa.Table:
    """Rows of some records (`index` tells which of the group) with the columns filled."""
    for fact in facts:
        values = _values(fact, records).take(pa.array(index))
        rows = _replaced(rows, column_of(fact), values)
    return rows


def with_source_topics(rows: pa.Table, origins: RowOrigins) -> pa.Table:
    """With the topics that the rows were read from, whatever name transforms have given them since."""
    topics = pa.array([partition.topic for partition in origins.partitions], pa.string())
    return _replaced(rows, column_of("topic"), topics.take(pa.array(origins.codes)))


def _values(fact: str, records: Records) -> pa.Array:
    if fact == "topic":
        return pa.repeat(pa.scalar(records.topic, pa.string()), len(records))
    if fact == "timestamp":
        return pc.cast(records.timestamps, pa.timestamp("ms", "UTC"))
    return pa.array(records.partitions if fact == "partition" else records.offsets, pa.int64())


def _replaced(rows: pa.Table, name: str, values: pa.Array) -> pa.Table:
    position = rows.schema.get_field_index(name)
    field = rows.schema.field(position)
    # A table may have them in other types: text holds all of them, and a long the milliseconds of a moment.
    if pa.types.is_timestamp(values.type) and pa.types.is_integer(field.type):
        values = pc.cast(values, pa.int64())
    held, _ = cast_column(values, field.type, name)
    return rows.set_column(position, field, held)
