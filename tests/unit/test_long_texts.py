"""Texts that kept a process busy for hours: time grows with the text, and not with its square."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from icestream.api.errors import ConfigError
from icestream.jsontext.coerce import row_from
from icestream.kafka import jaas
from icestream.kafka.keystores import _PEM_BLOCK
from icestream.records.schema import STRING
from icestream.transforms.cast import parsed_integers, parsed_reals
from icestream.transforms.insert_header import read_literal
from icestream.transforms.mask_field import _parsed

pytestmark = pytest.mark.timeout(300)
MANY = 500_000
NUMBERS = ["1" * MANY + "x", "0" * MANY + "x", "1." + "1" * MANY + "x", "." + "1" * MANY + "x"]


@pytest.mark.parametrize("text", NUMBERS, ids=["ones", "zeros", "fraction", "point"])
def test_what_is_nearly_a_number(text: str) -> None:
    """In records, as a text for a column of numbers and before Cast; in configs, as a literal or a mask."""
    assert read_literal(text).schema == STRING
    assert _parsed(text) is None
    texts = pa.array([text])
    assert parsed_reals(texts, pa.float64())[1] == parsed_integers(texts, pa.int64())[1] == {0: text}
    for kind in (pa.float64(), pa.int64()):
        with pytest.raises(ValueError, match="'a'"):
            row_from(json.dumps({"a": text}).encode(), pa.schema([("a", kind)]))


def test_numbers_are_still_numbers() -> None:
    texts = pa.array(["007", "-0", "+12", "000"])
    assert parsed_integers(texts, pa.int64())[0].to_pylist() == [7, 0, 12, 0]
    assert parsed_reals(pa.array(["1.", ".5", "1.5e3", "2"]), pa.float64())[0].to_pylist() == [
        1,
        0.5,
        1500,
        2,
    ]


def test_comments_without_an_end() -> None:
    with pytest.raises(ValueError, match="write: "):
        jaas.parse("a " + "/*\n" * (MANY // 2))


def test_certificates_without_an_end() -> None:
    assert _PEM_BLOCK.findall("-----BEGIN A-----" * (MANY // 8)) == []
    one = "-----BEGIN A-----\nx\n-----END A-----"
    assert [found[0] for found in _PEM_BLOCK.finditer(f"-----BEGIN B-----{one}\n{one}")] == [one, one]


def test_a_literal_that_is_nested_deeply() -> None:
    with pytest.raises(ConfigError, match="Lists and maps"):
        read_literal("[{" * MANY)
