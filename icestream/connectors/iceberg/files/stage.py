"""Writes rows as Parquet data files that no table references yet; runs inside the pipeline's worker.

Rows are clustered by partition and buffered; when the caller says so, each partition's rows become one row
group of that partition's open file. So an open file holds no rows, however many partitions there are.
"""

from __future__ import annotations

import functools
import logging
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io import FileIO, OutputStream
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
from icestream.connectors.iceberg.upserts.changes import UpsertPlan
from icestream.records.origins import RowOrigins
from icestream.rows.new_columns import GrowthLimit, Path
from icestream.rows.record_shape import RecordShape
from icestream.tables.file_origins import Origins
from icestream.tables.hidden_nulls import may_hide_nulls, without_hidden_nulls

_log = logging.getLogger(__name__)

NewFields = Mapping[tuple[str, ...], pa.DataType]

_DICTIONARY_BYTES = 64 * 1024
"""A column with more distinct values than this holds is written without a dictionary: it would take longer to
write, and more room, than the values themselves. Java's writer finds that out by comparing the two."""
_ROW_GROUP_BYTES = "write.parquet.row-group-size-bytes"
_PAGE_VERSION = "write.parquet.page-version"
_BLOOM = "write.parquet.bloom-filter-{}.column."
_OPEN_LOCAL = 200
_OPEN_REMOTE = 24
"""An open file of an object store holds a part of itself in memory until the part is sent."""


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

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}


@dataclass(frozen=True)
class NewTablePlan:
    """What a worker must know of a table that does not exist yet: it tells the fields of its records."""

    name: str
    growth: GrowthLimit
    force_optional: bool = False
    texts: Collection[Path] = ()

    def shape(self) -> RecordShape:
        """What looks at the records of a task."""
        return RecordShape(self.growth, self.force_optional, self.texts)


class _OpenFile:
    def __init__(
        self, path: str, io: FileIO, key: PartitionValue | None, schema: pa.Schema, options: Any
    ) -> None:
        self.path = path
        self.key = key
        self.origins = Origins()
        self._stream: OutputStream = io.new_output(path).create(overwrite=True)
        self._writer = pq.ParquetWriter(self._stream, schema, store_decimal_as_integer=True, **options)

    def write(self, pieces: Sequence[_Piece]) -> None:
        """Write pieces as one row group."""
        rows = pa.concat_tables(piece.rows for piece in pieces)
        self._writer.write_table(rows, row_group_size=max(1, rows.num_rows))
        for piece in pieces:
            self.origins.add(piece.origins)

    @property
    def size(self) -> int:
        return int(self._stream.tell())

    def close(self) -> tuple[pq.FileMetaData, int]:
        self._writer.add_key_value_metadata(self.origins.to_footer())
        self._writer.close()
        size = self.size
        self._stream.close()
        return self._writer.writer.metadata, size


