"""What becomes of records: types, new tables, new columns, partitions, read back by delta-rs."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder

from icestream.api.errors import ConfigError
from icestream.connectors.delta.files.stage import StageWriter, TablePlan
from icestream.connectors.delta.files.statistics import _bound
from tests.unit.connectors.delta.lake import Lake, ids

EVERY_TYPE = pa.schema(
    [
        ("id", pa.int64()),
        ("text", pa.string()),
        ("byte", pa.int8()),
        ("short", pa.int16()),
        ("int", pa.int32()),
        ("float", pa.float32()),
        ("double", pa.float64()),
        ("flag", pa.bool_()),
        ("bytes", pa.binary()),
        ("day", pa.date32()),
        ("moment", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("money", pa.decimal128(38, 6)),
        ("inner", pa.struct([("x", pa.int64()), ("y", pa.struct([("z", pa.string())]))])),
        ("many", pa.list_(pa.int64())),
        ("named", pa.map_(pa.string(), pa.float64())),
    ]
)
ROW: dict[str, Any] = {
    "id": 1,
    "text": "ä",
    "byte": 7,
    "short": -300,
    "int": 70000,
    "float": 0.5,
    "double": 1e300,
    "flag": True,
    "bytes": "aGVsbG8=",
    "day": "2026-01-31",
    "moment": "2026-01-31T10:11:12.123456Z",
    "local": "2026-01-31T10:11:12.123456",
    "money": "1234567890123456.123451",
    "inner": {"x": 5, "y": {"z": "deep"}},
    "many": [1, 2, 3],
    "named": {"a": 1.5},
}


def test_every_type_of_a_table_is_written_and_read_back(lake: Lake) -> None:
    DeltaTable.create(str(lake.path), EVERY_TYPE)
    lake.land([ROW, {"id": 2}])
    first, second = lake.rows()
    moment = dt.datetime(2026, 1, 31, 10, 11, 12, 123456)
    assert first == {
        **ROW,
        "bytes": b"hello",
        "day": dt.date(2026, 1, 31),
        "moment": moment.replace(tzinfo=dt.UTC),
        "local": moment,
        "money": decimal.Decimal("1234567890123456.123451"),
        "named": [("a", 1.5)],
    }
    assert {value for name, value in second.items() if name != "id"} == {None}


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ("money = cast('1234567890123456.123451' as decimal(38, 6))", 1),
        ("moment = timestamp '2026-01-31T10:11:12.123456Z'", 1),
        ("local = timestamp '2026-01-31T10:11:12.123456'", 1),
        ("day = date '2026-01-31'", 1),
        ("text = 'ä'", 1),
        ("inner['x'] = 5", 1),
        ("id = 3", 0),
        ("text is null", 1),
    ],
)
def test_statistics_hide_no_row(lake: Lake, where: str, count: int) -> None:
    DeltaTable.create(str(lake.path), EVERY_TYPE)
    lake.land([ROW, {"id": 2}])
    assert counted(lake, where) == count


def counted(lake: Lake, where: str) -> int:
    answer = QueryBuilder().register("t", lake.table()).execute(f"select count(*) as n from t where {where}")
    return int(pa.table(answer.read_all())["n"][0].as_py())


def test_a_nan_is_in_no_bounds(lake: Lake) -> None:
    schema = pa.schema([("id", pa.int64()), ("f", pa.float64()), ("s", pa.struct([("g", pa.float32())]))])
    DeltaTable.create(str(lake.path), schema)
    lake.land([{"id": 1, "f": 1.0, "s": {"g": 2.0}}, {"id": 2, "f": "NaN", "s": {"g": "NaN"}}])
    (told,) = statistics(lake)
    assert told["minValues"] == {"id": 1} and told["maxValues"] == {"id": 2}
    assert counted(lake, "f = 1.0") == 1


def statistics(lake: Lake) -> list[dict[str, Any]]:
    found = []
    for commit in sorted(lake.path.glob("_delta_log/*.json")):
        for line in commit.read_text().splitlines():
            action = json.loads(line)
            if "add" in action:
                found.append(json.loads(action["add"]["stats"], parse_float=decimal.Decimal))
    return found


def test_statistics_are_exact(lake: Lake) -> None:
    DeltaTable.create(str(lake.path), EVERY_TYPE)
    lake.land([ROW, {**ROW, "id": 2, "text": "z" * 100, "money": "-5.5", "bytes": "/w=="}])
    (told,) = statistics(lake)
    assert told["numRecords"] == 2
    low, high, nulls = told["minValues"], told["maxValues"], told["nullCount"]
    assert (low["money"], high["money"]) == (
        decimal.Decimal("-5.500000"),
        decimal.Decimal("1234567890123456.123451"),
    )
    assert (low["moment"], high["moment"]) == ("2026-01-31T10:11:12.123Z", "2026-01-31T10:11:12.123Z")
    assert low["local"] == "2026-01-31T10:11:12.123" and low["day"] == "2026-01-31"
    assert low["text"] == "z" * 64 and high["text"] == "ä"
    assert low["inner"] == {"x": 5, "y": {"z": "deep"}} and nulls["inner"] == {"x": 0, "y": {"z": 0}}
    assert not {"bytes", "many", "named", "flag"} & low.keys()
    assert high["id"] == 2 and nulls["id"] == 0


def test_days_that_python_does_not_know_have_rows_and_no_bounds(lake: Lake) -> None:
    """A record of the year 10000 must not hold up all others."""
    schema = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("moment", pa.timestamp("us", "UTC"))])
    DeltaTable.create(str(lake.path), schema)
    rows = pa.table(
        [[1, 2], pa.array([0, 2_932_897]).cast(pa.int32()), pa.array([0, 253_402_300_800_000_000])],
        names=schema.names,
    ).cast(schema)
    plan = lake.target().plan({})
    assert isinstance(plan, TablePlan)
    writer = StageWriter(plan, "batch")
    writer.write(rows, None)
    (file,) = writer.close()
    told = json.loads(file.statistics)
    assert told["minValues"] == {"id": 1} and told["nullCount"] == {"id": 0, "day": 0, "moment": 0}
    early = _bound(dt.datetime(999, 1, 2, 3, 4, 5, tzinfo=dt.UTC), schema.field("moment").type)
    assert early == '"0999-01-02T03:04:05.000Z"'


def test_a_long_maximum_is_raised_and_a_long_minimum_cut(lake: Lake) -> None:
    lake.land([{"id": 1, "text": "z" * 100}])
    (told,) = statistics(lake)
    assert told["minValues"]["text"] == "z" * 64
    assert told["maxValues"]["text"] == "z" * 63 + "{"
    assert counted(lake, f"text = '{'z' * 100}'") == 1


def test_a_table_says_which_columns_have_statistics(lake: Lake) -> None:
    schema = pa.schema([("id", pa.int64()), ("a", pa.int64()), ("b", pa.int64())])
    DeltaTable.create(str(lake.path), schema, configuration={"delta.dataSkippingStatsColumns": "id,b"})
    lake.land([{"id": 1, "a": 2, "b": 3}])
    assert statistics(lake)[0]["minValues"] == {"id": 1, "b": 3}
    few = Lake(lake.folder / "few", {"delta.tables.auto-create-props.delta.dataSkippingNumIndexedCols": "1"})
    few.land([{"id": 1, "a": 2}])
    assert statistics(few)[0]["minValues"] == {"id": 1}


# -- tables that are created, and grow --


def test_a_table_is_created_from_its_records(lake: Lake) -> None:
    created = lake.with_config(
        {
            "delta.table.ns.t.partition-by": "region",
            "delta.table.ns.t.id-columns": "id",
            "delta.tables.auto-create-props.delta.appendOnly": "true",
        }
    )
    checkpoint = created.land([{"id": 1, "region": "eu", "deep": {"a": [1]}}, {"id": 2, "region": None}])
    table = created.table()
    fields = {one["name"]: one for one in json.loads(table.schema().to_json())["fields"]}
    assert not fields["id"]["nullable"] and fields["region"]["nullable"]
    assert table.metadata().partition_columns == ["region"]
    assert table.metadata().configuration == {"delta.appendOnly": "true"}
    assert created.rows() == [
        {"id": 1, "region": "eu", "deep": {"a": [1]}},
        {"id": 2, "region": None, "deep": None},
    ]
    assert created.target().found().checkpoint == checkpoint


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("delta.tables.default-partition-by", "nowhere", "the records have no field 'nowhere'"),
        ("delta.tables.default-partition-by", "deep", "divides no table"),
        ("delta.tables.default-partition-by", "id,text,deep", "divides no table"),
        ("delta.tables.default-id-columns", "nowhere", "the records have no field 'nowhere'"),
    ],
)
def test_a_table_that_cannot_be_as_the_config_says_is_not_created(
    lake: Lake, key: str, value: str, said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        lake.with_config({key: value}).land([{"id": 1, "text": "a", "deep": {"x": 1}}])
    assert not lake.path.exists()


def test_a_table_that_is_missing_is_an_error_unless_it_may_be_created(lake: Lake) -> None:
    with pytest.raises(ConfigError, match=r"Table 'ns\.t' is not at .*create it first"):
        lake.with_config({"delta.tables.auto-create-enabled": "false"}).target().found()


def test_new_fields_become_columns_on_every_level(lake: Lake) -> None:
    first = lake.land([{"id": 1, "deep": {"a": 1, "list": [{"x": 1}]}}])
    second = lake.land([{"id": 2, "deep": {"b": "new", "list": [{"y": 2}]}, "more": 1.5}], first)
    assert lake.rows() == [
        {"id": 1, "deep": {"a": 1, "list": [{"x": 1, "y": None}], "b": None}, "more": None},
        {"id": 2, "deep": {"a": None, "list": [{"x": None, "y": 2}], "b": "new"}, "more": 1.5},
    ]
    assert lake.target().found().checkpoint == second
    operations = [entry["operation"] for entry in lake.table().history()]
    assert operations == ["WRITE", "ADD COLUMN", "WRITE", "CREATE TABLE"]


def test_fields_are_left_out_of_a_table_that_does_not_grow(lake: Lake) -> None:
    first = lake.land(ids(0, 1))
    still = lake.with_config({"delta.tables.evolve-schema-enabled": "false"})
    still.land([{"id": 1, "text": "t1", "more": 1}], first)
    assert still.rows() == ids(0, 2)


def test_a_column_is_no_longer_required_where_a_record_says_null(lake: Lake) -> None:
    DeltaTable.create(
        str(lake.path), pa.schema([("id", pa.int64()), pa.field("text", pa.string(), nullable=False)])
    )
    lake.land([{"id": 0, "text": "t0"}, {"id": 1, "text": None}])
    assert lake.rows() == [{"id": 0, "text": "t0"}, {"id": 1, "text": None}]
    # One that it does not have at all may belong to another kind of record.
    DeltaTable.create(
        str(lake.folder / "b" / "ns" / "t"),
        pa.schema([("id", pa.int64()), pa.field("text", pa.string(), nullable=False)]),
    )
    batch = Lake(lake.folder / "b").stage([{"id": 0}])
    assert "required" in batch.failed[0].reason


def test_a_number_that_is_too_wide_for_its_column_is_a_bad_record(lake: Lake) -> None:
    """Delta's wider types are a feature of tables with which delta-rs appends nothing."""
    DeltaTable.create(str(lake.path), pa.schema([("id", pa.int64()), ("n", pa.int32())]))
    batch = lake.stage([{"id": 0, "n": 1}, {"id": 1, "n": 2**40}])
    assert list(batch.failed) == [1] and batch.staged.rows == 1


