"""ExtractField with its paths, HoistField and SetSchemaMetadata."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from icestream.api.errors import ConfigError
from icestream.records.column import Column
from icestream.records.schema import OPTIONAL_STRING, STRING, ConnectSchema, Kind, struct
from icestream.records.values import Fields
from icestream.transforms.extract_field import ExtractField, field_path
from icestream.transforms.groups import Side
from icestream.transforms.hoist_field import HoistField
from icestream.transforms.set_schema_metadata import SetSchemaMetadata
from tests.unit.transforms.groups import group, maps, structs, values


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a", ("a",)),
        ("a.b.c", ("a", "b", "c")),
        ("`a.b`.c", ("a.b", "c")),
        ("a.`b.c`", ("a", "b.c")),
        ("`a`b`", ("a`b",)),
        ("`a\\`.b`.c", ("a`.b", "c")),
        ("a.", ("a", "")),
        (".a", ("", "a")),
        ("", ()),
    ],
)
def test_paths(text: str, path: tuple[str, ...]) -> None:
    assert field_path(text, "v2") == path
    assert field_path(text, "V1") == (text,)


@pytest.mark.parametrize(("text", "at"), [("`a", 0), ("a.`b.c", 2), ("`a\\`", 0)])
def test_a_backtick_needs_its_pair(text: str, at: int) -> None:
    with pytest.raises(ConfigError, match=f"before backtick at position {at} to escape it"):
        field_path(text, "V2")


def _extract(path: str, **more: Any) -> ExtractField:
    settings = {"field": path, "field.syntax.version": "V2", "replace.null.with.default": True, **more}
    return ExtractField.configured(settings, Side.VALUE)


def test_extracts_by_type() -> None:
    applied = _extract("a").apply(maps({"a": 1}, {"a": "x"}, {"a": {"b": 1}}, {"a": [1]}, {"a": None}, {}))
    assert values(applied) == {0: 1, 1: "x", 2: {"b": 1}, 3: [1], 4: None, 5: None}


def test_a_nested_field_is_read_straight_from_the_text() -> None:
    records = maps({"a": {"b": 1, "big": [0] * 10}}, {"a": {"b": 2}})
    assert isinstance(records.value, Fields) and records.value.rest is not None
    assert values(_extract("a.b").apply(records)) == {0: 1, 1: 2}
    assert list(records.value.rest.source.learned.paths) == [("a", "b")]


def test_a_path_that_ends_early() -> None:
    applied = _extract("a.b").apply(maps({"a": {"b": 1}}, {"a": None}, {}, {"a": {}}, {"a": "x"}, {"a": [1]}))
    assert values(applied) == {0: 1, 1: None, 2: None, 3: None}
    assert {row: why.reason.rpartition(" ")[2] for row, why in applied.failed.items()} == {
        4: "java.lang.String",
        5: "java.util.ArrayList",
    }


def test_defaults_of_structs_on_the_way_count_always() -> None:
    inner = struct(
        ("b", ConnectSchema(Kind.INT32, optional=True, default=7)), optional=True, default={"b": 3}
    )
    schema = struct(("a", inner))
    rows = [{"a": None}, {"a": {"b": None}}, {"a": {"b": 1}}]
    assert values(_extract("a.b").apply(structs(schema, rows))) == {0: 3, 1: 7, 2: 1}
    applied = _extract("a.b", **{"replace.null.with.default": False}).apply(structs(schema, rows))
    assert values(applied) == {0: 3, 1: None, 2: 1}


def test_a_null_struct_has_no_defaults_inside() -> None:
    inner = struct(("b", ConnectSchema(Kind.INT32, optional=True, default=7)), optional=True)
    assert values(_extract("a.b").apply(structs(struct(("a", inner)), [{"a": None}]))) == {0: None}


def test_a_null_cannot_be_hoisted_into_a_required_field() -> None:
    hoist = HoistField(Side.VALUE, "f")
    assert values(hoist.apply(group(Column(pa.array([None, None], pa.string()), OPTIONAL_STRING), 2))) == {
        0: {"f": None},
        1: {"f": None},
    }
    applied = hoist.apply(group(Column(pa.array([None], pa.string()), STRING), 1))
    assert applied.failed[0].reason == 'Invalid value: null used for required field: "f", schema type: STRING'


def test_metadata_without_nulls_replaced_must_still_fit() -> None:
    settings = {"schema.name": "n", "schema.version": None, "replace.null.with.default": False}
    schema = struct(("a", ConnectSchema(Kind.INT32, default=7)))
    applied = SetSchemaMetadata.configured(settings, Side.VALUE).apply(
        structs(schema, [{"a": None}, {"a": 1}])
    )
    assert values(applied) == {1: {"a": 1}}
    assert applied.failed[0].reason.startswith('Invalid value: null used for required field: "a"')
    assert isinstance(applied.records[0].value, Column) and applied.records[0].value.schema == struct(
        ("a", ConnectSchema(Kind.INT32, default=7)), name="n"
    )
