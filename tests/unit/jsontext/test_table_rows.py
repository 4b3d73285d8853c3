"""JSON to Arrow: in bulk, record by record, and what both must agree on."""

import datetime as dt
import decimal
import json
import uuid
from typing import Any

import pyarrow as pa
import pytest

from icestream.jsontext.bulk import keys_agree, native_rows
from icestream.jsontext.coerce import row_from
from icestream.jsontext.schemaless import PlainReader
from icestream.jsontext.table_rows import wire_schema
from icestream.records.payloads import Payloads
from icestream.rows.new_columns import combined
from icestream.rows.schema_drift import SchemaDrift
from icestream.rows.to_rows import RowConverter

STRING_MAP = pa.map_(pa.string(), pa.string())
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("small", pa.int32()),
        ("text", pa.string()),
        ("ratio", pa.float64()),
        ("yes", pa.bool_()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("local", pa.timestamp("us")),
        ("day", pa.date32()),
        ("clock", pa.time64("us")),
        ("price", pa.decimal128(10, 2)),
        ("data", pa.binary()),
        ("key", pa.uuid()),
        ("tags", STRING_MAP),
        ("inner", pa.struct([("n", pa.int32()), ("when", pa.timestamp("us", tz="UTC"))])),
        ("items", pa.list_(pa.struct([("name", pa.string())]))),
    ]
)
FULL: dict[str, Any] = {
    "id": 1,
    "small": 2,
    "text": 'é "quoted" \\ back',
    "ratio": 1.5,
    "yes": True,
    "at": "2026-11-01T10:11:12.123456789Z",
    "local": "2026-11-01T10:11:12",
    "day": "2026-11-01",
    "clock": "10:11:12.5",
    "price": 12.25,
    "data": "aGk=",
    "key": "00112233-4455-6677-8899-aabbccddeeff",
    "tags": {"a": "b", "n": None},
    "inner": {"n": 7, "when": "2026-11-01T00:00:00+02:00"},
    "items": [{"name": "x"}, {"name": None}],
}
EXPECTED = {
    **FULL,
    "at": dt.datetime(2026, 11, 1, 10, 11, 12, 123456, tzinfo=dt.UTC),
    "local": dt.datetime(2026, 11, 1, 10, 11, 12),
    "day": dt.date(2026, 11, 1),
    "clock": dt.time(10, 11, 12, 500000),
    "price": decimal.Decimal("12.25"),
    "data": b"hi",
    "key": uuid.UUID(FULL["key"]),
    "tags": [("a", "b"), ("n", None)],
    "inner": {"n": 7, "when": dt.datetime(2026, 10, 31, 22, tzinfo=dt.UTC)},
}


def payload(**values: Any) -> bytes:
    return json.dumps(values).encode()


def decode(
    *payloads: bytes, schema: pa.Schema = SCHEMA, drift: SchemaDrift | None = None
) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """Rows and reasons of values that take the way of JSON without schemas."""
    converted = PlainReader().read(payloads)
    rejected = {at: why.reason for at, why in converted.failed.items()}
    rows: dict[int, dict[str, Any]] = {}
    maker = RowConverter(schema, drift)
    for at, value in converted.groups:
        index = list(range(len(payloads))) if at is None else at.tolist()
        made = maker.to_rows(value, len(index))
        rejected |= {index[row]: why.reason for row, why in made.failed.items()}
        rows |= {index[row]: one for row, one in zip(made.index.tolist(), made.rows.to_pylist(), strict=True)}
    assert sorted([*rows, *rejected]) == list(range(len(payloads)))
    return [rows[at] for at in sorted(rows)], rejected


def test_every_type_decodes_in_bulk() -> None:
    rows, rejected = decode(payload(**FULL), payload(id=2))
    assert rejected == {}
    assert rows == [EXPECTED, {**dict.fromkeys(SCHEMA.names), "id": 2}]