def test_names_match_whatever_their_case(lake: Lake) -> None:
    DeltaTable.create(str(lake.path), pa.schema([("id", pa.int64()), ("Text", pa.string())]))
    lake.with_config({"delta.tables.schema-case-insensitive": "true"}).land([{"ID": 1, "text": "a"}])
    assert lake.rows() == [{"id": 1, "Text": "a"}]


def test_new_columns_are_optional_if_the_config_says_so(lake: Lake) -> None:
    schema = {"type": "struct", "fields": [{"field": "id", "type": "int64", "optional": False}]}
    records = {**lake.records, "value.converter.schemas.enable": "true"}
    value = {"schema": schema, "payload": {"id": 1}}
    for number, force in enumerate(("false", "true")):
        one = Lake(lake.folder / str(number), {"delta.tables.schema-force-optional": force}, records)
        one.land([value])
        (column,) = json.loads(one.table().schema().to_json())["fields"]
        assert column["nullable"] is (force == "true")


def test_rows_tell_where_they_are_from(lake: Lake) -> None:
    told = lake.with_config({"icestream.delta.kafka-columns": "topic,partition,offset,timestamp"})
    told.land(ids(0, 2))
    row = told.rows()[1]
    assert (row["_kafka_metadata_topic"], row["_kafka_metadata_partition"]) == ("events", 0)
    assert row["_kafka_metadata_offset"] == 1
    assert row["_kafka_metadata_timestamp"] == dt.datetime.fromtimestamp(1.001, dt.UTC)


