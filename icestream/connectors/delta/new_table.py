"""Creates Delta tables that are missing, from the fields of the records that are for them
(`delta.tables.auto-create-enabled`). Called by the job manager alone, through `table.py`.

The log decides who creates a table: whoever comes second takes the one that is there.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.types as pt
from deltalake import DeltaTable, PostCommitHookProperties, Schema
from deltalake.exceptions import DeltaError

from icestream.api.config import Config, subset
from icestream.connectors.delta.files.partitions import can_partition
from icestream.connectors.delta.opening import delta_errors, open_table
from icestream.connectors.delta.schemas import arrow_schema, new_schema
from icestream.connectors.delta.storage import Storage, table_uri
from icestream.connectors.delta.table_settings import AUTO_CREATE_PROPS, table_setting
from icestream.tables.given import Given, names_in
from icestream.tables.new_table_columns import named_field, not_created

_log = logging.getLogger(__name__)

WITHOUT_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
"""What follows a commit is a step of its own: its failure must not look like that of the commit."""


@dataclass(frozen=True)
class NewTable:
    """How a missing table is created."""

    partition_by: Given = field(default_factory=lambda: Given("", ""))
    id_columns: Given = field(default_factory=lambda: Given("", ""))
    properties: Mapping[str, str] = field(default_factory=dict)
    any_case: bool = False
    """Whether the names of columns in the config match whatever their case."""

    @classmethod
    def from_config(cls, config: Config, table: str, *, any_case: bool = False) -> NewTable:
        return cls(
            table_setting(config, table, "partition-by"),
            table_setting(config, table, "id-columns"),
            subset(config, AUTO_CREATE_PROPS),
            any_case,
        )

    def create(self, name: str, location: str, storage: Storage, record: pa.StructType) -> None:
        ids = [
            named_field(column, record, name, self.id_columns, any_case=self.any_case)
            for column in names_in(self.id_columns)
        ]
        schema_json = new_schema(record, ids)
        columns = self._partitions(name, record, schema_json)
        try:
            DeltaTable.create(
                table_uri(location),
                Schema.from_json(schema_json),
                partition_by=columns,
                configuration=dict(self.properties),
                storage_options=storage.for_delta(location),
                post_commithook_properties=WITHOUT_HOOKS,
                raise_if_key_not_exists=False,
            )
        except (DeltaError, OSError):
            # Somebody else was first, or the answer was lost: what is there now counts.
            if open_table(name, location, storage) is None:
                with delta_errors(f"creating table {name}"):
                    raise
            _log.info("table %s was created by somebody else meanwhile", name)
            return
        _log.info(
            "created table %s with %s columns, %s",
            name,
            record.num_fields,
            f"partitioned by {', '.join(columns)}" if columns else "not partitioned",
        )

    def _partitions(self, name: str, record: pa.StructType, schema_json: str) -> list[str]:
        schema = arrow_schema(schema_json)
        columns = [
            named_field(column, record, name, self.partition_by, any_case=self.any_case)
            for column in names_in(self.partition_by)
        ]
        for column in columns:
            kind = schema.field(column).type
            if not can_partition(kind) or pt.is_nested(kind):
                raise not_created(
                    self.partition_by, name, f"column '{column}' of type {kind} divides no table"
                )
        if columns and len(columns) == len(schema):
            raise not_created(self.partition_by, name, "no column would be left for its files")
        return columns
