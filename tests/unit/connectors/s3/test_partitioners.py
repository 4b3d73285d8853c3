"""Folders: by field, by time; what is refused. Joda itself is asked in tests/integration."""

from __future__ import annotations

from typing import Any

import pytest

from icestream.api.errors import ConfigError
from icestream.connectors.s3.layout import layout_of
from icestream.records.schema import (
    OPTIONAL_STRING,
    STRING,
    ConnectSchema,
    Kind,
    struct,
    timestamp,
)
from tests.unit.connectors.s3.topic_records import JSON, group, json_groups, structs, written

CLASSES = "io.confluent.connect.storage.partitioner."
TIME = {
    "partitioner.class": f"{CLASSES}TimeBasedPartitioner",
    "partition.duration.ms": 600_000,
    "path.format": "'d'=YYYY-MM-dd/'m'=HHmm/",
    "locale": "en",
    "timezone": "Europe/Berlin",
    "timestamp.extractor": "Record",
}
AT = 1_772_964_123_456  # 2026-03-08T10:02:03.456Z


def folders(chunk: Any, settings: dict[str, Any]) -> list[str]:
    """Of the objects, in order, without topics.dir and topic."""
    bucket, _ = written([chunk], settings)
    return [key.removeprefix("topics/orders/").rpartition("/")[0] for key in bucket.objects]


def by(*fields: str, **more: Any) -> dict[str, Any]:
    return {"partitioner.class": f"{CLASSES}FieldPartitioner", "partition.field.name": list(fields), **more}


def test_fields_of_structs() -> None:
    """`partition.field.name`: dots reach into structs, nothing is escaped, null is `null`, defaults count."""
    inner = struct(("city", OPTIONAL_STRING), optional=True)
    schema = struct(
        ("id", ConnectSchema(Kind.INT64)),
        ("ok", ConnectSchema(Kind.BOOLEAN)),
        ("at", inner),
        ("kind", ConnectSchema(Kind.STRING, optional=True, default="new")),
    )
    values = [
        {"id": 7, "ok": True, "at": {"city": "a/b c"}, "kind": None},
        {"id": -1, "ok": False, "at": None, "kind": "x"},
    ]
    chunk = [group(structs(schema, values), [0, 1])]
    assert folders(chunk, by("at.city", "id", "ok", "kind")) == [
        "at.city=a/b c/id=7/ok=true/kind=new",
        "at.city=null/id=-1/ok=false/kind=x",
    ]


def test_fields_of_json_without_a_schema() -> None:
    values = [{"a": {"b": 1}}, {"a": {"b": "x"}}, {"a": {}}, {}, {"a": {"b": True}}, {"a": {"b": 1}}]
    bucket, [taken] = written([json_groups(values)], by("a.b", **{"directory.delim": "/"}))
    assert not taken.failed
    found = {key.split("/")[2]: lines for key, lines in bucket.lines().items()}
    assert found == {
        "a.b=1": [values[0], values[5]],
        "a.b=x": [values[1]],
        "a.b=null": [values[2], values[3]],
        "a.b=true": [values[4]],
    }


def test_fields_that_make_no_folder_are_dead_letters() -> None:
    values = [{"a": 1.5}, {"a": [1]}, {"a": {}}, {"a": None}, "text"]
    bucket, [taken] = written([json_groups(values)], by("a"))
    assert sorted(taken.failed) == [0, 1, 2, 4]
    assert list(bucket.objects) == ["topics/orders/a=null/orders+3+0000000003.json"]
    assert "java.lang.Double" in taken.failed[0].reason
    schema = struct(("a", timestamp()), ("b", STRING))
    chunk = [group(structs(schema, [{"a": 1, "b": "x"}]), [0])]
    assert "the schema has no field 'c'" in written([chunk], by("c"))[1][0].failed[0].reason
    assert "java.util.Date" in written([chunk], by("a"))[1][0].failed[0].reason


