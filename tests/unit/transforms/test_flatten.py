"""Flatten: what parity with Java cannot show, and shapes that differ from record to record."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from icestream.records.column import Column
from icestream.records.json_source import JsonSource
from icestream.records.records import Records
from icestream.records.schema import MOMENT, OPTIONAL_STRING, STRING, ConnectSchema, Kind, struct
from icestream.records.values import Fields, Text, object_fields
from icestream.transforms.flatten import Flatten
from icestream.transforms.groups import Side
from tests.unit.transforms.groups import group, maps, structs, values

INT = ConnectSchema(Kind.INT32)


@pytest.fixture
def flatten() -> Flatten:
    return Flatten(Side.VALUE, ".")


def test_leaves_stay_in_the_text_that_they_came_in(flatten: Flatten) -> None:
    records = maps({"a": {"b": 1, "c": [1]}, "d": "x"}, {"a": {"b": "2"}})
    (made,) = flatten.apply(records).records
    assert isinstance(made.value, Fields) and isinstance(records.value, Fields) and records.value.rest
    source = records.value.rest.source
    assert made.value.named == {
        "a.b": Text(source, ("a", "b")),
        "a.c": Text(source, ("a", "c")),
        "d": Text(source, ("d",)),
    }


def test_a_shape_learned_from_one_chunk_serves_the_next(flatten: Flatten) -> None:
    assert values(flatten.apply(maps({"a": {"b": 1}}))) == {0: {"a.b": 1}}
    assert values(flatten.apply(maps({"a": {"c": 2}}, {"z": 1}))) == {0: {"a.c": 2}, 1: {"z": 1}}


def test_a_null_may_turn_out_to_be_an_object(flatten: Flatten) -> None:
    assert values(flatten.apply(maps({"a": None}))) == {0: {"a": None}}
    applied = flatten.apply(maps({"a": {"b": {"c": 1}}}, {"a": {"b": None}}, {"a": None}, {}))
    assert values(applied) == {0: {"a.b.c": 1}, 1: {"a.b": None}, 2: {"a": None}, 3: {}}
    assert len(applied.records) == 1


def test_objects_below_a_name_with_quotation_marks(flatten: Flatten) -> None:
    records = maps({'"a"': {"b": {"c": 1}}}, {'"a"': {"b": None}}, {})
    assert isinstance(records.value, Fields) and records.value.rest
    renamed = Fields({"x": records.value.rest.child('"a"')}, None, 3)
    applied = flatten.apply(group(renamed, 3))
    assert values(applied) == {0: {"x.b.c": 1}, 1: {"x.b": None}, 2: {}}


def test_a_leaf_that_a_row_lacks_does_not_hide_another_of_its_name(flatten: Flatten) -> None:
    records = maps({"a": {"b": 1}}, {"old": 2, "z": "x"})
    assert isinstance(records.value, Fields) and records.value.rest
    renamed = records.value.put({"a.b": records.value.rest.child("old"), "old": None})
    applied = flatten.apply(group(renamed, 2))
    assert values(applied) == {0: {"a.b": 1}, 1: {"a.b": 2, "z": "x"}}


def test_objects_of_another_shape_are_a_group_of_their_own(flatten: Flatten) -> None:
    applied = flatten.apply(maps({"a": {"b": 1}}, {"a": "text", "c": {"d": [{}]}}, {"a": {"b": 2}}))
    assert values(applied) == {0: {"a.b": 1}, 1: {"a": "text", "c.d": [{}]}, 2: {"a.b": 2}}
    assert [records.rows.tolist() for records in applied.records] == [[0, 2], [1]]


@pytest.mark.parametrize(
    ("text", "flat"),
    [
        (b'{"a":{"n":1e999,"m":12345678901234567890123}}', b'{"a.n":1e999,"a.m":12345678901234567890123}'),
        (b'{"a":{"x\\ud800":1,"y":{"z":2}}}', b'{"a.x\\ud800":1,"a.y.z":2}'),
        (b'{"a":{"quo\\"te":{"back\\\\slash":1}}}', b'{"a.quo\\"te.back\\\\slash":1}'),
        (b'{"a":1,"a":{"b":2}}', b'{"a.b":2}'),
    ],
    ids=["numbers", "half a pair", "quotes", "twice"],
)
def test_text_that_no_shape_fits_keeps_its_values(flatten: Flatten, text: bytes, flat: bytes) -> None:
    applied = flatten.apply(group(object_fields(JsonSource([text])), 1))
    assert values(applied) == {0: json.loads(flat)}


def test_two_paths_of_one_name_are_one_field(flatten: Flatten) -> None:
    applied = flatten.apply(maps({"a": {"b": 1}, "a.b": 2}, {"a.b": 3}, {"a": {"b": 4}}))
    assert values(applied) == {0: {"a.b": 2}, 1: {"a.b": 3}, 2: {"a.b": 4}}


def test_keys_that_are_data_are_not_learned(flatten: Flatten) -> None:
    objects = [{"m": {f"k{number}": {"x": number}}} for number in range(1200)]
    assert values(flatten.apply(maps(*objects))) == {
        number: {f"m.k{number}.x": number} for number in range(1200)
    }
    (shape,) = flatten._shapes.values()
    assert shape.changes <= 500


def test_nesting_that_is_too_deep_fails_alone(flatten: Flatten) -> None:
    deep = [b'{"a":' * depth + b"1" + b"}" * depth for depth in (200, 5000, 1)]
    applied = flatten.apply(group(object_fields(JsonSource(deep)), 3))
    assert values(applied) == {0: {".".join("a" * 200): 1}, 2: {"a": 1}}
    assert applied.failed[1].reason == "Flatten transformation was passed a value that is nested too deeply"


def test_fields_that_transforms_made_are_flattened_with_the_rest(flatten: Flatten) -> None:
    records = maps({"a": {"b": 1}, "gone": {"x": 1}}, {"a": {"b": 2}, "gone": 5})
    assert isinstance(records.value, Fields) and records.value.rest is not None
    text = records.value.rest
    made = Fields({"m": text.child("a"), "s": Column(pa.array(["x", "y"]))}, None, 2)
    value = records.value.put({"gone": None, "new": made, "moved": text.child("gone")})
    assert values(flatten.apply(Side.VALUE.put(records, value))) == {
        0: {"a.b": 1, "new.m.b": 1, "new.s": "x", "moved.x": 1},
        1: {"a.b": 2, "new.m.b": 2, "new.s": "y", "moved": 5},
    }


@pytest.mark.parametrize(
    ("array", "java_class"),
    [
        (pa.array([0, None], MOMENT), "java.util.Date"),
        (pa.array([1, None]).cast(pa.decimal128(30, 2)), "java.math.BigDecimal"),
    ],
)
def test_types_that_connect_has_only_with_a_schema_fail(
    flatten: Flatten, array: pa.Array, java_class: str
) -> None:
    applied = flatten.apply(group(Fields({"t": Column(array), "x": Column(pa.array([1, 2]))}, None, 2), 2))
    assert applied.failed[0].reason == (
        f"Flatten transformation was passed a value of type class {java_class} which is not supported by "
        "Connect's data API"
    )
    assert values(applied) == {1: {"t": None, "x": 2}}


def test_defaults_of_structs_become_those_of_their_fields(flatten: Flatten) -> None:
    inner = struct(("x", INT), ("y", OPTIONAL_STRING), default={"x": 9, "y": "d"})
    applied = flatten.apply(structs(struct(("a", inner)), [{"a": {"x": 1, "y": None}}, {"a": None}]))
    (records,) = applied.records
    flat = struct(
        ("a.x", ConnectSchema(Kind.INT32, default=9)),
        ("a.y", ConnectSchema(Kind.STRING, optional=True, default="d")),
    )
    assert isinstance(records.value, Column) and records.value.schema == flat
    # As in Java, the default is the schema's from now on, and the value is null.
    assert values(applied) == {0: {"a.x": 1, "a.y": None}, 1: {"a.x": None, "a.y": None}}


def test_a_null_in_a_required_field_fails(flatten: Flatten) -> None:
    applied = flatten.apply(
        structs(struct(("a", struct(("b", STRING)))), [{"a": {"b": None}}, {"a": {"b": "x"}}])
    )
    assert applied.failed[0].reason == (
        'Invalid value: null used for required field: "a.b", schema type: STRING'
    )
    assert values(applied) == {1: {"a.b": "x"}}


def test_rows_that_were_taken_apart_before(flatten: Flatten) -> None:
    records = maps(*({"a": {"b": number}} for number in range(5)))
    some: Records = records.take(np.array([3, 1]))
    found: dict[int, Any] = values(flatten.apply(some))
    assert found == {1: {"a.b": 1}, 3: {"a.b": 3}}
