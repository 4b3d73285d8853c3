"""What a reader of the bucket finds: keys, lines, boundaries."""

from __future__ import annotations

import os

import pytest

from icestream.api.errors import FatalError
from tests.unit.connectors.s3.topic_records import json_groups, written


def test_names_and_lines_of_the_default_partitioner() -> None:
    bucket, _ = written([json_groups([{"a": at} for at in range(5)], first=7)], {"flush.size": 2})
    assert bucket.lines() == {
        "topics/orders/partition=3/orders+3+0000000007.json": [{"a": 0}, {"a": 1}],
        "topics/orders/partition=3/orders+3+0000000009.json": [{"a": 2}, {"a": 3}],
        "topics/orders/partition=3/orders+3+0000000011.json": [{"a": 4}],
    }
    assert list(bucket.facts.values()) == [(7, 8, 2), (9, 10, 2), (11, 11, 1)]


def test_an_object_goes_on_over_chunks() -> None:
    chunks = [
        json_groups([{"a": at} for at in (0, 1, 2)]),
        json_groups([{"a": at} for at in (3, 4)], first=3),
    ]
    bucket, _ = written(chunks, {"flush.size": 4})
    assert [len(lines) for lines in bucket.lines().values()] == [4, 1]


@pytest.mark.parametrize("level", [-1, 0, 9])
def test_gzip_at_every_level(level: int) -> None:
    """`s3.compression.type`, `s3.compression.level`."""
    settings = {"s3.compression.type": "gzip", "s3.compression.level": level}
    bucket, _ = written([json_groups([{"a": 1}]), json_groups([{"a": 2}], first=1)], settings)
    assert bucket.lines() == {"topics/orders/partition=3/orders+3+0000000000.json.gz": [{"a": 1}, {"a": 2}]}


def test_large_objects_are_compressed_part_by_part() -> None:
    texts = [os.urandom(1000).hex() for _ in range(400)]
    chunks = [json_groups([{"a": text, "n": at} for text in texts], first=400 * at) for at in range(3)]
    bucket, taken = written(chunks, {"s3.compression.type": "gzip", "flush.size": 10_000})
    assert any(part.data for part in taken[0].parts)
    (lines,) = bucket.lines().values()
    assert [line["n"] for line in lines] == [0] * 400 + [1] * 400 + [2] * 400


def test_parts_of_names_as_configured() -> None:
    """`topics.dir`, `directory.delim`, `file.delim`, `filename.offset.zero.pad.width`."""
    settings = {
        "topics.dir": "a/b",
        "directory.delim": "|",
        "file.delim": "-",
        "filename.offset.zero.pad.width": 0,
    }
    bucket, _ = written([json_groups([1])], settings)
    assert list(bucket.objects) == ["a/b|orders|partition=3|orders-3-0.json"]
    bucket, _ = written([json_groups([1])], {"topics.dir": " "})
    assert list(bucket.objects) == ["orders/partition=3/orders+3+0000000000.json"]


def test_values_of_several_types_keep_their_order() -> None:
    values = [{"a": 1}, "text", 5, {"b": [1.5, True]}, [1, {"x": None}], "\u00e9\n"]
    bucket, _ = written([json_groups(values)], {})
    (lines,) = bucket.lines().values()
    assert lines == values


def test_pretty_json_is_one_line_and_whole_numbers_are_longs() -> None:
    values = [
        b'{\n  "a": 1,\r\n  "b": "x\\n"\n}',
        b'{"n": 12345678901234567890}',
        b'{"n": -9223372036854775808}',
    ]
    bucket, _ = written([json_groups(values)], {})
    (lines,) = bucket.lines().values()
    assert lines == [{"a": 1, "b": "x\n"}, {"n": 12345678901234567890 - 2**64}, {"n": -(2**63)}]


def test_records_without_a_value_fail_the_task() -> None:
    """`behavior.on.null.values=fail`."""
    with pytest.raises(FatalError, match="offset 1"):
        written([json_groups([{"a": 1}, None])], {})


def test_records_without_a_value_are_ignored() -> None:
    """`behavior.on.null.values=ignore`, `report.null.values.to.dlq`."""
    chunk = json_groups([{"a": 1}, None])
    bucket, [taken] = written([chunk], {"behavior.on.null.values": "ignore"})
    assert (list(taken.failed), taken.skipped) == ([1], [])
    assert list(bucket.lines().values()) == [[{"a": 1}]]
    silent = {"behavior.on.null.values": "ignore", "report.null.values.to.dlq": False}
    _, [taken] = written([chunk], silent)
    assert (taken.failed, taken.skipped) == ({}, [1])
