"""What the config of a task of the JDBC source means. Read by `source` and `table_reader`; `plugin` adds the
keys that give each task its tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from icestream.api.config import Config
from icestream.connectors.jdbc.source.columns import TypeOptions
from icestream.connectors.jdbc.source.keys import ISOLATIONS, JDBC_SOURCE
from icestream.connectors.jdbc.source.tables import TableChoice, TaskShare

POLLS_A_TURN: Final = 100
"""Java's task hands over `batch.max.rows` at a time. One transaction here may well hold more."""
TASK: Final = "icestream.jdbc.task"
"""In the config of a task: which tables are its own, as `NUMBER/TASKS`."""
TASK_TABLES: Final = "tables"
"""In the config of a task: its tables, where the connector's config names them all."""


@dataclass(frozen=True)
class SourceSettings:
    """What the config of a task says."""

    mode: str
    prefix: str
    choice: TableChoice
    share: TaskShare
    types: TypeOptions
    table_types: tuple[str, ...] = ("TABLE",)
    catalog: str | None = None
    schema: str | None = None
    query: str = field(default="", repr=False)
    suffix: str = ""
    number_column: str = ""
    number_columns: tuple[str, ...] = ()
    number_initial: int | None = None
    timestamp_columns: tuple[str, ...] = ()
    timestamp_mapping: tuple[str, ...] = ()
    timestamp_initial: int | None = None
    delay: int = 0
    """Nanoseconds."""
    validates: bool = True
    any_case: bool = False
    isolation: str = ""
    poll_seconds: float = 5.0
    tables_seconds: float = 60.0
    most: int = 100_000
    wait_seconds: float = 60.0

    @property
    def has_number(self) -> bool:
        return "incrementing" in self.mode

    @property
    def has_timestamp(self) -> bool:
        return "timestamp" in self.mode


def settings_from(config: Config) -> SourceSettings:
    """Raises ConfigError."""
    own = JDBC_SOURCE.parse(config)
    number, _, tasks = config.get(TASK, "0/1").partition("/")
    own_tables = [name for name in config.get(TASK_TABLES, "").split(",") if name]
    initial = (
        own["timestamp.initial"] if own["timestamp.initial"] is not None else own["timestamp.initial.ms"]
    )
    return SourceSettings(
        own["mode"],
        own["topic.prefix"],
        TableChoice(
            own_tables or own["table.whitelist"],
            own["table.blacklist"],
            own["table.include.list"],
            own["table.exclude.list"],
        ),
        TaskShare(int(number), int(tasks)),
        TypeOptions(numeric_mapping(own), own["timestamp.granularity"].lower(), own["db.timezone"]),
        tuple(one.upper() for one in own["table.types"]),
        own["catalog.pattern"],
        own["schema.pattern"],
        (own["query"] or own["query.masked"] or "").strip().rstrip(";"),
        own["query.suffix"],
        own["incrementing.column.name"],
        tuple(own["incrementing.column.mapping"]),
        own["incrementing.initial"],
        tuple(own["timestamp.column.name"]),
        tuple(own["timestamp.columns.mapping"]),
        initial,
        own["timestamp.delay.interval.ms"] * 1_000_000,
        own["validate.non.null"],
        own["quote.sql.identifiers"].upper() == "NEVER",
        ISOLATIONS[own["transaction.isolation.mode"]],
        own["poll.interval.ms"] / 1000,
        own["table.poll.interval.ms"] / 1000,
        POLLS_A_TURN * own["batch.max.rows"],
        own["icestream.jdbc.transaction.wait.ms"] / 1000,
    )


def numeric_mapping(own: dict[str, Any]) -> str:
    if own["numeric.mapping"] is not None:
        return str(own["numeric.mapping"]).lower()
    return "precision_only" if own["numeric.precision.mapping"] else "none"
