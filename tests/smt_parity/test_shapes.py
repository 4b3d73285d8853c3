"""Flatten, HoistField, ExtractField and SetSchemaMetadata beside Kafka's own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icestream.records.schema import (
    OPTIONAL_STRING,
    STRING,
    ConnectSchema,
    Kind,
    array,
    decimal,
    map_of,
    struct,
    timestamp,
)
from icestream.transforms.cast import Cast
from icestream.transforms.extract_field import ExtractField
from icestream.transforms.flatten import Flatten
from icestream.transforms.groups import Side
from icestream.transforms.hoist_field import HoistField
from icestream.transforms.set_schema_metadata import SetSchemaMetadata
from tests.smt_parity.generators import Shape, givens
from tests.smt_parity.given import Given, Json, Of
from tests.smt_parity.harness import Parity, Smt, generated

SIDES = st.sampled_from(Side)
DEEP = Shape(names=("a", "b", "c", "ü"), depth=3)
DOTTED = Shape(names=("a", "b", "a.b", "`q`"), depth=3)
OPTIONAL_INT = ConnectSchema(Kind.INT32, optional=True)
DEFAULT_INT = ConnectSchema(Kind.INT32, optional=True, default=7)
INNER = struct(("x", OPTIONAL_INT), ("y", DEFAULT_INT), ("z", STRING))
NESTED = struct(
    ("a", INNER),
    ("b", struct(("x", STRING), optional=True)),
    ("c", struct(("x", DEFAULT_INT), ("l", array(STRING, optional=True, default=["d"])), optional=True)),
    ("d", decimal(2, optional=True, doc="price")),
    ("t", timestamp(optional=True)),
    name="outer",
    version=3,
    doc="all",
    parameters=(("p", "q"),),
    optional=True,
)
ROWS = [
    {
        "a": {"x": 1, "y": 2, "z": "s"},
        "b": {"x": "t"},
        "c": {"x": 5, "l": ["1", "2"]},
        "d": None,
        "t": 1_700_000_000_000,
    },
    {"a": {"x": None, "y": None, "z": ""}, "b": None, "c": None, "d": None, "t": None},
    {"a": {"x": None, "y": 0, "z": "ü"}, "b": {"x": ""}, "c": {"x": None, "l": None}, "d": None, "t": -1},
    None,
]
MAPS = [
    {"a": {"b": 1, "c": {"d": "x"}}, "e": [1, {"q": 2}]},
    {"a": None, "e": 5},
    {"a": {"b": "s", "c": None}, "z": {}},
    {"a": 3, "k": {"j": 1.5}},
    {"a": {"b": {"c": {"d": {"e": [[]]}}}}, "": {"x": True, "": False}},
    {},
    [1],
    "text",
    5,
    None,
]


@pytest.mark.parametrize("delimiter", [".", "_", "", "::"])
def test_flattens(parity: Parity, delimiter: str) -> None:
    smt = Smt(Flatten, {"delimiter": delimiter})
    parity.check([smt], Given(Json(MAPS)))
    parity.check([smt], Given(Of(NESTED, ROWS)))
    key = Smt(Flatten, {"delimiter": delimiter}, Side.KEY)
    parity.check([key], Given(Json([None] * len(MAPS)), key=Json(MAPS)))


@pytest.mark.parametrize(
    "schema",
    [
        struct(("m", map_of(STRING, STRING, optional=True))),
        struct(("a", struct(("b", OPTIONAL_STRING), optional=True)), ("a.b", OPTIONAL_STRING)),
        struct(("a", struct(optional=True)), optional=True),
        OPTIONAL_STRING,
    ],
    ids=["map", "same name", "nothing", "no struct"],
)
def test_flattens_schemas_of_all_sorts(parity: Parity, schema: ConnectSchema) -> None:
    row = "text" if schema.kind is Kind.STRING else {}
    rows = [row, None] if schema.optional else [row]
    parity.check([Smt(Flatten, {"delimiter": "."})], Given(Of(schema, rows)))


def test_flattens_what_other_transforms_made(parity: Parity) -> None:
    hoist, extract = Smt(HoistField, {"field": "top"}), Smt(ExtractField, {"field": "a"})
    flatten = Smt(Flatten, {"delimiter": "."})
    cast = Smt(Cast, {"spec": "n:int8"})
    values = Json([{"a": {"b": {"c": 1}}, "n": 5}, {"a": {"d": {}}, "n": 6}, {"a": {"b": 2}, "n": None}])
    parity.check([hoist, flatten], Given(values))
    parity.check([extract, flatten], Given(values))
    parity.check([cast, hoist, flatten], Given(values))
    parity.check([flatten, hoist, hoist, flatten], Given(values))


@generated(examples=150)
@given(delimiter=st.sampled_from([".", "_"]), side=SIDES, records=givens(DEEP))
def test_flattens_anything(parity: Parity, delimiter: str, side: Side, records: Given) -> None:
    parity.check([Smt(Flatten, {"delimiter": delimiter}, side)], records)


@pytest.mark.parametrize("field", ["a", "", "x.y", "ü"])
def test_hoists(parity: Parity, field: str) -> None:
    smt = Smt(HoistField, {"field": field})
    parity.check([smt], Given(Json([*MAPS, True, 1.5])))
    parity.check([smt], Given(Of(NESTED, ROWS)))
    parity.check([smt], Given(Of(ConnectSchema(Kind.INT64), [1, -1])))


@generated(examples=80)
@given(field=st.sampled_from(["a", "new"]), side=SIDES, records=givens())
def test_hoists_anything(parity: Parity, field: str, side: Side, records: Given) -> None:
    parity.check([Smt(HoistField, {"field": field}, side)], records)


PATHS = [
    "a",
    "a.b",
    "a.b.c",
    "a.",
    ".a",
    "..",
    "",
    "`a.b`",
    "`a.b`.a",
    "a.`a.b`",
    "`a",
    "a.`b",
    "`a`b`",
    "`a\\`.b`",
    "`a\\`",
    "``q``",
    "```q```.b",
    "`a`.`b`",
    "b.a",
    "gone",
    "a.gone",
]


@pytest.mark.parametrize("version", ["V1", "V2", "v2"])
@pytest.mark.parametrize("path", PATHS)
def test_extracts(parity: Parity, path: str, version: str) -> None:
    smt = Smt(ExtractField, {"field": path, "field.syntax.version": version})
    values = [
        {"a": {"b": {"c": 1}}, "a.b": {"a": "q"}, "": {"a": 5, "": {"": 1}}, "`q`": {"b": []}},
        {"a": {"b": None, "a.b": 7, "": 2}},
        {"a": None, "a.b": 3, "a`b": True, "a`.b": 1},
        {"a": "text", "a.b": "text"},
        {"a": [1]},
        {},
        *MAPS,
    ]
    parity.check([smt], Given(Json(values)))
    parity.check([smt], Given(Of(NESTED, ROWS)))
    inner = struct(
        ("a", OPTIONAL_INT),
        (
            "b",
            struct(("c", DEFAULT_INT)),
        ),
        optional=True,
    )
    schema = struct(("a", inner), ("a.b", inner), ("`q`", OPTIONAL_INT), optional=True)
    rows = [{"a": {"a": 1, "b": {"c": None}}, "a.b": None}, {"a": None, "a.b": {"a": 2, "b": {"c": 3}}}, None]
    parity.check([smt], Given(Of(schema, rows)))


@pytest.mark.parametrize("replace", ["true", "false"])
@pytest.mark.parametrize("path", ["c", "c.x", "a.y", "b.x", "t", "d", "c.l.x", "a.x.y"])
def test_extracts_with_defaults(parity: Parity, path: str, replace: str) -> None:
    config = {"field": path, "field.syntax.version": "V2", "replace.null.with.default": replace}
    parity.check([Smt(ExtractField, config)], Given(Of(NESTED, ROWS)))


@generated(examples=150)
@given(
    path=st.sampled_from(PATHS),
    version=st.sampled_from(["V1", "V2"]),
    replace=st.sampled_from(["true", "false"]),
    side=SIDES,
    records=givens(DOTTED),
)
def test_extracts_anything(
    parity: Parity, path: str, version: str, replace: str, side: Side, records: Given
) -> None:
    config = {"field": path, "field.syntax.version": version, "replace.null.with.default": replace}
    parity.check([Smt(ExtractField, config, side)], records)


METADATA = [
    {"schema.name": "new.Name"},
    {"schema.version": "5"},
    {"schema.name": "", "schema.version": "-1"},
    {"schema.name": "n", "schema.version": "2", "replace.null.with.default": "false"},
]


@pytest.mark.parametrize("config", [*METADATA, {}], ids=str)
def test_sets_metadata(parity: Parity, config: dict[str, str]) -> None:
    smt = Smt(SetSchemaMetadata, config)
    parity.check([smt], Given(Json(MAPS)))
    parity.check([smt], Given(Of(NESTED, ROWS)))
    parity.check([smt], Given(Of(map_of(STRING, STRING, optional=True), [[("a", "b")], [], None])))
    parity.check([smt], Given(Of(array(STRING, optional=True, name="l"), [["a"], None])))


@generated(examples=80)
@given(config=st.sampled_from(METADATA[1:2]), side=SIDES, records=givens())
def test_sets_versions_of_anything(
    parity: Parity, config: dict[str, str], side: Side, records: Given
) -> None:
    parity.check([Smt(SetSchemaMetadata, config, side)], records)


@generated(examples=80)
@given(config=st.sampled_from(METADATA), records=givens(Shape(maps_only=True)))
def test_sets_metadata_of_structs(parity: Parity, config: dict[str, str], records: Given) -> None:
    parity.check([Smt(SetSchemaMetadata, config)], records)