def test_free_form_fields_are_columns_of_text(lake: Lake) -> None:
    told = lake.with_config({"icestream.delta.json-columns": "payload"})
    told.land([{"id": 1, "payload": {"any": [1, {"thing": True}]}}])
    assert json.loads(told.rows()[0]["payload"]) == {"any": [1, {"thing": True}]}


LOGICAL: list[dict[str, Any]] = [
    {"field": "day", "type": "int32", "name": "org.apache.kafka.connect.data.Date"},
    {"field": "moment", "type": "int64", "name": "org.apache.kafka.connect.data.Timestamp"},
    {"field": "local", "type": "int64", "name": "io.debezium.time.MicroTimestamp"},
    {"field": "uuid", "type": "string", "name": "io.debezium.data.Uuid"},
    {
        "field": "money",
        "type": "bytes",
        "name": "org.apache.kafka.connect.data.Decimal",
        "parameters": {"scale": "2"},
    },
    {"field": "small", "type": "int8"},
    {"field": "bytes", "type": "bytes"},
    {"field": "inner", "type": "struct", "fields": [{"field": "x", "type": "int64"}]},
]


def described(fields: list[dict[str, Any]], payload: dict[str, Any]) -> dict[str, Any]:
    optional = [{**one, "version": 1, "optional": True} for one in fields]
    schema = {"type": "struct", "fields": [{"field": "id", "type": "int64"}, *optional]}
    return {"schema": schema, "payload": payload}


