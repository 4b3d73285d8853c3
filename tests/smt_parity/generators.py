"""Records out of Hypothesis: nested, null, missing, Unicode, numbers at the edges, logical types."""

from __future__ import annotations

import datetime
import decimal as decimals
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from hypothesis import strategies as st

from icestream.records.schema import (
    DATE,
    DECIMAL,
    SCALE,
    TIME,
    TIMESTAMP,
    ConnectSchema,
    Field,
    Kind,
    array,
    date,
    decimal,
    map_of,
    time,
    timestamp,
)
from tests.smt_parity.given import Data, Given, Json, Of

_BITS: Final = {Kind.INT8: 8, Kind.INT16: 16, Kind.INT32: 32, Kind.INT64: 64}
_SOME_TEXT: Final = ("", "a", "0", "-7", "12.5", "1e3", "true", "FALSE", "NaN", " 5", "2026-11-15", "ü", "😀")
_SOME_DOUBLES: Final = (0.0, 0.5, 1e21, -1e-7, 5e-324, 1.7976931348623157e308, 127.9, 3e9, 1e19)
_LATEST_MS: Final = 253_402_300_799_999
_LARGEST_UNSCALED: Final = 10**30
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


@dataclass(frozen=True)
class Shape:
    """What records look like."""

    names: Sequence[str] = ("a", "b", "c.d", "ü")
    """Field names to choose from: few, so that configs name some that are there and some that are not."""
    depth: int = 2
    rows: int = 12
    maps_only: bool = False
    """Only structs and schemaless maps, no scalars, lists or nulls at the top."""
    printable: bool = False
    """Schemaless doubles only of those that Java prints alike before and since its version 19, which prints
    the shortest digits."""


USUAL: Final = Shape()


def texts() -> st.SearchStrategy[str]:
    free = st.text(st.characters(codec="utf-8"), max_size=6)
    return st.sampled_from(_SOME_TEXT) | free


def integers(bits: int = 64) -> st.SearchStrategy[int]:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    edges = (0, 1, -1, low, high, 127, 128, -129, 32768, 2**31, 2**53 + 1)
    return st.sampled_from([at for at in edges if low <= at <= high]) | st.integers(low, high)


def doubles(width: int = 64) -> st.SearchStrategy[float]:
    some = [value for value in _SOME_DOUBLES if width == 64] or [0.0, 0.5, 3e9]
    free = st.floats(allow_nan=False, allow_infinity=False, width=64 if width == 64 else 32)
    # JsonConverter reads -0.0 as 0.0, by way of a BigDecimal.
    return (st.sampled_from(some) | free).map(lambda value: value + 0.0)


def short_doubles() -> st.SearchStrategy[float]:
    return st.sampled_from(_SOME_DOUBLES) | st.integers(-(10**8), 10**8).map(lambda number: number / 64)


def json_scalars(shape: Shape = USUAL) -> st.SearchStrategy[Any]:
    numbers = short_doubles() if shape.printable else doubles()
    return st.one_of(st.none(), st.booleans(), texts(), integers(), numbers)


def json_values(shape: Shape = USUAL, depth: int | None = None) -> st.SearchStrategy[Any]:
    left = shape.depth if depth is None else depth
    if left == 0:
        return json_scalars(shape)
    inner = json_values(shape, left - 1)
    return st.one_of(json_scalars(shape), st.lists(inner, max_size=3), json_maps(shape, left - 1))


def json_maps(shape: Shape = USUAL, depth: int | None = None) -> st.SearchStrategy[dict[str, Any]]:
    left = shape.depth - 1 if depth is None else depth
    return st.dictionaries(st.sampled_from(shape.names), json_values(shape, left), max_size=len(shape.names))


def schemas(shape: Shape = USUAL, depth: int | None = None) -> st.SearchStrategy[ConnectSchema]:
    left = shape.depth if depth is None else depth
    if left == 0:
        return scalar_schemas()
    return st.one_of(scalar_schemas(), collections(shape, left - 1), structs(shape, left - 1))


@st.composite
def structs(draw: st.DrawFn, shape: Shape = USUAL, depth: int | None = None) -> ConnectSchema:
    left = shape.depth - 1 if depth is None else depth
    names = draw(st.lists(st.sampled_from(shape.names), unique=True, max_size=len(shape.names)))
    fields = tuple(Field(name, draw(schemas(shape, left))) for name in names)
    return ConnectSchema(Kind.STRUCT, fields=fields, **draw(_facts()))


@st.composite
def collections(draw: st.DrawFn, shape: Shape = USUAL, depth: int = 0) -> ConnectSchema:
    inner = draw(schemas(shape, depth))
    if draw(st.booleans()):
        return array(inner, **draw(_facts()))
    key = draw(st.sampled_from([Kind.STRING, Kind.INT32, Kind.INT64]))
    return map_of(ConnectSchema(key), inner, **draw(_facts()))


