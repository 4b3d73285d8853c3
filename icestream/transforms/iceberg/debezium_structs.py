"""Debezium's change events with schemas, for DebeziumTransform."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa

from icestream.records.column import Column, children, filled, struct_column
from icestream.records.records import Applied, Failure, Records
from icestream.records.schema import (
    MOMENT,
    STRING,
    TIMESTAMP,
    ConnectSchema,
    Kind,
    struct,
    timestamp,
)
from icestream.transforms.failures import NULL_POINTER, GroupFailed, null_result
from icestream.transforms.groups import Checks, merged
from icestream.transforms.iceberg import cdc
from icestream.transforms.iceberg.targets import Targets
from icestream.transforms.structs import field_arrays, nulls_refused, rebuilt

_STRUCT: Final = "org.apache.kafka.connect.data.Struct"
_NO_OPERATION: Final = null_result("Object.toString()", f"{_STRUCT}.get(String)")
_NO_TIME: Final = null_result("java.lang.Long.longValue()", f"{_STRUCT}.getInt64(String)")
_NO_SOURCE: Final = Failure(f'Cannot invoke "{_STRUCT}.schema()" because "source" is null', NULL_POINTER)
_NO_PAYLOAD: Final = Failure(
    f'Cannot invoke "{_STRUCT}.get(org.apache.kafka.connect.data.Field)" because "payload" is null',
    NULL_POINTER,
)
_NO_NAME: Final = Failure(
    'Cannot invoke "java.lang.CharSequence.toString()" because "replacement" is null', NULL_POINTER
)
_A_DATE: Final = Failure(
    "class java.util.Date cannot be cast to class java.lang.Long "
    "(java.util.Date and java.lang.Long are in module java.base of loader 'bootstrap')",
    "java.lang.ClassCastException",
)


def flattened_structs(records: Records, targets: Targets) -> Applied:
    """Raises GroupFailed if no record can be taken."""
    operations = _field(records, "op")
    checks = Checks(records)
    unknown = operations.nulls
    checks.fail(unknown, _NO_OPERATION)
    known = _operations(operations).filter(pa.array(~unknown))
    deleted = known.to_numpy(zero_copy_only=False) == cdc.DELETE
    outcomes = [Applied([], checks.failed)]
    for payload, mine in (("before", deleted), ("after", ~deleted)):
        rows = np.flatnonzero(mine)
        if len(rows):
            group = checks.records.take(rows)
            outcomes.append(_of_operation(group, known.take(pa.array(rows)), payload, targets))
    return merged(outcomes)


def _operations(column: Column) -> pa.Array:
    if not pa.types.is_string(column.values.type):  # nothing but a string prints as u or d
        return pa.repeat(pa.scalar(cdc.INSERT), len(column))
    return cdc.operations(column.values, "u", "d")


def _of_operation(records: Records, operations: pa.Array, payload: str, targets: Targets) -> Applied:
    checks = Checks(records)
    try:
        return _flattened(checks, operations, payload, targets)
    except GroupFailed as refused:
        return checks.fail_all(refused.failure)


def _flattened(checks: Checks, operations: pa.Array, payload: str, targets: Targets) -> Applied:
    """The checks are in Java's order. Raises GroupFailed for all records that are left."""
    _require(checks.records, payload, Kind.STRUCT)
    first = checks.records.rows
    _check_times(checks)
    _check_names(checks, targets)
    key = checks.records.key
    if isinstance(key, Column) and key.schema is not None:
        for why in list(nulls_refused(cdc.KEY, key).values())[:1]:
            return checks.fail_all(why)
    row = _require(checks.records, payload, Kind.STRUCT)
    assert row.schema is not None
    changed = rebuilt(
        row.schema, [*((one.name, one.schema) for one in row.schema.fields), (cdc.CDC, _schema(key))]
    )
    if row.schema.fields:
        checks.fail(row.nulls, _NO_PAYLOAD)
    left = operations.filter(pa.array(np.isin(first, checks.records.rows)))
    row = _require(checks.records, payload, Kind.STRUCT)
    arrays = [*field_arrays(row, defaults=True), _metadata(checks.records, left, targets)]
    return checks.done(replace(checks.records, value=struct_column(changed, arrays)))


def _check_times(checks: Checks) -> None:
    times = _require(checks.records, "ts_ms", Kind.INT64)
    checks.fail(times.nulls, _NO_TIME)
    if times.schema is not None and times.schema.name == TIMESTAMP:
        raise GroupFailed(_A_DATE)


def _check_names(checks: Checks, targets: Targets) -> None:
    source = _require(checks.records, "source", Kind.STRUCT)
    checks.fail(source.nulls, _NO_SOURCE)
    databases, tables = _names(checks.records)
    if targets.has_pattern:
        checks.fail(databases.nulls | tables.nulls, _NO_NAME)


def _names(records: Records) -> tuple[Column, Column]:
    source = _require(records, "source", Kind.STRUCT)
    assert source.schema is not None
    within = replace(records, value=source)
    named = "schema" if "schema" in source.schema else "db"
    return _require(within, named, Kind.STRING), _require(within, "table", Kind.STRING)


def _schema(key: object) -> ConnectSchema:
    of_key = key.schema if isinstance(key, Column) else None
    return struct(
        (cdc.OP, STRING),
        (cdc.TS, timestamp()),
        (cdc.OFFSET, ConnectSchema(Kind.INT64, optional=True)),
        (cdc.SOURCE, STRING),
        (cdc.TARGET, STRING),
        *(() if of_key is None else ((cdc.KEY, of_key),)),
    )


def _metadata(records: Records, operations: pa.Array, targets: Targets) -> pa.Array:
    databases, tables = _names(records)
    offsets = pa.nulls(len(records), pa.int64()) if records.offsets is None else pa.array(records.offsets)
    schema = _schema(records.key)
    arrays = [
        operations,
        _require(records, "ts_ms", Kind.INT64).values.cast(MOMENT),
        offsets,
        cdc.joined(databases.values, tables.values),
        targets.of(databases.values, tables.values),
    ]
    if cdc.KEY in schema:
        assert isinstance(records.key, Column)
        arrays.append(records.key.values)
    return struct_column(schema, arrays).values


def _field(records: Records, name: str) -> Column:
    """As `Struct.get` finds it."""
    return filled(_found(records, name))


def _require(records: Records, name: str, kind: Kind) -> Column:
    """As `Struct.getString` and its like find it: without a default."""
    column = _found(records, name)
    if column.schema is None or column.schema.kind is not kind:
        raise GroupFailed(f"Field '{name}' is not of type {kind}")
    return column


def _found(records: Records, name: str) -> Column:
    assert isinstance(records.value, Column)
    found = children(records.value)
    if name not in found:
        raise GroupFailed(f"{name} is not a valid field name")
    return found[name]
