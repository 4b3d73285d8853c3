"""A record whose schema nobody could use is one failure: it ends no job, and spoils no neighbour."""

import json
from typing import Any

import pytest

from icestream.converters.json_converter import JsonConverter

GOOD = b'{"schema":{"type":"int32"},"payload":1}'
DECIMAL = "org.apache.kafka.connect.data.Decimal"


def deep(levels: int) -> bytes:
    return (
        b'{"schema":'
        + b'{"type":"map","keys":{"type":"int32"},"values":' * levels
        + b'{"type":"int32"}'
        + b"}" * levels
        + b',"payload":'
        + b"[[1," * levels
        + b"1"
        + b"]]" * levels
        + b"}"
    )


def of_scale(scale: str, payload: Any = "AQ==", **more: Any) -> bytes:
    schema = {"type": "bytes", "name": DECIMAL, "parameters": {"scale": scale}, **more}
    return json.dumps({"schema": schema, "payload": payload}).encode()


@pytest.mark.parametrize(
    "value",
    [
        of_scale("x"),
        of_scale("100"),
        of_scale("-77"),
        of_scale("999999999"),
        of_scale("99999999999", 1),
        of_scale("99999999999", None, optional=True, default=1),
        *map(deep, (101, 200, 330, 400, 900)),
    ],
)
def test_it_is_a_failure_of_that_record_alone(value: bytes) -> None:
    converter = JsonConverter.configured({"schemas.enable": "true"}, False)
    converted = converter.to_connect("topic", [GOOD, value, GOOD])
    assert list(converted.failed) == [1]
    assert [rows.tolist() for rows, _ in converted.groups if rows is not None] == [[0, 2]]


@pytest.mark.parametrize("value", [of_scale("76"), of_scale("-76"), of_scale("0"), deep(99)])
def test_what_can_be_used_is(value: bytes) -> None:
    converter = JsonConverter.configured({"schemas.enable": "true"}, False)
    assert converter.to_connect("topic", [GOOD, value, GOOD]).failed == {}
