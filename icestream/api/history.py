"""What a job tells of each batch, and what else happened to a connector. Managers tell an `Observer`; the
worker keeps it (`cluster/history/history.py`), counts it (`metrics/`), and shows it in the console.

Plain data: it crosses the border of a job's process as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol

STAGES: Final = ("plan", "queue", "read", "convert", "transform", "stage", "commit", "publish")
"""What a batch goes through. `queue` is the Spark job's time less its longest task; `read` to `stage` happen
inside tasks."""

PASSED_OVER: Final = "sink"
"""Under this name records are filtered that the sink itself passes over, such as those without a value."""


MOST_PARTITIONS: Final = 1_000
"""That are told one by one (`PartitionLag`): those that are furthest behind."""
MOST_TOPICS: Final = 200
OTHER_TOPICS: Final = "other"


class Outcome(StrEnum):
    """What became of a batch."""

    UNDER_WAY = "under-way"
    COMMITTED = "committed"
    EMPTY = "empty"
    """Nothing of it was for the targets, or nothing filled a file yet."""
    RUN_AGAIN = "run-again"
    """A target needed new columns or had to be created first."""
    CUT = "cut"
    """It was too large, or only what precedes a bad record was landed."""
    CONFLICT = "conflict"
    """The target has another checkpoint than the one that the batch follows."""
    UNKNOWN = "unknown"
    """Whether the commit landed is asked at the next turn."""
    UNAVAILABLE = "unavailable"
    CANCELLED = "cancelled"
    FAILED = "failed"


@dataclass(frozen=True)
class TargetCommit:
    """What a batch did to one target."""

    name: str
    id: str = ""
    """The target's own name of the commit, such as a snapshot id; empty if it did not land."""
    rows: int = 0
    seconds: float = 0.0
    file_bytes: tuple[int, ...] = ()
    """The size of each file that was added, where the target has files."""
    outcome: Outcome = Outcome.COMMITTED


@dataclass(frozen=True)
class TopicCounts:
    """What became of the records that a batch has read of one topic."""

    written: int = 0
    rejected: int = 0
    invalid: int = 0
    """Of the rejected, those that break the JSON Schema of the topic."""


@dataclass(frozen=True)
class TableCommit:
    """One commit of a target, as the target itself remembers it; None is what it does not tell."""

    target: str
    id: str
    """Such as a snapshot id, a version, or the number of an entry."""
    at_ms: int
    operation: str = ""
    files: int | None = None
    """Added by it."""
    rows: int | None = None
    bytes: int | None = None
    rejected: int | None = None
    filtered: int | None = None
    valid_through_ms: int | None = None
    commit: str = ""
    """The id of the batch."""
    is_ours: bool = True
    """Whether the connector has made it, and not another job, maintenance, or somebody by hand."""


@dataclass(frozen=True)
class BatchRecord:
    """One batch, from its plan to its end. The same `id` is told again when it has ended."""

    id: str
    started_ms: int
    outcome: Outcome
    seconds: float = 0.0
    planned: int = 0
    """How many offsets it spans; of a source, which plans nothing, what it has read."""
    read: int = 0
    """`read = written + rejected + filtered`, always. Only batches that landed have counts (`landed`): what
    was read in vain is read again."""
    written: int = 0
    """Records that are in the targets; one that several targets have counts once."""
    rejected: Mapping[str, int] = field(default_factory=dict)
    """By stage, as Kafka Connect names them (`VALUE_CONVERTER`, …)."""
    filtered: Mapping[str, int] = field(default_factory=dict)
    """By the alias of the transform that dropped them; `PASSED_OVER` for what the sink has no use for."""
    bytes: int = 0
    """Of keys and values that were read."""
    lag_after: int | None = None
    newest_ms: Mapping[str, int] = field(default_factory=dict)
    """Timestamp of the newest record, by topic."""
    valid_through_ms: int | None = None
    tasks: int = 0
    longest_task: float = 0.0
    stages: Mapping[str, float] = field(default_factory=dict)
    """Seconds by stage (`STAGES`); those inside tasks are summed over tasks."""
    targets: tuple[TargetCommit, ...] = ()
    topics: Mapping[str, TopicCounts] = field(default_factory=dict)
    """What was counted, by topic; those beyond `MOST_TOPICS` are together as `OTHER_TOPICS`."""
    letters: int = 0
    """Dead letters that were published with it."""
    note: str = ""
    """Why it did not land, or what is special about it, in a sentence."""

    @property
    def is_over(self) -> bool:
        return self.outcome is not Outcome.UNDER_WAY

    @property
    def landed(self) -> bool:
        """Whether its records are dealt with: its counts are final."""
        return self.outcome in (Outcome.COMMITTED, Outcome.EMPTY)


@dataclass(frozen=True)
class PartitionLag:
    """Where a job is in one partition of its source."""

    topic: str
    partition: int
    next_offset: int
    """The offset after the last record that is in the target."""
    end: int
    newest_ms: int | None = None
    """Timestamp of the newest record that is in the target."""

    @property
    def lag(self) -> int:
        return max(0, self.end - self.next_offset)


@dataclass(frozen=True)
class Event:
    """Something that happened to a connector, other than a batch."""

    at_ms: int
    kind: str
    """`state`, `restart`, `config`, `offsets`, `replay`, `rebalance`, `retry`, `circuit`, `maintenance`,
    `fenced`, `schema`."""
    text: str
    """A sentence, without secrets."""
    user: str = ""
    """Who asked for it, where somebody logged in."""
    about: str = ""
    """What is counted apart: of a `retry` who did not answer (`kafka`, `destination`, `spark`), of a `schema`
    what was changed (`add_column`, `widen`, …), of a `maintenance` its outcome (`done`, `failed`)."""
    numbers: Mapping[str, float] = field(default_factory=dict)
    """What can be added up, such as `seconds`, `files` and `bytes` of a `maintenance`, `records` of a
    `replay`, `columns` of a `schema`."""


class Observer(Protocol):
    """Told in order, of all connectors of a worker. `icestream.observers.Observers` has each one told by a
    thread of its own, so that one that waits or raises harms nobody but itself."""

    def batch(self, connector: str, record: BatchRecord) -> None: ...

    def event(self, connector: str, event: Event) -> None: ...

    def forget(self, connector: str) -> None:
        """It was deleted, or another worker has it now."""


class NobodyLooks:
    """For jobs whose batches nobody keeps."""

    def batch(self, connector: str, record: BatchRecord) -> None:
        pass

    def event(self, connector: str, event: Event) -> None:
        pass

    def forget(self, connector: str) -> None:
        pass
