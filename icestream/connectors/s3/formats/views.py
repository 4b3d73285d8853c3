"""Keys and headers as values of their own objects, in the shapes that Confluent's connector gives them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from icestream.connectors.s3.formats.avro import AvroFiles
from icestream.connectors.s3.formats.format import Format
from icestream.connectors.s3.formats.parquet import ParquetFiles
from icestream.converters.header_converters import SimpleHeaderConverter
from icestream.records.column import Column
from icestream.records.records import Header, Records
from icestream.records.schema import OPTIONAL_STRING, STRING, array, struct
from icestream.records.values import Typed

_HEADER: Final = struct(("key", STRING), ("value", OPTIONAL_STRING), name="RecordHeader")
_HEADERS: Final = array(_HEADER, name="RecordHeaders")
_WRAPPED_HEADERS: Final = struct(("headers", array(_HEADER)), name="RecordHeaders")


def key_view(key: Typed, form: Format) -> Typed:
    """Parquet takes records only, so a key is the one field of one."""
    if not isinstance(form, ParquetFiles) or not isinstance(key, Column) or key.schema is None:
        return key
    schema = struct(("key", key.schema), name="RecordKey")
    return Column(pa.StructArray.from_arrays([key.values], fields=list(schema.arrow_type)), schema)


def header_view(records: Records, form: Format) -> Column:
    """All headers of each record, in their order; values are text."""
    headers, length = records.headers, len(records)
    names = pa.array([one.name for one in headers] * length, pa.string())
    # The values of a record stand side by side: one column for each header, read row by row.
    texts: list[str | None] = [None] * (length * len(headers))
    for at, one in enumerate(headers):
        texts[at :: len(headers)] = _texts(one, length)
    kind = _HEADER.arrow_type
    items = pa.StructArray.from_arrays([names, pa.array(texts, pa.string())], fields=list(kind))
    offsets = pa.array(
        np.arange(0, length * len(headers) + 1, max(1, len(headers)))[: length + 1], pa.int32()
    )
    if not headers:
        offsets = pa.array(np.zeros(length + 1), pa.int32())
    lists = pa.ListArray.from_arrays(offsets, items)
    if isinstance(form, AvroFiles):
        return Column(lists.cast(_HEADERS.arrow_type), _HEADERS)
    fields = list(_WRAPPED_HEADERS.arrow_type)
    wrapped = pa.StructArray.from_arrays([lists.cast(fields[0].type)], fields=fields)
    return Column(wrapped, _WRAPPED_HEADERS)


def _texts(header: Header, length: int) -> Sequence[str | None]:
    if header.raw and isinstance(header.values, Column):
        written: Sequence[bytes | None] = header.values.values.to_pylist()
    else:
        written = SimpleHeaderConverter().from_connect("", header.values, length)
    return [None if one is None else one.decode(errors="replace") for one in written]
