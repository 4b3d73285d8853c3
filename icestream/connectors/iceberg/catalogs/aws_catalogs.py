"""PyIceberg's catalogs in AWS, with our guards: Glue, and DynamoDB.

PyIceberg reads the latter and does not commit to it; here it does. Opened by `guarded_catalogs.py`.
"""

from __future__ import annotations

import time
import uuid
from typing import Any

from pyiceberg.catalog import (
    ICEBERG,
    METADATA_LOCATION,
    PREVIOUS_METADATA_LOCATION,
    TABLE_TYPE,
)
from pyiceberg.catalog.dynamodb import DYNAMODB_COL_UPDATED_AT, DYNAMODB_COL_VERSION, DynamoDbCatalog
from pyiceberg.catalog.glue import GlueCatalog, _register_glue_catalog_id_with_glue_client
from pyiceberg.exceptions import CommitFailedException, ConditionalCheckFailedException, NoSuchTableError
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.update import TableRequirement, TableUpdate
from pyiceberg.typedef import EMPTY_DICT, Properties

from icestream.api.errors import ConfigError, Problem
from icestream.connectors.iceberg.catalogs.aws_login import aws_client, aws_session, role_of
from icestream.connectors.iceberg.catalogs.keys import PREFIX, storage_properties
from icestream.connectors.iceberg.catalogs.lent_login import LentLogin


class GuardedGlueCatalog(LentLogin, GlueCatalog):
    """A table's version is the lock: Glue refuses an update of one that is not the newest."""

    def __init__(self, name: str, **properties: str) -> None:
        session = aws_session(properties, role_of(properties), "glue", "client")
        attempts = int(properties.get("glue.max-retries") or 5)
        client = aws_client(session, "glue", properties.get("glue.endpoint"), attempts)
        if account := properties.get("glue.id"):
            _register_glue_catalog_id_with_glue_client(client, account)
        super().__init__(name, client, **properties)

    def close(self) -> None:
        self.glue.close()

    def _load_file_io(self, properties: Properties = EMPTY_DICT, location: str | None = None) -> FileIO:
        return load_file_io(storage_properties({**self.properties, **properties}), location)


class GuardedDynamoDbCatalog(LentLogin, DynamoDbCatalog):
    """Rows as Java's `DynamoDbCatalog` has them. The lock is a row's version, `v`."""

    def __init__(self, name: str, **properties: str) -> None:
        session = aws_session(properties, role_of(properties), "dynamodb", "client")
        self._creates = properties.get("init_catalog_tables", "true") == "true"
        # Whoever only looks does not wait for better times.
        attempts = 5 if self._creates else 1
        client = aws_client(session, "dynamodb", properties.get("dynamodb.endpoint"), attempts)
        own = {"table-name": properties.get("dynamodb.table-name") or "iceberg"}
        super().__init__(name, client, **properties, **own)

    def close(self) -> None:
        self.dynamodb.close()

    def _ensure_catalog_table_exists_or_create(self) -> None:
        if not self._creates and not self._dynamodb_table_exists():
            name = self.dynamodb_table_name
            reason = f"there is no DynamoDB table '{name}'; create the catalog and its tables first"
            raise ConfigError(
                [Problem(f"{PREFIX}dynamodb.table-name", f"{PREFIX}dynamodb.table-name: {reason}.")]
            )
        super()._ensure_catalog_table_exists_or_create()

    def _load_file_io(self, properties: Properties = EMPTY_DICT, location: str | None = None) -> FileIO:
        return load_file_io(storage_properties({**self.properties, **properties}), location)

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """As PyIceberg's other catalogs do it: write the metadata, then put it in the place of the old."""
        identifier = table.name()
        database, name = self.identifier_to_database_and_table(identifier, NoSuchTableError)
        item = self._get_iceberg_table_item(database_name=database, table_name=name)
        current = self._convert_dynamo_table_item_to_iceberg_table(item)
        staged = self._update_and_stage_table(current, identifier, requirements, updates)
        if staged.metadata == current.metadata:
            return _response(current)
        self._write_metadata(staged.metadata, staged.io, staged.metadata_location)
        version = item[DYNAMODB_COL_VERSION]["S"]
        changed = {
            **item,
            DYNAMODB_COL_VERSION: {"S": str(uuid.uuid4())},
            DYNAMODB_COL_UPDATED_AT: {"N": str(round(time.time() * 1000))},
            f"p.{TABLE_TYPE}": {"S": ICEBERG.upper()},
            f"p.{METADATA_LOCATION}": {"S": staged.metadata_location},
            f"p.{PREVIOUS_METADATA_LOCATION}": {"S": current.metadata_location},
        }
        try:
            self._put_if_version(changed, version)
        except ConditionalCheckFailedException as error:
            raise CommitFailedException(
                f"Cannot commit {database}.{name}: somebody else changed it meanwhile"
            ) from error
        return _response(staged)

    def _put_if_version(self, item: dict[str, Any], version: str) -> None:
        try:
            self.dynamodb.put_item(
                TableName=self.dynamodb_table_name,
                Item=item,
                ConditionExpression=f"{DYNAMODB_COL_VERSION} = :version",
                ExpressionAttributeValues={":version": {"S": version}},
            )
        except self.dynamodb.exceptions.ConditionalCheckFailedException as error:
            raise ConditionalCheckFailedException(str(error)) from error


def _response(table: Table) -> CommitTableResponse:
    return CommitTableResponse.model_validate(
        {"metadata": table.metadata, "metadata-location": table.metadata_location}
    )
