"""Commits files of Java's workers to their tables, as its coordinator would: same summary, same offsets, so
that either can go on where the other stopped. Called by the coordinator, and by a sink that takes over.

The table decides: its snapshots hold the offsets of the control topic up to which it has all files
(`kafka.connect.offsets.<topic>.<group>`). A commit lands only on the offsets that it was made for.
"""

from __future__ import annotations

import datetime as dt
import json
import logging
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchNamespaceError,
    NoSuchTableError,
    ValidationException,
)
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH

from icestream.api.errors import (
    CommitConflict,
    CommitUnknown,
    FatalError,
    IcestreamError,
    RetriableError,
    SinkUnavailable,
)
from icestream.connectors.iceberg.catalogs.opening import sink_errors
from icestream.connectors.iceberg.commits.guarded_append import guarded_append
from icestream.connectors.iceberg.commits.light_metadata import LightTransaction, share_history
from icestream.connectors.iceberg.coordinator.events import TableReference, WrittenFile
from icestream.connectors.iceberg.coordinator.rounds import Envelope
from icestream.connectors.iceberg.coordinator.written_files import data_file, files_in
from icestream.deadlines import Overdue, within
from icestream.waits import waiting_for

_log = logging.getLogger(__name__)

OFFSETS = "kafka.connect.offsets"
COMMIT_ID = "kafka.connect.commit-id"
TASK_ID = "kafka.connect.task-id"
VALID_THROUGH = "kafka.connect.valid-through-ts"
_REMEMBERED = "icestream.control-offsets"
"""A table property with the same offsets: `expire_snapshots` may remove the snapshots that hold them."""
_ATTEMPTS = 5
_ANSWER_SECONDS = 300.0
_NEWEST_FORMAT = 2

Floor = Mapping[int, int]
"""The next offset that a table needs, by partition of the control topic."""


@dataclass(frozen=True)
class JavaJob:
    """Whose files these are, and how its tables know them."""

    control_topic: str
    group: str
    task_id: str
    branch: str = MAIN_BRANCH
    branches: Mapping[str, str] = field(default_factory=dict)
    """Of tables that have their own."""

    @property
    def offsets_key(self) -> str:
        return f"{OFFSETS}.{self.control_topic}.{self.group}"

    @property
    def remembered_key(self) -> str:
        return f"{_REMEMBERED}.{self.control_topic}.{self.group}"

    def branch_of(self, table: TableReference) -> str:
        return self.branches.get(str(table), self.branch)


@dataclass(frozen=True)
class Round:
    """What all commits of one round say."""

    commit_id: uuid.UUID
    positions: Mapping[int, int]
    """How far the control topic was read."""
    valid_through: dt.datetime | None = None


@dataclass(frozen=True)
class Outcome:
    """What became of the files of one table; with a failure they wait, and nothing of theirs is settled."""

    table: TableReference
    envelopes: Sequence[Envelope]
    snapshot_id: int | None = None
    """None: the table had them all."""
    files: int = 0
    rows: int = 0
    failure: RetriableError | None = None
    file_bytes: Sequence[int] = ()
    """The size of each file."""


@dataclass(frozen=True)
class _Prepared:
    reference: TableReference
    envelopes: Sequence[Envelope]
    table: Table
    floor: Floor
    files: Sequence[WrittenFile]


