"""The demo's tables and connectors: MinIO's API, error and audit logs in Iceberg. Used by the demo and the
benchmark."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyiceberg.catalog import Catalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import DayTransform, IdentityTransform
from pyiceberg.types import (
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
)

NAMESPACE: Final = "streaming"
WAREHOUSE: Final = "kafkawarehouse"
CONTROL_TOPIC: Final = "control-iceberg"


class _Fields:
    """Field ids in the order in which fields are written down."""

    def __init__(self) -> None:
        self._ids = itertools.count(1)

    def field(self, name: str, kind: IcebergType, required: bool = False) -> NestedField:
        return NestedField(next(self._ids), name, kind, required=required)

    def strings(self, *names: str) -> list[NestedField]:
        return [self.field(name, StringType()) for name in names]

    def string_map(self) -> MapType:
        return MapType(next(self._ids), StringType(), next(self._ids), StringType(), value_required=False)

    def string_list(self) -> ListType:
        return ListType(next(self._ids), StringType(), element_required=False)


def _api() -> Schema:
    fields = _Fields()
    call = [
        fields.field("httpStatusCode", IntegerType()),
        *(fields.field(name, LongType()) for name in ("rx", "tx", "txHeaders")),
        *fields.strings("timeToFirstByte", "requestReadTime", "responseWriteTime", "requestTime"),
        *fields.strings(
            "timeToResponse", "readBlocked", "writeBlocked", "sourceHost", "requestID", "userAgent"
        ),
        *fields.strings("requestPath", "requestHost"),
        *(
            fields.field(name, fields.string_map())
            for name in ("requestClaims", "requestQuery", "requestHeader", "responseHeader")
        ),
        *fields.strings("accessKey", "parentUser"),
    ]
    return Schema(
        fields.field("version", StringType()),
        fields.field("time", TimestamptzType(), required=True),
        *fields.strings("node", "origin", "type", "name", "bucket", "object", "versionId"),
        fields.field("tags", fields.string_map()),
        fields.field("callInfo", StructType(*call)),
    )


def _error() -> Schema:
    fields = _Fields()
    trace = StructType(
        fields.field("source", fields.string_list()), fields.field("variables", fields.string_map())
    )
    return Schema(
        *fields.strings("version", "node"),
        fields.field("time", TimestamptzType(), required=True),
        *fields.strings("message", "apiName"),
        fields.field("tags", fields.string_map()),
        fields.field("trace", trace),
    )


def _audit() -> Schema:
    fields = _Fields()
    return Schema(
        fields.field("version", StringType()),
        fields.field("time", TimestamptzType(), required=True),
        *fields.strings("node", "apiName", "category", "action", "bucket"),
        fields.field("tags", fields.string_map()),
        fields.field("requestID", StringType()),
        fields.field("requestClaims", fields.string_map()),
        *fields.strings("sourceHost", "accessKey", "parentUser", "details"),
    )


def _partitioned(schema: Schema, by: str | None) -> PartitionSpec:
    """By day of the record's time, then by one column as it is."""
    parts = [PartitionField(schema.find_field("time").field_id, 1000, DayTransform(), "time_day")]
    if by:
        parts.append(PartitionField(schema.find_field(by).field_id, 1001, IdentityTransform(), by))
    return PartitionSpec(*parts)


@dataclass(frozen=True)
class LogTable:
    """One kind of log: its topic, its table, its connector."""

    kind: str
    topic: str
    schema: Schema
    spec: PartitionSpec

    @property
    def table(self) -> str:
        return f"{NAMESPACE}.{self.topic}"

    @property
    def connector(self) -> str:
        return f"iceberg-sink-{self.topic}"

    def create(self, catalog: Catalog) -> None:
        catalog.create_namespace_if_not_exists(NAMESPACE)
        catalog.create_table_if_not_exists(self.table, self.schema, partition_spec=self.spec)

    def connector_config(self, catalog: Mapping[str, str]) -> dict[str, str]:
        """The config of the stack that this demo stands for, with another catalog."""
        return {
            "connector.class": "io.tabular.iceberg.connect.IcebergSinkConnector",
            "tasks.max": "2",
            "topics": self.topic,
            "iceberg.tables": self.table,
            "iceberg.tables.auto-create-enabled": "false",
            "iceberg.tables.evolve-schema-enabled": "true",
            **catalog,
            "iceberg.control.topic": CONTROL_TOPIC,
            "iceberg.control.commit.interval-ms": "10000",
            "iceberg.control.commit.timeout-ms": "60000",
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": f"{self.topic}-dead-letters",
            "errors.deadletterqueue.topic.replication.factor": "1",
            "errors.deadletterqueue.context.headers.enable": "true",
        }


_API, _ERROR, _AUDIT = _api(), _error(), _audit()

LOG_TABLES: Final = (
    LogTable("api", "apilogs", _API, _partitioned(_API, "bucket")),
    LogTable("error", "errorlogs", _ERROR, _partitioned(_ERROR, None)),
    LogTable("audit", "auditlogs", _AUDIT, _partitioned(_AUDIT, "category")),
)


def sqlite_catalog(folder: str) -> dict[str, str]:
    """Catalog keys of a connector config: an SQL catalog on SQLite and a warehouse beside it."""
    return {
        "iceberg.catalog": WAREHOUSE,
        "iceberg.catalog.catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        "iceberg.catalog.uri": f"jdbc:sqlite:{folder}/catalog.db",
        "iceberg.catalog.jdbc.schema-version": "V1",
        "iceberg.catalog.warehouse": f"file://{folder}/{WAREHOUSE}",
    }
