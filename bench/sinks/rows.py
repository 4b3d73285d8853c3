"""Rows of ten columns: as records that the JDBC sink reads, and as the table that the source reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

_STRUCT: Final = {
    "id": "int64",
    "version": "int64",
    "name": "string",
    "email": "string",
    "city": "string",
    "amount": "double",
    "quantity": "int32",
    "is_active": "boolean",
    "opened": "int64",
    "note": "string",
}
COLUMNS: Final = tuple(_STRUCT)
_SQL: Final = {
    "int64": "BIGINT",
    "int32": "INT",
    "double": "DOUBLE PRECISION",
    "boolean": "BOOLEAN",
    "string": "TEXT",
}
_SCHEMA: Final = json.dumps(
    {
        "type": "struct",
        "optional": False,
        "fields": [{"field": name, "type": kind, "optional": False} for name, kind in _STRUCT.items()],
    }
)
_CITIES: Final = ("Oslo", "Lima", "Kyoto", "Accra", "Quito", "Riga", "Perth")


def create_table(name: str, *, key: str = "") -> str:
    """The same types as the sink's `auto.create` has for these records."""
    columns = ", ".join(f'"{name}" {_SQL[kind]} NOT NULL' for name, kind in _STRUCT.items())
    return f'CREATE TABLE "{name}" ({columns}{f", PRIMARY KEY ({key})" if key else ""})'


def filled(name: str, rows: int) -> str:
    """The statement that fills a table for the source."""
    return (
        f"INSERT INTO \"{name}\" SELECT n, n, 'name ' || n, 'user' || n || '@example.com', "
        f"'Oslo', n / 7.0, n % 100, n % 2 = 0, 1763280000000 + n, 'a note about number ' || n "
        f"FROM generate_series(1, {rows}) AS n"
    )


def half_filled(name: str, rows: int) -> str:
    """The statement that gives a table older versions of every other row, for upserts."""
    return (
        f"INSERT INTO \"{name}\" SELECT 2 * n, -1, '', '', '', 0, 0, false, 0, '' "
        f"FROM generate_series(0, {(rows - 1) // 2}) AS n"
    )


def _row(version: int) -> dict[str, Any]:
    return {
        "id": version,
        "version": version,
        "name": f"name {version}",
        "email": f"user{version}@example.com",
        "city": _CITIES[version % len(_CITIES)],
        "amount": version / 7,
        "quantity": version % 100,
        "is_active": version % 2 == 0,
        "opened": 1763280000000 + version,
        "note": f"a note about number {version}",
    }


def records(count: int) -> Iterator[bytes]:
    """Each with another id, as the JSON converter reads it: with its schema."""
    before = f'{{"schema":{_SCHEMA},"payload":'.encode()
    for version in range(count):
        yield before + json.dumps(_row(version)).encode() + b"}"
