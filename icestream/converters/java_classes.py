"""What Java calls the class of a value, as its error messages name it. Used by converters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa
import pyarrow.types as pt

from icestream.records.column import Column
from icestream.records.schema import DATE, DECIMAL, TIME, TIMESTAMP, Kind
from icestream.records.values import Fields, Typed

_BY_KIND: Final[Mapping[Kind, str]] = {
    Kind.INT8: "java.lang.Byte",
    Kind.INT16: "java.lang.Short",
    Kind.INT32: "java.lang.Integer",
    Kind.INT64: "java.lang.Long",
    Kind.FLOAT32: "java.lang.Float",
    Kind.FLOAT64: "java.lang.Double",
    Kind.BOOLEAN: "java.lang.Boolean",
    Kind.STRING: "java.lang.String",
    Kind.BYTES: "[B",
    Kind.ARRAY: "java.util.ArrayList",
    Kind.MAP: "java.util.HashMap",
    Kind.STRUCT: "org.apache.kafka.connect.data.Struct",
}
_BY_NAME: Final[Mapping[str, str]] = {
    DECIMAL: "java.math.BigDecimal",
    **dict.fromkeys((DATE, TIME, TIMESTAMP), "java.util.Date"),
}
_BY_ARROW: Final[Mapping[pa.DataType, Kind]] = {
    pa.int8(): Kind.INT8,
    pa.int16(): Kind.INT16,
    pa.int32(): Kind.INT32,
    pa.int64(): Kind.INT64,
    pa.float32(): Kind.FLOAT32,
    pa.float64(): Kind.FLOAT64,
    pa.bool_(): Kind.BOOLEAN,
    pa.string(): Kind.STRING,
    pa.binary(): Kind.BYTES,
}


def java_class(value: Typed) -> str:
    """`Object.getClass().getName()`."""
    if not isinstance(value, Column):
        return _BY_KIND[Kind.MAP if isinstance(value, Fields) else Kind.ARRAY]
    if value.schema is not None:
        return _BY_NAME.get(value.schema.name or "", _BY_KIND[value.schema.kind])
    if pt.is_decimal(value.values.type):
        return _BY_NAME[DECIMAL]
    if pt.is_timestamp(value.values.type):
        return _BY_NAME[TIMESTAMP]
    return _BY_KIND[_BY_ARROW[value.values.type]]