class TableCommits:
    """The tables of one job. Called from one thread; it commits to several tables at the same time."""

    def __init__(
        self, catalog: Catalog, job: JavaJob, threads: int, control_ends: Callable[[], Mapping[int, int]]
    ) -> None:
        share_history()
        self._catalog = catalog
        self._job = job
        self._control_ends = control_ends
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="commit")

    def commit(
        self,
        round_: Round,
        envelopes: Iterable[Envelope],
        refuse_fenced: Callable[[], None],
        reached: Callable[[str], None] = lambda point: None,
    ) -> list[Outcome]:
        """Commit to every table what it does not have. FatalError, before any commit, if there is something
        that we cannot commit. `refuse_fenced` is asked when somebody else has committed meanwhile."""
        left = _by_table(envelopes)
        outcomes: list[Outcome] = []
        for _ in range(_ATTEMPTS):
            answers = self._each(lambda one: self._prepare(one, round_), left.values())
            outcomes += [one for one in answers if isinstance(one, Outcome)]
            prepared = [one for one in answers if isinstance(one, _Prepared)]
            reached("prepared")
            lost: dict[tuple[str, ...], list[Envelope]] = {}
            for outcome in self._each(lambda one: self._land(one, round_), prepared):
                if isinstance(outcome.failure, CommitConflict):
                    _log.warning("nothing was committed: %s", outcome.failure)
                    lost[outcome.table.identifier] = list(outcome.envelopes)
                else:
                    outcomes.append(outcome)
            left = lost
            if not left:
                return outcomes
            # Somebody else has committed. If that was a newer manager, this one ends.
            refuse_fenced()
        for waiting in left.values():
            failure = CommitConflict(f"{waiting[0].written.table}: somebody else commits all the time")
            outcomes.append(Outcome(waiting[0].written.table, waiting, failure=failure))
        return outcomes

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _each(self, work: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        return list(self._pool.map(work, items))

    # -- before the commit --

    def _prepare(self, envelopes: list[Envelope], round_: Round) -> _Prepared | Outcome:
        reference = envelopes[-1].written.table
        try:
            table = self._in_time(lambda: self._loaded(reference), f"loading table {reference}")
            _refuse_other_table(reference, envelopes, table.metadata)
            _refuse_missing_branch(reference, self._job.branch_of(reference), table.metadata)
        except RetriableError as failure:
            return Outcome(reference, envelopes, failure=failure)
        floor = self._floor(reference, table.metadata)
        self._refuse_other_topic(reference, floor, round_)
        new = [one for one in envelopes if one.offset >= floor.get(one.partition, 0)]
        files = files_in(new)
        if not files:
            return Outcome(reference, envelopes)
        _refuse_unsupported(reference, new, table.metadata)
        return _Prepared(reference, envelopes, table, floor, files)

    def _loaded(self, reference: TableReference) -> Table:
        with sink_errors(f"loading table {reference}"):
            try:
                return self._catalog.load_table(reference.identifier)
            except (NoSuchTableError, NoSuchNamespaceError):
                raise MissingTable(
                    f"table '{reference}' is not in catalog '{self._catalog.name}' (the workers' is "
                    f"'{reference.catalog}'): its files wait in the control topic. Restore it, or give "
                    "its files up (docs/job-manager.md)"
                ) from None

    def _floor(self, reference: TableReference, metadata: TableMetadata) -> Floor:
        return control_offsets(metadata, self._job.branch_of(reference), self._job)

    def _refuse_other_topic(self, reference: TableReference, floor: Floor, round_: Round) -> None:
        """A table that is beyond the end of the topic would take everything that comes for old."""
        if all(at <= round_.positions.get(number, 0) for number, at in floor.items()):
            return
        ends = self._control_ends()
        beyond = {number: at for number, at in floor.items() if at > ends.get(number, 0)}
        if beyond:
            raise FatalError(
                f"table '{reference}' has control topic '{self._job.control_topic}' up to {beyond}, and it "
                f"ends at {dict(ends)}: it was deleted and created again. Give the connector and this job "
                "another control topic"
            )

    # -- the commit --

    def _land(self, prepared: _Prepared, round_: Round) -> Outcome:
        try:
            doing = f"committing to {prepared.reference}"
            snapshot = self._in_time(lambda: self._append(prepared, round_), doing)
        except RetriableError as failure:
            return Outcome(prepared.reference, prepared.envelopes, failure=failure)
        rows = sum(file.record_count for file in prepared.files)
        _log.info(
            "committed %s rows in %s files to %s",
            rows,
            len(prepared.files),
            prepared.reference,
            extra={"commit": str(round_.commit_id)},
        )
        sizes = [file.file_size_in_bytes for file in prepared.files]
        return Outcome(
            prepared.reference, prepared.envelopes, snapshot, len(prepared.files), rows, file_bytes=sizes
        )

    def _append(self, prepared: _Prepared, round_: Round) -> int:
        job, reference, table = self._job, prepared.reference, prepared.table
        branch = job.branch_of(reference)
        then = {
            number: max(prepared.floor.get(number, 0), round_.positions.get(number, 0))
            for number in sorted({*prepared.floor, *round_.positions})
        }
        offsets = json.dumps({str(number): at for number, at in then.items()}, separators=(",", ":"))
        summary = {job.offsets_key: offsets, COMMIT_ID: str(round_.commit_id), TASK_ID: job.task_id}
        if round_.valid_through is not None:
            summary[VALID_THROUGH] = java_moment(round_.valid_through)
        transaction = LightTransaction(table)
        transaction.set_properties({job.remembered_key: offsets})

        def refuse_moved(metadata: TableMetadata) -> None:
            if metadata.table_uuid != table.metadata.table_uuid or metadata.spec() != table.metadata.spec():
                raise CommitConflict(f"{reference} was changed while its files were committed")
            if (found := self._floor(reference, metadata)) != prepared.floor:
                raise CommitConflict(
                    f"{reference} has the control topic up to {dict(found)}, not {dict(prepared.floor)}: "
                    "somebody else committed"
                )

        append = guarded_append(transaction, branch, summary, refuse_moved)
        for file in prepared.files:
            append.append_data_file(data_file(file, table.metadata))
        with sink_errors(f"writing manifests of {reference}"):
            try:
                append.commit()
            except CommitFailedException as error:
                raise CommitConflict(f"{reference}: {error}") from error
        try:
            with waiting_for(f"catalog: commit to {reference}"):
                transaction.commit_transaction()
        except Exception as error:  # whatever the catalog's client raises: the table is asked what happened
            self._ask(prepared, append, error)
        return int(append.snapshot_id)

    def _ask(self, prepared: _Prepared, append: Any, error: Exception) -> None:
        """Return if a commit landed after all; raise what it is otherwise. Nothing is deleted before the
        table has answered."""
        reference = prepared.reference
        refused = isinstance(error, (CommitFailedException, ValidationException))
        if not refused:
            _log.warning("commit to %s has an unknown outcome (%s); asking the table", reference, error)
        try:
            metadata = self._loaded(reference).metadata
        except (SinkUnavailable, MissingTable) as unavailable:
            raise CommitUnknown(
                f"{reference}: a commit may have landed and the catalog does not answer: {unavailable}"
            ) from error
        if metadata.snapshot_by_id(append.snapshot_id) is not None:
            _log.info("commit to %s landed, although it was answered: %s", reference, error)
            return
        if refused and self._floor(reference, metadata) == prepared.floor:
            append.clean_up()
        raise CommitConflict(f"{reference}: the commit did not land: {error}", certain=refused) from error

    def _in_time(self, call: Callable[[], Any], doing: str) -> Any:
        try:
            return within(_ANSWER_SECONDS, call, doing)
        except Overdue:
            raise CommitUnknown(f"{doing}: no answer within {_ANSWER_SECONDS:.0f} s") from None


class MissingTable(SinkUnavailable):
    """There is no such table, or another one in its place. Its files wait: nothing is dropped."""


def control_offsets(metadata: TableMetadata, branch: str, job: JavaJob) -> Floor:
    """Up to where of the control topic a table has all files: by the nearest snapshot that says so, or by the
    table property if the history is cut."""
    by_id = {one.snapshot_id: one for one in metadata.snapshots}
    snapshot = metadata.snapshot_by_name(branch)
    text = None
    while snapshot is not None and text is None:
        text = snapshot.summary.additional_properties.get(job.offsets_key) if snapshot.summary else None
        parent = snapshot.parent_snapshot_id
        snapshot = by_id.get(parent) if parent is not None else None
    text = text or metadata.properties.get(job.remembered_key)
    try:
        return {int(number): int(at) for number, at in json.loads(text or "{}").items()}
    except (ValueError, AttributeError, TypeError):
        raise FatalError(
            f"'{job.offsets_key}' in a snapshot of the table is '{str(text)[:100]}', which is no map of "
            "partitions to offsets: roll the table back to before that snapshot"
        ) from None


def java_moment(moment: dt.datetime) -> str:
    """As Java's OffsetDateTime writes a moment of UTC: no more digits than it needs, in threes."""
    text = moment.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M")
    if moment.second or moment.microsecond:
        text += f":{moment.second:02d}"
    if moment.microsecond:
        whole, rest = divmod(moment.microsecond, 1000)
        text += f".{moment.microsecond:06d}" if rest else f".{whole:03d}"
    return f"{text}Z"


def _by_table(envelopes: Iterable[Envelope]) -> dict[tuple[str, ...], list[Envelope]]:
    found: dict[tuple[str, ...], list[Envelope]] = {}
    for one in envelopes:
        found.setdefault(one.written.table.identifier, []).append(one)
    return found


def _refuse_other_table(
    reference: TableReference, envelopes: Sequence[Envelope], metadata: TableMetadata
) -> None:
    others = {one.written.table.uuid for one in envelopes} - {metadata.table_uuid, None}
    if others:
        raise MissingTable(
            f"table '{reference}' is not the one that its files were written for: its id is "
            f"{metadata.table_uuid}, theirs {', '.join(sorted(map(str, others)))}. It was dropped and "
            "created again; restore the old one, or give its files up (docs/job-manager.md)"
        )


def _refuse_missing_branch(reference: TableReference, branch: str, metadata: TableMetadata) -> None:
    if not metadata.snapshots and branch != MAIN_BRANCH:
        raise MissingTable(
            f"table '{reference}' has no snapshot yet, so that its branch '{branch}' cannot begin: create "
            "the branch; its files wait in the control topic"
        )


def _refuse_unsupported(
    reference: TableReference, envelopes: Sequence[Envelope], metadata: TableMetadata
) -> None:
    """Before anything is committed: what PyIceberg cannot commit is for Java's own coordinator."""
    hand_back = "nothing was committed; hand the job back to the Java coordinator (docs/job-manager.md)"
    if metadata.format_version > _NEWEST_FORMAT:
        raise FatalError(
            f"table '{reference}' has format version {metadata.format_version}, and this job manager commits "
            f"up to {_NEWEST_FORMAT}: {hand_back}"
        )
    spec = metadata.spec().spec_id
    for one in envelopes:
        if deletes := one.written.delete_files:
            raise FatalError(
                f"'{deletes[0].file_path}' of table '{reference}' is a delete file, and this job manager "
                f"only appends: {hand_back}"
            )
        for file in one.written.data_files or ():
            if file.content:
                raise FatalError(f"'{file.file_path}' of table '{reference}' is no data file: {hand_back}")
            if (file.spec_id or 0) != spec:
                raise FatalError(
                    f"'{file.file_path}' of table '{reference}' has partition spec {file.spec_id or 0}, and "
                    f"the table's is {spec} by now: {hand_back}"
                )


def failures(outcomes: Iterable[Outcome]) -> list[IcestreamError]:
    return [one.failure for one in outcomes if one.failure is not None]
