"""Cast: types of fields and whole values, record by record where they differ."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from icestream.records.column import Column
from icestream.records.schema import TIMESTAMP, ConnectSchema, Kind, struct, timestamp
from icestream.transforms.cast import Cast
from icestream.transforms.groups import Side
from tests.unit.transforms.groups import maps, structs, values


def cast(*spec: str, defaults: bool = True) -> Cast:
    return Cast.configured({"spec": list(spec), "replace.null.with.default": defaults}, Side.VALUE)


@pytest.mark.parametrize(
    ("given", "kind", "wanted"),
    [
        (300, "int8", 44),
        (2**40 + 5, "int32", 5),
        (1.9, "int64", 1),
        (-1.9, "int32", -1),
        (1e300, "int64", 2**63 - 1),
        (1e300, "int8", -1),
        (True, "int16", 1),
        ("+12", "int16", 12),
        (0.5, "boolean", False),
        (-3, "boolean", True),
        ("TRUE", "boolean", True),
        ("yes", "boolean", False),
        (7, "string", "7"),
        (1e7, "string", "1.0E7"),
        (0.001, "string", "0.001"),
        (100.0, "string", "100.0"),
        (False, "string", "false"),
        (" 1.5 ", "float64", 1.5),
        (None, "int8", None),
    ],
)
def test_a_field_without_a_schema(given: Any, kind: str, wanted: Any) -> None:
    applied = cast(f"a:{kind}").apply(maps({"a": given, "b": 1}))
    assert values(applied) == {0: {"a": wanted, "b": 1}}


def test_records_whose_field_has_different_types_are_cast_each_in_its_way() -> None:
    applied = cast("a:int32").apply(maps({"a": "5"}, {"a": 5.7}, {"a": [1]}, {}, {"a": "x"}, {"a": {}}))
    assert values(applied) == {0: {"a": 5}, 1: {"a": 5}, 3: {"a": None}}
    reasons = {row: failure.reason for row, failure in applied.failed.items()}
    supported = "[INT8, INT16, INT32, INT64, FLOAT32, FLOAT64, BOOLEAN, STRING, BYTES]"
    assert reasons == {
        2: f"Cast transformation does not support casting from ARRAY; supported types are {supported}",
        4: "Value (x) was out of range for requested data type",
        5: f"Cast transformation does not support casting from MAP; supported types are {supported}",
    }


def test_fields_of_mixed_types_are_one_group_after_they_were_cast() -> None:
    mixed = [{"a": at % 2 or 0.5, "b": str(at) if at % 3 else at, "c": at} for at in range(12)]
    applied = cast("a:float64", "b:int64").apply(maps(*mixed))
    assert values(applied) == {at: {**one, "a": float(one["a"]), "b": at} for at, one in enumerate(mixed)}
    assert [records.rows.tolist() for records in applied.records] == [list(range(12))]


def test_one_bad_number_among_many_fails_alone() -> None:
    applied = cast("a:int64").apply(maps(*({"a": str(at) if at != 700 else "?"} for at in range(1000))))
    assert list(applied.failed) == [700]
    assert sum(len(records) for records in applied.records) == 999


def test_a_changed_schema_keeps_the_facts_of_the_struct_but_not_of_the_field() -> None:
    field = ConnectSchema(Kind.STRING, optional=True, name="n", version=2, doc="d", default="7")
    schema = struct(("a", field), name="whole", version=3, doc="all", optional=True)
    applied = cast("a:int32").apply(structs(schema, [{"a": "1"}, {"a": None}]))
    assert values(applied) == {0: {"a": 1}, 1: {"a": 7}}
    (records,) = applied.records
    assert isinstance(records.value, Column)
    wanted = ConnectSchema(Kind.INT32, optional=True, default=7)
    assert records.value.schema == struct(("a", wanted), name="whole", version=3, doc="all", optional=True)


def test_nulls_stay_nulls_if_defaults_are_not_asked_for() -> None:
    schema = struct(("a", ConnectSchema(Kind.STRING, optional=True, default="7")))
    applied = cast("a:int32", defaults=False).apply(structs(schema, [{"a": None}]))
    assert values(applied) == {0: {"a": None}}


def test_a_whole_timestamp_that_becomes_a_number_is_none_by_name_either() -> None:
    applied = cast("int64").apply(structs(timestamp(), [1_000]))
    (records,) = applied.records
    assert isinstance(records.value, Column)
    assert records.value.schema == ConnectSchema(Kind.INT64, version=1)
    assert records.value.values.to_pylist() == [1_000]
    assert timestamp().name == TIMESTAMP


def test_null_values_pass() -> None:
    records = structs(ConnectSchema(Kind.INT32, optional=True), [None])
    assert cast("string").apply(records).records == [records]


def test_groups_of_the_same_schema_share_the_changed_one() -> None:
    schema = struct(("a", ConnectSchema(Kind.INT64)))
    transform = cast("a:string")
    changed = []
    for _ in range(2):
        (records,) = transform.apply(structs(schema, [{"a": 1}])).records
        assert isinstance(records.value, Column)
        assert records.value.values.type == pa.struct([("a", pa.string())])
        changed.append(records.value.schema)
    assert changed[0] is changed[1]
