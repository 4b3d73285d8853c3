"""Records that hurt: what fits lands, what does not becomes a dead letter with its reason, in bounded memory.

Config in, table and dead letter queue out.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from pyiceberg.schema import Schema
from pyiceberg.types import ListType, LongType, MapType, NestedField, StringType, StructType

from icestream.api.errors import RecordRejected
from icestream.embedded.kafka import Broker
from tests.integration.local_job import JSON, MEGABYTE, SCHEMA, World
from tests.long_form import sized

MakeWorld = Callable[..., World]


@pytest.fixture
def make_world(broker: Broker, tmp_path: Path) -> MakeWorld:
    def make(schema: Schema = SCHEMA, **options: str) -> World:
        return World(broker, tmp_path, schema, options={k.replace("__", "."): v for k, v in options.items()})

    return make


@contextmanager
def memory_grows_by_at_most(limit: int) -> Iterator[None]:
    process, done = psutil.Process(), threading.Event()
    before = process.memory_info().rss
    peak = [before]

    def watch() -> None:
        while not done.wait(0.02):
            peak[0] = max(peak[0], process.memory_info().rss)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
    assert peak[0] - before < limit, f"{(peak[0] - before) // MEGABYTE} MB"


def _good(ids: Iterable[int]) -> Iterator[bytes]:
    return (b'{"id":%d,"text":"record number %d","amount":0.5}' % (number, number) for number in ids)


@pytest.mark.slow
@pytest.mark.parametrize("count", sized(100_000, 1_000_000))
def test_one_bad_record_among_very_many(make_world: MakeWorld, count: int) -> None:
    at = count * 6 // 10 + 321
    world, bad = make_world(), b'{"id":%d,"text":"not closed' % at
    world.produce(bad if number == at else value for number, value in enumerate(_good(range(count))))
    world.drain()
    assert world.ids() == [*range(at), *range(at + 1, count)]
    (letter,) = world.letters()
    assert (letter.value, letter.origin_offset, letter.context["stage"]) == (bad, at, "VALUE_CONVERTER")
    assert letter.context["class.name"] == JSON


@pytest.mark.slow
def test_all_records_bad(make_world: MakeWorld) -> None:
    """More than a driver should hold: the batch is cut until its dead letters fit."""
    world, padding, count = make_world(), b"x" * 600, 150_000
    world.produce(b'{"id":%d,"text":"%s' % (number, padding) for number in range(count))
    with memory_grows_by_at_most(600 * MEGABYTE):
        world.drain()
    assert world.overflows > 0
    assert world.ids() == []
    assert [letter.origin_offset for letter in world.letters()] == list(range(count))


def test_the_first_bad_record_is_named_when_none_is_tolerated(make_world: MakeWorld) -> None:
    world = make_world(errors__tolerance="none")
    world.produce([{"id": 0}, {"id": 1}, b'{"id":', {"id": 3}, b"}"])
    with pytest.raises(RecordRejected, match=rf"topic '{world.name}', partition 0, offset 2: .*VALUE_CONV"):
        world.drain()
    assert world.ids() == [0, 1]
    assert world.letters() == []


def test_records_of_ten_megabytes(make_world: MakeWorld) -> None:
    world, long = make_world(), b"x" * (10 * MEGABYTE)
    good, bad = b'{"id":1,"text":"%s"}' % long, b'{"id":2,"text":"%s' % long
    misfit = b'{"id":"%s"}' % long
    world.produce([{"id": 0}, good, bad, misfit, {"id": 4}])
    with memory_grows_by_at_most(700 * MEGABYTE):
        world.drain()
    assert [(row["id"], len(row["text"] or "")) for row in world.rows()] == [(0, 0), (1, len(long)), (4, 0)]
    assert [letter.value for letter in world.letters()] == [bad, misfit]
    stages = {offset: (stage, len(reason) < 5_000) for offset, (stage, reason) in world.reasons().items()}
    assert stages == {2: ("VALUE_CONVERTER", True), 3: ("TASK_PUT", True)}


def test_a_bad_record_of_twenty_megabytes_is_a_dead_letter(make_world: MakeWorld) -> None:
    world, bad = make_world(), b'{"id":1,"text":"' + b"x" * (20 * MEGABYTE)
    allow(world, world.name, 24 * MEGABYTE)
    world.produce([{"id": 0}, bad, {"id": 2}, bad, bad, bad])
    world.drain()
    assert world.ids() == [0, 2]
    assert [letter.value for letter in world.letters()] == [bad] * 4


def test_a_letter_that_is_too_large_for_its_queue_goes_without_its_value(make_world: MakeWorld) -> None:
    """The queue is not ours: it takes a megabyte, and then only so much that letters travel one by one."""
    world, bad = make_world(), b'{"id":1,"text":"' + b"x" * (2 * MEGABYTE)
    world.topics.create(f"{world.name}-dlq", 1, 1, {"max.message.bytes": str(MEGABYTE)})
    small = [b'{"id":%d' % number + b"y" * 600 for number in range(40)]
    world.produce([{"id": 0}, *small, bad, b"{"])
    world.drain()
    allow(world, f"{world.name}-dlq", 8_000)
    world.produce([*small, b"{" + b"z" * 8_000, {"id": 9}])
    world.drain()
    assert world.ids() == [0, 9]
    letters = world.letters()
    assert [letter.value for letter in letters] == [*small, None, b"{", *small, None]
    assert [letter.origin_offset for letter in letters] == [*range(1, 43), *range(43, 84)]
    assert [letter.is_whole for letter in letters] == [letter.value is not None for letter in letters]
    cut = letters[40]
    assert cut.context["icestream.left.out.value.bytes"] == str(len(bad))
    assert cut.context["stage"] == "VALUE_CONVERTER"
    assert [letter.context["topic"] for letter in letters] == [world.name] * 83


def allow(world: World, topic: str, size: int) -> None:
    entry = ConfigEntry("max.message.bytes", str(size), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient(world.settings)
    admin.incremental_alter_configs([resource])[resource].result(60)


def test_bytes_that_are_no_utf_8(make_world: MakeWorld) -> None:
    world = make_world()
    bad = [
        b'{"id":1,"text":"\xff"}',
        b'{"id":1,"t\xffxt":"a name"}',
        b'{"id":1,"text":"half a pair \xed\xa0\x80"}',
        b'{"id":1,"text":"overlong \xc0\xaf"}',
        b'{"id":1,"unknown":"\xff"}',
        b'\xef\xbb\xbf{"id":1}',
        b"\x00",
    ]
    fine = b'{"id":7,"text":"\\ud83d\\ude00 \xf0\x9f\x98\x80 a\\u0000b"}'
    world.produce([*bad, fine, {"id": 8}])
    world.drain()
    assert [(row["id"], row["text"]) for row in world.rows()] == [(7, "😀 😀 a\x00b"), (8, None)]
    assert [letter.value for letter in world.letters()] == bad
    assert {stage for stage, _ in world.reasons().values()} == {"VALUE_CONVERTER"}


def test_of_equal_keys_the_last_counts(make_world: MakeWorld) -> None:
    world = make_world()
    world.produce(
        [
            b'{"id":0,"id":1,"text":"a","text":"b"}',
            b'{"text":"a","id":2,"text":null}',
            b'{"id":3,"text":{"x":[1]},"text":"z"}',
            b'{"id":"x","id":4}',
            b'{"id":5,"id":"x"}',
        ]
    )
    world.drain()
    assert [(row["id"], row["text"]) for row in world.rows()] == [(1, "b"), (2, None), (3, "z"), (4, None)]
    assert list(world.reasons()) == [4]


def _lists(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


def _objects(levels: int) -> bytes:
    return b'{"a":' * levels + b"1" + b"}" * levels


def test_ten_thousand_levels(make_world: MakeWorld) -> None:
    world, deep = make_world(), 10_000
    bad = [
        b'{"id":1,"unknown":%s}' % _lists(deep),
        b'{"id":1,"unknown":%s}' % _objects(deep),
        b'{"id":1,"text":%s}' % _lists(deep),
        _lists(deep),
        _objects(deep),
        b"[" * deep,
        b'{"a":' * deep,
    ]
    world.produce([{"id": 0}, *bad, b'{"id":8,"unknown":%s}' % _lists(900), {"id": 9}])
    world.drain()
    assert world.ids() == [0, 8, 9]
    assert [letter.value for letter in world.letters()] == bad
    assert all("nesting depth" in reason for _, reason in world.reasons().values())


def test_numbers_that_are_none_and_those_that_are_too_large(make_world: MakeWorld) -> None:
    world = make_world()
    bad = [b"NaN", b"Infinity", b"-Infinity", b".5", b"+1"]
    good = {b"1e308": 1e308, b"1e-400": 0.0, b"1" + b"0" * 30: 1e30, b"-0.0": -0.0, b"5e-324": 5e-324}
    # As Java reads them.
    good |= dict.fromkeys([b"1e400", b"1" + b"0" * 400, b"1e99999999999"], math.inf)
    ids = [b"9223372036854775808", b"1" + b"0" * 30, b"1e30", b"NaN"]
    world.produce([b'{"id":-1,"amount":%s}' % text for text in bad])
    world.produce([b'{"id":%d,"amount":%s}' % (number, text) for number, text in enumerate(good)])
    world.produce([b'{"id":%s}' % text for text in [*ids, b"9223372036854775807"]])
    world.drain()
    amounts = [*((number, value) for number, value in enumerate(good.values())), (2**63 - 1, None)]
    assert [(row["id"], row["amount"]) for row in world.rows()] == amounts
    assert len(world.letters()) == len(bad) + len(ids)
    too_large = len(bad) + len(good)
    assert world.reasons()[too_large] == (
        "TASK_PUT",
        "field 'id' is 9223372036854775808, which does not fit a column of type int64",
    )


@pytest.mark.parametrize("many", sized(200_000, 1_000_000))
def test_very_many_distinct_keys(make_world: MakeWorld, many: int) -> None:
    """In a map column, and in fields that the table does not have, whole and spread over records."""
    schema = Schema(
        *SCHEMA.fields,
        NestedField(4, "counts", MapType(5, StringType(), 6, LongType(), value_required=False)),
    )
    world, until = make_world(schema), 2 + many // 200
    keys = b",".join(b'"key-%d":%d' % (number, number) for number in range(many // 2))
    spread = (
        b'{"id":%d,%s}' % (number, b",".join(b'"new-%d-%d":1' % (number, at) for at in range(100)))
        for number in range(2, until)
    )
    world.produce([b'{"id":0,"counts":{%s}}' % keys, b'{"id":1,"unknown":{%s}}' % keys, *spread])
    with memory_grows_by_at_most(1_000 * MEGABYTE):
        world.drain()
    assert world.ids() == list(range(until))
    table = world.catalog.load_table(f"ns.{world.name}")
    counts = dict(table.scan("id == 0").to_arrow()["counts"].to_pylist()[0])
    assert len(counts) == many // 2
    assert counts["key-77"] == 77
    assert world.letters() == []


_MIXED = [1, "t", "5", {"a": 1}, {"a": "x"}, {"b": 2}, [1], ["x"], None, True]
_FITS = {
    "number": [1, None, 5, None, None, None, None, None, None, None],
    "word": ["1", "t", "5", '{"a":1}', '{"a":"x"}', '{"b":2}', "[1]", '["x"]', None, "true"],
    "object": [None, None, None, {"a": 1}, None, {"a": None}, None, None, None, None],
    "items": [None, None, None, None, None, None, [1], None, None, None],
}


@pytest.mark.parametrize("name", list(_FITS))
def test_a_field_whose_type_differs_between_the_records_of_a_batch(make_world: MakeWorld, name: str) -> None:
    schema = Schema(
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "number", LongType()),
        NestedField(3, "word", StringType()),
        NestedField(4, "object", StructType(NestedField(5, "a", LongType()))),
        NestedField(6, "items", ListType(7, LongType(), element_required=False)),
    )
    world = make_world(schema)
    world.produce({"id": number, name: value} for number, value in enumerate(_MIXED))
    world.drain()
    landed = {row["id"]: row[name] for row in world.rows()}
    reasons = world.reasons()
    assert landed == {
        number: fit for number, fit in enumerate(_FITS[name]) if fit is not None or _MIXED[number] is None
    }
    assert sorted([*landed, *reasons]) == list(range(len(_MIXED)))
    assert all(f"field '{name}" in reason and "does not fit" in reason for _, reason in reasons.values())
    assert {stage for stage, _ in reasons.values()} <= {"TASK_PUT"}


def test_a_new_field_whose_type_differs_between_the_records_of_a_batch(make_world: MakeWorld) -> None:
    world = make_world(**{"iceberg.tables.evolve-schema-enabled": "true"})
    world.produce({"id": number, "new": value} for number, value in enumerate(_MIXED))
    world.drain()
    assert [row["new"] for row in world.rows()] == _FITS["word"]
    assert world.letters() == []


def test_values_that_are_no_objects(make_world: MakeWorld) -> None:
    world = make_world()
    bad = [b"1", b'"x"', b"[]", b'[{"id":1}]', b"true", b"{}", b'{"id":null}']
    world.produce([*bad, {"id": 7}])
    world.drain()
    assert world.ids() == [7]
    assert [letter.value for letter in world.letters()] == bad
    assert {stage for stage, _ in world.reasons().values()} == {"TASK_PUT"}
