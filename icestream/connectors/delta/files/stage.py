"""Data files of Delta tables that no table references yet; written inside the pipeline's worker, without
delta-rs, whose threads do not survive a fork."""

from __future__ import annotations

import functools
import posixpath
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from icestream.connectors.delta.files.partitions import Partitioner, PartitionValue, folder
from icestream.connectors.delta.files.statistics import (
    FloatFacts,
    bounded_columns,
    float_columns,
    indexed_columns,
    statistics_json,
)
from icestream.connectors.delta.files.table_folder import TableFolder
from icestream.connectors.delta.schemas import arrow_schema
from icestream.connectors.delta.storage import Storage, storage_errors
from icestream.rows.new_columns import GrowthLimit, Path
from icestream.tables.data_files import ClosedFile, DataFileWriter, FileLimits, Group
from icestream.tables.plans import NewFields
from icestream.tables.upserts.changes import UpsertPlan

TARGET_BYTES: Final = "delta.targetFileSize"
CODEC: Final = "delta.parquet.compression.codec"
_TARGET_BYTES: Final = 256 * 1024 * 1024
_CODEC: Final = "zstd"
_DICTIONARY_BYTES: Final = 64 * 1024


@dataclass(frozen=True)
class StagedFile:
    """A data file that no table references yet, as the log will have it."""

    path: str
    """Below the table's folder, not encoded."""
    partition: PartitionValue
    rows: int
    size: int
    statistics: str = field(repr=False, default="")


@dataclass(frozen=True)
class TablePlan:
    """What a worker must know of a table to write files for it. Plain data: it crosses process boundaries."""

    name: str
    location: str
    table_id: str
    schema_json: str
    """With the new fields."""
    partition_columns: Sequence[str]
    properties: Mapping[str, str]
    storage: Storage
    file_prefix: str = ""
    """How the names of data files begin; the id of the batch follows. See `sweep`."""
    new_fields: NewFields = field(default_factory=dict)
    growth: GrowthLimit | None = None
    force_optional: bool = False
    kafka_columns: Sequence[str] = ()
    any_case: bool = False
    texts: Collection[Path] = ()
    always_required: frozenset[str] = frozenset()
    upserts: UpsertPlan | None = None
    """None: every record is a row of its own."""

    @functools.cached_property
    def arrow_schema(self) -> pa.Schema:
        return arrow_schema(self.schema_json)

    @property
    def widens(self) -> bool:
        """Wider types need a feature of tables with which delta-rs appends nothing."""
        return False

    @property
    def shape(self) -> Hashable:
        if self.upserts is not None:
            return None
        new = sorted(self.new_fields)
        others = (self.growth, self.force_optional, self.kafka_columns, self.any_case, self.texts, new)
        return self.schema_json, tuple(self.partition_columns), repr(others)

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}


class StageWriter(DataFileWriter[PartitionValue, StagedFile]):
    """Takes rows in any order of partitions; `close` tells the files that were written."""

    def __init__(self, plan: TablePlan, batch: str = "", most_open: int = 200) -> None:
        self._partitioner = Partitioner(plan.arrow_schema, plan.partition_columns)
        self._folder = TableFolder(plan.location, plan.storage)
        schema = self._partitioner.file_schema()
        self._indexed = indexed_columns(schema, plan.properties)
        self._floats = float_columns(schema) & self._indexed
        target = int(plan.properties.get(TARGET_BYTES, _TARGET_BYTES))
        super().__init__(
            plan.name,
            schema,
            parquet_options(plan.properties, schema),
            FileLimits.of(plan.location, most_open, target, target),
            f"{plan.file_prefix}{batch}-",
        )

    def split(self, rows: pa.Table) -> Iterator[Group[PartitionValue]]:
        return self._partitioner.split(rows)

    def new_path(self, name: str, key: PartitionValue) -> str:
        return posixpath.join(folder(key), name)

    def create(self, path: str) -> Any:
        return self._folder.create(path)

    def delete(self, path: str) -> None:
        self._folder.delete(path)

    def errors(self, doing: str) -> AbstractContextManager[None]:
        return storage_errors(doing)

    def new_facts(self) -> FloatFacts:
        return FloatFacts(self._floats)

    def described(self, file: ClosedFile[PartitionValue]) -> StagedFile:
        statistics = statistics_json(file.metadata, self._schema, self._indexed, file.facts)
        return StagedFile(file.path, file.key, file.metadata.num_rows, file.size, statistics)


def parquet_options(properties: Mapping[str, str], schema: pa.Schema) -> dict[str, Any]:
    codec = properties.get(CODEC, _CODEC).strip().lower()
    return {
        "compression": "none" if codec == "uncompressed" else codec,
        "dictionary_pagesize_limit": _DICTIONARY_BYTES,
        "write_statistics": bounded_columns(schema),
    }
