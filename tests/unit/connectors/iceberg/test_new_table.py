"""Tables that are created from records: columns, partitions, identifiers, properties, namespaces."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog

from icestream.api.errors import ConfigError
from icestream.connectors.iceberg import settings
from icestream.connectors.iceberg.catalogs.opening import open_catalog
from icestream.connectors.iceberg.new_table import NewTable
from icestream.connectors.iceberg.partition_by import Term, terms
from icestream.connectors.iceberg.table_settings import table_setting
from icestream.tables.given import Given

MOMENT = pa.timestamp("us", "UTC")
RECORD = pa.struct(
    [
        pa.field("id", pa.int64()),
        pa.field("time", MOMENT),
        pa.field("name", pa.string(), nullable=False),
        pa.field("ratio", pa.float64()),
        pa.field("inner", pa.struct([pa.field("day", pa.date32(), nullable=False), ("n", pa.int32())])),
        pa.field("items", pa.list_(pa.field("element", pa.struct([("x", pa.int64())]), nullable=False))),
        pa.field("props", pa.map_(pa.string(), pa.decimal128(12, 2))),
    ]
)


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return open_catalog(
        {
            "iceberg.catalog.type": "jdbc",
            "iceberg.catalog.uri": f"jdbc:sqlite:{tmp_path}/catalog.db",
            "iceberg.catalog.warehouse": f"file://{tmp_path}/warehouse",
        }
    )


def by(text: str) -> NewTable:
    return NewTable(partition_by=Given("iceberg.tables.default-partition-by", text))


def test_partition_by_takes_what_the_java_sink_takes() -> None:
    assert terms("region, years(a), month(b), days(c) ,hour(d.e),bucket( id , 16 ),truncate(name,4)") == [
        Term("region", "identity"),
        Term("a", "year"),
        Term("b", "month"),
        Term("c", "day"),
        Term("d.e", "hour"),
        Term("id", "bucket", 16),
        Term("name", "truncate", 4),
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("bucket(id)", "needs a column and a whole number"),
        ("bucket(id, x)", "needs a column and a whole number"),
        ("truncate(id, 0)", "needs a column and a whole number"),
        ("week(time)", "'week' is no transform"),
        ("day(time", "parentheses do not match"),
        ("day)time(", "parentheses do not match"),
        ("a,,b", "'' is neither a column"),
        ("day()", "neither a column"),
        ("a,a", "there twice"),
    ],
)
def test_a_partition_by_that_means_nothing_is_refused_with_its_key(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        terms(text)
    for key in ("iceberg.tables.default-partition-by", "iceberg.table.db.t.partition-by"):
        config = {"iceberg.tables": "db.t", "iceberg.catalog.type": "rest", key: text}
        (problem,) = settings.problems(config)
        assert problem.key == key
        assert f"Invalid value '{text}' for {key}" in problem.message


def test_a_table_gets_columns_partitions_identifiers_properties_and_its_namespaces(catalog: Catalog) -> None:
    config = {
        "iceberg.table.a.b.t.partition-by": "day(time), bucket(id, 16), truncate(name, 4), inner.day, ratio",
        "iceberg.tables.default-id-columns": "id, name",
        "iceberg.tables.auto-create-props.write.parquet.compression-codec": "snappy",
        "iceberg.tables.auto-create-props.owner": "me",
    }
    NewTable.from_config(config, "a.b.t").create(catalog, "a.b.t", RECORD)
    table = catalog.load_table("a.b.t")
    assert {"a", "a.b"} <= {
        ".".join(one) for one in [*catalog.list_namespaces(), *catalog.list_namespaces("a")]
    }
    assert [str(field) for field in table.schema().fields] == [
        "1: id: required long",
        "2: time: optional timestamptz",
        "3: name: required string",
        "4: ratio: optional double",
        "5: inner: optional struct<8: day: required date, 9: n: optional int>",
        "6: items: optional list<struct<11: x: optional long>>",
        "7: props: optional map<string, decimal(12, 2)>",
    ]
    assert not table.schema().find_field("items").field_type.element_field.optional  # type: ignore[union-attr]
    assert sorted(table.schema().identifier_field_names()) == ["id", "name"]
    assert [(field.name, str(field.transform)) for field in table.spec().fields] == [
        ("time_day", "day"),
        ("id_bucket", "bucket[16]"),
        ("name_trunc", "truncate[4]"),
        ("inner.day", "identity"),
        ("ratio", "identity"),
    ]
    assert (table.properties["owner"], table.properties["write.parquet.compression-codec"]) == (
        "me",
        "snappy",
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("region", "the records have no field 'region', only id, time"),
        ("day(name)", "'day' does not go with column 'name', a string"),
        ("bucket(ratio, 4)", "'bucket' does not go with column 'ratio'"),
        ("inner", "'identity' does not go with column 'inner'"),
        ("day(time), hour(time)", "more than one period"),
        ("ID", "no field 'ID'"),
    ],
)
def test_partitions_that_the_records_do_not_allow_are_an_error_and_no_table(
    text: str, why: str, catalog: Catalog
) -> None:
    with pytest.raises(ConfigError, match=why) as raised:
        by(text).create(catalog, "db.t", RECORD)
    assert f"'{text}' for iceberg.tables.default-partition-by" in str(raised.value)
    assert not catalog.table_exists("db.t")


def test_columns_of_the_config_may_match_whatever_their_case(catalog: Catalog) -> None:
    given = Given("iceberg.tables.default-partition-by", "day(TIME)")
    ids = Given("iceberg.tables.default-id-columns", "ID")
    NewTable(given, ids, any_case=True).create(catalog, "db.t", RECORD)
    table = catalog.load_table("db.t")
    assert [field.name for field in table.spec().fields] == ["time_day"]
    assert table.schema().identifier_field_names() == {"id"}


@pytest.mark.parametrize(("column", "why"), [("nope", "no field 'nope'"), ("ratio", "identifies no row")])
def test_columns_that_identify_nothing_are_an_error_and_no_table(
    column: str, why: str, catalog: Catalog
) -> None:
    new = NewTable(id_columns=Given("iceberg.table.t.id-columns", column))
    with pytest.raises(ConfigError, match=why):
        new.create(catalog, "db.t", RECORD)
    assert not catalog.table_exists("db.t")


def test_the_table_of_whoever_was_first_is_taken(catalog: Catalog) -> None:
    NewTable().create(catalog, "db.t", pa.struct([("theirs", pa.int64())]))
    NewTable().create(catalog, "db.t", RECORD)
    assert catalog.load_table("db.t").schema().column_names == ["theirs"]


def test_a_table_that_gets_upserts_is_not_created_without_columns_that_identify_a_row(
    catalog: Catalog,
) -> None:
    config = {"iceberg.tables": "db.t"}
    with pytest.raises(ConfigError, match=r"'db.t' is not created, .*set iceberg.table.db.t.id-columns"):
        NewTable.from_config(config, "db.t", needs_ids=True).create(catalog, "db.t", RECORD)
    assert not catalog.namespace_exists("db")


def test_settings_of_a_table_have_its_full_name_or_its_bare_one() -> None:
    default = {"iceberg.tables.default-id-columns": "d"}
    bare = {**default, "iceberg.table.t.id-columns": "b"}
    full = {**bare, "iceberg.table.db.t.id-columns": "f"}
    assert [table_setting(one, "db.t", "id-columns").value for one in (default, bare, full)] == [
        "d",
        "b",
        "f",
    ]
    assert table_setting(full, "db.t", "id-columns").key == "iceberg.table.db.t.id-columns"
    assert not table_setting({}, "db.t", "id-columns")
    assert settings.id_columns(bare, "db.t") == ["b"]
    assert "iceberg.table.t.id-columns" in settings.definition({"iceberg.tables": "db.t"}).names


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("format-version", "1", "upserts need 2; set 2, or remove the key"),
        ("write.avro.compression-codec", "snappy", "'snappy' is not one of gzip, zstd"),
    ],
)
def test_properties_of_new_tables_that_no_commit_could_keep_are_refused(
    key: str, value: str, told: str
) -> None:
    config = {
        "iceberg.tables": "db.t",
        "iceberg.catalog.type": "rest",
        "iceberg.tables.upsert-mode-enabled": "true",
        "iceberg.tables.default-id-columns": "id",
        f"iceberg.tables.auto-create-props.{key}": value,
    }
    (problem,) = settings.problems(config)
    assert problem.key == f"iceberg.tables.auto-create-props.{key}"
    assert told in problem.message


def test_properties_of_new_tables_name_no_class_and_no_offsets_of_jobs() -> None:
    config = {
        "iceberg.tables": "db.t",
        "iceberg.catalog.type": "rest",
        "iceberg.tables.auto-create-props.write.py-location-provider.impl": "evil.Code",
        "iceberg.tables.auto-create-props.icestream.job.x": "{}",
        "iceberg.tables.auto-create-props.write.parquet.compression-codec": "zip",
        "iceberg.tables.auto-create-props.format-version": "3",
    }
    assert sorted(problem.key.rpartition("props.")[2] for problem in settings.problems(config)) == [
        "format-version",
        "icestream.job.x",
        "write.parquet.compression-codec",
        "write.py-location-provider.impl",
    ]
