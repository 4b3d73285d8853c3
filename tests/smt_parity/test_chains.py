"""Transforms after one another: each must take what any other made."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icestream.transforms.cast import Cast
from icestream.transforms.copy_value import CopyValue
from icestream.transforms.drop_headers import DropHeaders
from icestream.transforms.extract_field import ExtractField
from icestream.transforms.flatten import Flatten
from icestream.transforms.groups import Side
from icestream.transforms.header_from import HeaderFrom
from icestream.transforms.hoist_field import HoistField
from icestream.transforms.insert_field import InsertField
from icestream.transforms.mask_field import MaskField
from icestream.transforms.replace_field import ReplaceField
from icestream.transforms.set_schema_metadata import SetSchemaMetadata
from icestream.transforms.value_to_key import ValueToKey
from tests.smt_parity.generators import Shape, givens
from tests.smt_parity.given import Given, Json
from tests.smt_parity.harness import Parity, Smt, generated

SHAPE: Final = Shape(names=("a", "b", "c"), depth=3, rows=8, maps_only=True)
STEPS: Final = [
    Smt(Cast, {"spec": "a:string"}),
    Smt(Cast, {"spec": "b:int16"}),
    Smt(DropHeaders, {"headers": "h"}, None),
    Smt(ExtractField, {"field": "a"}),
    Smt(ExtractField, {"field": "a.b", "field.syntax.version": "V2"}),
    Smt(ExtractField, {"field": "b"}, Side.KEY),
    Smt(Flatten, {"delimiter": "_"}),
    Smt(HeaderFrom, {"fields": "a,b", "headers": "h,i", "operation": "move"}),
    Smt(HeaderFrom, {"fields": "c", "headers": "h", "operation": "copy"}),
    Smt(HoistField, {"field": "a"}),
    Smt(HoistField, {"field": "b"}, Side.KEY),
    Smt(CopyValue, {"source.field": "a", "target.field": "b"}, None),
    Smt(InsertField, {"topic.field": "a", "static.field": "d", "static.value": "x"}),
    Smt(MaskField, {"fields": "b"}),
    Smt(ReplaceField, {"renames": "a:b,b:a"}),
    Smt(ReplaceField, {"exclude": "c"}),
    Smt(ReplaceField, {"include": "a,b"}),
    Smt(SetSchemaMetadata, {"schema.version": "5"}),
    Smt(ValueToKey, {"fields": "a,b"}, None),
]


@generated(examples=400)
@given(steps=st.lists(st.sampled_from(STEPS), min_size=2, max_size=5), records=givens(SHAPE, headers=True))
def test_chains(parity: Parity, steps: list[Smt], records: Given) -> None:
    parity.check(steps, records, subject="chains")


ORDERS: Final = [
    {"a": {"b": 1, "c": {"x": "y"}}, "b": 5, "c": "2026-11-15"},
    {"a": {"b": 2, "c": None}, "b": 6.5, "c": None},
    {"a": {"b": None, "c": {}}, "b": 7},
    {"a": None, "b": 8, "c": [1]},
    {"b": 9, "c": {"d": True}},
]
FLATTEN, HOIST = Smt(Flatten, {"delimiter": "_"}), Smt(HoistField, {"field": "a"})
USUAL: Final = [
    [FLATTEN, Smt(ReplaceField, {"renames": "a_b:a"}), Smt(ValueToKey, {"fields": "a"}, None)],
    [FLATTEN, Smt(Cast, {"spec": "a_b:string,b:float32"}), Smt(InsertField, {"offset.field": "o"})],
    [Smt(ReplaceField, {"renames": "a:z"}), FLATTEN, Smt(MaskField, {"fields": "z_b"})],
    [Smt(CopyValue, {"source.field": "a", "target.field": "k"}, None), FLATTEN, HOIST, FLATTEN],
    [Smt(ValueToKey, {"fields": "a,b"}, None), Smt(Flatten, {"delimiter": "."}, Side.KEY)],
    [Smt(ValueToKey, {"fields": "a"}, None), Smt(ExtractField, {"field": "a"}, Side.KEY), FLATTEN],
    [HOIST, HOIST, Smt(ExtractField, {"field": "a.a.b", "field.syntax.version": "V2"}), HOIST],
    [Smt(HeaderFrom, {"fields": "a,b", "headers": "h,i", "operation": "move"}), FLATTEN, HOIST],
    [Smt(Cast, {"spec": "b:int8"}), FLATTEN, FLATTEN, Smt(ReplaceField, {"include": "b,a_b"})],
]


@pytest.mark.parametrize("steps", USUAL, ids=range(len(USUAL)))
def test_usual_chains(parity: Parity, steps: list[Smt]) -> None:
    parity.check(steps, Given(Json(ORDERS)), subject="chains")
