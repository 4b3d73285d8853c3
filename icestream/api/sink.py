"""What a sink is to everybody else: it has targets, stages rows for them, and commits them with a checkpoint.

A connector's folder implements these; the sink manager (`jobs`) and the tasks (`pipeline`) know nothing more.
A batch goes through a sink like this: the manager asks each `Target` what it `found` and how to write for it
(`plan`); tasks open the sink's `SinkWriter`, which stages rows; the manager has each target `commit` what was
staged. The target decides: its commit lands only on the checkpoint that the batch started from.
"""

from __future__ import annotations

import datetime as dt
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from icestream.api.batch import Batch, BatchResult, Staged
from icestream.api.checkpoint import Checkpoint, FoundCheckpoint
from icestream.api.config import Config
from icestream.api.connector import ConnectorPlugin
from icestream.api.environment_job import EnvironmentJob
from icestream.api.errors import FatalError
from icestream.api.history import TableCommit
from icestream.api.maintenance import Maintainer, MaintenanceRhythm
from icestream.api.offsets import NOTHING, Offsets, Partition
from icestream.api.topics_file import TopicsFileRules

if TYPE_CHECKING:
    # For their names alone: the vocabulary has no code of others below it.
    from pyroaring import BitMap64

    from icestream.api.batch import Failure
    from icestream.api.queries import SparkQueries
    from icestream.records.origins import RowOrigins
    from icestream.records.records import Records
    from icestream.records.rows import Indexes

TASK_PUT = "TASK_PUT"
"""The stage of a record that the sink itself cannot take."""


# -- in a task --


@dataclass(frozen=True)
class Routing:
    """How records find their target, where not every target gets every record."""

    plan: Any
    """The sink's own. Picklable."""
    grows: bool = False
    """Whether records name targets that `Sink.targets` does not."""
    most_targets: int = 1_000
    """As many may the records of a job name: each costs memory, and calls to where it is."""
    most_targets_key: str = ""
    """The setting that says so."""


@dataclass(frozen=True)
class TargetTask:
    """A target to write for, by its own plan; rows before `start` are in it already."""

    name: str
    plan: Any
    start: Offsets = NOTHING


@dataclass(frozen=True)
class WriterTask:
    """What a writer is told when it opens. Plain data: it crosses process boundaries."""

    targets: Sequence[TargetTask]
    batch: str
    """Its id, for the names of files."""
    stages: bool = True
    """False: only find the records that cannot be taken: the batch is in the targets already."""
    routing: Routing | None = None
    """None: every target gets every record."""
    absent: Mapping[str, str] = field(default_factory=dict)
    """Targets that records name and that cannot be written, with the reason: their records fail. Without one:
    they are still to be created, and what only removes something from them comes to nothing."""
    may_leave: bool = False
    """Whether the writer may leave the end of a partition to a later batch: `Staged.left`."""


@dataclass(frozen=True, eq=False)
class Written:
    """What became of some records; those that are in neither are staged."""

    failed: Mapping[int, Failure] = field(default_factory=dict)
    """By row of the chunk. A record that one target cannot take is in none."""
    skipped: Sequence[int] = ()
    """Rows that the sink passes over, such as records without a value."""
    routed: Mapping[str, Indexes] | None = None
    """The rows that each target gets, also those among them that failed; None: every target gets all."""
    unrouted: Mapping[str, Indexes] = field(default_factory=dict)
    """Rows that are for no target and are filtered for it, by the name under which they are counted."""
    unknown_targets: frozenset[str] = frozenset()
    """Targets that records name and that the writer was told nothing of: the batch has to run again."""


class SinkWriter(Protocol):
    """Stages the records of one task; runs in a Spark task, or in the worker for sinks without Spark."""

    def write(self, records: Sequence[Records], origins: RowOrigins) -> Written:
        """Take the records of one chunk; `origins` tells the source offset of each row of the chunk."""

    def close(self) -> Mapping[str, Staged]:
        """What is staged for each target; nothing of it is visible yet."""

    def discard(self) -> None:
        """Remove what was staged: the task has failed."""


OpenWriter = Callable[[WriterTask], SinkWriter]
"""Picklable: a class, or a function of a module."""


@dataclass(frozen=True)
class SinkPlan:
    """What the tasks of a batch need of its sink. Plain data: it crosses process boundaries."""

    writer: OpenWriter
    targets: Sequence[TargetTask]
    routing: Routing | None = None
    absent: Mapping[str, str] = field(default_factory=dict)
    may_leave: bool = False
    whole_partitions: bool = False
    """Whether all records of a partition go to one task."""


# -- in the sink manager --


@dataclass(frozen=True)
class Commit:
    """All that one target is to make visible at once."""

    checkpoint: Checkpoint
    expect: Checkpoint | None
    """What the target had when the batch was planned: on anything else the commit is refused."""
    plan: Any
    """The target's own, by which the rows were written."""
    staged: Staged = field(default_factory=Staged)
    result: BatchResult = field(default_factory=BatchResult)
    """Of the whole batch, for what a target says about a commit."""
    valid_through: dt.datetime | None = None
    """The time up to which every partition has been read, as far as records tell; None: not known."""
    expect_lost: str | None = None
    """The last commit that the target was known to have lost by a rollback. A rollback
    that nobody knew of when the batch was planned must not be covered by a commit of a job that routes."""


