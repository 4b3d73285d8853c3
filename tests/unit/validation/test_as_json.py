"""Columns as the JSON converter would write them."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from icestream.records import schema as connect
from icestream.records.column import Column
from icestream.records.json_source import ABSENT
from icestream.validation.as_json import as_json

_INT = connect.ConnectSchema(connect.Kind.INT32)
_PAIR = connect.struct(("n", _INT), ("inner", connect.struct(("s", connect.STRING), optional=True)))


def _plain(values: list[Any], schema: connect.ConnectSchema) -> list[Any]:
    return as_json(Column(pa.array(values, schema.arrow_type), schema))


@pytest.mark.parametrize(
    ("schema", "values", "expected"),
    [
        (connect.time(), [datetime.time(0, 0, 1)], [1_000]),
        (connect.date(), [datetime.date(1970, 1, 3), None], [2, None]),
        (connect.OPTIONAL_BYTES, [b"abc", None], ["YWJj", None]),
        (connect.array(_INT), [[1, 2], None, [], [3]], [[1, 2], None, [], [3]]),
        (connect.array(connect.date()), [[datetime.date(1970, 1, 2)]], [[1]]),
        (connect.map_of(connect.STRING, _INT), [[("a", 1)], None, []], [{"a": 1}, None, {}]),
        (connect.map_of(_INT, connect.STRING), [[(1, "a"), (2, "b")]], [[[1, "a"], [2, "b"]]]),
        (
            _PAIR,
            [{"n": 1, "inner": {"s": "x"}}, {"n": 2, "inner": None}, None],
            [{"n": 1, "inner": {"s": "x"}}, {"n": 2, "inner": None}, None],
        ),
        (connect.struct(), [{}, None], [{}, None]),
    ],
)
def test_values(schema: connect.ConnectSchema, values: list[Any], expected: list[Any]) -> None:
    assert _plain(values, schema) == expected
    assert _plain([*values, *values], schema)[len(values) :] == expected
    column = Column(pa.array([*values, *values], schema.arrow_type)[len(values) :], schema)
    assert as_json(column) == expected


def test_a_default_stands_where_nothing_does() -> None:
    assert _plain([None, 1], connect.ConnectSchema(connect.Kind.INT32, optional=True, default=7)) == [7, 1]


def test_absent_is_not_null() -> None:
    column = Column(pa.array([1, None, None]), None, np.array([False, False, True]))
    assert as_json(column) == [1, None, ABSENT]
