"""The API log's Iceberg schema and partitioning."""

from __future__ import annotations

from typing import Final

from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.transforms import DayTransform, IdentityTransform
from pyiceberg.types import (
    IcebergType,
    IntegerType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
)

_MAP: Final = MapType(0, StringType(), 0, StringType(), value_required=False)
_CALL_INFO: Final[dict[str, IcebergType]] = {
    "httpStatusCode": IntegerType(),
    **dict.fromkeys(("rx", "tx", "txHeaders"), LongType()),
    **dict.fromkeys(
        (
            "timeToFirstByte",
            "requestReadTime",
            "responseWriteTime",
            "requestTime",
            "timeToResponse",
            "readBlocked",
            "writeBlocked",
            "sourceHost",
            "requestID",
            "userAgent",
            "requestPath",
            "requestHost",
        ),
        StringType(),
    ),
    **dict.fromkeys(("requestClaims", "requestQuery", "requestHeader", "responseHeader"), _MAP),
    **dict.fromkeys(("accessKey", "parentUser"), StringType()),
}
_API: Final[dict[str, IcebergType]] = {
    "version": StringType(),
    "time": TimestamptzType(),
    **dict.fromkeys(("node", "origin", "type", "name", "bucket", "object", "versionId"), StringType()),
    "tags": _MAP,
    "callInfo": StructType(
        *(NestedField(0, name, kind, required=False) for name, kind in _CALL_INFO.items())
    ),
}
API_SCHEMA: Final = assign_fresh_schema_ids(
    Schema(
        *(
            NestedField(at, name, kind, required=name == "time")
            for at, (name, kind) in enumerate(_API.items(), 1)
        )
    )
)
API_PARTITIONING: Final = PartitionSpec(
    PartitionField(API_SCHEMA.find_field("time").field_id, 1000, DayTransform(), "time_day"),
    PartitionField(API_SCHEMA.find_field("bucket").field_id, 1001, IdentityTransform(), "bucket"),
)