@dataclass(frozen=True)
class Receipt:
    """A target after a commit. `id` is the target's own name of the commit; None if it had it all before."""

    checkpoint: Checkpoint | None
    id: Any = None
    file_bytes: Sequence[int] = ()
    """The size of each file that the commit added, where the target has files."""


@dataclass(frozen=True)
class Unfinished:
    """A commit of which a target has lost something that was staged: that has to be written again."""

    batch: Batch
    """The same as then."""
    plan: Any
    """By which it was written, for what is lost."""
    lost: str
    """What is lost, as a sentence names it."""


@dataclass(frozen=True)
class RowOffsets:
    """The source offsets of the rows that a target has."""

    layers: Mapping[Partition, Sequence[BitMap64]]
    """First the offsets that are there at least once, then those that are there at least twice, and so on."""
    foreign_rows: int = 0
    """Rows whose origin is not known, because another engine wrote or rewrote them."""


@dataclass(frozen=True)
class TargetAudit:
    """What a target can prove at one moment, for `verify`: its checkpoint and what it had with it."""

    found: FoundCheckpoint
    rows: int | None = None
    """None: nobody can count them."""
    other_writers: bool = False
    """Whether somebody else has changed its rows."""
    row_offsets: Callable[[], RowOffsets] | None = None
    """Reads all rows of that moment, for `verify --deep`."""


class Target(Protocol):
    """A table, a prefix of an object store, a file: one place that gets the job's records.

    Implementations inherit from it, for the answers that few targets have to give.
    """

    name: str

    def found(self) -> FoundCheckpoint:
        """What it says of the job, read anew. ConfigError if it does not exist and is not to be created."""

    def plan(self, new_fields: Mapping[tuple[str, ...], Any]) -> Any:
        """How to write for the target as it is, or as it will be with new fields. Picklable.

        By the plan of a target that is missing nothing is staged: tasks tell the fields of its records.
        """

    def create(self, fields: Mapping[tuple[str, ...], Any]) -> None:
        """Create a target that is missing, for records with these fields; if somebody else has done so
        meanwhile, theirs is as good."""
        raise FatalError(f"{self.name} cannot be created from records")

    def commit(self, commit: Commit) -> Receipt:
        """Make staged rows visible, with the checkpoint: compare-and-set.

        CommitConflict: nothing landed. CommitUnknown: nobody knows, ask `found`. RowsRefused: nothing landed
        because of some rows; the batch runs again at once, and by the next `plan` these rows fail, also if it
        only looks after a crash: the target keeps them with the checkpoint.
        """

    def unfinished(self) -> Unfinished | None:
        """What `found` has found to be lost of the last commit; None: nothing."""
        return None

    def finish(self, staged: Staged) -> None:
        """Make visible what was staged again of an unfinished commit."""
        raise FatalError(f"{self.name} has no commit that is not finished")

    def discard(self, staged: Staged) -> None:
        """Remove what was staged and certainly not committed."""

    def sweep(self, landed: str, now: dt.datetime) -> int:
        """Remove what batches that died have left behind, and tell how much; `landed` is the last commit."""
        return 0

    def commits(self, most: int) -> Sequence[TableCommit]:
        """Its last commits, the newest first, whoever made them; empty: it remembers none."""
        return ()

    def audit(self) -> TargetAudit:
        """What `verify` may hold against the checkpoint."""
        return TargetAudit(self.found())


@dataclass(frozen=True)
class Message:
    """Something for other programs to read, sent in the Kafka transaction of the batch."""

    topic: str
    key: bytes
    value: bytes


@dataclass(frozen=True)
class Inheritance:
    """Where a program that may have had the job before tells what its workers have written."""

    topic: str
    group: str
    """Its own; what is before the offsets of this group is done with."""


@dataclass(frozen=True)
class LeftRecord:
    partition: int
    offset: int
    value: bytes | None


@dataclass(frozen=True)
class LeftBehind:
    """What that program has told since, and how far its topic was read."""

    records: Sequence[LeftRecord]
    positions: Mapping[int, int]


