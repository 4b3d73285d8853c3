"""JsonConverter beside the real one: with schemas, without, with payloads that do not fit their schema."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icestream.converters.json_converter import JsonConverter
from icestream.records.schema import (
    ConnectSchema,
    Kind,
    array,
    date,
    decimal,
    map_of,
    struct,
    time,
    timestamp,
)
from tests.smt_parity.generators import Shape, data, json_values, schemas
from tests.smt_parity.given import Data, Json, Of, json_schema, payload
from tests.smt_parity.harness import Parity, generated

JAVA: Final = "org.apache.kafka.connect.json.JsonConverter"
PLAIN: Final = {"schemas.enable": "false"}
ODD: Final = [
    b"",
    b" ",
    b"null",
    b"5",
    b"007",
    b"-01.5",
    b'{"a":01}',
    b"1 2",
    b'{"a":1} x',
    b'{"a":1,"a":2}',
    b"{",
    b'{"a":1,}',
    b'{"a":"\x01"}',
    b'"\\ud83d\\ude42"',
    b"\xff",
    b'{"a":"\xff"}',
    b"NaN",
    b"1e400",
    b"-1e400",
    b"123456789012345678901234567890",
    b"0.1e-400",
    b"[1,[2,{}]]",
    b"tru",
    b"{'a':1}",
    b"[" * 300 + b"]" * 300,
    b"[" * 1001 + b"]" * 1001,
    b'{"schema":null,"payload":{"a":1}}',
    b'{"schema":null,"payload":null}',
    b'{"schema":{"type":"int32"},"payload":5}',
    b'{"payload":5,"schema":{"type":"int32"}}',
    b'{"schema":{"type":"int32"},"payload":5,"more":1}',
    b'{"schema":{"type":"int32"}}',
    b'{"schema":{"type":"what"},"payload":5}',
    b'{"schema":{"optional":true},"payload":5}',
    b'{"schema":{"type":"array"},"payload":[]}',
    b'{"schema":{"type":"map","keys":{"type":"string"}},"payload":{}}',
    b'{"schema":{"type":"map","values":{"type":"string"}},"payload":{}}',
    b'{"schema":{"type":"struct"},"payload":{}}',
    b'{"schema":{"type":"struct","fields":[{"type":"int8"}]},"payload":{}}',
    b'{"schema":{"type":"struct","fields":[{"type":"int8","field":"a"},{"type":"int8","field":"a"}]},"payload":{}}',
    b'{"schema":{"type":"int32","default":7},"payload":null}',
    b'{"schema":{"type":"int32","default":"x"},"payload":null}',
    b'{"schema":{"type":"int32","default":null},"payload":1}',
    b'{"schema":{"type":"int32","parameters":{"a":1}},"payload":1}',
    b'{"schema":{"type":"int32","version":"1","name":5,"doc":1,"optional":"true"},"payload":1}',
    b'{"schema":{"type":"string","optional":true,"default":null},"payload":null}',
]
FIELDS: Final[dict[str, ConnectSchema]] = {
    **{
        kind.value: ConnectSchema(kind, optional=True)
        for kind in Kind
        if kind not in (Kind.ARRAY, Kind.MAP, Kind.STRUCT)
    },
    "ints": array(ConnectSchema(Kind.INT32, optional=True), optional=True),
    "map": map_of(ConnectSchema(Kind.STRING), ConnectSchema(Kind.INT32, optional=True), optional=True),
    "pairs": map_of(ConnectSchema(Kind.INT32), ConnectSchema(Kind.STRING, optional=True), optional=True),
    "date": date(optional=True),
    "time": time(optional=True),
    "timestamp": timestamp(optional=True),
    "decimal": decimal(2, optional=True),
    "struct": struct(("a", ConnectSchema(Kind.INT8)), optional=True),
    "required": array(ConnectSchema(Kind.STRING), optional=True),
}
NUMBERS: Final = [
    0,
    1,
    -1,
    127,
    128,
    300,
    40_000,
    2**31,
    2**40,
    2**63,
    2**70,
    86_399_999,
    86_400_001,
    12345.67,
]
TEXTS: Final = ["", "x", "5", "AQ==", "A", "AQ==\n", "true"]
LISTS: Final = [[], [1], [None], ["a", None], [[1, 2]], [[1]], [[1, "b"]], [{}]]
ANYTHING: Final = [None, True, False, *NUMBERS, *TEXTS, *LISTS, {}, {"a": 1}, {"a": None}, {"b": "c"}]


def envelope(schema: ConnectSchema, value: Any) -> bytes:
    return json.dumps({"schema": json_schema(schema), "payload": value}).encode()


def without_whole_fractions(value: Any) -> Any:
    """5.0 is no integer to Java, not even where a date must be one; to us it is."""
    if isinstance(value, list):
        return [without_whole_fractions(item) for item in value]
    if isinstance(value, dict):
        return {name: without_whole_fractions(item) for name, item in value.items()}
    return value + 0.5 if isinstance(value, float) and abs(value) < 2**53 and value.is_integer() else value


def meaning(text: bytes) -> Any:
    """JSON, with the pairs of maps in one order: Java's is that of its hash tables."""
    return _sorted(json.loads(text))