def test_record_by_record_gives_the_same_row_as_in_bulk() -> None:
    row = row_from(payload(**FULL), SCHEMA)
    assert pa.Table.from_pylist([row], schema=SCHEMA).to_pylist() == [EXPECTED]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b"", "the value is null, and a row needs an object with fields"),
        (b"   ", "the value is null"),
        (b'{"id": 1', "serialization error"),
        (b"\xff\xfe", "not UTF-8"),
        (b"[1]", "the value is a list"),
        (b"null", "the value is null"),
        (b"5", "the value is int64"),
        (b'{"id": "abc"}', "field 'id' is \"abc\", which does not fit a column of type int64"),
        (b'{"small": 3000000000}', "field 'small' is 3000000000"),
        (b'{"inner": {"n": "x"}}', "field 'inner.n' is \"x\""),
        (b'{"inner": [1]}', "field 'inner' is [1], which does not fit a struct"),
        (b'{"items": [{"name": "a"}, 5]}', "field 'items[1]' is 5"),
        (b'{"at": "yesterday"}', "field 'at' is \"yesterday\""),
        (b'{"key": "no"}', "field 'key' is \"no\""),
        (b'{"data": "%%"}', "field 'data' is \"%%\""),
        (b'{"price": 123456789012.5}', "field 'price' is"),
        (b'{"yes": "maybe"}', "field 'yes' is \"maybe\""),
    ],
)
def test_a_bad_record_is_rejected_with_its_reason_and_its_neighbours_land(bad: bytes, reason: str) -> None:
    good = [payload(id=number) for number in range(40)]
    rows, rejected = decode(*good[:20], bad, *good[20:])
    assert [row["id"] for row in rows] == list(range(40))
    assert list(rejected) == [20]
    assert rejected[20].startswith(reason) or reason in rejected[20]


def test_two_broken_records_that_would_make_a_good_one_together_are_both_rejected() -> None:
    rows, rejected = decode(b'{"text":"a}', b'{":1}', payload(id=3), b'{"text":"\\"}', b'{"id":4}')
    assert [row["id"] for row in rows] == [3, 4]
    assert sorted(rejected) == [0, 1, 3]


@pytest.mark.parametrize(
    ("values", "field", "expected"),
    [
        ({"text": 5}, "text", "5"),
        ({"text": True}, "text", "true"),
        ({"text": {"a": [1]}}, "text", '{"a":[1]}'),
        ({"id": "17"}, "id", 17),
        ({"at": 1_700_000_000_123}, "at", dt.datetime(2023, 11, 14, 22, 13, 20, 123000, tzinfo=dt.UTC)),
        ({"at": "2026-11-01T10:11:12"}, "at", dt.datetime(2026, 11, 1, 10, 11, 12, tzinfo=dt.UTC)),
        ({"day": 1}, "day", dt.date(1970, 1, 2)),
        ({"yes": "TRUE"}, "yes", True),
        ({"tags": {"n": 5, "o": {"x": 1}}}, "tags", [("n", "5"), ("o", '{"x":1}')]),
    ],
)
def test_values_are_coerced_as_the_java_sink_does(values: dict[str, Any], field: str, expected: Any) -> None:
    rows, rejected = decode(payload(**values))
    assert rejected == {}
    assert rows[0][field] == expected


def drift(*payloads: bytes) -> dict[tuple[str, ...], pa.DataType]:
    found = SchemaDrift(SCHEMA)
    decode(*payloads, drift=found)
    return found.found


def test_keys_agree_when_nothing_is_new() -> None:
    texts = Payloads.of([payload(**FULL), payload(id=1, text=None, tags={}, items=[], inner=None)])
    rows = native_rows(texts, wire_schema(SCHEMA))
    assert rows is not None
    assert keys_agree(texts, rows)


def test_a_new_field_is_found_among_many_records() -> None:
    many = [payload(**{**FULL, "id": number}) for number in range(1000)]
    many[777] = payload(id=777, extra=5, inner={"n": 1, "deep": {"x": "y"}}, items=[{"name": "a", "q": 1.5}])
    assert drift(*many) == {
        ("extra",): pa.int64(),
        ("inner", "deep"): pa.struct([("x", pa.string())]),
        ("items", "element", "q"): pa.float64(),
    }


def test_a_new_key_beside_a_timestamp_given_as_a_number_is_found() -> None:
    assert drift(b'{"at":1700000000000,"fresh":1}') == {("fresh",): pa.int64()}


def test_a_text_that_looks_like_a_null_key_hides_nothing() -> None:
    assert drift(b'{"text":"\\":null","fresh":1}') == {("fresh",): pa.int64()}


def test_nulls_and_empty_containers_make_no_column() -> None:
    assert drift(payload(a=None, b={}, c=[], d={"x": None}, e=[None])) == {}


