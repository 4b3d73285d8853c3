"""ReplaceField beside the real class."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icestream.records.schema import ConnectSchema, Kind, struct
from icestream.transforms.groups import Side
from icestream.transforms.replace_field import ReplaceField
from tests.smt_parity.generators import Shape, givens
from tests.smt_parity.given import Given, Json, Of
from tests.smt_parity.harness import Parity, Smt, generated

CONFIGS = [
    {},
    {"include": "a"},
    {"include": "a,b", "exclude": "b"},
    {"exclude": "a"},
    {"exclude": "a,b,c.d,ü"},
    {"renames": "a:x"},
    {"renames": "a:x,b:y"},
    {"renames": "b:a"},
    {"renames": "a:b,b:a"},
    {"renames": "a:x,b:x"},
    {"renames": "a:a"},
    {"renames": "a:x:,:b"},
    {"include": "a,c.d", "renames": "a:b"},
    {"include": "a,b", "renames": "b:a"},
    {"include": "a", "renames": "b:x"},
    {"exclude": "b", "renames": "a:b"},
    {"exclude": "a", "renames": "b:x,ü:y"},
]
MAPS = [
    {},
    {"a": 1},
    {"b": "x"},
    {"a": None},
    {"a": 1, "b": 2},
    {"b": None, "a": {"x": [1]}},
    {"a": 1, "b": 2, "c.d": [1, 2], "ü": "😀"},
    {"c.d": True, "x": 5, "y": {}},
]
INT = ConnectSchema(Kind.INT32, optional=True, default=7, doc="d")
TEXT = ConnectSchema(Kind.STRING, optional=True)


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_maps(parity: Parity, config: dict[str, str]) -> None:
    values = [*MAPS, "no map", [1], None, 5]
    parity.check([Smt(ReplaceField, config)], Given(Json(values)))
    keys = Given(Json([1] * len(values)), key=Json(values))
    parity.check([Smt(ReplaceField, config, Side.KEY)], keys)


@pytest.mark.parametrize("config", CONFIGS, ids=str)
@pytest.mark.parametrize("defaults", ["true", "false"])
def test_structs(parity: Parity, config: dict[str, str], defaults: str) -> None:
    for names in (("a", "b"), ("a",), ("b", "a", "c.d", "ü"), ("x", "y")):
        fields = [(name, INT if at % 2 else TEXT) for at, name in enumerate(names)]
        schema = struct(*fields, name="n", version=2, doc="d", optional=True, parameters=(("p", "q"),))
        rows = [{name: 5 if one is INT else "t" for name, one in fields}, dict.fromkeys(names), None]
        given = Given(Of(schema, rows))
        # Java fails structs that have the new name of a field that they do not have.
        smt = Smt(ReplaceField, {**config, "replace.null.with.default": defaults})
        parity.check([smt], given, more_is_fine=True)


def test_a_value_of_another_type(parity: Parity) -> None:
    parity.check([Smt(ReplaceField, {"exclude": "a"})], Given(Of(INT, [1, None])))


@generated(examples=80)
@given(config=st.sampled_from(CONFIGS), side=st.sampled_from(Side), records=givens(Shape()))
def test_anything(parity: Parity, config: dict[str, str], side: Side, records: Given) -> None:
    parity.check([Smt(ReplaceField, config, side)], records, more_is_fine=True)


@generated(examples=20)
@given(first=st.sampled_from(CONFIGS), second=st.sampled_from(CONFIGS), records=givens(Shape(maps_only=True)))
def test_two_in_a_row(parity: Parity, first: dict[str, str], second: dict[str, str], records: Given) -> None:
    parity.check([Smt(ReplaceField, first), Smt(ReplaceField, second)], records)