@dataclass(frozen=True)
class _Piece:
    """Rows of one partition, and where each is from."""

    rows: pa.Table
    origins: RowOrigins
    size: int
    """About how many bytes it takes in memory."""

    def cut(self, limit: int) -> Iterator[_Piece]:
        """Pieces of about `limit` bytes."""
        if self.size <= limit:
            yield self
            return
        step = max(1, self.rows.num_rows * limit // self.size)
        for at in range(0, self.rows.num_rows, step):
            rows = self.rows.slice(at, step)
            yield _Piece(rows, self.origins.take(slice(at, at + step)), rows.nbytes)


class StageWriter:
    """Takes rows in any order of partitions; `close` tells the files that were written."""

    def __init__(self, plan: TablePlan, batch: str = "", most_open: int = 200) -> None:
        refuse_foreign_code()
        self._plan = plan
        is_local = urlsplit(plan.location).scheme in ("", "file")
        self._prefix = f"{plan.file_prefix}{batch}-"
        self._most_open = most_open if is_local else min(most_open, _OPEN_REMOTE)
        self.most_open_of_all = _OPEN_LOCAL if is_local else _OPEN_REMOTE
        """Where several writers share what a task may have open."""
        self._io = file_io(plan.io_properties, plan.location)
        self._places: LocationProvider = load_location_provider(plan.location, dict(plan.properties))
        self._partitioner = Partitioner(plan.schema, plan.spec)
        self._target = int(
            plan.properties.get(TableProperties.WRITE_TARGET_FILE_SIZE_BYTES, 512 * 1024 * 1024)
        )
        self._row_group = min(self._target, int(plan.properties.get(_ROW_GROUP_BYTES, self._target)))
        self._options = parquet_options(plan.properties, plan.arrow_schema)
        self._may_hide_nulls = any(may_hide_nulls(one.type) for one in plan.arrow_schema)
        self._buffered: dict[PartitionValue | None, list[_Piece]] = {}
        self.buffered_bytes = 0
        self._open: dict[PartitionValue | None, _OpenFile] = {}
        self._staged: list[StagedFile] = []

    def write(self, rows: pa.Table, origins: RowOrigins) -> None:
        if not rows.num_rows:
            return
        if self._may_hide_nulls:
            rows = without_hidden_nulls(rows)
        size = rows.nbytes
        for group in self._partitioner.split(rows):
            mine = origins if group.order is None else origins.take(group.order)
            # In proportion: the columns of a group are many and short, and measuring them takes its time.
            share = size * group.rows.num_rows // rows.num_rows
            self._buffered.setdefault(group.value, []).append(_Piece(group.rows, mine, share))
        self.buffered_bytes += size

    @property
    def open_files(self) -> int:
        return len(self._open)

    def close(self) -> list[StagedFile]:
        """All files that were written; more may be written after it."""
        self.flush()
        with sink_errors(f"writing data files of {self._plan.name}"):
            for key in list(self._open):
                self._finish(key)
        return self._staged

    def discard(self) -> None:
        """Remove all files of this writer, as far as the storage lets us."""
        paths = [file.path for file in self._staged]
        for file in self._open.values():
            paths.append(file.path)
            with suppress(Exception):  # a storage that is away may have been the reason
                file.close()
        self._open.clear()
        self._staged.clear()
        for path in paths:
            try:
                self._io.delete(path)
            except Exception as error:  # it is swept later
                _log.warning("staged file %s is left behind: %s", path, error)

    def flush(self) -> None:
        """Write what is buffered: each partition's rows become a row group of that partition's open file."""
        with sink_errors(f"writing data files of {self._plan.name}"):
            for key, pieces in self._buffered.items():
                for row_group in _row_groups(pieces, self._row_group):
                    file = self._file(key)
                    file.write(row_group)
                    if file.size >= self._target:
                        self._finish(key)
        self._buffered.clear()
        self.buffered_bytes = 0

    def _file(self, key: PartitionValue | None) -> _OpenFile:
        if key not in self._open:
            if len(self._open) >= self._most_open:
                self._finish(next(iter(self._open)))
            path = self._places.new_data_location(f"{self._prefix}{uuid.uuid4()}.parquet", cast(Any, key))
            self._open[key] = _OpenFile(path, self._io, key, self._plan.arrow_schema, self._options)
        return self._open[key]

    def _finish(self, key: PartitionValue | None) -> None:
        file = self._open.pop(key)
        metadata, size = file.close()
        self._staged.append(staged_file(self._plan, file.path, key.values if key else (), metadata, size))


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


def _row_groups(pieces: Sequence[_Piece], limit: int) -> Iterator[list[_Piece]]:
    """Pieces in groups that are no larger in memory than a file may be on disk, so that files end in time."""
    group: list[_Piece] = []
    held = 0
    for piece in pieces:
        for part in piece.cut(limit):
            if group and held + part.size > limit:
                yield group
                group, held = [], 0
            group.append(part)
            held += part.size
    if group:
        yield group


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