def test_types_of_a_new_field_are_merged_over_records() -> None:
    assert drift(payload(n=1), payload(n=1.5))[("n",)] == pa.float64()
    assert drift(payload(n=1), payload(n="a"))[("n",)] == pa.string()
    assert drift(payload(n={"a": 1}), payload(n={"b": "x"}))[("n",)] == pa.struct(
        [("a", pa.int64()), ("b", pa.string())]
    )


def test_a_new_struct_that_gains_a_field_later_is_one_field() -> None:
    first, later = {("x",): pa.struct([("y", pa.int64())])}, {("x", "z"): pa.int64(), ("w",): pa.string()}
    assert combined(first, later) == {
        ("x",): pa.struct([("y", pa.int64()), ("z", pa.int64())]),
        ("w",): pa.string(),
    }
    listed = {("x",): pa.list_(pa.struct([("y", pa.int64())]))}
    assert combined(listed, {("x", "element", "z"): pa.bool_()}) == {
        ("x",): pa.list_(pa.struct([("y", pa.int64()), ("z", pa.bool_())]))
    }


@pytest.mark.parametrize("odd", [b'{"id":1,"x":2,}', b'{"id":1 "x":2}', b'{"id":1,"ts":1.2.3}'])
def test_what_the_bulk_reader_would_forgive_is_rejected(odd: bytes) -> None:
    good = [payload(id=number) for number in range(100)]
    found = SchemaDrift(SCHEMA)
    rows, rejected = decode(*good[:50], odd, *good[50:], drift=found)
    assert list(rejected) == [50]
    assert len(rows) == 100
    assert found.found == {}


def test_a_string_that_looks_like_a_null_hides_no_new_field() -> None:
    assert drift(b'{"text":":new","b":1}') == {("b",): pa.int64()}


def test_broken_records_that_make_up_for_each_other_are_all_rejected() -> None:
    rows, rejected = decode(
        b'{"id":1,"z":[{}', b'{"id":9]}', b'{"id":2}{"id":3}', b'{"id":4} {"id":5}', payload(id=6)
    )
    # Of several values in one text the first counts, as in Java.
    assert [row["id"] for row in rows] == [2, 4, 6]
    assert sorted(rejected) == [0, 1]


def test_braces_in_strings_and_lists_are_no_second_value() -> None:
    rows, rejected = decode(b'{"text":"}{"}', b'{"text":"} {"}', b'{"items":[{"name":"a"},{"name":"b"}]}')
    assert rejected == {}
    assert [row["text"] for row in rows] == ["}{", "} {", None]


@pytest.mark.parametrize(
    ("number", "kept"),
    [
        ("1.005", "1.01"),
        ("1.0049", "1.00"),
        ("-1.005", "-1.01"),
        ("99999999.994", "99999999.99"),
        ("1", "1.00"),
    ],
)
@pytest.mark.parametrize("form", ["%s", '"%s"'])
def test_decimals_are_rounded_half_up(number: str, kept: str, form: str) -> None:
    text = f'{{"price":{form % number}}}'.encode()
    alone = row_from(text, SCHEMA)["price"]
    in_bulk, _ = decode(*[text] * 20)
    assert {alone, *(row["price"] for row in in_bulk)} == {decimal.Decimal(kept)}


def test_a_decimal_that_rounding_makes_too_long_is_rejected() -> None:
    assert list(decode(b'{"price":99999999.995}')[1]) == [0]


def test_a_decimal_does_not_depend_on_its_neighbours() -> None:
    exact = b'{"price":12345678.129}'
    rows, _ = decode(exact, payload(id=1))
    beside_a_bad_one, _ = decode(exact, b"[1]", b'{"text":5}')
    assert rows[0]["price"] == beside_a_bad_one[0]["price"] == decimal.Decimal("12345678.13")
    assert row_from(b'{"text":12345678901234567890123}', SCHEMA)["text"] == "12345678901234567890123"


def test_escaped_characters_of_all_planes_are_read_right() -> None:
    texts = ["\U00020000", "\U0001f642", "\U0010ffff", "\U00030000", "plain"]
    rows, _ = decode(*(json.dumps({"text": text}).encode() for text in texts))
    assert [row["text"] for row in rows] == texts
