"""Avro datums, written by fastavro, come out of the reader value by value as they went in."""

from __future__ import annotations

import datetime
import decimal
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import fastavro
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from icestream.converters.registry.avro_connect import AvroOptions, connect_schema
from icestream.converters.registry.avro_cursors import TOO_SHORT
from icestream.converters.registry.avro_read import TIME_RANGE, Decoded, decode
from icestream.converters.registry.avro_schema import parse
from icestream.converters.registry.wire import Bodies
from icestream.records.payloads import Payloads

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


@dataclass(frozen=True)
class Case:
    """A schema; values as fastavro writes them, and what they are in a column."""

    schema: Any
    values: st.SearchStrategy[tuple[Any, Any]]
    branch: str
    """What a union calls it."""


def same(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, Any]]:
    return strategy.map(lambda value: (value, value))


def longs(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def plain(name: str, values: st.SearchStrategy[Any]) -> Case:
    return Case(name, same(values), name)


MILLIS = st.integers(-(10**13), 10**13).map(lambda ms: EPOCH + datetime.timedelta(milliseconds=ms))
SCALARS: Sequence[Callable[[str], Case]] = (
    lambda name: plain("boolean", st.booleans()),
    lambda name: plain("int", longs(32)),
    lambda name: plain("long", longs(64)),
    lambda name: plain("float", st.floats(width=32, allow_nan=False)),
    lambda name: plain("double", st.floats(allow_nan=False)),
    lambda name: plain("string", st.text(st.characters(exclude_categories=["Cs"]))),
    lambda name: plain("bytes", st.binary()),
    lambda name: Case(
        {"type": "fixed", "name": name, "size": 3}, same(st.binary(min_size=3, max_size=3)), name
    ),
    lambda name: Case(
        {"type": "enum", "name": name, "symbols": ["A", "B"]}, same(st.sampled_from("AB")), name
    ),
    lambda name: Case({"type": "int", "logicalType": "date"}, same(st.dates()), "int"),
    lambda name: Case({"type": "long", "logicalType": "timestamp-millis"}, same(MILLIS), "long"),
    lambda name: Case(
        {"type": "int", "logicalType": "time-millis"},
        same(st.times().map(lambda time: time.replace(microsecond=time.microsecond // 1000 * 1000))),
        "int",
    ),
    lambda name: Case(
        {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 4},
        same(st.integers(-(10**20) + 1, 10**20 - 1).map(lambda n: decimal.Decimal(n).scaleb(-4))),
        "bytes",
    ),
    lambda name: Case(
        {"type": "fixed", "name": name, "size": 9, "logicalType": "decimal", "precision": 20, "scale": 2},
        same(st.integers(-(10**20) + 1, 10**20 - 1).map(lambda n: decimal.Decimal(n).scaleb(-2))),
        name,
    ),
)


@st.composite
def cases(draw: st.DrawFn, depth: int = 3, name: str = "T") -> Case:
    kinds = ["scalar", "scalar", "scalar"] + ["record", "array", "map", "optional", "union"] * (depth > 0)
    match draw(st.sampled_from(kinds)):
        case "scalar":
            return draw(st.sampled_from(SCALARS))(name)
        case "record":
            parts = [draw(cases(depth - 1, f"{name}_{n}")) for n in range(draw(st.integers(0, 4)))]
            schema = {
                "type": "record",
                "name": name,
                "fields": [{"name": f"f{n}", "type": one.schema} for n, one in enumerate(parts)],
            }
            rows = st.tuples(*(one.values for one in parts)).map(
                lambda row: tuple({f"f{n}": one[side] for n, one in enumerate(row)} for side in (0, 1))
            )
            return Case(schema, rows, name)
        case "array":
            item = draw(cases(depth - 1, f"{name}_i"))
            many = st.lists(item.values, max_size=4).map(
                lambda row: ([one for one, _ in row], [one for _, one in row])
            )
            return Case({"type": "array", "items": item.schema}, many, "array")
        case "map":
            item = draw(cases(depth - 1, f"{name}_v"))
            pairs = st.dictionaries(st.text(max_size=3), item.values, max_size=3).map(
                lambda row: (
                    {key: one for key, (one, _) in row.items()},
                    [(key, one) for key, (_, one) in row.items()],
                )
            )
            return Case({"type": "map", "values": item.schema}, pairs, "map")
        case _:
            return draw(unions(depth, name))


@st.composite
def unions(draw: st.DrawFn, depth: int, name: str) -> Case:
    found: dict[str, Case] = {}
    for number in range(draw(st.integers(1, 3))):
        one = draw(cases(depth - 1, f"{name}_u{number}").filter(lambda one: not isinstance(one.schema, list)))
        found.setdefault(one.branch, one)
    if len(found) == 1:
        (one,) = found.values()
        there = one.values.map(lambda pair: ((one.branch, pair[0]), pair[1]))
        values = st.one_of(st.just((None, None)), there)
        return Case(["null", one.schema] if draw(st.booleans()) else [one.schema, "null"], values, "union")
    has_null = draw(st.booleans())
    schema = ["null"] * has_null + [one.schema for one in found.values()]
    names = list(found)

    def chosen(branch: str) -> st.SearchStrategy[tuple[Any, Any]]:
        return found[branch].values.map(
            lambda pair: ((branch, pair[0]), dict.fromkeys(names) | {branch: pair[1]})
        )

    options = [chosen(branch) for branch in names] + [st.just((None, None))] * has_null
    return Case(schema, st.one_of(options), "union")


def written(schema: Any, values: Sequence[Any]) -> list[bytes]:
    parsed = fastavro.parse_schema(json.loads(json.dumps(schema)))
    datums = []
    for value in values:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, value)
        datums.append(out.getvalue())
    return datums


def bodies(datums: Sequence[bytes]) -> Bodies:
    payloads = Payloads.of(datums)
    return Bodies(payloads.text, payloads.offsets[:-1], payloads.offsets[1:])


def decoded(schema: Any, datums: Sequence[bytes]) -> Decoded:
    kind = parse(json.dumps(schema))
    return decode(kind, connect_schema(kind, AvroOptions()), bodies(datums))


@settings(max_examples=150, deadline=None)
@given(st.data(), st.booleans())
def test_every_value_comes_back(data: st.DataObject, many: bool) -> None:
    """`many`: enough copies that the items of lists are read together, not one list after the other."""
    case = data.draw(cases())
    pairs = data.draw(st.lists(case.values, min_size=1, max_size=5)) * (20 if many else 1)
    found = decoded(case.schema, written(case.schema, [value for value, _ in pairs]))
    found.column.validate(full=True)
    assert found.failed == {}
    assert not found.trailing.any()
    assert found.column.to_pylist() == [expected for _, expected in pairs]


@settings(max_examples=100, deadline=None)
@given(st.data(), st.booleans())
def test_a_broken_datum_fails_alone(data: st.DataObject, many: bool) -> None:
    case = data.draw(cases())
    pairs = data.draw(st.lists(case.values, min_size=3, max_size=3)) * (8 if many else 1)
    datums = written(case.schema, [value for value, _ in pairs])
    datums[1] = data.draw(st.binary(max_size=40))
    found = decoded(case.schema, datums)
    assert set(found.failed) <= {1}
    for row, (_, expected) in enumerate(pairs):
        assert row == 1 or found.column[row].as_py() == expected


PERSON = {
    "type": "record",
    "name": "Person",
    "fields": [
        {"name": "name", "type": "string"},
        {"name": "tags", "type": {"type": "array", "items": "int"}},
    ],
}


@pytest.mark.parametrize(
    ("datum", "reason"),
    [
        (b"", TOO_SHORT),
        (b"\x06ab", TOO_SHORT),
        (b"\x02a", TOO_SHORT),
        (b"\x02a\x08\x02", TOO_SHORT),
        (b"\x03a\x00", "Malformed data. Length is negative: -2"),
        (b"\xff" * 12, "Invalid long encoding"),
        (b"\x02a\x02\xff\xff\xff\xff\xff\x01\x00", "Invalid int encoding"),
    ],
)
def test_broken_datums_are_told_apart(datum: bytes, reason: str) -> None:
    good = written(PERSON, [{"name": "Ada", "tags": [1, 2]}])
    found = decoded(PERSON, [*good, datum, *good])
    assert found.failed == {1: reason}
    assert found.column.to_pylist()[2] == {"name": "Ada", "tags": [1, 2]}


def test_bytes_behind_a_datum_are_noticed_but_harmless() -> None:
    datum = written(PERSON, [{"name": "Ada", "tags": []}])[0]
    found = decoded(PERSON, [datum + b"x", datum])
    assert found.failed == {}
    assert found.trailing.tolist() == [True, False]


def test_text_that_is_no_utf_8_is_replaced_as_in_java() -> None:
    assert decoded("string", [b"\x04\xc3\x28", b"\x02a"]).column.to_pylist() == ["\ufffd(", "a"]


def test_lists_in_blocks_with_their_sizes() -> None:
    # Two blocks, the first with a size in bytes before it, as writers of long lists make them.
    datum = b"\x03\x04\x02\x04" + b"\x02\x06" + b"\x00"
    assert decoded({"type": "array", "items": "int"}, [datum]).column.to_pylist() == [[1, 2, 3]]


def test_of_equal_keys_the_last_one_wins() -> None:
    twice = b"\x06\x02a\x02\x02b\x04\x02a\x06\x00"
    once = b"\x04\x02a\x02\x02b\x04\x00"
    found = decoded({"type": "map", "values": "int"}, [once, twice, once, b"\x00"]).column.to_pylist()
    assert [sorted(row) for row in found] == [
        [("a", 1), ("b", 2)],
        [("a", 3), ("b", 2)],
        [("a", 1), ("b", 2)],
        [],
    ]


def test_long_lists_in_few_rows() -> None:
    schema = {"type": "map", "values": ["null", "string"]}
    long = {str(number): None if number % 3 else "x" * (number % 7) for number in range(50_000)}
    found = decoded(schema, written(schema, [{"a": "b"}, long, {}] * 10))
    rows = found.column.to_pylist()
    assert found.failed == {}
    assert dict(rows[1]) == dict(rows[28]) == long
    assert rows[2] == []


def test_an_enum_or_union_without_such_a_branch_fails() -> None:
    enum = {"type": "enum", "name": "E", "symbols": ["A"]}
    assert decoded(enum, [b"\x00", b"\x02"]).failed == {1: "the enum E has no such symbol"}
    assert decoded(["null", "int"], [b"\x00", b"\x04\x02"]).failed == {1: "the union has no such branch"}


def test_a_time_that_no_day_has_fails() -> None:
    found = decoded({"type": "int", "logicalType": "time-millis"}, [b"\x02", b"\x01"])
    assert found.failed == {1: TIME_RANGE}


def test_a_decimal_beyond_76_digits_fails() -> None:
    schema = {"type": "bytes", "logicalType": "decimal", "precision": 90, "scale": 0}
    wide = (10**80).to_bytes(34, "big", signed=True)
    found = decoded(schema, [b"\x02\x05", bytes([2 * len(wide)]) + wide])
    assert found.column[0].as_py() == 5
    assert list(found.failed) == [1]


def test_rows_of_one_schema_among_others() -> None:
    """Bodies are pieces of a buffer in which other messages lie between them."""
    text = b"....\x02a....\x02b.."
    found = decode(
        parse('"string"'),
        connect_schema(parse('"string"'), AvroOptions()),
        Bodies(text, np.array([4, 10]), np.array([6, 12])),
    )
    assert found.column.to_pylist() == ["a", "b"]
