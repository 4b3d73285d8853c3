"""Table properties decide how data files are written: size, codec, metrics, place."""

import json
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg import types as ty
from pyiceberg.catalog import Catalog
from pyiceberg.conversions import from_bytes
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform

from icestream.api.offsets import Partition
from icestream.connectors.iceberg.catalogs.opening import open_catalog
from icestream.connectors.iceberg.files.stage import StagedFile, StageWriter, parquet_options
from icestream.connectors.iceberg.table import IcebergTable
from icestream.connectors.iceberg.write_properties import write_problems
from icestream.records.origins import RowOrigins

ID, TEXT, NESTED = 1, 2, 4
SCHEMA = Schema(
    ty.NestedField(ID, "id", ty.LongType()),
    ty.NestedField(TEXT, "text", ty.StringType()),
    ty.NestedField(3, "st", ty.StructType(ty.NestedField(NESTED, "x", ty.LongType()))),
)
SPEC = PartitionSpec(PartitionField(source_id=ID, field_id=1000, transform=IdentityTransform(), name="p"))
LONG = "abcdefghijklmnopqrstuvwxyz"


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    config = {
        "iceberg.catalog.type": "jdbc",
        "iceberg.catalog.uri": f"jdbc:sqlite:{tmp_path}/catalog.db",
        "iceberg.catalog.warehouse": f"file://{tmp_path}/warehouse",
    }
    opened = open_catalog(config)
    opened.create_namespace("ns")
    return opened


def write(
    catalog: Catalog,
    properties: Mapping[str, str],
    *,
    write_props: Mapping[str, str] | None = None,
    rows: int = 3,
    spec: PartitionSpec | None = None,
) -> list[StagedFile]:
    catalog.create_table("ns.t", SCHEMA, partition_spec=spec or PartitionSpec(), properties=dict(properties))
    plan = IcebergTable(catalog, "ns.t", "job", write_props=write_props or {}).plan({})
    texts = [f"{LONG}{np.random.default_rng(number).bytes(200).hex()}" for number in range(rows)]
    table = pa.Table.from_pylist(
        [{"id": number % 2, "text": text, "st": {"x": number}} for number, text in enumerate(texts)],
        plan.arrow_schema,
    )
    writer = StageWriter(plan)
    source = [Partition("topic", 0)]
    writer.write(table, RowOrigins(source, np.zeros(rows, np.int64), np.arange(rows)))
    return writer.close()


def footer(file: StagedFile) -> pq.FileMetaData:
    return pq.read_metadata(urlsplit(file.path).path)


@pytest.mark.parametrize("spec", [PartitionSpec(), SPEC], ids=["unpartitioned", "partitioned"])
def test_a_small_target_size_gives_several_files_with_every_row_once(
    catalog: Catalog, spec: PartitionSpec
) -> None:
    files = write(catalog, {"write.target-file-size-bytes": "100000"}, rows=2_000, spec=spec)
    sizes = [Path(urlsplit(file.path).path).stat().st_size for file in files]
    assert sizes == [file.size for file in files]
    assert 3 <= len(files) <= 24
    assert max(sizes) < 200_000
    assert sum(file.rows for file in files) == 2_000
    read = pa.concat_tables(pq.read_table(urlsplit(file.path).path) for file in files)
    assert sorted(row["x"] for row in read["st"].to_pylist()) == list(range(2_000))


def test_one_file_is_enough_below_the_target_size(catalog: Catalog) -> None:
    assert len(write(catalog, {}, rows=2_000)) == 1


@pytest.mark.parametrize(
    ("codec", "written"),
    [("zstd", "ZSTD"), ("snappy", "SNAPPY"), ("gzip", "GZIP"), ("uncompressed", "UNCOMPRESSED")],
)
def test_the_codec_is_the_tables(catalog: Catalog, codec: str, written: str) -> None:
    (file,) = write(catalog, {"write.parquet.compression-codec": codec})
    assert footer(file).row_group(0).column(1).compression == written


def test_the_codec_is_zstd_unless_told_and_the_connector_overrides_the_table(catalog: Catalog) -> None:
    (file,) = write(
        catalog,
        {"write.parquet.compression-codec": "gzip"},
        write_props={"write.parquet.compression-codec": "snappy"},
    )
    assert footer(file).row_group(0).column(1).compression == "SNAPPY"
    catalog.drop_table("ns.t")
    (file,) = write(catalog, {})
    assert footer(file).row_group(0).column(1).compression == "ZSTD"


def test_metrics_are_counted_and_bounds_truncated_unless_told(catalog: Catalog) -> None:
    (file,) = write(catalog, {})
    metrics = file.metrics
    assert metrics["value_counts"] == {ID: 3, TEXT: 3, NESTED: 3}
    assert metrics["null_value_counts"] == {ID: 0, TEXT: 0, NESTED: 0}
    assert metrics["lower_bounds"][TEXT] == LONG[:16].encode()
    assert metrics["upper_bounds"][TEXT] == (LONG[:15] + "q").encode()
    assert from_bytes(ty.LongType(), metrics["upper_bounds"][ID]) == 1


