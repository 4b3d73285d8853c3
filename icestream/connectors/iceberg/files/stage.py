"""Data files of Iceberg tables that no table references yet; written inside the pipeline's worker."""

from __future__ import annotations

import functools
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import (
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import TableProperties
from pyiceberg.table.locations import LocationProvider, load_location_provider
from pyiceberg.typedef import Record

from icestream.connectors.iceberg.catalogs.guarded_catalogs import refuse_foreign_code
from icestream.connectors.iceberg.catalogs.opening import sink_errors
from icestream.connectors.iceberg.catalogs.remote_signing import file_io
from icestream.connectors.iceberg.files.partitions import Partitioner, PartitionValue
from icestream.connectors.iceberg.files.statistics import statistics_plan
from icestream.connectors.iceberg.schemas import arrow_schema
from icestream.rows.new_columns import GrowthLimit, Path
from icestream.tables.data_files import ClosedFile, DataFileWriter, FileLimits, Group
from icestream.tables.plans import NewFields
from icestream.tables.upserts.changes import UpsertPlan

_DICTIONARY_BYTES = 64 * 1024
"""A column with more distinct values than this holds is written without a dictionary: it would take longer to
write, and more room, than the values themselves. Java's writer finds that out by comparing the two."""
_ROW_GROUP_BYTES = "write.parquet.row-group-size-bytes"
_PAGE_VERSION = "write.parquet.page-version"
_BLOOM = "write.parquet.bloom-filter-{}.column."


@dataclass(frozen=True)
class StagedFile:
    """A data file that no table references yet."""

    path: str
    partition: tuple[Any, ...]
    """Values in the order of the partition spec."""
    spec_id: int
    rows: int
    size: int
    metrics: Mapping[str, Any] = field(repr=False, default_factory=dict)


@dataclass(frozen=True)
class TablePlan:
    """What a worker must know of a table to write files for it. Plain data: it crosses process boundaries."""

    name: str
    location: str
    schema_json: str
    spec_json: str
    properties: Mapping[str, str]
    io_properties: Mapping[str, str] = field(repr=False)
    file_prefix: str = ""
    """How the names of data files begin; the id of the batch follows. See `sweep`."""
    new_fields: NewFields = field(default_factory=dict)
    """Fields that the table gets with the rows that have them: the schema has them already."""
    growth: GrowthLimit | None = None
    """How many columns a batch may add, these included; None: none, what the table lacks is left out."""
    force_optional: bool = False
    """Whether fields inside of new columns are optional, whatever the schema of a record says."""
    upserts: UpsertPlan | None = None
    """None: every record is a row of its own."""
    kafka_columns: Sequence[str] = ()
    """What the rows tell of where they are from; the schema has these columns."""
    any_case: bool = False
    """Whether names of fields match those of columns whatever their case."""
    texts: Collection[Path] = ()
    """Fields whose new columns are text, whatever they hold."""

    @functools.cached_property
    def schema(self) -> Schema:
        return Schema.model_validate_json(self.schema_json)

    @functools.cached_property
    def spec(self) -> PartitionSpec:
        return PartitionSpec.model_validate_json(self.spec_json)

    @functools.cached_property
    def arrow_schema(self) -> pa.Schema:
        return arrow_schema(self.schema)

    @property
    def always_required(self) -> frozenset[str]:
        """Not the structs that they are in either: an identifier is never null."""
        return frozenset(name.partition(".")[0] for name in self.schema.identifier_field_names())

    @property
    def widens(self) -> bool:
        return True

    @property
    def shape(self) -> Hashable:
        if self.upserts is not None:
            return None
        new = sorted(self.new_fields)
        others = (self.growth, self.force_optional, self.kafka_columns, self.any_case, self.texts, new)
        return self.schema_json, repr(others)

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}


