"""The columns that a config names for a table which is still to be created. Called by the sinks of tables
where they create one."""

from __future__ import annotations

import pyarrow as pa

from icestream.api.errors import ConfigError, Problem
from icestream.rows.new_columns import fields_of
from icestream.tables.given import Given


def named_field(column: str, record: pa.StructType, table: str, given: Given, *, any_case: bool) -> str:
    """The field of the records that a setting names. ConfigError if there is none."""
    names: list[str] = [one.name for one in fields_of(record)]
    if column in names:
        return column
    alike = [name for name in names if name.lower() == column.lower()]
    if any_case and len(alike) == 1:
        return alike[0]
    raise not_created(given, table, f"the records have no field '{column}', only {', '.join(names)}")


def not_created(given: Given, table: str, why: str) -> ConfigError:
    """Nothing is created: a table cannot be partitioned, or get identifiers, for the rows that it has."""
    return ConfigError(
        [
            Problem(
                given.key,
                f"Invalid value '{given.value}' for {given.key}: table '{table}' is not created, because "
                f"{why}; correct it, or create the table by hand.",
            )
        ]
    )
