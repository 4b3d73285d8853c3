"""Arrow columns as the literals of multi-row INSERT statements, for MySQL and MariaDB.

Whole columns at a time. Not LOAD DATA LOCAL: who allows that lets the server ask for any file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from icestream.connectors.jdbc.dialects.csv_text import hex_text

_STATEMENT_BYTES: Final = 1_000_000
"""The least that a server may be set to take, where nobody has made it less, is 16 times that."""
_ESCAPES: Final = (("\\", "\\\\"), ("'", "\\'"), ("\0", "\\0"), ("\n", "\\n"), ("\r", "\\r"), ("\x1a", "\\Z"))


def insert_statements(table: str, names: Sequence[str], rows: pa.Table) -> Iterator[bytes]:
    """Statements of about a megabyte each; one row may be larger."""
    if not rows.num_rows:
        return
    columns = [pc.fill_null(literals(column), "NULL") for column in rows.itercolumns()]
    joined = pc.binary_join_element_wise(*columns, ",")
    texts = pc.binary_join_element_wise("(", joined, ")", "").cast(pa.large_binary())
    head = f"INSERT INTO {table} ({', '.join(names)}) VALUES ".encode()
    held: list[bytes] = []
    size = 0
    for text in texts.to_pylist():
        if held and size + len(text) > _STATEMENT_BYTES:
            yield head + b",".join(held)
            held, size = [], 0
        held.append(text)
        size += len(text) + 1
    yield head + b",".join(held)


def literals(column: pa.ChunkedArray) -> pa.Array:
    """The values of a column as SQL; null stays null."""
    values: Any = column.combine_chunks()
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks)
    kind = values.type
    if pt.is_boolean(kind):
        return pc.if_else(values, "1", "0")
    if pt.is_integer(kind):
        return values.cast(pa.string())
    if pt.is_binary(kind) or pt.is_fixed_size_binary(kind):
        return pc.binary_join_element_wise(hex_text(values, "X'"), "'", "")
    if pt.is_timestamp(kind):
        values = pc.strftime(values.cast(pa.timestamp(kind.unit)), "%Y-%m-%d %H:%M:%S")
    else:
        # There is neither an infinity nor a NaN in these databases: they refuse the words.
        values = values.cast(pa.string())
        if not (pt.is_floating(kind) or pt.is_decimal(kind) or pt.is_date(kind) or pt.is_time(kind)):
            for raw, escaped in _ESCAPES:
                values = pc.replace_substring(values, raw, escaped)
    return pc.binary_join_element_wise("'", values, "'", "")
