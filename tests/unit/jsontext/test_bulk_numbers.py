"""Numbers that are written column by column are those that are written singly."""

from __future__ import annotations

import random
import struct
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from icestream.jsontext.bulk_numbers import base64_decimals, float_texts
from icestream.jsontext.encode import _number, _unscaled
from icestream.records.java_text import java_double, java_float

_EDGES = [
    0.0,
    -0.0,
    1e-3,
    0.00099999,
    9999999.999,
    1e7,
    -1e7,
    1.0,
    2e-3,
    1e-5,
    1e22,
    5e-324,
    123456.7,
    0.1 + 0.2,
]
_NONE_AT_ALL = [float("nan"), float("inf"), float("-inf")]


def _doubles(seed: int) -> list[float]:
    chance = random.Random(seed)
    anything = [struct.unpack("d", chance.randbytes(8))[0] for _ in range(2000)]
    usual = [round(chance.uniform(-1e7, 1e7), chance.randrange(8)) for _ in range(2000)]
    small = [chance.uniform(-1, 1) for _ in range(2000)]
    return [*anything, *usual, *small, *_EDGES, *_NONE_AT_ALL]


@pytest.mark.parametrize("seed", range(3))
def test_doubles(seed: int) -> None:
    values = _doubles(seed)
    written = float_texts(pa.array([*values, None], pa.float64()), _number(java_double))
    assert written.to_pylist() == [*map(_number(java_double), values), None]


@pytest.mark.parametrize("seed", range(3))
def test_floats(seed: int) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.array(_doubles(seed)).astype(np.float32)
    written = float_texts(pa.array(values), _number(java_float))
    assert written.to_pylist() == [_number(java_float)(float(value)) for value in values]


@pytest.mark.parametrize("scale", [0, 2, 18])
def test_decimals(scale: int) -> None:
    chance = random.Random(scale)
    edges = [sign * (2**bits + step) for bits in range(75) for step in (-1, 0, 1) for sign in (1, -1)]
    numbers = [*edges, 0, *(chance.randrange(-(10**w), 10**w) for w in range(1, 40) for _ in range(50))]
    chance.shuffle(numbers)
    values: list[Decimal | None] = [Decimal(number).scaleb(-scale) for number in numbers]
    values[5] = values[-1] = None
    column = pa.array([None, *values], pa.decimal256(76, scale)).slice(1)
    written = base64_decimals(column, lambda value: f'"{_unscaled(value, scale)}"').to_pylist()
    assert written == [None if value is None else f'"{_unscaled(value, scale)}"' for value in values]
    assert base64_decimals(column.slice(0, 0), str).to_pylist() == []