@pytest.mark.parametrize("is_new", [True, False])
def test_records_with_schemas_bring_columns_of_logical_types(lake: Lake, is_new: bool) -> None:
    """Of a new table, and of an older one; timestamps without zone need a feature, which it gets."""
    typed = Lake(lake.folder, {}, {**lake.records, "value.converter.schemas.enable": "true"})
    before = None if is_new else typed.land([described([], {"id": 0})])
    moment = dt.datetime(2023, 11, 14, 22, 13, 20, 123000)
    values = {"day": 20000, "moment": 1700000000123, "local": 1700000000123000, "uuid": str(uuid.UUID(int=7))}
    values |= {"money": "AQ==", "small": 3, "bytes": "aGk=", "inner": {"x": 5}}
    nothing = dict.fromkeys(values)
    typed.land([described(LOGICAL, {"id": 1, **values}), described(LOGICAL, {"id": 2, **nothing})], before)
    assert typed.rows()[-1] == {"id": 2, **nothing}
    assert typed.rows()[-2] == {
        "id": 1,
        "day": dt.date(2024, 10, 4),
        "moment": moment.replace(tzinfo=dt.UTC),
        "local": moment,
        "uuid": str(uuid.UUID(int=7)),
        "money": decimal.Decimal("0.01"),
        "small": 3,
        "bytes": b"hi",
        "inner": {"x": 5},
    }


def test_a_time_of_day_makes_no_column(lake: Lake) -> None:
    typed = Lake(lake.folder, {}, {**lake.records, "value.converter.schemas.enable": "true"})
    typed.land([described([], {"id": 0})])
    clock = {"field": "clock", "type": "int32", "name": "org.apache.kafka.connect.data.Time"}
    batch = typed.stage([described([clock], {"id": 1, "clock": 3_600_000})], 1)
    assert "a new field of type time64[us], which this table cannot get" in batch.failed[0].reason


# -- partitions --


