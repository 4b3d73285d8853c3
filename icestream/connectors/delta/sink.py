"""The open Delta sink of one job: its tables. Made by `plugin`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa

from icestream.api.config import Config, subset
from icestream.api.sink import OpenWriter, Routing, Sink
from icestream.connectors.delta.commits.log import FOLDER
from icestream.connectors.delta.named_tables import tables_of_job
from icestream.connectors.delta.new_table import NewTable
from icestream.connectors.delta.settings import CDC_FIELD, DELTA_SINK, ROUTES, is_upsert
from icestream.connectors.delta.storage import Storage
from icestream.connectors.delta.table import DeltaSinkTable, TableOptions
from icestream.connectors.delta.table_settings import WRITE_PROPS, location_of, table_setting
from icestream.connectors.delta.writer import DeltaRoutedWriter, DeltaWriter
from icestream.rows.free_form import path_of
from icestream.rows.new_columns import GrowthLimit
from icestream.tables.given import names_in
from icestream.tables.last_used import LastUsed
from icestream.tables.upserts.changes import OWN_COLUMNS, UpsertPlan

RESERVED: Final = frozenset({"_change_type", "_commit_version", "_commit_timestamp", "_metadata"})
"""Columns that readers of change data add, or that Spark has of every file."""
_MERGE_SECONDS: Final = 3600.0
NOT_IN_DELTA: Final = (pa.time64("us"),)
"""Types of new columns that Delta has not; records that have them are bad ones, with the reason."""
ALL_LEVELS: Final = 1_000
"""Delta has no two fields whose names differ in case only, at any level."""
_MOST_OPEN: Final = 1_000
"""Tables that only records name and that stay open."""


def table_from(table: str, job: str, config: Config) -> DeltaSinkTable:
    """One table as a config has it written."""
    settings = DELTA_SINK.parse(config)
    limit = replace(
        GrowthLimit.from_config(config, RESERVED | OWN_COLUMNS if is_upsert(config) else RESERVED),
        unfit=NOT_IN_DELTA,
        any_case=ALL_LEVELS,
    )
    any_case = settings["delta.tables.schema-case-insensitive"]
    ids = names_in(table_setting(config, table, "id-columns"))
    return DeltaSinkTable(
        table,
        job,
        TableOptions(
            location_of(config, table),
            Storage.from_config(config),
            subset(config, WRITE_PROPS),
            growth=limit if settings["delta.tables.evolve-schema-enabled"] else None,
            new_table=NewTable.from_config(config, table, any_case=any_case)
            if settings["delta.tables.auto-create-enabled"]
            else None,
            limit=limit,
            force_optional=settings["delta.tables.schema-force-optional"],
            kafka_columns=settings["icestream.delta.kafka-columns"],
            any_case=any_case,
            texts=frozenset(map(path_of, settings["icestream.delta.json-columns"])),
            id_columns=ids,
            upserts=UpsertPlan(tuple(ids), settings[CDC_FIELD] or None) if is_upsert(config) else None,
        ),
    )


class DeltaSink(Sink):
    def __init__(self, name: str, config: Config) -> None:
        settings = DELTA_SINK.parse(config)
        tables = settings["delta.tables"]
        plan = ROUTES.plan(config, tables)
        self.writer: OpenWriter = DeltaWriter if plan is None else DeltaRoutedWriter
        if plan is not None:
            plan = replace(plan, has_keys=is_upsert(config), reserved=frozenset({FOLDER}))
            grows = ROUTES.names_come_from_records(config)
            self.routing = Routing(plan, grows, settings[ROUTES.most_tables], ROUTES.most_tables)

        def opened(table: str) -> DeltaSinkTable:
            return table_from(table, name, config)

        if is_upsert(config):
            self.commit_seconds = _MERGE_SECONDS
        self._open = opened
        self._config = config
        self._job = name
        self._tables = [opened(table) for table in tables]
        self._named = LastUsed(opened, _MOST_OPEN)

    def targets(self) -> Sequence[DeltaSinkTable]:
        return self._tables

    def target(self, name: str) -> DeltaSinkTable:
        by_config = next((table for table in self._tables if table.name == name), None)
        return by_config or self._named.get(name)

    def known_targets(self) -> Sequence[DeltaSinkTable]:
        if self.routing is None or not self.routing.grows:
            return self._tables
        return [self._open(name) for name in tables_of_job(self._config, self._job)]
