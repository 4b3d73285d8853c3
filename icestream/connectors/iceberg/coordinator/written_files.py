"""Data files of Java's workers as PyIceberg commits them. Used by `table_commits`."""

from __future__ import annotations

import decimal
import uuid
from collections.abc import Iterable
from typing import Any

from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.typedef import Record
from pyiceberg.types import DecimalType, IcebergType, UUIDType

from icestream.api.errors import FatalError
from icestream.connectors.iceberg.coordinator.events import WrittenFile
from icestream.connectors.iceberg.coordinator.rounds import Envelope


def files_in(envelopes: Iterable[Envelope]) -> list[WrittenFile]:
    """The data files with rows, each once."""
    found: dict[str, WrittenFile] = {}
    for one in envelopes:
        for file in one.written.data_files or ():
            if file.record_count:
                found.setdefault(_same_path(file.file_path), file)
        for file in one.written.delete_files or ():
            found.setdefault(_same_path(file.file_path), file)
    return list(found.values())


def _same_path(path: str) -> str:
    """Java writes `file:/…` where others write `file:///…`."""
    scheme, colon, rest = path.partition(":")
    return f"file:{'/' + rest.lstrip('/')}" if colon and scheme == "file" else path


def data_file(file: WrittenFile, metadata: TableMetadata) -> DataFile:
    types = [one.field_type for one in metadata.spec().partition_type(metadata.schema()).fields]
    if len(types) != len(file.partition):
        raise FatalError(
            f"'{file.file_path}' has {len(file.partition)} partition values, and partition spec "
            f"{file.spec_id} has {len(types)}"
        )
    try:
        kind = FileFormat[file.file_format.upper()]
    except KeyError:
        raise FatalError(
            f"'{file.file_path}' has the format '{file.file_format}', which is not known"
        ) from None
    values = [_partition_value(value, type_) for value, type_ in zip(file.partition, types, strict=True)]
    made = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=file.file_path,
        file_format=kind,
        partition=Record(*values),
        record_count=file.record_count,
        file_size_in_bytes=file.file_size_in_bytes,
        column_sizes=file.column_sizes,
        value_counts=file.value_counts,
        null_value_counts=file.null_value_counts,
        nan_value_counts=file.nan_value_counts,
        lower_bounds=file.lower_bounds,
        upper_bounds=file.upper_bounds,
        key_metadata=file.key_metadata,
        split_offsets=file.split_offsets,
        equality_ids=file.equality_ids,
        sort_order_id=file.sort_order_id,
    )
    made.spec_id = metadata.spec().spec_id
    return made


def _partition_value(value: Any, type_: IcebergType) -> Any:
    """Dates and times are the numbers that PyIceberg writes; decimals and UUIDs come as bytes."""
    if value is None or not isinstance(value, bytes):
        return value
    if isinstance(type_, DecimalType):
        unscaled = int.from_bytes(value, "big", signed=True)
        return decimal.Decimal(unscaled).scaleb(-type_.scale, decimal.Context(prec=38))
    if isinstance(type_, UUIDType):
        return uuid.UUID(bytes=value)
    return value