class StageWriter(DataFileWriter[PartitionValue | None, StagedFile]):
    """Takes rows in any order of partitions; `close` tells the files that were written."""

    def __init__(self, plan: TablePlan, batch: str = "", most_open: int = 200) -> None:
        refuse_foreign_code()
        self._plan = plan
        target = int(plan.properties.get(TableProperties.WRITE_TARGET_FILE_SIZE_BYTES, 512 * 1024 * 1024))
        super().__init__(
            plan.name,
            plan.arrow_schema,
            parquet_options(plan.properties, plan.arrow_schema),
            FileLimits.of(
                plan.location, most_open, target, int(plan.properties.get(_ROW_GROUP_BYTES, target))
            ),
            f"{plan.file_prefix}{batch}-",
        )
        self._io = file_io(plan.io_properties, plan.location)
        self._places: LocationProvider = load_location_provider(plan.location, dict(plan.properties))
        self._partitioner = Partitioner(plan.schema, plan.spec)

    def split(self, rows: pa.Table) -> Iterator[Group[PartitionValue | None]]:
        return self._partitioner.split(rows)

    def new_path(self, name: str, key: PartitionValue | None) -> str:
        return self._places.new_data_location(name, cast(Any, key))

    def create(self, path: str) -> Any:
        return self._io.new_output(path).create(overwrite=True)

    def delete(self, path: str) -> None:
        self._io.delete(path)

    def errors(self, doing: str) -> AbstractContextManager[None]:
        return sink_errors(doing)

    def described(self, file: ClosedFile[PartitionValue | None]) -> StagedFile:
        values = file.key.values if file.key else ()
        return staged_file(self._plan, file.path, values, file.metadata, file.size)


def staged_file(
    plan: TablePlan, path: str, partition: tuple[Any, ...], metadata: pq.FileMetaData, size: int
) -> StagedFile:
    """A file that was written by a plan, with its statistics."""
    statistics = data_file_statistics_from_parquet_metadata(
        metadata,
        statistics_plan(plan.schema, plan.properties),
        parquet_path_to_id_mapping(plan.schema),
    )
    metrics = statistics.to_serialized_dict()
    return StagedFile(
        path=path,
        partition=partition,
        spec_id=plan.spec.spec_id,
        rows=int(metrics.pop("record_count")),
        size=size,
        metrics=metrics,
    )


def data_file(file: StagedFile) -> DataFile:
    """A staged file as manifests have it."""
    described = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=file.path,
        file_format=FileFormat.PARQUET,
        partition=Record(*file.partition),
        record_count=file.rows,
        file_size_in_bytes=file.size,
        sort_order_id=None,
        spec_id=file.spec_id,
        equality_ids=None,
        key_metadata=None,
        **file.metrics,
    )
    described.spec_id = file.spec_id
    return described


def parquet_options(properties: Mapping[str, str], schema: pa.Schema) -> dict[str, Any]:
    """Table properties in pyarrow's words."""
    codec = properties.get(
        TableProperties.PARQUET_COMPRESSION, TableProperties.PARQUET_COMPRESSION_DEFAULT
    ).lower()
    level = properties.get(TableProperties.PARQUET_COMPRESSION_LEVEL)
    options: dict[str, Any] = {
        "compression": "none" if codec == "uncompressed" else codec,
        "dictionary_pagesize_limit": _DICTIONARY_BYTES,
    }
    if level is not None and codec in ("zstd", "gzip", "brotli"):
        options["compression_level"] = int(level)
    for name, option in (
        (TableProperties.PARQUET_PAGE_SIZE_BYTES, "data_page_size"),
        (TableProperties.PARQUET_DICT_SIZE_BYTES, "dictionary_pagesize_limit"),
        (TableProperties.PARQUET_PAGE_ROW_LIMIT, "max_rows_per_page"),
    ):
        if name in properties:
            options[option] = int(properties[name])
    if properties.get(_PAGE_VERSION, "").strip().lower() == "v2":
        options["data_page_version"] = "2.0"
    if filters := _bloom_filters(properties, schema):
        options["bloom_filter_options"] = filters
    return options


def _bloom_filters(properties: Mapping[str, str], schema: pa.Schema) -> dict[str, dict[str, Any]]:
    """By the path of a column. There are none of booleans, whatever the properties say."""
    found: dict[str, dict[str, Any]] = {}
    for key, value in properties.items():
        column = key.removeprefix(_BLOOM.format("enabled"))
        if column == key or value.strip().lower() != "true" or _is_boolean(schema, column):
            continue
        chance, distinct = (properties.get(f"{_BLOOM.format(name)}{column}") for name in ("fpp", "ndv"))
        found[column] = {
            "fpp": float(chance) if chance else 0.01,
            **({"ndv": int(distinct)} if distinct else {}),
        }
    return found


def _is_boolean(schema: pa.Schema, column: str) -> bool:
    first, *path = column.split(".")
    if first not in schema.names:
        return False
    type_ = schema.field(first).type
    for name in path:
        if not pa.types.is_struct(type_) or type_.get_field_index(name) < 0:
            return False
        type_ = type_.field(name).type
    return bool(pa.types.is_boolean(type_))