def test_leaves_of_structs_have_bounds_and_their_own_mode(catalog: Catalog) -> None:
    (file,) = write(catalog, {})
    bounds = (file.metrics[key][NESTED] for key in ("lower_bounds", "upper_bounds"))
    assert [from_bytes(ty.LongType(), bound) for bound in bounds] == [0, 2]
    catalog.drop_table("ns.t")
    (file,) = write(catalog, {"write.metadata.metrics.column.st.x": "counts"})
    assert NESTED in file.metrics["value_counts"]
    assert NESTED not in file.metrics["lower_bounds"]


@pytest.mark.parametrize(
    ("mode", "counted", "bounds"),
    [
        ("none", False, None),
        ("counts", True, None),
        ("truncate(4)", True, (b"abcd", b"abce")),
        ("full", True, "whole"),
    ],
)
@pytest.mark.parametrize("by_column", [False, True])
def test_the_mode_of_metrics_is_the_tables(
    catalog: Catalog, mode: str, counted: bool, bounds: tuple[bytes, bytes] | str | None, by_column: bool
) -> None:
    if by_column:
        other = "full" if mode == "none" else "none"
        properties = {"write.metadata.metrics.default": other, "write.metadata.metrics.column.text": mode}
    else:
        properties = {"write.metadata.metrics.default": mode}
    (file,) = write(catalog, properties)
    assert (TEXT in file.metrics["value_counts"]) == counted
    if by_column:
        assert (ID in file.metrics["value_counts"]) == (mode == "none")
    if bounds is None:
        assert TEXT not in file.metrics["lower_bounds"]
    elif bounds == "whole":
        assert len(file.metrics["lower_bounds"][TEXT]) == len(LONG) + 400
    else:
        assert (file.metrics["lower_bounds"][TEXT], file.metrics["upper_bounds"][TEXT]) == bounds


def test_data_goes_where_the_table_says(catalog: Catalog, tmp_path: Path) -> None:
    files = write(catalog, {"write.data.path": f"file://{tmp_path}/elsewhere"}, spec=SPEC)
    assert {Path(urlsplit(file.path).path).parent for file in files} == {
        tmp_path / "elsewhere" / "p=0",
        tmp_path / "elsewhere" / "p=1",
    }


def test_origins_are_in_every_footer_of_a_batch_that_was_cut(catalog: Catalog) -> None:
    files = write(catalog, {"write.target-file-size-bytes": "100000"}, rows=2_000)
    held = [json.loads((footer(file).metadata or {})[b"icestream.origins"]) for file in files]
    assert all("topic" in origins for origins in held)


def test_row_groups_are_as_small_as_they_are_asked_to_be(catalog: Catalog) -> None:
    (file,) = write(catalog, {}, write_props={"write.parquet.row-group-size-bytes": "100000"}, rows=2_000)
    assert 4 <= footer(file).num_row_groups <= 30
    assert sum(footer(file).row_group(at).num_rows for at in range(footer(file).num_row_groups)) == 2_000


def test_bloom_filters_are_written_for_the_columns_that_are_to_have_them(catalog: Catalog) -> None:
    prefix = "write.parquet.bloom-filter-"
    asked = {
        f"{prefix}enabled.column.text": "true",
        f"{prefix}fpp.column.text": "0.05",
        f"{prefix}ndv.column.text": "5000",
        f"{prefix}enabled.column.st.x": "true",
        f"{prefix}enabled.column.nowhere": "true",
        f"{prefix}enabled.column.id": "false",
        "write.parquet.page-version": "v2",
    }
    (file,) = write(catalog, {}, write_props=asked, rows=10)
    options = parquet_options(
        asked, pa.schema([("id", pa.int64()), ("text", pa.string()), ("b", pa.bool_())])
    )
    assert options["data_page_version"] == "2.0"
    assert options["bloom_filter_options"] == {
        "text": {"fpp": 0.05, "ndv": 5000},
        "st.x": {"fpp": 0.01},
        "nowhere": {"fpp": 0.01},
    }
    catalog.drop_table("ns.t")
    (plain,) = write(catalog, {"write.parquet.page-version": "v2"}, rows=10)
    assert file.size > plain.size
    assert file.rows == 10


def test_no_bloom_filter_is_asked_for_booleans() -> None:
    schema = pa.schema([("b", pa.bool_()), ("st", pa.struct([("b", pa.bool_()), ("n", pa.int64())]))])
    names = ("b", "st.b", "st.n", "st.n.deeper", "none.at.all")
    asked = {f"write.parquet.bloom-filter-enabled.column.{name}": "true" for name in names}
    assert set(parquet_options(asked, schema)["bloom_filter_options"]) == {
        "st.n",
        "st.n.deeper",
        "none.at.all",
    }


@pytest.mark.parametrize(
    ("key", "value", "wanted"),
    [
        ("write.parquet.page-version", "v3", "v1 or v2"),
        ("write.parquet.row-group-size-bytes", "0", "a whole number above 0"),
        ("write.parquet.bloom-filter-fpp.column.text", "1.5", "a number between 0 and 1"),
        ("write.parquet.bloom-filter-enabled.column.text", "yes", "true or false"),
        ("write.parquet.bloom-filter-ndv.column.text", "9999999999", "a whole number from 1 to 999999999"),
    ],
)
def test_values_that_no_file_could_be_written_with_are_refused(key: str, value: str, wanted: str) -> None:
    for prefix in ("iceberg.tables.write-props.", "iceberg.table.write-props."):
        (problem,) = write_problems({f"{prefix}{key}": value}, [prefix])
        assert problem.key == f"{prefix}{key}"
        assert wanted in problem.message
