"""The table in which a database keeps how far each job is, one row for each of its targets. Used by `table`,
inside of the transactions that change rows."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from icestream.api.checkpoint import Checkpoint, from_json, to_json
from icestream.api.errors import FatalError
from icestream.api.offsets import Partition
from icestream.connectors.jdbc.connections import Access
from icestream.connectors.jdbc.dialects.base import Connection, TableId, execute, rows_of
from icestream.connectors.jdbc.sink.plans import Refused


@dataclass(frozen=True)
class Stored:
    """What the table says of one target of a job."""

    commit: str
    table_id: str
    checkpoint: Checkpoint
    refused: Refused = field(default_factory=dict)
    """Rows of the last commit's batch that the database refused."""


@dataclass(frozen=True)
class CheckpointTable:
    access: Access
    table: TableId

    @property
    def _name(self) -> str:
        return self.access.dialect.quoted_table(self.table)

    def exists(self, connection: Connection) -> bool:
        return self.access.dialect.find(connection, self.table) is not None

    def create(self, connection: Connection) -> None:
        """If it is missing. Two may try at the same time: one of them fails, and tries again."""
        if self.exists(connection):
            return
        text, name = self.access.dialect.long_text, self.access.dialect.exact_text
        execute(
            connection,
            f"CREATE TABLE IF NOT EXISTS {self._name} (job {name} NOT NULL, target {name} NOT NULL, "
            f"commit_id VARCHAR(64) NOT NULL, table_id VARCHAR(255) NOT NULL, checkpoint {text} NOT NULL, "
            f"refused {text} NOT NULL, PRIMARY KEY (job, target)){self.access.dialect.table_options}",
        )
        connection.commit()

    def load(self, connection: Connection, job: str, target: str, *, locks: bool = False) -> Stored | None:
        """What is stored; with `locks`, nobody else changes it before the transaction ends."""
        mark = self.access.dialect.placeholder
        query = (
            f"SELECT commit_id, table_id, checkpoint, refused FROM {self._name} "
            f"WHERE job = {mark} AND target = {mark}"
        )
        found = rows_of(connection, query + (self.access.dialect.lock_clause if locks else ""), (job, target))
        if not found:
            return None
        commit, table_id, checkpoint, refused = found[0]
        try:
            return Stored(commit, table_id, from_json(json.loads(checkpoint)), _refused(json.loads(refused)))
        except (ValueError, KeyError, TypeError) as error:
            raise FatalError(
                f"{self.table} has a checkpoint of job '{job}' that cannot be read ({error}); restore it, or "
                "reset the connector's offsets"
            ) from error

    def store(self, connection: Connection, job: str, target: str, stored: Stored, *, is_new: bool) -> None:
        mark = self.access.dialect.placeholder
        values = (
            stored.commit,
            stored.table_id,
            json.dumps(to_json(stored.checkpoint)),
            json.dumps(_plain(stored.refused)),
            job,
            target,
        )
        if is_new:
            marks = ", ".join([mark] * len(values))
            columns = "commit_id, table_id, checkpoint, refused, job, target"
            execute(connection, f"INSERT INTO {self._name} ({columns}) VALUES ({marks})", values)
        else:
            execute(
                connection,
                f"UPDATE {self._name} SET commit_id = {mark}, table_id = {mark}, checkpoint = {mark}, "
                f"refused = {mark} WHERE job = {mark} AND target = {mark}",
                values,
            )

    def targets(self, connection: Connection, job: str) -> list[str]:
        """All targets of a job that have a checkpoint."""
        if not self.exists(connection):
            return []
        mark = self.access.dialect.placeholder
        found = rows_of(
            connection, f"SELECT target FROM {self._name} WHERE job = {mark} ORDER BY target", (job,)
        )
        return [str(row[0]) for row in found]


def _plain(refused: Refused) -> list[list[Any]]:
    return [
        [*partition, offset, reason]
        for partition, rows in sorted(refused.items())
        for offset, reason in sorted(rows.items())
    ]


def _refused(plain: list[list[Any]]) -> dict[Partition, dict[int, str]]:
    found: dict[Partition, dict[int, str]] = {}
    for topic, number, offset, reason in plain:
        found.setdefault(Partition(topic, number), {})[offset] = reason
    return found
