"""Protobuf messages, made by Google's own runtime, become the columns that Confluent's converter makes."""

from __future__ import annotations

import datetime
import decimal
import functools
import importlib
from collections.abc import Sequence
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given, settings

from icestream.converters.registry.client import Reference, UnusableSchema
from icestream.converters.registry.converter import Read
from icestream.converters.registry.protobuf import ProtobufReader
from icestream.converters.registry.protobuf_compile import Compiled, compiled
from icestream.converters.registry.protobuf_plan import ProtobufOptions
from icestream.converters.registry.wire import Bodies
from icestream.records.payloads import Payloads
from icestream.records.schema import DATE, DECIMAL, TIME, TIMESTAMP, Kind

ALL = """
syntax = "proto3";
package t;
enum Color { RED = 0; GREEN = 1; BLUE = 5; }
message Leaf { string s = 1; sint64 n = 2; repeated int32 r = 3; }
message All {
  double d = 1; float f = 2; int32 i32 = 3; int64 i64 = 4; uint32 u32 = 5; uint64 u64 = 6;
  sint32 s32 = 7; sint64 s64 = 8; fixed32 f32 = 9; fixed64 f64 = 10; sfixed32 sf32 = 11; sfixed64 sf64 = 12;
  bool b = 13; string s = 14; bytes y = 15; Color e = 16; Leaf m = 17;
  optional int32 oi = 18; optional string os = 19; optional Color oe = 20;
  repeated int64 ri = 21; repeated string rs = 22; repeated Leaf rm = 23; repeated Color re = 24;
  repeated double rd = 25; repeated sint32 unpacked = 26 [packed = false]; repeated bool rb = 27;
  map<string, int32> mi = 28; map<int64, Leaf> mm = 29;
  oneof choice { int32 ci = 30; string cs = 31; Leaf cm = 32; }
}
"""


@functools.cache
def schema(text: str = ALL) -> Compiled:
    return compiled(text, [])


def message(text: str = ALL, *path: int) -> Any:
    return GetMessageClass(schema(text).message(path or (0,)))


def read(text: str, payloads: Sequence[bytes], options: ProtobufOptions | None = None) -> Read:
    joined = Payloads.of(payloads)
    bodies = Bodies(joined.text, joined.offsets[:-1], joined.offsets[1:])
    return ProtobufReader(7, schema(text), options or ProtobufOptions()).read(bodies)


def rows(found: Read) -> dict[int, Any]:
    made: dict[int, Any] = {}
    for places, column in found.columns:
        column.values.validate(full=True)
        assert places is not None
        made.update(zip(places.tolist(), column.values.to_pylist(), strict=True))
    return {row: value for row, value in made.items() if row not in found.failed}


LEAF = (1,)
INDEX_ALL, INDEX_LEAF = b"\x02\x02", b"\x00"
"""Messages name their type by its position: All is the second of the file, Leaf the first."""


def signed(value: int, bits: int = 64) -> int:
    return (value + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)


COLORS = {0: "RED", 1: "GREEN", 5: "BLUE"}


def color(number: int) -> str:
    return COLORS.get(number, f"UNKNOWN_ENUM_VALUE_Color_{number}")


def leaf(one: Any) -> dict[str, Any]:
    return {"s": one.s, "n": one.n, "r": list(one.r)}


def expected(one: Any) -> dict[str, Any]:
    plain = ("d", "f", "i32", "i64", "u32", "s32", "s64", "f32", "sf32", "sf64", "b", "s", "y")
    made = {name: getattr(one, name) for name in plain}
    made |= {name: signed(getattr(one, name)) for name in ("u64", "f64")}
    made["e"] = color(one.e)
    made["m"] = leaf(one.m) if one.HasField("m") else None
    for name in ("oi", "os"):
        made[name] = getattr(one, name) if one.HasField(name) else None
    made["oe"] = color(one.oe) if one.HasField("oe") else None
    made |= {name: list(getattr(one, name)) for name in ("ri", "rs", "rd", "unpacked", "rb")}
    made["rm"] = [leaf(each) for each in one.rm]
    made["re"] = [color(each) for each in one.re]
    made["mi"] = dict(one.mi)
    made["mm"] = {key: leaf(value) for key, value in one.mm.items()}
    which = one.WhichOneof("choice")
    choice = None
    if which is not None:
        value = getattr(one, which)
        choice = {"ci": None, "cs": None, "cm": None} | {which: leaf(value) if which == "cm" else value}
    made["choice_0"] = choice
    return made