@st.composite
def scalar_schemas(draw: st.DrawFn) -> ConnectSchema:
    facts = draw(_facts())
    kinds = [kind for kind in Kind if kind not in (Kind.ARRAY, Kind.MAP, Kind.STRUCT)]
    made: ConnectSchema = draw(
        st.sampled_from(
            [
                *(ConnectSchema(kind, **facts) for kind in kinds),
                *(_logical(maker, facts) for maker in (date, time, timestamp)),
                *(_logical(lambda scale=scale, **rest: decimal(scale, **rest), facts) for scale in (0, 2, 9)),
            ]
        )
    )
    if not draw(st.integers(0, 3)):
        value = draw(values_of(ConnectSchema(made.kind, name=made.name, parameters=made.parameters)))
        return _with_default(made, value)
    return made


def _logical(maker: Any, facts: dict[str, Any]) -> ConnectSchema:
    made: ConnectSchema = maker(optional=facts["optional"], doc=facts["doc"])
    return made


def _with_default(schema: ConnectSchema, value: Any) -> ConnectSchema:
    """Defaults of logical types are Python's own values."""
    if schema.name == TIMESTAMP:
        value = _EPOCH + datetime.timedelta(milliseconds=value)
    elif schema.name == DATE:
        value = _EPOCH.date() + datetime.timedelta(days=value)
    elif schema.name == TIME:
        value = (_EPOCH + datetime.timedelta(milliseconds=value)).time()
    return replace(schema, default=value)


@st.composite
def _facts(draw: st.DrawFn) -> dict[str, Any]:
    """Mostly bare; sometimes with everything that a schema can say of itself."""
    facts: dict[str, Any] = {"optional": draw(st.booleans()), "doc": None}
    if not draw(st.integers(0, 3)):
        facts["doc"] = draw(st.sampled_from([None, "what it is"]))
        facts["name"] = draw(st.sampled_from([None, "some.Name"]))
        facts["version"] = draw(st.sampled_from([None, 1, 7]))
        facts["parameters"] = draw(st.sampled_from([(), (("p", "q"),)]))
    return facts


def values_of(schema: ConnectSchema) -> st.SearchStrategy[Any]:
    some = _required(schema)
    return st.none() | some if schema.optional else some


def _required(schema: ConnectSchema) -> st.SearchStrategy[Any]:
    match schema.name:
        case _ if schema.kind is Kind.STRUCT:
            return st.fixed_dictionaries({one.name: values_of(one.schema) for one in schema.fields})
        case name if name == DECIMAL:
            scale = int(schema.parameter(SCALE) or 0)
            unscaled = st.integers(-_LARGEST_UNSCALED, _LARGEST_UNSCALED)
            return unscaled.map(lambda number: decimals.Decimal(number).scaleb(-scale))
        case name if name == DATE:
            return st.integers(-100_000, 200_000)
        case name if name == TIME:
            return st.sampled_from([0, 1, 86_399_999]) | st.integers(0, 86_399_999)
        case name if name == TIMESTAMP:
            return st.sampled_from([0, -1, 999, _LATEST_MS]) | st.integers(-62_135_596_800_000, _LATEST_MS)
    return _plain(schema)


def _plain(schema: ConnectSchema) -> st.SearchStrategy[Any]:
    if schema.kind in _BITS:
        return integers(_BITS[schema.kind])
    match schema.kind:
        case Kind.FLOAT32 | Kind.FLOAT64:
            return doubles(32 if schema.kind is Kind.FLOAT32 else 64)
        case Kind.BOOLEAN:
            return st.booleans()
        case Kind.BYTES:
            return st.binary(max_size=5)
        case Kind.ARRAY:
            assert schema.value is not None
            return st.lists(values_of(schema.value), max_size=3)
        case Kind.MAP:
            assert schema.key is not None and schema.value is not None
            pairs = st.tuples(values_of(schema.key), values_of(schema.value))
            return st.lists(pairs, max_size=3, unique_by=lambda pair: pair[0])
    return texts()


@st.composite
def data(draw: st.DrawFn, shape: Shape = USUAL, rows: int | None = None) -> Data:
    """Some values, schemaless or all of one schema."""
    count = draw(st.integers(1, shape.rows)) if rows is None else rows
    if draw(st.booleans()):
        value = json_maps(shape) if shape.maps_only else st.one_of(json_maps(shape), json_values(shape))
        return Json(draw(st.lists(value, min_size=count, max_size=count)))
    schema = draw(structs(shape) if shape.maps_only else st.one_of(structs(shape), schemas(shape)))
    value = _required(schema) if shape.maps_only else values_of(schema)
    return Of(schema, draw(st.lists(value, min_size=count, max_size=count)))


@st.composite
def givens(draw: st.DrawFn, shape: Shape = USUAL, headers: bool = False) -> Given:
    """Records with keys and values of any kind; with headers of two names if asked for."""
    value = draw(data(shape))
    count = len(value.values)
    key = draw(st.none() | data(shape, count))
    names = draw(st.lists(st.sampled_from(["h", "i"]), max_size=3)) if headers else []
    return Given(value, key, [(name, Of(*draw(_header(count)))) for name in names])


@st.composite
def _header(draw: st.DrawFn, count: int) -> tuple[ConnectSchema, list[Any]]:
    schema = draw(scalar_schemas())
    return schema, draw(st.lists(values_of(schema), min_size=count, max_size=count))
