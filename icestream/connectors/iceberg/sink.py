"""The open Iceberg sink of one job: its tables, and the events of its control topic. Made by `plugin`."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from pyiceberg.catalog import Catalog

from icestream.api.config import Config
from icestream.api.queries import SparkQueries
from icestream.api.sink import Inheritance, LeftBehind, Message, OpenWriter, Receipt, Routing, Sink
from icestream.connectors.iceberg.catalogs.java_catalogs import java_catalog
from icestream.connectors.iceberg.catalogs.sharing import SharedCatalog
from icestream.connectors.iceberg.coordinator.events import (
    CommitComplete,
    CommitToTable,
    Event,
    Payload,
    StartCommit,
    TableReference,
    encoded,
)
from icestream.connectors.iceberg.coordinator.takeover import commit_left_behind, java_job_of
from icestream.connectors.iceberg.named_tables import tables_of_job
from icestream.connectors.iceberg.new_table import NewTable
from icestream.connectors.iceberg.settings import (
    ICEBERG_SINK,
    ROUTES,
    commit_branch,
    group_of,
    id_columns,
    is_upsert,
    write_props,
)
from icestream.connectors.iceberg.table import IcebergTable
from icestream.connectors.iceberg.upserts.commit import COMMIT_SECONDS, Upserts
from icestream.connectors.iceberg.upserts.merge import NOT_IN_SPARK
from icestream.connectors.iceberg.writer import IcebergRoutedWriter, IcebergWriter
from icestream.rows.free_form import path_of
from icestream.rows.new_columns import GrowthLimit
from icestream.tables.last_used import LastUsed
from icestream.tables.upserts.changes import OWN_COLUMNS

RESERVED: Final = frozenset(
    {
        *("_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number"),
        *("_change_type", "_change_ordinal", "_commit_snapshot_id"),
    }
)
"""Columns that every Iceberg table has by itself: with others of these names, MERGE and compaction fail."""


_MOST_OPEN: Final = 1_000
"""Tables that only records name and that stay open."""


def table_from(
    catalog: Catalog, table: str, job: str, config: Config, queries: SparkQueries | None = None
) -> IcebergTable:
    """One table as a config has it written."""
    settings = ICEBERG_SINK.parse(config)
    limit = GrowthLimit.from_config(config, RESERVED | OWN_COLUMNS)
    if is_upsert(config):
        limit = replace(limit, unfit=NOT_IN_SPARK)
    any_case = settings["iceberg.tables.schema-case-insensitive"]
    return IcebergTable(
        catalog,
        table,
        job,
        branch=commit_branch(config, table),
        group=group_of(job, config),
        write_props=write_props(config),
        growth=limit if settings["iceberg.tables.evolve-schema-enabled"] else None,
        new_table=NewTable.from_config(config, table, any_case=any_case, needs_ids=is_upsert(config))
        if settings["iceberg.tables.auto-create-enabled"]
        else None,
        limit=limit,
        force_optional=settings["iceberg.tables.schema-force-optional"],
        upserts=upserts_of(config, table, queries),
        kafka_columns=settings["icestream.iceberg.kafka-columns"],
        any_case=any_case,
        texts=frozenset(map(path_of, settings["icestream.iceberg.json-columns"])),
    )


def upserts_of(config: Config, table: str, queries: SparkQueries | None) -> Upserts | None:
    """None: every record is a row of its own."""
    if not is_upsert(config):
        return None
    settings = ICEBERG_SINK.parse(config)
    ids = id_columns(config, table)
    return Upserts(
        ids,
        settings["iceberg.tables.cdc-field"] or None,
        java_catalog(config),
        queries,
        settings["iceberg.tables.schema-case-insensitive"],
    )


class IcebergSink(Sink):
    def __init__(self, name: str, config: Config, queries: SparkQueries | None = None) -> None:
        settings = ICEBERG_SINK.parse(config)
        tables = settings["iceberg.tables"]
        plan = ROUTES.plan(config, tables)
        self.writer: OpenWriter = IcebergWriter if plan is None else IcebergRoutedWriter
        if plan is not None:
            plan = replace(plan, has_keys=is_upsert(config))
            most = settings[ROUTES.most_tables]
            grows = ROUTES.names_come_from_records(config)
            self.routing = Routing(plan, grows, most, ROUTES.most_tables)
        self._job = name
        if is_upsert(config):
            self.commit_seconds = COMMIT_SECONDS
        self._catalog = settings["iceberg.catalog"] or "iceberg"
        self._control_topic = settings["iceberg.control.topic"]
        self._group = group_of(name, config)
        self._producer = str(uuid.uuid4()).encode()
        self._java_job = java_job_of(name, self._group, self._control_topic, config)
        self._shared = SharedCatalog(config)
        catalog = self._shared.catalog

        def opened(table: str) -> IcebergTable:
            return table_from(catalog, table, name, config, queries)

        self._open = opened
        self._named = LastUsed(opened, _MOST_OPEN)
        try:
            self._tables = [opened(table) for table in tables]
        except BaseException:
            self.close()
            raise

    def inheritance(self) -> Inheritance:
        return Inheritance(self._control_topic, f"{self._group}-coord")

    def inherit(self, left: LeftBehind) -> None:
        commit_left_behind(self._shared.catalog, self._java_job, left)

    def targets(self) -> Sequence[IcebergTable]:
        return self._tables

    def target(self, name: str) -> IcebergTable:
        by_config = next((table for table in self._tables if table.name == name), None)
        return by_config or self._named.get(name)

    def known_targets(self) -> Sequence[IcebergTable]:
        if self.routing is None or not self.routing.grows:
            return self._tables
        return [self._open(name) for name in tables_of_job(self._shared.catalog, self._job)]

    def event_topics(self) -> Sequence[str]:
        return [self._control_topic]

    def events(
        self, commit: str, receipts: Mapping[str, Receipt] | None, valid_through: dt.datetime | None
    ) -> Sequence[Message]:
        id_ = uuid.UUID(commit)
        payloads: list[Payload] = [CommitComplete(id_, valid_through)]
        if receipts is not None:
            tables = [
                CommitToTable(id_, self._reference(self.target(name)), receipt.id, valid_through)
                for name, receipt in receipts.items()
                if receipt.id is not None
            ]
            payloads = [StartCommit(id_), *tables, *payloads]
        now = dt.datetime.now(dt.UTC)
        return [
            Message(
                self._control_topic,
                self._producer,
                encoded(Event(uuid.uuid4(), now, self._group, payload)),
            )
            for payload in payloads
        ]

    def close(self) -> None:
        self._shared.close()

    def _reference(self, table: IcebergTable) -> TableReference:
        *namespace, name = table.name.split(".")
        return TableReference(self._catalog, tuple(namespace), name, table.id)
