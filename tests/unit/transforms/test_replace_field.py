"""ReplaceField: which keys stay, and who wins where a new name is taken."""

from __future__ import annotations

from typing import Any

import pytest

from icestream.records.json_source import JsonSource
from icestream.records.schema import ConnectSchema, Kind, struct
from icestream.records.values import Fields
from icestream.transforms.failures import is_null
from icestream.transforms.groups import Side
from icestream.transforms.replace_field import ReplaceField
from tests.unit.transforms.groups import group, maps, structs, values


def replace_field(**settings: list[str]) -> ReplaceField:
    usual: dict[str, Any] = {"include": [], "exclude": [], "renames": [], "replace.null.with.default": True}
    return ReplaceField.configured({**usual, **settings}, Side.VALUE)


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"include": ["a"]}, {"a": 1}),
        ({"exclude": ["a"]}, {"b": 2, "c": {"d": 3}}),
        ({"include": ["a", "b"], "exclude": ["b"]}, {"a": 1}),
        ({"renames": ["a:x"]}, {"x": 1, "b": 2, "c": {"d": 3}}),
        ({"renames": ["a:b", "b:a"]}, {"a": 2, "b": 1, "c": {"d": 3}}),
        ({"include": ["a"], "renames": ["a:x"]}, {"x": 1}),
        ({"include": ["nothing"]}, {}),
    ],
)
def test_maps(settings: dict[str, list[str]], wanted: dict[str, Any]) -> None:
    applied = replace_field(**settings).apply(maps({"a": 1, "b": 2, "c": {"d": 3}}))
    assert values(applied) == {0: wanted}


def test_a_new_name_that_some_records_have_already() -> None:
    applied = replace_field(renames=["z:a"]).apply(maps({"z": 1}, {"z": 1, "a": 2}, {"a": 2}, {}))
    assert values(applied) == {0: {"a": 1}, 1: {"a": 1}, 2: {"a": 2}, 3: {}}
    applied = replace_field(renames=["a:z"]).apply(maps({"z": 1}, {"z": 1, "a": 2}, {"a": 2}, {}))
    assert values(applied) == {0: {"z": 1}, 1: {"z": 2}, 2: {"z": 2}, 3: {}}


def test_dropping_a_key_decodes_nothing() -> None:
    records = maps({"a": 1, "b": 2})
    assert isinstance(records.value, Fields) and records.value.rest is not None
    source: JsonSource = records.value.rest.source
    replace_field(exclude=["a"]).apply(records)
    assert not source.learned.paths


def test_a_struct_without_fields_keeps_its_rows() -> None:
    schema = struct(("a", ConnectSchema(Kind.INT32)))
    applied = replace_field(exclude=["a"]).apply(structs(schema, [{"a": 1}, {"a": 2}]))
    assert values(applied) == {0: {}, 1: {}}


def test_two_fields_of_one_name_are_refused() -> None:
    one = ConnectSchema(Kind.INT32)
    applied = replace_field(renames=["a:b"]).apply(
        structs(struct(("a", one), ("b", one)), [{"a": 1, "b": 2}])
    )
    assert [failure.reason for failure in applied.failed.values()] == [
        "Cannot create field because of field name duplication b"
    ]


def test_what_is_no_map_is_refused_and_nulls_pass() -> None:
    text = structs(ConnectSchema(Kind.STRING), ["x"])
    applied = replace_field(exclude=["a"]).apply(text)
    assert applied.failed[0].reason == (
        "Only Struct objects supported for [field replacement], found: java.lang.String"
    )
    nothing = group(None, 1)
    assert is_null(nothing.value)
    assert replace_field(exclude=["a"]).apply(nothing).records == [nothing]
