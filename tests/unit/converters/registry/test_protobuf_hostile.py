"""Protobuf messages that are broken or odd do nothing to their neighbours, and mean what Google's runtime
says."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import pytest
from google.protobuf.message_factory import GetMessageClass

from icestream.converters.registry.converter import Read
from icestream.converters.registry.protobuf import ProtobufReader
from icestream.converters.registry.protobuf_compile import Compiled, compiled
from icestream.converters.registry.protobuf_plan import ProtobufOptions
from icestream.converters.registry.protobuf_scan import BAD_END, TOO_DEEP, TRUNCATED, ZERO_TAG
from icestream.converters.registry.wire import Bodies
from icestream.records.payloads import Payloads

LISTS = """
syntax = "proto3";
message Lists { repeated double d = 1; repeated int64 i = 2; map<string, int32> m = 3; int32 n = 4; }
"""
NESTED = """
syntax = "proto2";
message Inner { required int32 must = 1; repeated int32 more = 2; }
message Outer { optional Inner inner = 1; optional int32 n = 2; }
"""
MOMENT = """
syntax = "proto3";
import "google/protobuf/timestamp.proto";
message Moment { google.protobuf.Timestamp t = 1; }
"""
FEW, MANY = 2, 20
"""Messages in a chunk: few are read one by one."""


@functools.cache
def schema(text: str) -> Compiled:
    return compiled(text, [])


def written(text: str, path: tuple[int, ...] = (0,), **fields: Any) -> bytes:
    made: bytes = GetMessageClass(schema(text).message(path))(**fields).SerializeToString()
    return made


def read(text: str, messages: Sequence[bytes], index: bytes = b"\x00") -> tuple[dict[int, Any], Read]:
    """Each behind the head that the next message has in a topic, too: what reads on reads zeros."""
    joined = Payloads.of([bytes(5) + index + message for message in messages])
    found = ProtobufReader(7, schema(text), ProtobufOptions()).read(
        Bodies(joined.text, joined.offsets[:-1] + 5, joined.offsets[1:])
    )
    rows: dict[int, Any] = {}
    for places, column in found.columns:
        assert places is not None
        column.values.validate(full=True)
        rows.update(zip(places.tolist(), column.values.to_pylist(), strict=True))
    return {row: value for row, value in rows.items() if row not in found.failed}, found


@pytest.mark.parametrize("count", [FEW, MANY])
@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(b"\x0a\x07" + bytes(7), id="a packed double that lacks a byte"),
        pytest.param(b"\x12\x01\x80", id="a packed number without its end"),
        pytest.param(b"\x12\x0b" + b"\xff" * 10 + b"\x01", id="a packed number that is too long"),
        pytest.param(b"\x0a", id="a packed field without its length"),
        pytest.param(b"\x12", id="a packed field of varints without its length"),
        pytest.param(b"\x1a\x03\x0a\x01\xff", id="a key that is no UTF-8"),
        pytest.param(b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f", id="the largest number as a tag"),
    ],
)
def test_a_broken_list_fails_alone(broken: bytes, count: int) -> None:
    fields: dict[str, Any] = {"d": [1.5, 2.5], "i": [5, -1], "m": {"a": 1}, "n": 3}
    good = written(LISTS, **fields)
    rows, found = read(LISTS, [broken if row == 0 else good for row in range(count)])
    assert set(found.failed) == {0}
    assert rows == dict.fromkeys(range(1, count), fields | {"m": [("a", 1)]})


@pytest.mark.parametrize("count", [FEW, MANY])
def test_numbers_stay_in_the_order_in_which_they_were_written(count: int) -> None:
    mixed = b"\x10\x01" + b"\x12\x02\x02\x03" + b"\x10\x04"
    rows, _ = read(LISTS, [mixed] * count)
    assert [row["i"] for row in rows.values()] == [[1, 2, 3, 4]] * count


@pytest.mark.parametrize("count", [FEW, MANY])
def test_a_tag_may_be_longer_than_need_be(count: int) -> None:
    later = b"\x10\x01" * 3
    rows, found = read(LISTS, [b"\xa0\x80\x00\x07" + later * (row % 2) for row in range(count)])
    assert not found.failed
    assert [row["n"] for row in rows.values()] == [7] * count


@pytest.mark.parametrize("count", [FEW, MANY])
def test_pieces_of_a_message_are_merged_and_messages_without_it_stay_without(count: int) -> None:
    piece = b"\x0a\x02\x08\x01"
    rows, found = read(NESTED, [piece * 2 if row == 0 else b"\x10\x05" for row in range(count)], b"\x02\x02")
    assert not found.failed
    assert rows[0]["inner"] == {"must": 1, "more": []}
    assert [rows[row] for row in range(1, count)] == [{"inner": None, "n": 5}] * (count - 1)


@pytest.mark.parametrize("count", [FEW, MANY])
def test_pieces_that_are_whole_only_together_are_broken(count: int) -> None:
    torn = b"\x0a\x03\x08\x01\x10" + b"\x0a\x03\x05\x08\x01"
    _, found = read(NESTED, [torn] * count, b"\x02\x02")
    assert set(found.failed) == set(range(count))


@pytest.mark.parametrize("count", [FEW, MANY])
@pytest.mark.parametrize(
    ("group", "reason"),
    [
        (b"\x4b\x08\x01\x53\x54\x12\x01x\x4c", None),
        (b"\x4b\x08\x01", TRUNCATED),
        (b"\x4b\x54", BAD_END),
        (b"\x4c", BAD_END),
        (b"\x4b\x05", ZERO_TAG),
        (b"\x4b" * 200 + b"\x4c" * 200, TOO_DEEP),
    ],
)
def test_unknown_groups_are_passed_over_if_they_end(group: bytes, reason: str | None, count: int) -> None:
    rows, found = read(LISTS, [group + b"\x20\x07"] * count)
    if reason is None:
        assert [row["n"] for row in rows.values()] == [7] * count
    else:
        assert len(found.failed) == count
        assert all(reason in why for why in found.failed.values())


@pytest.mark.parametrize("seconds", [-(2**63), -(2**63) + 1, 2**63 - 1])
def test_a_moment_that_does_not_fit_fails(seconds: int) -> None:
    _, found = read(MOMENT, [written(MOMENT, t={"seconds": seconds})])
    assert set(found.failed) == {0}


def test_messages_of_several_types_in_one_chunk() -> None:
    inner, outer = written(NESTED, must=1), written(NESTED, (1,), n=5)
    messages = [b"\x00" + inner, b"\x02\x02" + outer, b"", b"\x02\x00" + inner, b"\x02", b"\x02\x02" + outer]
    rows, found = read(NESTED, messages, b"")
    assert set(found.failed) == {2, 4}
    assert {row: value.get("n") for row, value in rows.items()} == {0: None, 1: 5, 3: None, 5: 5}
    assert rows[0] == rows[3] == {"must": 1, "more": []}