PARTITIONS: dict[str, tuple[pa.DataType, Any, Any]] = {
    "text": (pa.string(), "a/b c%=ü'\"\n", "a/b c%=ü'\"\n"),
    "long": (pa.int64(), -5, -5),
    "int": (pa.int32(), 5, 5),
    "flag": (pa.bool_(), True, True),
    "day": (pa.date32(), "2026-01-31", dt.date(2026, 1, 31)),
    "moment": (
        pa.timestamp("us", "UTC"),
        "2026-01-31T10:11:12.123456Z",
        dt.datetime(2026, 1, 31, 10, 11, 12, 123456, tzinfo=dt.UTC),
    ),
    "money": (pa.decimal128(20, 10), "0.0000000001", decimal.Decimal("0.0000000001")),
}


@pytest.mark.parametrize("kind", PARTITIONS)
def test_a_table_is_divided_by_columns_of_every_type(lake: Lake, kind: str) -> None:
    type_, given, expected = PARTITIONS[kind]
    schema = pa.schema([("id", pa.int64()), ("p", type_)])
    DeltaTable.create(str(lake.path), schema, partition_by=["p"])
    first = lake.land([{"id": 1, "p": given}, {"id": 2, "p": None}, {"id": 3, "p": given}])
    lake.land([{"id": 4, "p": given}], first)
    assert [row["p"] for row in lake.rows()] == [expected, None, expected, expected]
    assert len(lake.table().file_uris()) == 3


def test_an_empty_text_is_null_to_readers_of_partitions(lake: Lake) -> None:
    schema = pa.schema([("id", pa.int64()), ("p", pa.string())])
    DeltaTable.create(str(lake.path), schema, partition_by=["p"])
    lake.land([{"id": 1, "p": ""}])
    assert lake.rows() == [{"id": 1, "p": None}]
    required = Lake(lake.folder / "b", {"delta.tables.evolve-schema-enabled": "false"})
    schema = pa.schema([("id", pa.int64()), pa.field("p", pa.string(), nullable=False)])
    DeltaTable.create(str(required.path), schema, partition_by=["p"])
    batch = required.stage([{"id": 1, "p": ""}, {"id": 2, "p": "x"}])
    assert "is required and empty" in batch.failed[0].reason and batch.staged.rows == 1


def test_a_value_that_no_reader_parses_is_a_bad_record(lake: Lake) -> None:
    """Dates after the year 9999 come from converters with schemas."""
    schema = pa.schema([("id", pa.int64()), ("p", pa.date32())])
    DeltaTable.create(str(lake.path), schema, partition_by=["p"])
    days = {"type": "int32", "name": "org.apache.kafka.connect.data.Date", "version": 1, "optional": True}
    fields = [{"field": "id", "type": "int64"}, {"field": "p", **days}]
    described = {"type": "struct", "fields": fields}
    values = [{"schema": described, "payload": {"id": at, "p": p}} for at, p in enumerate((10_000_000, 20))]
    with_schemas = Lake(lake.folder, {}, {**lake.records, "value.converter.schemas.enable": "true"})
    batch = with_schemas.stage(values)
    assert list(batch.failed) == [0] and batch.staged.rows == 1
    assert "partition column 'p' cannot be one" in batch.failed[0].reason


def test_a_very_long_value_has_a_folder_that_every_store_can_have(lake: Lake) -> None:
    schema = pa.schema([("id", pa.int64()), ("p", pa.string())])
    DeltaTable.create(str(lake.path), schema, partition_by=["p"])
    lake.land([{"id": 1, "p": "x" * 5_000}])
    assert lake.rows() == [{"id": 1, "p": "x" * 5_000}]


# -- how files are written --


def test_files_are_written_as_the_properties_say(lake: Lake) -> None:
    small = lake.with_config(
        {
            "delta.tables.write-props.delta.targetFileSize": "100",
            "delta.tables.write-props.delta.parquet.compression.codec": "gzip",
        }
    )
    small.land(ids(0, 50))
    files = list(small.path.rglob("*.parquet"))
    assert len(files) > 1
    assert pq.read_metadata(files[0]).row_group(0).column(0).compression == "GZIP"
    assert small.ids() == list(range(50))


def test_a_table_of_its_own_place(lake: Lake, tmp_path: Path) -> None:
    elsewhere = tmp_path / "else where" / "t"
    placed = lake.with_config({"delta.table.ns.t.location": f"file://{tmp_path}/else%20where/t"})
    placed.land(ids(0, 3))
    assert DeltaTable(str(elsewhere)).count() == 3
