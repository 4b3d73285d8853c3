"""InsertField beside the real class."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icestream.records.schema import ConnectSchema, Kind, struct
from icestream.transforms.groups import Side
from icestream.transforms.insert_field import InsertField
from tests.smt_parity.generators import Shape, givens
from tests.smt_parity.given import Given, Json, Of
from tests.smt_parity.harness import Parity, Smt, generated

CONFIGS = [
    {"topic.field": "t"},
    {"partition.field": "p!"},
    {"offset.field": "o?"},
    {"timestamp.field": "ts"},
    {"timestamp.field": "a!"},
    {"static.field": "s", "static.value": "fixed"},
    {"static.field": "s!", "static.value": ""},
    {"topic.field": "t!", "partition.field": "p", "offset.field": "o!", "timestamp.field": "ts!"},
    {"topic.field": "a"},
    {"topic.field": "x", "static.field": "x", "static.value": "later"},
    {"topic.field": "?"},
    {},
    {"static.value": "alone"},
]
INT = ConnectSchema(Kind.INT32, optional=True, default=7, doc="d")


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_maps(parity: Parity, config: dict[str, str]) -> None:
    values = [{}, {"a": 1}, {"t": {"x": 1}, "ts": "old"}, {"s": None}, "no map", [1], None, 5]
    times = [None if at == 2 else at * 1000 for at in range(len(values))]
    parity.check([Smt(InsertField, config)], Given(Json(values), timestamps=times))
    keys = Given(Json([1] * len(values)), key=Json(values), topic="other", partition=0)
    parity.check([Smt(InsertField, config, Side.KEY)], keys)


@pytest.mark.parametrize("config", CONFIGS, ids=str)
@pytest.mark.parametrize("defaults", ["true", "false"])
def test_structs(parity: Parity, config: dict[str, str], defaults: str) -> None:
    for fields in ([("a", INT)], [("b", INT)], []):
        schema = struct(*fields, name="n", version=2, doc="d", optional=True, parameters=(("p", "q"),))
        rows = [{name: 5 for name, _ in fields}, {name: None for name, _ in fields}, None]
        given = Given(Of(schema, rows), timestamps=[1, None, 2**53])
        parity.check([Smt(InsertField, {**config, "replace.null.with.default": defaults})], given)
    parity.check([Smt(InsertField, config)], Given(Of(INT, [1, None])))


@generated(examples=60)
@given(config=st.sampled_from(CONFIGS), side=st.sampled_from(Side), records=givens(Shape()))
def test_anything(parity: Parity, config: dict[str, str], side: Side, records: Given) -> None:
    parity.check([Smt(InsertField, config, side)], records)