def as_found(row: dict[str, Any]) -> dict[str, Any]:
    return row | {name: dict(row[name]) for name in ("mi", "mm")}


INT32, INT64 = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
UINT32, UINT64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
FLOAT32 = st.floats(width=32, allow_nan=False)
LEAVES = st.fixed_dictionaries({}, optional={"s": TEXT, "n": INT64, "r": st.lists(INT32, max_size=3)})
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "d": st.floats(allow_nan=False),
    "f": FLOAT32,
    **dict.fromkeys(("i32", "s32", "sf32", "oi", "ci"), INT32),
    **dict.fromkeys(("i64", "s64", "sf64"), INT64),
    **dict.fromkeys(("u32", "f32"), UINT32),
    **dict.fromkeys(("u64", "f64"), UINT64),
    "b": st.booleans(),
    **dict.fromkeys(("s", "os", "cs"), TEXT),
    "y": st.binary(max_size=6),
    **dict.fromkeys(("e", "oe"), st.sampled_from([0, 1, 5, 9, -3])),
    **dict.fromkeys(("m", "cm"), LEAVES),
    "ri": st.lists(INT64, max_size=4),
    "rs": st.lists(TEXT, max_size=4),
    "rm": st.lists(LEAVES, max_size=3),
    "re": st.lists(st.sampled_from([0, 1, 5, 7]), max_size=3),
    "rd": st.lists(st.floats(allow_nan=False), max_size=3),
    "unpacked": st.lists(INT32, max_size=3),
    "rb": st.lists(st.booleans(), max_size=3),
    "mi": st.dictionaries(TEXT, INT32, max_size=3),
    "mm": st.dictionaries(INT64, LEAVES, max_size=2),
}
MESSAGES = st.fixed_dictionaries({}, optional=FIELDS)


def built(values: dict[str, Any]) -> Any:
    kind = message(ALL, 1)
    made = kind()
    for name, value in values.items():
        if name == "mm":
            for key, inner in value.items():
                made.mm[key].MergeFrom(message(ALL, 0)(**inner))
        else:
            made.MergeFrom(kind(**{name: value}))
    return made


@settings(max_examples=100, deadline=None)
@given(st.lists(MESSAGES, min_size=1, max_size=4), st.booleans())
def test_every_field_comes_back(drawn: list[dict[str, Any]], many: bool) -> None:
    """`many`: enough copies that rows are read together, not one by one."""
    made = [built(values) for values in drawn] * (20 if many else 1)
    found = read(ALL, [INDEX_ALL + one.SerializeToString() for one in made])
    assert found.failed == {}
    assert {row: as_found(value) for row, value in rows(found).items()} == {
        row: expected(one) for row, one in enumerate(made)
    }


@settings(max_examples=100, deadline=None)
@given(MESSAGES, st.binary(max_size=30), st.booleans())
def test_a_broken_message_fails_alone(values: dict[str, Any], garbage: bytes, many: bool) -> None:
    good = built(values)
    payload = INDEX_ALL + good.SerializeToString()
    before = 20 if many else 1
    found = read(ALL, [payload] * before + [INDEX_ALL + garbage] + [payload] * before)
    assert set(found.failed) <= {before}
    made = rows(found)
    for row in range(2 * before + 1):
        if row != before:
            assert as_found(made[row]) == expected(good)
    try:
        parsed = message(ALL, 1).FromString(garbage)
    except Exception:
        return
    # What Google's runtime reads, we read: equal, unless it holds groups, which nobody writes any more.
    if before not in found.failed:
        assert as_found(made[before]) == expected(parsed)


def test_types_and_parameters() -> None:
    (_, column), *_ = read(ALL, [INDEX_ALL]).columns
    schema_ = column.schema
    assert schema_ is not None and schema_.name == "All"
    assert schema_["u32"].kind is Kind.INT64
    tag = "io.confluent.connect.protobuf.Tag"
    assert schema_["u32"].parameters == (("io.confluent.connect.protobuf.Type", "uint32"), (tag, "5"))
    assert schema_["e"].name == "Color"
    assert schema_["e"].parameter("io.confluent.connect.protobuf.Enum.BLUE") == "5"
    assert schema_["choice_0"].name == "io.confluent.connect.protobuf.Union.choice"
    assert schema_.fields[0].name == "choice_0"
    assert schema_["rs"].optional and schema_["rs"].value is not None and schema_["rs"].value.optional
    assert schema_["mi"].name == "mi"


