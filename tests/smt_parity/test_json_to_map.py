"""JsonToMapTransform beside Iceberg's own."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icestream.records.schema import BYTES, OPTIONAL_STRING, STRING, ConnectSchema, Kind, struct
from icestream.transforms.json_to_map import JsonToMapTransform
from tests.smt_parity.generators import Shape, json_maps, texts
from tests.smt_parity.given import Given, Json, Of
from tests.smt_parity.harness import Parity, Smt, generated

SHAPE = Shape(depth=4, names=("a", "b", "ü"), printable=True)
ROOTS: list[dict[str, str]] = [{}, {"json.root": "true"}]
OBJECTS = [
    "{}",
    '{"a": 1}',
    '{"a": 1, "b": "x", "c": null, "d": true, "e": 1.5, "f": {}, "g": []}',
    '{"a": 2147483648, "b": -2147483648, "c": 9223372036854775808, "d": -9223372036854775809}',
    '{"a": 123456789012345678901234567890123456789012345678901234567890}',
    '{"a": {"b": {"c": [1, 2.50, 1e10, 1E-5, null, true, "\\u00e4\\u0001\\n\\"\\\\/"]}, "d": "x"}}',
    '{"a": {"x": 0.1, "y": 100.0, "z": 12345678.9, "big": 1e400, "neg": -0.0, "i": 10, "t": "\x7f"}}',
    '{"a": [1, 2], "b": [1, 3000000000], "c": ["x"], "d": [null], "e": [null, 1], "f": [1.5], "g": [true]}',
    '{"a": [{}, {"x": 1, "y": {"z": [null]}}], "b": [{"x": "t"}], "c": [[], []], "d": [[1], [2]]}',
    '{"a": [[1], ["x"]], "b": [[1], []], "c": [[[1]], [[2, 3]]], "d": [[{"x": 1}], [{}]], "e": [[null]]}',
    '{"a": [99999999999999999999, 1], "b": [99999999999999999999], "c": [[99999999999999999999]]}',
    '{"a": [[[1]], [1]], "b": [[[]]], "c": [[[], [1]]], "d": [1, [2]], "e": [{"x": 1}, [1]]}',
    '{"a": 1, "a": "twice"}',
    '{"": 1}',
    '{"": null}',
    '{"a": {"": 1}}',
    ' \t\n\r{"a": 1} ',
]
OTHERS = [
    "",
    "  ",
    "5",
    "5 6",
    "5,",
    "-",
    "01",
    "1.5x",
    "true",
    "truex",
    "true]",
    "null",
    "nul",
    '"x"',
    '"x" y',
    "[1]",
    "{",
    '{"a"',
    '{"a": }',
    '{"a": 1} and more',
    '{"a": 1}}',
    "{'a': 1}",
    "{a: 1}",
    '{"a": NaN}',
    '{"a": Infinity}',
    '{"a": 01}',
    '{"a": +1}',
    '{"a": .5}',
    '{"a": 1.}',
    '{"a": 1,}',
    '{"a": "tab\there"}',
    '{"a": "\\x"}',
    '{"a": 1} // comment',
    "\ufeff{}",
    "\u00a0{}",
    "no json at all",
]


@pytest.mark.parametrize("config", ROOTS, ids=str)
def test_strings(parity: Parity, config: dict[str, str]) -> None:
    smt = Smt(JsonToMapTransform, config, None)
    values = [*OBJECTS, *OTHERS]
    key = Of(BYTES, [b"k"] * len(values))
    parity.check([smt], Given(Of(STRING, values), key=key))
    parity.check([smt], Given(Json(values)))
    parity.check([smt], Given(Of(OPTIONAL_STRING, [None, "{}"])))


@pytest.mark.parametrize("config", ROOTS, ids=str)
def test_other_values(parity: Parity, config: dict[str, str]) -> None:
    smt = Smt(JsonToMapTransform, config, None)
    parity.check([smt], Given(Json([{}, [1], 5, 0.5, True, None])))
    parity.check([smt], Given(Of(BYTES, [b"{}"])))
    parity.check([smt], Given(Of(struct(("a", ConnectSchema(Kind.INT8))), [{"a": 1}])))


@generated(examples=80)
@given(
    config=st.sampled_from(ROOTS),
    values=st.lists(json_maps(SHAPE), min_size=1, max_size=15),
)
def test_any_objects(parity: Parity, config: dict[str, str], values: list[dict[str, object]]) -> None:
    written = [json.dumps(value, ensure_ascii=bool(row % 2)) for row, value in enumerate(values)]
    parity.check([Smt(JsonToMapTransform, config, None)], Given(Of(STRING, written)))


@generated(examples=40)
@given(
    values=st.lists(
        st.one_of(texts(), st.text(st.sampled_from('{}[]":, 15.eE-+truefalsn\\/u'), max_size=12)),
        min_size=10,
        max_size=40,
    ),
    before=st.sampled_from(["", '{"a": ', '{"a": ["x", ']),
    after=st.sampled_from(["", "}", "]}"]),
)
def test_any_strings(parity: Parity, values: list[str], before: str, after: str) -> None:
    parity.check(
        [Smt(JsonToMapTransform, {}, None)], Given(Of(STRING, [before + value + after for value in values]))
    )
