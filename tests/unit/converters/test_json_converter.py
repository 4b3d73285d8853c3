"""JsonConverter on chunks: bulk, odd ones among many, poison. Java's own answers are in the parity tests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from icestream.api.errors import ConfigError
from icestream.converters.json_converter import JsonConverter
from icestream.jsontext.encode import plain_texts
from icestream.records.column import Column
from icestream.records.records import ConversionError, Converted
from icestream.records.schema import STRING, ConnectSchema, Kind, array, map_of, struct
from icestream.records.values import Fields, Listing, Value, typed

PLAIN = {"schemas.enable": "false"}
SCHEMA = {
    "type": "struct",
    "fields": [
        {"field": "id", "type": "int32"},
        {"field": "text", "type": "string", "optional": True},
        {"field": "price", "type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "version": 1,
         "parameters": {"scale": "2"}, "optional": True},
        {"field": "inner", "type": "struct", "optional": True,
         "fields": [{"field": "at", "type": "int64", "name": "org.apache.kafka.connect.data.Timestamp"}]},
        {"field": "counts", "type": "map", "optional": True,
         "keys": {"type": "string"}, "values": {"type": "int64"}},
        {"field": "size", "type": "int16", "default": 7, "optional": True},
    ],
}  # fmt: skip


def envelope(payload: Any, schema: Any = SCHEMA) -> bytes:
    return json.dumps({"schema": schema, "payload": payload}).encode()


def read(values: Sequence[bytes | None], **config: str) -> Converted:
    return JsonConverter.configured(
        {key.replace("_", "."): one for key, one in config.items()}, False
    ).to_connect("t", values)


def by_row(found: Converted) -> dict[int, Any]:
    rows: dict[int, Any] = {}
    for at, value in found.groups:
        assert at is not None
        plain = [None] * len(at) if value is None else column(value).to_pylist()
        rows.update(zip(at.tolist(), plain, strict=True))
    return rows


def column(value: Value) -> pa.Array:
    assert isinstance(value, Column)
    return value.values


ROWS: list[dict[str, Any]] = [
    {"id": 1, "text": "ü", "price": "AfQ=", "inner": {"at": 5}, "counts": {"a": 1}, "size": 2},
    {"id": 2},
]


def test_many_envelopes_are_one_group_and_each_has_its_defaults() -> None:
    found = read([envelope({**ROWS[row % 2], "id": row}) for row in range(1000)])
    ((at, value),) = found.groups
    assert at is not None
    assert np.array_equal(at, np.arange(1000))
    rows = column(value).to_pylist()
    assert [row["id"] for row in rows] == list(range(1000))
    assert {row["size"] for row in rows} == {2, 7}
    assert str(rows[0]["price"]) == "5.00"
    assert rows[0]["counts"] == [("a", 1)]
    assert not found.failed


def test_bad_ones_among_many_fail_alone() -> None:
    values: list[bytes | None] = [envelope({"id": row}) for row in range(500)]
    values[7], values[100], values[499] = envelope({"id": None}), b"{", envelope({"id": 1}, {"type": "what"})
    values[200] = None
    converter = JsonConverter.configured({}, False)
    for _ in range(2):
        found = converter.to_connect("t", values)
        assert sorted(found.failed) == [7, 100, 499]
        assert found.failed[7].reason == "Invalid null value for required INT32 field"
        assert found.failed[499].reason == "Unknown schema type: what"
        assert "serialization error" in found.failed[100].reason
        rows = by_row(found)
        assert rows[200] is None
        assert [rows[row]["id"] for row in (0, 6, 8, 498)] == [0, 6, 8, 498]
        assert len(rows) == 497


def test_texts_that_hide_behind_the_usual_surroundings_are_seen() -> None:
    before = json.dumps({"schema": SCHEMA, "payload": 0}).encode().removesuffix(b"0}")
    hidden = [b'{"id":1},"more":{"id":2}', b'{"id":1},"payload":{"id":2}', b'{"id":1}}{"id":2', b'{"id":"}"}']
    values: list[bytes | None] = [envelope({"id": 0}), *(before + payload + b"}" for payload in hidden)]
    found = read(values)
    assert list(found.failed) == [1]
    assert {row: value["id"] for row, value in by_row(found).items()} == {0: 0, 2: 2, 3: 1, 4: 0}


def test_several_schemas_and_spellings_in_one_chunk() -> None:
    values: list[bytes | None] = [
        envelope(5, {"type": "int8"}),
        envelope("x", {"type": "string"}),
        b'{"payload": 6, "schema": {"type": "int8"}}',
        b' {"schema":{"type":"int8"},"payload":007} trailing',
        *(envelope(row, {"type": "int32", "version": row}) for row in range(20)),
        envelope({"a": 1}, None),
    ]
    found = read(values)
    assert not found.failed
    groups = {tuple(at.tolist()): value for at, value in found.groups if at is not None}
    assert isinstance(groups[24,], Fields)
    assert column(groups[1,]).to_pylist() == ["x"]
    del groups[24,]
    together = {
        row: one
        for at, value in groups.items()
        for row, one in zip(at, column(value).to_pylist(), strict=True)
    }
    assert [together[row] for row in (0, 2, 3, 4, 23)] == [5, 6, 7, 0, 19]


def test_nulls_stay_null_if_told_so() -> None:
    rows = by_row(read([envelope({"id": 1})], replace_null_with_default="false"))
    assert rows[0]["size"] is None


def test_payloads_of_a_schema_that_the_config_has() -> None:
    found = read([b'{"id":1}', None, b"{", b'{"id":2} x'], schema_content=json.dumps(SCHEMA))
    rows = by_row(found)
    assert (rows[0]["id"], rows[1], rows[3]["id"], list(found.failed)) == (1, None, 2, [2])
    with pytest.raises(ConfigError, match="Failed to parse schema in converter config"):
        JsonConverter.configured({"schema.content": "{"}, False)


def test_plain_values_part_ways_by_type() -> None:
    values = [
        b'{"a":1}',
        None,
        b"[1]",
        b"5",
        b'"x"',
        b"null",
        b"",
        b'{"a":01}',
        b'{"a":"\xff"}',
        b"{",
        b"2.5",
        b"true",
    ]
    found = read(values, schemas_enable="false")
    assert sorted(found.failed) == [8, 9]
    kinds: dict[int, str] = {}
    for at, value in found.groups:
        assert at is not None
        shown = (
            "null"
            if value is None
            else str(column(value).type)
            if isinstance(value, Column)
            else type(value).__name__
        )
        kinds.update(dict.fromkeys(at.tolist(), shown))
    assert [kinds[row] for row in (0, 7, 2)] == ["Fields", "Fields", "Listing"]
    assert [kinds[row] for row in (1, 5, 6, 3, 4, 10, 11)] == ["null"] * 3 + [
        "int64",
        "string",
        "double",
        "bool",
    ]


@pytest.mark.parametrize(
    "poison",
    [
        b"[" * 10_000 + b"]" * 10_000,
        b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
        b'{"a":"\xff\xfe"}',
        b'{"a":NaN}',
        b'{"a":1,}',
        b'{"a":"\x00"}',
        b'{"a":1e}',
        b"\x00",
    ],
)
@pytest.mark.parametrize("config", [PLAIN, {}])
def test_poison_fails_alone(poison: bytes, config: dict[str, str]) -> None:
    good = b'{"schema":null,"payload":{"a":1}}'
    found = JsonConverter.configured(config, False).to_connect("t", [good, poison, good])
    assert list(found.failed) == [1]
    assert sum(3 if at is None else len(at) for at, _ in found.groups) == 2


def test_what_poison_is_to_others_is_read_if_java_reads_it() -> None:
    values = [b'{"a":1e400}', b'{"a":"\\ud800"}', b'{"a":1,"a":2}', b'{"a":%d}' % 10**30]
    ((_, first), *rest) = read(values, schemas_enable="false").groups
    found = [part for value in (first, *(one for _, one in rest)) if isinstance(value, Fields)
             for part in typed(value.get("a"), len(value))]  # fmt: skip
    plain = {
        str(one) for part in found if isinstance(part.value, Column) for one in part.value.values.to_pylist()
    }
    assert plain == {"inf", "?", "2", str((10**30 + 2**63) % 2**64 - 2**63)}


def test_fields_are_learned_from_chunk_to_chunk() -> None:
    converter = JsonConverter.configured(PLAIN, False)
    for _ in range(3):
        ((_, value),) = converter.to_connect("t", [b'{"a":{"b":1},"c":2}', b'{"a":{"b":3}}']).groups
        assert isinstance(value, Fields)
        inner = value.get("a")
        assert inner is not None
        (part,) = typed(inner, 2)
        assert isinstance(part.value, Fields)


def test_a_listing_is_written_again() -> None:
    converter = JsonConverter.configured(PLAIN, False)
    ((_, value),) = converter.to_connect("t", [b"[1, 2.50, null]"]).groups
    assert isinstance(value, Listing)
    assert converter.from_connect("t", value, 1) == [b"[1,2.5,null]"]


def test_required_nulls_cannot_be_written_and_are_named() -> None:
    schema = struct(("a", STRING), ("b", ConnectSchema(Kind.INT32, optional=True)))
    rows = pa.array([{"a": "x", "b": 1}, {"a": None, "b": 2}, {"a": "y", "b": None}], schema.arrow_type)
    converter = JsonConverter.configured(PLAIN, False)
    with pytest.raises(ConversionError, match="null value for field that is required") as raised:
        converter.from_connect("t", Column(rows, schema), 3)
    assert list(raised.value.failed) == [1]
    good = Column(rows.take(pa.array([0, 2])), schema)
    assert converter.from_connect("t", good, 2) == [b'{"a":"x","b":1}', b'{"a":"y","b":null}']


def test_strings_are_escaped_as_jackson_does() -> None:
    every = "".join(map(chr, [*range(0x180), 0x2028, 0xFFFD, 0x10000, 0x1F642]))
    converter = JsonConverter.configured(PLAIN, False)
    (written,) = converter.from_connect("t", Column(pa.array([every]), STRING), 1)
    assert written is not None
    assert json.loads(written) == every
    for escape in (b"\\b", b"\\t", b"\\n", b"\\f", b"\\r", b'\\"', b"\\\\", b"\\u001F", b"\\uD83D\\uDE42"):
        assert escape in written
    for plain in (b"/", b"\x7f", "é".encode(), "\u2028".encode()):
        assert plain in written


ODD_TEXTS = ["", "plain", 'a "quoted" \\ one', "line\nbreak\x01", "é ✓", "smile \U0001f642", "NULL"]


@pytest.mark.parametrize("has_schemas", ["true", "false"])
@pytest.mark.parametrize("first", range(len(ODD_TEXTS)))
@pytest.mark.parametrize("has_null", [True, False])
def test_texts_of_records_are_written_as_by_themselves(has_schemas: str, first: int, has_null: bool) -> None:
    """Whatever stands beside them, and in the part of a column that is not asked for."""
    optional = ConnectSchema(Kind.STRING, optional=True)
    schema = struct(("a", STRING), ("n", ConnectSchema(Kind.INT32)), ("b", optional), ("c", STRING))
    rows = pa.array(
        [
            {
                "a": text,
                "n": place,
                "b": None if has_null and place == len(ODD_TEXTS) - 1 else text,
                "c": text,
            }
            for place, text in enumerate(ODD_TEXTS)
        ],
        schema.arrow_type,
    ).slice(first)
    converter = JsonConverter.configured({"schemas.enable": has_schemas}, False)
    alone = JsonConverter.configured(PLAIN, False)
    written = converter.from_connect("t", Column(rows, schema), len(rows))
    for row, found in zip(rows.to_pylist(), written, strict=True):
        a, b, c = (
            (
                alone.from_connect("t", Column(pa.array([row[name]], pa.string()), optional), 1)[0] or b""
            ).decode()
            for name in "abc"
        )
        payload = f'{{"a":{a},"n":{row["n"]},"b":{b},"c":{c}}}'
        assert found is not None
        if has_schemas == "false":
            assert found == payload.encode()
        else:
            assert found.endswith(f',"payload":{payload}}}'.encode())
            assert json.loads(found)["payload"] == row


def test_records_without_fields_carry_their_schema() -> None:
    nothing = Column(pa.array([{}, {}], pa.struct([])), struct())
    written = JsonConverter.configured({}, False).from_connect("t", nothing, 2)
    assert written == [b'{"schema":{"type":"struct","fields":[],"optional":false},"payload":{}}'] * 2


def test_strings_carry_their_schema_unless_told_otherwise() -> None:
    text = Column(pa.array(["a", ""]), STRING)
    assert JsonConverter.configured({}, False).from_connect("t", text, 2) == [
        b'{"schema":{"type":"string","optional":false},"payload":"a"}',
        b'{"schema":{"type":"string","optional":false},"payload":""}',
    ]


def test_nulls_hide_what_is_inside_them() -> None:
    counts = map_of(STRING, ConnectSchema(Kind.INT32))
    schema = struct(
        ("m", replace(counts, optional=True)),
        ("s", struct(("a", STRING), optional=True)),
        ("l", array(STRING, optional=True)),
    )
    given = [
        {"m": [("x", 1), ("y", 2)], "s": {"a": "b"}, "l": ["c", "d"]},
        {"m": None, "s": None, "l": None},
        {"m": [], "s": {"a": "e"}, "l": []},
    ]
    rows = pa.array(given, schema.arrow_type)
    null = pa.array([False, True, False])
    keys, items = pa.array(["x", "y", "z"]), pa.array([1, 2, 3], pa.int32())
    masked = pa.MapArray.from_arrays([0, 2, 3, 3], keys, items, mask=null)
    parts = [masked, rows.field("s"), rows.field("l")]
    column_of = pa.StructArray.from_arrays(parts, fields=list(schema.arrow_type))
    written = JsonConverter.configured(PLAIN, False).from_connect("t", Column(column_of, schema), 3)
    assert written == [
        b'{"m":{"x":1,"y":2},"s":{"a":"b"},"l":["c","d"]}',
        b'{"m":null,"s":null,"l":null}',
        b'{"m":{},"s":{"a":"e"},"l":[]}',
    ]
    tail = Column(column_of.slice(1), schema)
    assert JsonConverter.configured(PLAIN, False).from_connect("t", tail, 2) == written[1:]


def test_the_last_of_equal_keys_counts_and_zero_has_no_sign() -> None:
    schema = {"type": "map", "keys": {"type": "string"}, "values": {"type": "double"}}
    text = json.dumps({"schema": schema, "payload": 0}).encode().removesuffix(b"0}")
    payloads = [b'{"a":1,"b":2}', b'{"a":1,"a":3}', b'{"a":-0.0}', b"{}"]
    rows = by_row(read([text + payload + b"}" for payload in payloads]))
    assert rows == {0: [("a", 1.0), ("b", 2.0)], 1: [("a", 3.0)], 2: [("a", 0.0)], 3: []}
    assert str(rows[2]) == "[('a', 0.0)]"


@pytest.mark.parametrize("levels", [300, 800])
def test_deep_values_are_written(levels: int) -> None:
    converter = JsonConverter.configured(PLAIN, is_key=False)
    text = b'{"a":[' * (levels // 2) + b"1" + b"]}" * (levels // 2)
    ((_, value),) = converter.to_connect("t", [text]).groups
    assert converter.from_connect("t", value, 1) == [text]


def test_a_value_that_is_nested_too_deeply_to_be_written_is_its_own_failure() -> None:
    deep: object = 1
    for _ in range(5_000):
        deep = {"a": deep}
    with pytest.raises(ConversionError) as raised:
        plain_texts([{"a": 1}, deep, None])
    assert {row: why.reason for row, why in raised.value.failed.items()} == {
        1: "Conversion error: the value is nested too deeply to be written as JSON"
    }
