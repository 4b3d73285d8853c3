"""Columns that carry a schema: fields of structs, and defaults where values are null."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa

from icestream.records import schema as schemas
from icestream.records.column import Column, children, filled, filled_deep, struct_column
from icestream.records.schema import ConnectSchema, Kind

INT = ConnectSchema(Kind.INT32, optional=True, default=7)
INNER = schemas.struct(("n", INT), ("s", schemas.OPTIONAL_STRING), optional=True)
OUTER = schemas.struct(("inner", INNER), ("when", schemas.timestamp()))


def test_every_kind_of_schema_has_an_arrow_type() -> None:
    assert schemas.decimal(2).arrow_type == pa.decimal256(76, 2)
    assert schemas.date().arrow_type == pa.date32()
    assert schemas.time().arrow_type == pa.time32("ms")
    assert schemas.map_of(schemas.STRING, schemas.array(INT)).arrow_type == pa.map_(
        pa.string(), pa.list_(pa.int32())
    )
    assert OUTER.arrow_type.field("inner").type == pa.struct([("n", pa.int32()), ("s", pa.string())])


def test_defaults_fill_nulls_one_level_or_all_levels_deep() -> None:
    values = pa.array([{"inner": {"n": None, "s": None}}, {"inner": None}], OUTER.arrow_type)
    column = Column(values, OUTER)
    assert filled(column) is column
    assert filled_deep(column).values.to_pylist() == [
        {"inner": {"n": 7, "s": None}, "when": None},
        {"inner": None, "when": None},
    ]


def test_a_struct_has_a_default_too() -> None:
    schema = schemas.struct(("n", INT), optional=True, default={"n": 1})
    column = Column(pa.array([None, {"n": 2}], schema.arrow_type), schema)
    assert filled(column).values.to_pylist() == [{"n": 1}, {"n": 2}]


def test_defaults_of_logical_types_are_pythons_own_values() -> None:
    for schema, value in (
        (schemas.decimal(2, default=Decimal("1.50")), Decimal("1.50")),
        (schemas.date(default=dt.date(2020, 1, 2)), dt.date(2020, 1, 2)),
        (
            schemas.timestamp(default=dt.datetime(2020, 1, 2, tzinfo=dt.UTC)),
            dt.datetime(2020, 1, 2, tzinfo=dt.UTC),
        ),
    ):
        assert filled(Column(pa.nulls(1, schema.arrow_type), schema)).values.to_pylist() == [value]


def test_a_struct_is_taken_apart_and_put_together() -> None:
    values = pa.array([{"inner": {"n": 1, "s": "a"}}, None], OUTER.arrow_type)
    column = Column(values, OUTER)
    parts = children(column)
    again = struct_column(OUTER, [part.values for part in parts.values()], column.nulls)
    assert again.values.to_pylist() == values.to_pylist()
    assert again.take(np.array([1])).values.to_pylist() == [None]


def test_equal_schemas_are_one_key() -> None:
    one = schemas.struct(("a", schemas.decimal(2, default=Decimal(1))))
    assert {one: 1}[schemas.struct(("a", schemas.decimal(2, default=Decimal(1))))] == 1
    assert one != schemas.struct(("a", schemas.decimal(2, default=Decimal(2))))
