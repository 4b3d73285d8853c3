"""The Avro schemas of the control-topic events, with the names and field ids that Java's reader looks for.

Java makes objects of the classes that the records are named after, so the names are theirs. Used by `events`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

_NAMESPACE: Final = "org.apache.iceberg.connect.events"
_UUID: Final = "uuid_fixed"
_MOMENT: Final = {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True}

MAPS: Final = {
    "column_sizes": (117, 118, "long"),
    "value_counts": (119, 120, "long"),
    "null_value_counts": (121, 122, "long"),
    "nan_value_counts": (138, 139, "long"),
    "lower_bounds": (126, 127, "bytes"),
    "upper_bounds": (129, 130, "bytes"),
}
"""The maps of a data file: ids of key and value, and the value's type."""


@dataclass(frozen=True)
class PartitionColumn:
    """A column of the partition values in an event; `schema` is its Avro type without null."""

    name: str
    field_id: int
    schema: Any


def _record(name: str, fields: list[dict[str, Any]], namespace: str | None = None) -> dict[str, Any]:
    place = {} if namespace is None else {"namespace": namespace}
    return {"type": "record", "name": name, **place, "fields": fields}


def _field(name: str, kind: Any, field_id: int, doc: str | None = None) -> dict[str, Any]:
    said = {} if doc is None else {"doc": doc}
    return {"name": name, "type": kind, **said, "field-id": field_id}


def _optional(name: str, kind: Any, field_id: int, doc: str | None = None) -> dict[str, Any]:
    said = {} if doc is None else {"doc": doc}
    return {"name": name, "type": ["null", kind], **said, "default": None, "field-id": field_id}


def _list(items: Any, element_id: int) -> dict[str, Any]:
    return {"type": "array", "items": items, "element-id": element_id}


def _event(payload: dict[str, Any]) -> dict[str, Any]:
    id_type = {"type": "fixed", "name": _UUID, "namespace": "", "size": 16, "logicalType": "uuid"}
    return _record(
        "Event",
        [
            _field("id", id_type, 10500),
            _field("type", "int", 10501),
            _field("timestamp", _MOMENT, 10502),
            _field("group_id", "string", 10503),
            _field("payload", payload, 10504),
        ],
        namespace=_NAMESPACE,
    )


_TABLE_REFERENCE: Final = _record(
    "TableReference",
    [
        _field("catalog", "string", 10600),
        _field("namespace", _list("string", 10602), 10601),
        _field("name", "string", 10603),
        _optional("table_uuid", _UUID, 10604),
    ],
)

_POSITION: Final = _record(
    "TopicPartitionOffset",
    [
        _field("topic", "string", 10700),
        _field("partition", "int", 10701),
        _optional("offset", "long", 10702),
        _optional("timestamp", _MOMENT, 10703),
    ],
)

START_COMMIT: Final = _event(_record("StartCommit", [_field("commit_id", _UUID, 10200)]))
DATA_COMPLETE: Final = _event(
    _record(
        "DataComplete",
        [_field("commit_id", _UUID, 10100), _optional("assignments", _list(_POSITION, 10102), 10101)],
    )
)
COMMIT_TO_TABLE: Final = _event(
    _record(
        "CommitToTable",
        [
            _field("commit_id", _UUID, 10400),
            _field("table_reference", _TABLE_REFERENCE, 10401),
            _optional("snapshot_id", "long", 10402),
            _optional("valid_through_ts", _MOMENT, 10403),
        ],
    )
)
COMMIT_COMPLETE: Final = _event(
    _record(
        "CommitComplete",
        [_field("commit_id", _UUID, 10000), _optional("valid_through_ts", _MOMENT, 10001)],
    )
)


def data_written(columns: Sequence[PartitionColumn]) -> dict[str, Any]:
    """The schema of DataWritten for a table with these partition columns."""
    partition = _record("PartitionData", [_optional(one.name, one.schema, one.field_id) for one in columns])
    return _event(
        _record(
            "DataWritten",
            [
                _field("commit_id", _UUID, 10300),
                _field("table_reference", _TABLE_REFERENCE, 10301),
                _optional(
                    "data_files", _list(_file("GenericDataFile", partition, is_first=True), 10303), 10302
                ),
                # A schema describes a type where it is met first; after that its name is enough.
                _optional(
                    "delete_files",
                    _list(_file("GenericDeleteFile", "PartitionData", is_first=False), 10305),
                    10304,
                ),
            ],
        )
    )


def _file(name: str, partition: Any, *, is_first: bool) -> dict[str, Any]:
    def entries(of: str) -> dict[str, Any]:
        key_id, value_id, kind = MAPS[of]
        entry = f"k{key_id}_v{value_id}"
        fields = [_field("key", "int", key_id), _field("value", kind, value_id)]
        item = _record(entry, fields, namespace="") if is_first else entry
        return {"type": "array", "items": item, "logicalType": "map"}

    contents = "Contents of the file: 0=data, 1=position deletes, 2=equality deletes"
    referenced = "Fully qualified location (URI with FS scheme) of a data file that all deletes reference"
    counted = "Map of column id to total count, including null and NaN"
    of_nan = "Map of column id to number of NaN values in the column"
    first_row = "The first row ID assigned to the first row in the data file"
    return _record(
        name,
        [
            _optional("content", "int", 134, contents),
            _field("file_path", "string", 100, "Location URI with FS scheme"),
            _field("file_format", "string", 101, "File format name: avro, orc, or parquet"),
            _optional("spec_id", "int", 141, "Partition spec ID"),
            _field("partition", partition, 102, "Partition data tuple, schema based on the partition spec"),
            _field("record_count", "long", 103, "Number of records in the file"),
            _field("file_size_in_bytes", "long", 104, "Total file size in bytes"),
            _optional("column_sizes", entries("column_sizes"), 108, "Map of column id to total size on disk"),
            _optional("value_counts", entries("value_counts"), 109, counted),
            _optional(
                "null_value_counts", entries("null_value_counts"), 110, "Map of column id to null value count"
            ),
            _optional("nan_value_counts", entries("nan_value_counts"), 137, of_nan),
            _optional("lower_bounds", entries("lower_bounds"), 125, "Map of column id to lower bound"),
            _optional("upper_bounds", entries("upper_bounds"), 128, "Map of column id to upper bound"),
            _optional("key_metadata", "bytes", 131, "Encryption key metadata blob"),
            _optional("split_offsets", _list("long", 133), 132, "Splittable offsets"),
            _optional("equality_ids", _list("int", 136), 135, "Equality comparison field IDs"),
            _optional("sort_order_id", "int", 140, "Sort order ID"),
            _optional("first_row_id", "long", 142, first_row),
            _optional("referenced_data_file", "string", 143, referenced),
            _optional("content_offset", "long", 144, "The offset in the file where the content starts"),
            _optional(
                "content_size_in_bytes", "long", 145, "The length of referenced content stored in the file"
            ),
        ],
        namespace="org.apache.iceberg",
    )


def partition_columns(event: Any) -> tuple[PartitionColumn, ...]:
    """The partition columns in the schema of a DataWritten event."""
    payload = _type_of_field(event, "payload")
    files = _without_null(_type_of_field(payload, "data_files"))
    partition = _type_of_field(files["items"], "partition")
    return tuple(
        PartitionColumn(one["name"], one["field-id"], _without_null(one["type"]))
        for one in partition["fields"]
    )


def _type_of_field(record: Any, name: str) -> Any:
    return next(one["type"] for one in record["fields"] if one["name"] == name)


def _without_null(union: Any) -> Any:
    return next(one for one in union if one != "null") if isinstance(union, list) else union
