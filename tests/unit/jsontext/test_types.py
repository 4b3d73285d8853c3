"""The types that payloads are held against: which keys they know, and which values they take."""

import msgspec
import pyarrow as pa
import pytest

from icestream.jsontext.types import closed_type, exact_type, odd_ones

FIELDS = [
    pa.field("id", pa.int32()),
    pa.field("text", pa.string()),
    pa.field("inner", pa.struct([("n", pa.float64())])),
    pa.field("items", pa.list_(pa.struct([("name", pa.string())]))),
    pa.field("by_name", pa.map_(pa.string(), pa.struct([("x", pa.bool_())]))),
    pa.field('say "hi"', pa.int64()),
]
KNOWN = b'{"id":1,"inner":{"n":0.5},"items":[{"name":"a"},null],"by_name":{"any":{"x":true}}}'


def taken(kind: object, *texts: bytes) -> list[bool]:
    return [not odd for odd in odd_ones(msgspec.json.Decoder(kind).decode, list(texts)).tolist()]


@pytest.mark.parametrize(
    "unknown",
    [
        b'{"id":1,"new":1}',
        b'{"new":null}',
        b'{"inner":{"n":1,"new":2}}',
        b'{"items":[{"name":"a"},{"new":1}]}',
        b'{"by_name":{"any":{"new":1}}}',
    ],
)
def test_an_unknown_key_is_found_on_any_level(unknown: bytes) -> None:
    assert taken(closed_type(FIELDS), KNOWN, unknown, KNOWN) == [True, False, True]
    assert taken(exact_type(FIELDS), KNOWN, unknown) == [True, True]


def test_keys_are_known_whatever_their_values_are_and_how_often_they_come() -> None:
    odd = b'{"id":"1","text":{"a":[1]},"id":null,"inner":null,"items":null}'
    assert taken(closed_type(FIELDS), odd) == [True]
    assert taken(exact_type(FIELDS), odd) == [False]


def test_edited_keys_are_known_too() -> None:
    assert taken(closed_type(FIELDS, ["new", "inner"]), b'{"new":1,"inner":[5]}', b'{"other":1}') == [
        True,
        False,
    ]


def test_a_key_that_msgspec_cannot_name_is_looked_at_closely() -> None:
    assert taken(closed_type(FIELDS), rb'{"say \"hi\"":1}') == [False]


@pytest.mark.parametrize("value", [b"2147483648", b"1.5", b'"1"', b"true", b"[]"])
def test_only_what_the_column_holds_as_it_is_is_exact(value: bytes) -> None:
    assert taken(exact_type(FIELDS), b'{"id":%b}' % value, b'{"id":null}', b"{}") == [False, True, True]
