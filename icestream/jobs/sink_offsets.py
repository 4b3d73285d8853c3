"""Offsets of sink connectors, read and changed by hand. The service calls it while the job does not run.

For an Iceberg sink the tables decide, so a change is a commit to each of them, and the consumer group
follows. For other sinks the group is all there is. Every change may be repeated: it ends in the same state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from icestream.api.config import Config
from icestream.api.errors import ConfigError, SinkUnavailable
from icestream.api.offset_admin import OffsetEntry
from icestream.api.offsets import Offsets
from icestream.connectors.iceberg.catalogs import open_catalog
from icestream.connectors.iceberg.settings import write_props
from icestream.connectors.iceberg.table import IcebergTable
from icestream.deadlines import Overdue, lease, within
from icestream.jobs.group_ledger import ConnectorKafka, GroupLedger
from icestream.jobs.iceberg_ledger import IcebergLedger
from icestream.jobs.job import Job, job_from
from icestream.jobs.offset_entries import Moves, entries_from, moves_from
from icestream.plugins import sink_plugin

_T = TypeVar("_T")

_READ_SECONDS = 30.0
_CHANGE_SECONDS = 80.0
"""Kafka Connect's clients wait 90 s for an answer."""


class _Ledger(Protocol):
    """Where the offsets of one connector are kept."""

    def read(self) -> Offsets: ...

    def alter(self, moves: Moves) -> str: ...

    def reset(self) -> str: ...


class SinkOffsets:
    """The `OffsetAdmin` of sinks."""

    def __init__(self, worker: Mapping[str, str]) -> None:
        self._worker = worker

    def read(self, name: str, config: Config) -> list[OffsetEntry]:
        offsets = _in_time(_READ_SECONDS, name, lambda: self._ledger(name, config).read())
        return entries_from(offsets)

    def alter(self, name: str, config: Config, entries: Sequence[OffsetEntry]) -> str:
        moves = moves_from(entries)
        still_awaited = lease(_CHANGE_SECONDS)
        return _in_time(_CHANGE_SECONDS, name, lambda: self._ledger(name, config, still_awaited).alter(moves))

    def reset(self, name: str, config: Config) -> str:
        still_awaited = lease(_CHANGE_SECONDS)
        return _in_time(_CHANGE_SECONDS, name, lambda: self._ledger(name, config, still_awaited).reset())

    def _ledger(self, name: str, config: Config, still_awaited: Callable[[], None] = lambda: None) -> _Ledger:
        kafka = ConnectorKafka.of(name, config, self._worker)
        if not sink_plugin(config.get("connector.class", "")).uses_spark:
            return GroupLedger(kafka, job_from(name, config), still_awaited)
        return iceberg_ledger(kafka, job_from(name, config), config, still_awaited=still_awaited)


def iceberg_ledger(
    kafka: ConnectorKafka,
    job: Job,
    config: Config,
    reached: Callable[[str], None] = lambda point: None,
    still_awaited: Callable[[], None] = lambda: None,
) -> _Ledger:
    """Of the tables that exist; without any, the consumer group's."""
    catalog = open_catalog(config)
    tables = [IcebergTable(catalog, name, job.name, write_props=write_props(config)) for name in job.tables]
    existing = [table for table in tables if _exists(table)]
    if not existing:
        return GroupLedger(kafka, job, still_awaited)
    return IcebergLedger(kafka, job, existing, reached, still_awaited)


def _in_time(seconds: float, name: str, call: Callable[[], _T]) -> _T:
    try:
        return within(seconds, call, f"offsets-{name}")
    except Overdue:
        raise SinkUnavailable(
            f"the offsets of connector '{name}' could not be had in {seconds:.0f} s: its catalog or Kafka "
            "does not answer; a change may have happened in part, so look at the offsets and ask again"
        ) from None


def _exists(table: IcebergTable) -> bool:
    try:
        table.found()
    except ConfigError:
        return False
    return True