@pytest.mark.parametrize("value", ["../../../etc/x", "a/./b", "..", "a\\..\\b", "x\0y", "x\ny", "x" * 1000])
def test_values_that_lead_elsewhere_are_dead_letters(value: str) -> None:
    bucket, [taken] = written([json_groups([{"a": f"/{value}"}, {"a": "ok"}])], by("a"))
    assert list(taken.failed) == [0]
    assert list(bucket.objects) == ["topics/orders/a=ok/orders+3+0000000001.json"]


def test_strange_values_that_stay_below_their_topic_are_kept() -> None:
    values = ["a/b", "", "ä ö?&%#", "...", "/", "a..b"]
    assert folders(json_groups([{"a": one} for one in values]), by("a")) == [f"a={one}" for one in values]


def test_time_of_the_record() -> None:
    """`partition.duration.ms`, `path.format`, `timezone`, `timestamp.extractor=Record`."""
    chunk = json_groups([1, 2, 3], times=[AT, AT + 600_000, None])
    bucket, [taken] = written([chunk], TIME)
    assert [key.split("/", 2)[2].rpartition("/")[0] for key in bucket.objects] == [
        "d=2026-03-08/m=1100",
        "d=2026-03-08/m=1110",
    ]
    assert "has no timestamp" in taken.failed[2].reason


@pytest.mark.parametrize("name, folder", [
    ("Daily", "year=2026/month=03/day=08"),
    ("Hourly", "year=2026/month=03/day=08/hour=11"),
])  # fmt: skip
def test_daily_and_hourly(name: str, folder: str) -> None:
    """They set `partition.duration.ms` and `path.format` themselves."""
    settings = {**TIME, "partitioner.class": f"{CLASSES}{name}Partitioner"}
    assert folders(json_groups([1], times=[AT]), settings) == [folder]


def test_wallclock_is_one_moment() -> None:
    """`timestamp.extractor=Wallclock`."""
    settings = {**TIME, "timestamp.extractor": "Wallclock"}
    bucket, _ = written([json_groups([1, 2], times=[0, 5])], settings, now_ms=AT)
    assert list(bucket.objects) == ["topics/orders/d=2026-03-08/m=1100/orders+3+0000000000.json"]


def test_a_field_tells_the_time() -> None:
    """`timestamp.extractor=RecordField`, `timestamp.field`."""
    settings = {**TIME, "timestamp.extractor": "RecordField", "timestamp.field": "a.t"}
    good: list[Any] = [AT, str(AT), "2026-03-08T10:02:03.456Z", "2026-03-08T11:02:03+01:00", float(AT)]
    bad: list[Any] = [None, "soon", True, [], 2**62]
    chunk = json_groups([{"a": {"t": one}} for one in [*good, *bad]] + [{}, {"a": 5}, "text"])
    bucket, [taken] = written([chunk], settings)
    assert len(bucket.lines()["topics/orders/d=2026-03-08/m=1100/orders+3+0000000000.json"]) == len(good)
    assert len(bucket.objects) == 1
    assert sorted(taken.failed) == list(range(len(good), len(good) + len(bad) + 3))


@pytest.mark.parametrize("schema, value", [
    (ConnectSchema(Kind.INT64), AT),
    (ConnectSchema(Kind.INT32), 1_000),
    (timestamp(), AT),
    (STRING, "2026-03-08T10:02:03Z"),
])  # fmt: skip
def test_a_field_of_a_struct_tells_the_time(schema: ConnectSchema, value: Any) -> None:
    settings = {**TIME, "timestamp.extractor": "RecordField", "timestamp.field": "t"}
    chunk = [group(structs(struct(("t", schema)), [{"t": value}]), [0])]
    assert folders(chunk, settings) == ["d=1970-01-01/m=0100" if value == 1_000 else "d=2026-03-08/m=1100"]


@pytest.mark.parametrize("kind", [Kind.FLOAT64, Kind.INT16, Kind.BYTES])
def test_fields_of_other_types_tell_no_time(kind: Kind) -> None:
    settings = {**TIME, "timestamp.extractor": "RecordField", "timestamp.field": "t"}
    schema = struct(("t", ConnectSchema(kind, optional=True)))
    _, [taken] = written([[group(structs(schema, [{"t": None}]), [0])]], settings)
    assert list(taken.failed) == [0]