def test_a_field_that_is_written_twice_has_its_last_value_and_messages_merge() -> None:
    one = message(ALL, 1)(s="a", ci=1, m={"s": "x", "r": [1]}).SerializeToString()
    two = message(ALL, 1)(s="b", cs="c", m={"n": 5, "r": [2]}).SerializeToString()
    for copies in (1, 20):
        found = rows(read(ALL, [INDEX_ALL + one + two] * copies))
        assert found[0]["s"] == "b"
        assert found[0]["choice_0"] == {"ci": None, "cs": "c", "cm": None}
        assert found[0]["m"] == {"s": "x", "n": 5, "r": [1, 2]}


def test_unknown_fields_are_passed_over() -> None:
    payload = message(ALL, 0)(s="x", n=3).SerializeToString()
    unknown = b"\xfa\x01\x03abc" + b"\xf8\x01\x05"
    assert rows(read(ALL, [INDEX_LEAF + unknown + payload]))[0] == {"s": "x", "n": 3, "r": []}


def test_text_that_is_no_utf_8_fails_in_proto3() -> None:
    found = read(ALL, [INDEX_LEAF + b"\x0a\x01\xff", INDEX_LEAF + b"\x0a\x01a"])
    assert "Protocol message had invalid UTF-8." in found.failed[0]
    assert rows(found)[1]["s"] == "a"


PROTO2 = """
syntax = "proto2";
message Old {
  required int32 id = 1;
  optional string name = 2 [default = "nobody"];
  repeated Level levels = 3;
  message Inner { optional bool b = 1; }
  enum Level { LOW = 1; HIGH = 2; }
}
"""


def test_proto2() -> None:
    whole = message(PROTO2)(id=1, levels=[2, 1]).SerializeToString()
    found = read(PROTO2, [b"\x00" + whole, b"\x00", b"\x04\x00\x00" + b"\x08\x01", b"\x08\x02"])
    assert rows(found) == {0: {"id": 1, "name": None, "levels": ["HIGH", "LOW"]}, 2: {"b": True}}
    assert "Message missing required fields: id" in found.failed[1]
    assert "the message indexes are broken" in found.failed[3]


MEANINGS = """
syntax = "proto3";
import "confluent/meta.proto";
import "confluent/type/decimal.proto";
import "google/type/date.proto";
import "google/type/timeofday.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
message M {
  google.type.Date d = 1;
  google.type.TimeOfDay t = 2;
  google.protobuf.Timestamp ts = 3;
  confluent.type.Decimal n = 4 [(confluent.field_meta) = {params: [{key: "scale", value: "2"}]}];
  google.protobuf.StringValue w = 5;
  int32 small = 6 [(confluent.field_meta) = {params: {key: "connect.type", value: "int8"}}];
}
"""


def test_messages_that_mean_dates_times_and_decimals() -> None:
    made = message(MEANINGS)(
        d={"year": 2024, "month": 2, "day": 29},
        t={"hours": 1, "minutes": 2, "seconds": 3, "nanos": 4_000_000},
        ts={"seconds": 1_700_000_000, "nanos": 5_999_999},
        n={"value": (-12345).to_bytes(2, "big", signed=True), "scale": 2},
        w={"value": "x"},
        small=300,
    )
    broken = message(MEANINGS)(d={"year": 2023, "month": 2, "day": 29})
    other_scale = message(MEANINGS)(n={"value": b"\x05", "scale": 1})
    payloads = [b"\x00" + one.SerializeToString() for one in (made, broken, other_scale)]
    found = read(MEANINGS, payloads)
    moment = datetime.datetime.fromtimestamp(1_700_000_000, datetime.UTC)
    assert rows(found)[0] == {
        "d": datetime.date(2024, 2, 29),
        "t": datetime.time(1, 2, 3, 4000),
        "ts": moment + datetime.timedelta(milliseconds=5),
        "n": decimal.Decimal("-123.45"),
        "w": "x",
        "small": 44,
    }
    assert rows(found)[2]["n"] == decimal.Decimal("0.50")
    assert list(found.failed) == [1]
    schema_ = found.columns[0][1].schema
    assert schema_ is not None
    assert [schema_[name].name for name in ("d", "t", "ts", "n")] == [DATE, TIME, TIMESTAMP, DECIMAL]
    assert schema_["small"].kind is Kind.INT8
    wrapped = read(MEANINGS, payloads[:1], ProtobufOptions(wrapper_primitives=False))
    assert rows(wrapped)[0]["w"] == {"value": "x"}


