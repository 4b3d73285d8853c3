"""Avro datums and schemas that claim much or make no sense cost little and fail alone."""

from __future__ import annotations

import decimal
import json
from collections.abc import Sequence
from typing import Any

import pytest

from icestream.converters.registry.avro import AvroFormat
from icestream.converters.registry.client import RegisteredSchema, UnusableSchema
from icestream.converters.registry.converter import Read
from icestream.converters.registry.subjects import Subjects
from icestream.converters.registry.wire import Bodies
from icestream.records.payloads import Payloads

EMPTY = {"type": "record", "name": "Empty", "fields": []}
EMPTIES = {"type": "array", "items": EMPTY}
FEW, MANY = 2, 20
"""Datums in a chunk: lists of few are read one by one."""


def read(schema: Any, datums: Sequence[bytes]) -> Read:
    subjects = Subjects.configured({}, None, False)  # type: ignore[arg-type]  # nothing is written
    reader = AvroFormat.configured({}, subjects).reader(RegisteredSchema(7, "AVRO", json.dumps(schema)))
    joined = Payloads.of(datums)
    return reader.read(Bodies(joined.text, joined.offsets[:-1], joined.offsets[1:]))


def number(value: int) -> bytes:
    """As Avro writes it."""
    left, made = value << 1 if value >= 0 else (-value << 1) - 1, b""
    while left > 0x7F:
        made += bytes([left & 0x7F | 0x80])
        left >>= 7
    return made + bytes([left])


@pytest.mark.parametrize("count", [FEW, MANY])
@pytest.mark.parametrize(
    ("schema", "bomb"),
    [
        pytest.param(EMPTIES, number(2**40) + b"\0", id="one block"),
        pytest.param(EMPTIES, number(900) * 300 + b"\0", id="many blocks"),
        pytest.param(
            {"type": "array", "items": EMPTIES},
            number(50) + (number(900) + b"\0") * 50 + b"\0",
            id="many lists",
        ),
        pytest.param(
            {"type": "array", "items": EMPTIES}, number(1) + number(2**62) + b"\0\0", id="one list in a list"
        ),
        pytest.param(
            {"type": "array", "items": {"type": "fixed", "name": "F", "size": 0}},
            number(2**40) + b"\0",
            id="no bytes",
        ),
        pytest.param({"type": "map", "values": "long"}, number(2**31) + b"\0\0", id="a map"),
        pytest.param({"type": "array", "items": "long"}, number(-(2**63)) + b"\2\0", id="the least number"),
    ],
)
def test_items_beyond_belief_fail_their_datum(schema: Any, bomb: bytes, count: int) -> None:
    found = read(schema, [bomb, *[b"\0"] * (count - 1)])
    ((_, column),) = found.columns
    assert set(found.failed) == {0}
    assert column.values.to_pylist()[1:] == [[]] * (count - 1)


@pytest.mark.parametrize("count", [FEW, MANY])
def test_some_items_that_take_no_bytes_are_believed(count: int) -> None:
    found = read(EMPTIES, [number(3) + number(2) + b"\0"] * count)
    ((_, column),) = found.columns
    assert not found.failed
    assert column.values.to_pylist() == [[{}] * 5] * count


def nested(levels: int) -> Any:
    schema: Any = "int"
    for _ in range(levels):
        schema = {"type": "array", "items": schema}
    return schema


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "enum", "name": "E", "symbols": []},
        {"type": "enum", "name": "E", "symbols": [1]},
        {"type": "fixed", "name": "F", "size": "3"},
        {"type": "fixed", "name": "F", "size": -1},
        {"type": "fixed", "name": "F", "size": 2**62},
        {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": "x"},
        {"type": "record", "name": "R", "connect.name": 5, "fields": []},
        {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}] * 2},
        nested(150),
    ],
)
def test_schemas_that_make_no_sense_are_refused(schema: Any) -> None:
    with pytest.raises(UnusableSchema):
        read(schema, [b"\0"])


def test_many_levels_are_read() -> None:
    found = read(nested(95), [b"\2" * 95 + b"\2" + b"\0" * 95] * MANY)
    assert not found.failed


def test_a_decimal_alone_has_no_length_before_it() -> None:
    schema = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
    found = read(schema, [b"\x01\x00", b"\x7f" * 40])
    ((_, column),) = found.columns
    assert column.schema is not None and column.values.type == column.schema.arrow_type
    assert column.values[0].as_py() == decimal.Decimal("2.56")
    assert set(found.failed) == {1}