def test_days_begin_at_midnight_of_the_zone() -> None:
    settings = {**TIME, "partitioner.class": f"{CLASSES}DailyPartitioner", "timezone": "America/New_York"}
    chunk = json_groups([1, 2], times=[1_772_945_999_999, 1_772_946_000_000])
    assert folders(chunk, settings) == ["year=2026/month=03/day=07", "year=2026/month=03/day=08"]


def test_moments_far_away() -> None:
    """In microseconds by mistake, or long ago: a folder all the same."""
    settings = {**TIME, "partitioner.class": f"{CLASSES}DailyPartitioner"}
    chunk = json_groups([1, 2], times=[AT * 1000, -AT * 1000])
    assert folders(chunk, settings) == ["year=58152/month=12/day=30", "year=54214/month=01/day=02"]


def test_the_name_of_the_schema_in_the_path() -> None:
    """`s3.schema.partition.affix.type`."""
    chunk = [group(structs(struct(("a", STRING), name="com.x.Order"), [{"a": "1"}]), [0])]
    assert folders(chunk, {"s3.schema.partition.affix.type": "PREFIX"}) == [
        "schema_name=com.x.Order/partition=3"
    ]
    assert folders(chunk, {"s3.schema.partition.affix.type": "SUFFIX"}) == [
        "partition=3/schema_name=com.x.Order"
    ]
    assert folders(json_groups([1]), {"s3.schema.partition.affix.type": "SUFFIX"}) == [
        "partition=3/schema_name=null"
    ]


@pytest.mark.parametrize("key, value", [
    ("timezone", ""),
    ("timezone", "Mars/Olympus"),
    ("timezone", "../../etc/passwd"),
    ("locale", ""),
    ("path.format", ""),
    ("path.format", "/"),
    ("path.format", "QQQ"),
    ("partition.duration.ms", -1),
    ("timestamp.extractor", "com.example.Mine"),
    ("partitioner.class", "com.example.Mine"),
])  # fmt: skip
def test_settings_that_make_no_partitioner(key: str, value: Any) -> None:
    with pytest.raises(ConfigError) as error:
        layout_of({"format.class": JSON, "flush.size": 1, **TIME, key: value})
    assert [problem.key for problem in error.value.problems] == [key]


def test_names_of_months_need_a_language_that_is_known() -> None:
    """`locale`: of no effect on numbers."""
    settings = {**TIME, "locale": "fr"}
    assert folders(json_groups([1], times=[AT]), settings) == ["d=2026-03-08/m=1100"]
    with pytest.raises(ConfigError, match="not known here"):
        layout_of({"format.class": JSON, "flush.size": 1, **settings, "path.format": "MMM"})


def test_lines_of_all_rounds_are_all_records() -> None:
    """`rotate.interval.ms` with folders by time, over chunks."""
    times = [AT + at * 40_000 for at in range(50)]
    chunks = [
        json_groups([{"n": at} for at in range(low, low + 10)], times=times[low : low + 10], first=low)
        for low in range(0, 50, 10)
    ]
    bucket, _ = written(chunks, {**TIME, "rotate.interval.ms": 300_000})
    found = [line["n"] for lines in bucket.lines().values() for line in lines]
    assert found == list(range(50))
    assert len(bucket.objects) == 7


@pytest.mark.parametrize("key, value", [
    ("topics.dir", "../elsewhere"),
    ("directory.delim", "/../"),
    ("file.delim", "/../../"),
    ("format.bytearray.extension", "/../../../x"),
    ("tombstone.encoded.partition", "../x"),
])  # fmt: skip
def test_settings_whose_names_lead_elsewhere(key: str, value: str) -> None:
    raw = "io.confluent.connect.s3.format.bytearray.ByteArrayFormat"
    with pytest.raises(ConfigError, match="would lead out"):
        layout_of({"format.class": raw, "flush.size": 1, key: value})