class Sink(Protocol):
    """The open sink of one job. Implementations inherit from it."""

    writer: OpenWriter
    """Who stages the records of a task."""
    commit_seconds: float | None = None
    """How long a commit may take, where it takes longer than an answer, as a query does."""

    routing: Routing | None = None
    """None: every target gets every record."""

    whole_partitions: bool = False
    """Whether all records of a partition have to be in one task, because their order tells files apart."""

    def targets(self) -> Sequence[Target]:
        """Those that the config names."""

    def target(self, name: str) -> Target:
        """The target of this name, also one that only records name; whether it exists, `found` tells."""
        return next(one for one in self.targets() if one.name == name)

    def known_targets(self) -> Sequence[Target]:
        """All targets that have a checkpoint of the job, also those that only records name. May take long."""
        return self.targets()

    def event_topics(self) -> Sequence[str]:
        """The topics that `events` are for; created if they are missing."""
        return ()

    def events(
        self, commit: str, receipts: Mapping[str, Receipt] | None, valid_through: dt.datetime | None
    ) -> Sequence[Message]:
        """What is told of a batch; without receipts it was in all targets before, and is published late."""
        return ()

    def inheritance(self) -> Inheritance | None:
        """Where another program may have left work of this job unfinished; None: nowhere."""
        return None

    def inherit(self, left: LeftBehind) -> None:
        """Make visible what its workers have written and it has not; what is visible already stays as it is.
        Called before the first batch of a job that takes over, perhaps several times."""
        return

    def close(self) -> None:
        """The job has ended."""
        return


@dataclass(frozen=True)
class Filling:
    """When a batch is worth it, for a sink with one target whose files have a size."""

    rows: int
    """Of one partition: so many fill its files. What is less waits."""
    key: str
    """The setting that says so."""
    flush_at: Callable[[dt.datetime], dt.datetime] | None = None
    """When what waits since a moment is written although it fills no file; None: never."""
    look_seconds: float | None = None
    """Records may end a file by what they are: as often are those that wait looked at; None: they do not."""


@dataclass(frozen=True)
class SinkOptions:
    """What the manager must know of a sink's config before anything is opened."""

    commit_seconds: float = 0.0
    """Time from commit to commit while records come in; 0: a commit as soon as there are records."""
    most_rows: int | None = None
    most_bytes: int | None = None
    """Of a batch, where the sink bears less than `icestream.commit.rows` and `.bytes` say."""
    needs_keys: bool = False
    """Whether the sink reads the keys of records; otherwise nobody converts those that cannot be wrong."""
    needs_headers: bool = False
    """Whether the sink reads the headers of records; otherwise nobody fetches those that cannot be wrong."""
    group: str | None = None
    """The consumer group, where it is not connect-<name>."""
    transactional_prefix: str = ""
    maintenance: MaintenanceRhythm | None = None
    """When targets are maintained; None: never."""
    commit_threads: int = 1
    """How many targets are committed at the same time."""
    commit_answer_seconds: float | None = None
    """After so long the outcome of a commit is unknown, and the target is asked; None: as for other calls."""
    most_failed_commits: int | None = None
    """So many failed commits in a row fail the connector; None: it tries again for as long as it takes."""
    filling: Filling | None = None
    """None: whatever there is makes a batch."""


class SinkPlugin(ConnectorPlugin, ABC):
    """Named by an entry point of the group `icestream.connectors`."""

    kind: ClassVar[Literal["sink", "source"]] = "sink"
    probes_kafka: ClassVar[bool] = True
    """Whether `validate` asks Kafka and the Schema Registries of a config if they are there."""
    uses_spark: ClassVar[bool] = False
    """Whether its batches are Spark jobs; otherwise they run in the worker."""
    answer_seconds: ClassVar[float | None] = 300.0
    """After so long a call to a target is left behind, and tried again: longer than the limits of clients,
    with their retries. None: a call takes as long as it takes."""

    def options(self, config: Config) -> SinkOptions:
        return SinkOptions()

    def job_from_environment(self, environ: Mapping[str, str]) -> EnvironmentJob | None:
        """For a sink that coordinates the workers of another product: the job that environment variables
        describe. ConfigError, with every variable that is missing. None: there is no such thing."""
        return None

    def topics_file(self, environ: Mapping[str, str]) -> TopicsFileRules | None:
        """For a sink that makes connectors from a file which lists topics: what it makes of one, in this
        environment. ConfigError, with every variable that is wrong. None: there is no such thing."""
        return None

    def maintainer(self, name: str, config: Config, target: str) -> Maintainer | None:
        """Who maintains a target of the connector, to be closed after use; None: nobody."""
        return None

    @abstractmethod
    def open(self, name: str, config: Config) -> Sink:
        """The sink of the connector with this name. Called again after a call that did not answer in time."""

    def open_on_spark(self, name: str, config: Config, queries: SparkQueries | None) -> Sink:
        """As `open`, for a job that runs: one whose commits need Spark SQL keeps `queries`. They are None
        where batches do not run on Spark."""
        return self.open(name, config)


def too_many_targets(routing: Routing, example: str) -> str:
    """What is wrong if records name more targets than that."""
    return (
        f"the records of one batch name more than {routing.most_targets} tables, such as '{example}': a "
        f"mistake, or a hostile producer. Correct the route, or allow more with '{routing.most_targets_key}'."
    )


def layered(parts: Iterable[BitMap64]) -> list[BitMap64]:
    """Offsets that are there at least once, at least twice, and so on, from sets that may overlap."""
    layers: list[BitMap64] = []
    for part in parts:
        again = part
        for number, layer in enumerate(layers):
            layers[number], again = layer | again, layer & again
        if again:
            layers.append(again)
    return layers