def meaning_of_singles(text: bytes) -> Any:
    """Older JDKs write more digits of a float than it takes to tell it from others."""
    return _sorted(json.loads(text, parse_float=_single))


def _single(number: str) -> float:
    with np.errstate(over="ignore"):
        single = float(np.float32(number))
    return single if np.isfinite(single) else float(number)


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted(item) for name, item in value.items()}
    if not isinstance(value, list):
        return value
    items = [_sorted(item) for item in value]
    are_pairs = all(isinstance(item, list) and len(item) == 2 for item in items)
    return sorted(items, key=repr) if are_pairs else items


def has_no_decimal(schema: ConnectSchema) -> bool:
    """Java keeps the digits of a number as they are; ours has as many as the schema says."""
    return "data.Decimal" not in json.dumps(json_schema(schema))


def check_read(
    parity: Parity, config: dict[str, str], values: Sequence[bytes | None], *, reasons: bool = False
) -> None:
    ours = JsonConverter.configured(config, False)
    parity.check_to_connect("JsonConverter reads", ours, JAVA, config, values, reasons=reasons)


@pytest.mark.parametrize("config", [PLAIN, {}])
def test_odd_texts_are_read_alike(parity: Parity, config: dict[str, str]) -> None:
    check_read(parity, config, [*ODD, None])
    for value in ODD:
        check_read(parity, config, [value])


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("fills", ["true", "false"])
def test_payloads_that_do_not_fit_are_read_alike(parity: Parity, name: str, fills: str) -> None:
    config = {"replace.null.with.default": fills}
    schema = FIELDS[name]
    # Java keeps the digits of a number as they are; ours has as many as the schema says.
    some = [one for one in ANYTHING if name != "decimal" or one not in NUMBERS]
    values: list[bytes | None] = [envelope(struct(("f", schema)), {"f": value}) for value in some]
    values += [envelope(schema, value) for value in some]
    required = struct(
        (
            "f",
            ConnectSchema(
                schema.kind,
                name=schema.name,
                parameters=schema.parameters,
                fields=schema.fields,
                key=schema.key,
                value=schema.value,
            ),
        )
    )
    values += [envelope(required, {"f": value}) for value in some]
    check_read(parity, config, values, reasons=True)


@generated(examples=25)
@given(values=st.lists(json_values(Shape(depth=3)), min_size=8, max_size=12))
def test_plain_json_is_read_alike(parity: Parity, values: list[Any]) -> None:
    check_read(parity, PLAIN, [json.dumps(value, ensure_ascii=False).encode() for value in values])


@generated(examples=100)
@given(given_data=data(), fills=st.sampled_from(["true", "false"]))
def test_envelopes_are_read_alike(parity: Parity, given_data: Data, fills: str) -> None:
    if isinstance(given_data, Json):
        values = [json.dumps({"schema": None, "payload": value}).encode() for value in given_data.values]
    else:
        values = [envelope(given_data.schema, payload(given_data.schema, one)) for one in given_data.values]
    check_read(parity, {"replace.null.with.default": fills}, [*values, None])


@generated(examples=40)
@given(schema=schemas().filter(has_no_decimal), values=st.lists(json_values(), min_size=8, max_size=12))
def test_any_payload_under_any_schema_is_read_alike(
    parity: Parity, schema: ConnectSchema, values: list[Any]
) -> None:
    read = [envelope(schema, without_whole_fractions(value)) for value in values]
    check_read(parity, {}, read, reasons=True)


@generated(examples=30)
@given(given_data=data())
def test_payloads_of_a_given_schema_are_read_alike(parity: Parity, given_data: Data) -> None:
    if isinstance(given_data, Of):
        config = {"schema.content": json.dumps(json_schema(given_data.schema))}
        values = [json.dumps(payload(given_data.schema, one)).encode() for one in given_data.values]
        check_read(parity, config, [*values, None, b"", b"[]"])


@generated(examples=150)
@given(
    given_data=data(),
    has_schemas=st.sampled_from(["true", "false"]),
    form=st.sampled_from(["BASE64", "NUMERIC"]),
    fills=st.sampled_from(["true", "false"]),
)
def test_values_are_written_alike(
    parity: Parity, given_data: Data, has_schemas: str, form: str, fills: str
) -> None:
    config = {"schemas.enable": has_schemas, "decimal.format": form, "replace.null.with.default": fills}
    ours = JsonConverter.configured(config, False)
    for part in one_type_each(given_data):
        read = meaning_of_singles if "FLOAT32" in repr(part) else meaning
        parity.check_from_connect("JsonConverter writes", ours, JAVA, config, part, read=read)


def one_type_each(given_data: Data) -> list[Data]:
    if isinstance(given_data, Of):
        return [given_data]
    kinds = dict.fromkeys(map(type, given_data.values))
    return [Json([value for value in given_data.values if type(value) is kind]) for kind in kinds]