SETTINGS = """
syntax = "proto3";
message M {
  oneof choice { int32 ci = 1; string cs = 2; }
  repeated PairEntry pairs = 3;
  optional int32 o = 4;
  Color e = 5;
  Inner inner = 6;
  message PairEntry { string key = 1; int32 value = 2; }
  message Inner { string s = 1; }
  enum Color { RED = 0; BLUE = 5; }
}
"""


def test_settings_change_what_becomes_of_a_message() -> None:
    kind = message(SETTINGS)
    payload = [b"\x00" + kind(ci=0, e=5, pairs=[{"key": "k", "value": 1}]).SerializeToString()]
    usual = {"choice_0": {"ci": 0, "cs": None}, "pairs": [("k", 1)], "o": None, "e": "BLUE", "inner": None}
    assert rows(read(SETTINGS, payload))[0] == usual
    flat = {"ci": 0, "cs": None} | {name: usual[name] for name in ("pairs", "o", "e", "inner")}
    assert rows(read(SETTINGS, payload, ProtobufOptions(flat_unions=True)))[0] == flat
    assert "choice" in rows(read(SETTINGS, payload, ProtobufOptions(union_index=False)))[0]
    assert rows(read(SETTINGS, payload, ProtobufOptions(int_enums=True)))[0]["e"] == 5
    full = rows(read(SETTINGS, payload, ProtobufOptions(struct_for_nulls=True)))[0]
    assert (full["o"], full["inner"]) == (0, {"s": ""})
    schema_ = read(SETTINGS, payload, ProtobufOptions(optional_nullables=True)).columns[0][1].schema
    assert schema_ is not None and schema_["o"].optional
    named = read(SETTINGS, payload, ProtobufOptions(enhanced=True)).columns[0][1].schema
    assert named is not None and named["inner"].name == "M.Inner"


def test_references_are_imported() -> None:
    text = 'syntax = "proto3"; import "a/b.proto"; message M { p.N n = 1; }'
    made = compiled(text, [Reference("a/b.proto", 'syntax = "proto3"; package p; message N { bool b = 1; }')])
    found = ProtobufReader(1, made, ProtobufOptions()).read(
        Bodies(b"\x00\x0a\x02\x08\x01", _array(0), _array(5))
    )
    assert rows(found) == {0: {"n": {"b": True}}}


def _array(value: int) -> Any:
    return np.array([value], np.int64)


@pytest.mark.parametrize(
    "text",
    [
        "message {",
        'syntax = "proto3"; import "nowhere.proto"; message M {}',
        'syntax = "proto3"; message M { Unknown u = 1; }',
    ],
)
def test_schemas_that_do_not_compile_say_why(text: str) -> None:
    with pytest.raises(UnusableSchema, match="does not compile"):
        compiled(text, [])


def test_a_message_that_contains_itself_is_refused() -> None:
    text = 'syntax = "proto3"; message M { M m = 1; }'
    assert "contains itself" in read(text, [b"\x00"]).failed[0]


def test_many_items_in_few_messages_are_read() -> None:
    made = message(ALL, 1)(rs=[str(number) for number in range(20_000)])
    found = rows(read(ALL, [INDEX_ALL + made.SerializeToString()]))
    assert found[0]["rs"] == [str(number) for number in range(20_000)]


def test_options_of_fields_are_read_whoever_else_knows_them() -> None:
    """Confluent's client teaches the runtime the extension; then it is no unknown field any more."""
    importlib.import_module("confluent_kafka.schema_registry.protobuf")
    ((_, column),) = (
        ProtobufReader(7, compiled(MEANINGS, []), ProtobufOptions())
        .read(Bodies(b"\x00", _array(0), _array(1)))
        .columns
    )
    assert column.schema is not None
    assert column.schema["small"].kind is Kind.INT8
